//! `pleach drain`: lets a worker finish its running tasks and leave.

use crate::cli::DrainArgs;
use crate::client::progress_bars::plain;
use crate::client::{Client, Waiting};
use crate::exit::CommandResult;
use crate::terminal::print_line;

/// Runs the command.
pub(super) fn execute(args: &DrainArgs) -> CommandResult {
    let client =
        Client::new(&args.manager.options(), super::manager_token().as_deref(), Waiting::until_killed()?)?;
    let worker = client.drain(&args.worker)?;
    print_line(&format!("worker {} is {}", plain(&worker.name), worker.state));
    Ok(())
}
