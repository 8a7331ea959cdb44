//! `pleach forget`: removes studies that have ended from a manager.

use super::connect;
use crate::cli::ForgetArgs;
use crate::exit::CommandResult;
use crate::terminal::print_line;
use pleach_client::{InterruptibleWait, plain};
use pleach_planner::memory_size::human;

/// Runs the command.
pub(in crate::command) fn execute(args: &ForgetArgs) -> CommandResult {
    let client = connect(&args.manager, InterruptibleWait::until_killed()?)?;
    // The first refusal ends the command. The studies before it are removed, and a repeated command may name them
    // again.
    for id in &args.ids {
        let forgotten = client.forget(id)?;
        let (id, bytes) = (plain(&forgotten.id), human(forgotten.bytes));
        print_line(&format!("study {id} is removed, {bytes} are freed"));
    }
    Ok(())
}
