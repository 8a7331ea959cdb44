//! `pleach status`: shows a manager's studies and workers once.

use super::{connect, table};
use crate::cli::StatusArgs;
use crate::exit::CommandResult;
use crate::terminal::{print_json, print_line};
use pleach_api::schema::{ScalingStatus, StudyStatus, WorkerStatus};
use pleach_client::InterruptibleWait;
use serde::Serialize;

#[derive(Serialize)]
struct Status {
    studies: Vec<StudyStatus>,
    workers: Vec<WorkerStatus>,
    scaling: ScalingStatus,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &StatusArgs) -> CommandResult {
    let client = connect(&args.manager, InterruptibleWait::until_killed()?)?;
    let studies = match &args.id {
        Some(id) => vec![client.study(id)?],
        None => client.studies()?,
    };
    let status = Status { studies, workers: client.workers()?, scaling: client.scaling()? };
    if args.json {
        return print_json(&status);
    }
    if status.studies.is_empty() {
        print_line("no studies");
    } else {
        print_line(&table::studies(&status.studies));
        // One study, or those that cost now: old costs would hide the rest.
        let is_shown = |study: &&StudyStatus| args.id.is_some() || !study.state.is_over();
        status.studies.iter().filter(is_shown).filter_map(table::cost).for_each(|line| print_line(&line));
    }
    print_line("");
    if status.workers.is_empty() {
        print_line("no workers");
    } else {
        print_line(&table::workers(&status.workers));
    }
    let scaling = table::scaling(&status.scaling);
    if !scaling.is_empty() {
        print_line("");
        scaling.iter().for_each(|line| print_line(line));
    }
    Ok(())
}
