//! `pleach cancel`: ends a study on a manager.

use crate::cli::CancelArgs;
use crate::client::show::plain;
use crate::client::{Client, Waiting};
use crate::exit::Outcome;
use crate::output::print_line;

/// Runs the command.
pub(super) fn execute(args: &CancelArgs) -> Outcome {
    let client = Client::new(&args.manager, super::manager_token().as_deref(), Waiting::until_killed()?)?;
    let study = client.cancel(&args.id)?;
    print_line(&format!("study {} is {}", plain(&study.id), study.state));
    Ok(())
}
