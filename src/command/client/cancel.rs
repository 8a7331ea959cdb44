//! `pleach cancel`: ends a study on a manager.

use super::connect;
use crate::cli::CancelArgs;
use crate::exit::CommandResult;
use crate::terminal::print_line;
use pleach_client::{InterruptibleWait, plain};

/// Runs the command.
pub(in crate::command) fn execute(args: &CancelArgs) -> CommandResult {
    let client = connect(&args.manager, InterruptibleWait::until_killed()?)?;
    let study = client.cancel(&args.id)?;
    print_line(&format!("study {} is {}", plain(&study.id), study.state));
    Ok(())
}
