//! `pleach drain`: lets a worker finish its running tasks and leave.

use super::connect;
use crate::cli::DrainArgs;
use crate::exit::CommandResult;
use crate::terminal::print_line;
use pleach_client::{InterruptibleWait, plain};

/// Runs the command.
pub(in crate::command) fn execute(args: &DrainArgs) -> CommandResult {
    let client = connect(&args.manager, InterruptibleWait::until_killed()?)?;
    let worker = client.drain(&args.worker)?;
    print_line(&format!("worker {} is {}", plain(&worker.name), worker.state));
    Ok(())
}
