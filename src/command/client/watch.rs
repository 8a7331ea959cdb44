//! `pleach watch`: shows a manager's studies and workers until the studies have ended.

use super::connect;
use super::watched::WatchedStudies;
use crate::cli::WatchArgs;
use crate::exit::CommandResult;
use crate::interrupt::Interrupt;
use crate::terminal::print_line;
use pleach_client::{InterruptibleWait, follow};

/// Runs the command.
pub(in crate::command) fn execute(args: &WatchArgs) -> CommandResult {
    let mut interrupt = Interrupt::listen()?;
    let waiting = InterruptibleWait::until_killed()?;
    waiting.listen_to(interrupt.take_stop_requested());
    waiting.set_message("studies continue; pleach cancel ends them".to_owned());
    let client = connect(&args.manager, waiting)?;
    let mut view = WatchedStudies::new();
    let ended = follow::watch(&client, args.id.as_deref(), |studies, workers| view.show(studies, workers));
    view.finish();
    let watched = ended?;
    if watched.is_empty() {
        print_line("no open studies");
    }
    // With several studies, the view has shown their ends. A single study determines the exit code.
    if args.id.is_some() {
        watched.iter().try_for_each(follow::verdict)?;
    }
    Ok(())
}
