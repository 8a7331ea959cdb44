//! `pleach drain`: lets a worker end what it has begun, and leave.

use crate::cli::DrainArgs;
use crate::client::show::plain;
use crate::client::{Client, Waiting};
use crate::exit::Outcome;
use crate::output::print_line;

/// Runs the command.
pub(super) fn execute(args: &DrainArgs) -> Outcome {
    let client = Client::new(&args.manager, super::manager_token().as_deref(), Waiting::until_killed()?)?;
    let worker = client.drain(&args.worker)?;
    print_line(&format!("worker {} is {}", plain(&worker.name), worker.state));
    Ok(())
}
