//! `pleach cancel`: ends a study on a manager.

use crate::cli::CancelArgs;
use crate::client::progress_bars::plain;
use crate::client::{Client, Waiting};
use crate::exit::CommandResult;
use crate::terminal::print_line;

/// Runs the command.
pub(super) fn execute(args: &CancelArgs) -> CommandResult {
    let client =
        Client::new(&args.manager.options(), super::manager_token().as_deref(), Waiting::until_killed()?)?;
    let study = client.cancel(&args.id)?;
    print_line(&format!("study {} is {}", plain(&study.id), study.state));
    Ok(())
}
