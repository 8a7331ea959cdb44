//! `pleach explain`: prints what became of each task of an evaluation, from the records of a result folder or of a manager's
//! study, or predicts it from a study file.

mod prediction;
mod recorded;

use super::client::connect;
use crate::cli::{ExplainArgs, OverheadArg};
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_json;
use pleach_client::InterruptibleWait;
use pleach_results::provenance::{ExplainError, Explanation, RunSelection, explain_folder};
use pleach_workflow::Registry;

/// Runs the command.
pub(super) fn execute(args: &ExplainArgs, registry: &Registry) -> CommandResult {
    let answer = if args.target.is_dir() {
        refuse_planning_options(args, "a folder of results")?;
        explain_folder(&args.target, &selection(args)?)?
    } else if let Some(id) = id(args) {
        refuse_planning_options(args, "a manager's study")?;
        of_manager(args, id)?
    } else {
        return prediction::execute(args, registry);
    };
    if args.json {
        return print_json(&answer);
    }
    recorded::show(&answer);
    Ok(())
}

/// Returns the id of a manager's study. A file of the same name takes precedence.
fn id(args: &ExplainArgs) -> Option<&str> {
    let text = args.target.to_str()?;
    let is_id = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_id && !args.target.exists()).then_some(text)
}

fn selection(args: &ExplainArgs) -> CommandResult<RunSelection> {
    if args.evaluation.is_none() && args.tile.is_some() {
        return Err(CommandError::input("--tile: allowed with --evaluation only"));
    }
    Ok(RunSelection { evaluation: args.evaluation, tile: args.tile.clone(), phase: args.phase })
}

fn of_manager(args: &ExplainArgs, id: &str) -> CommandResult<Explanation> {
    let Some(manager) = args.manager.given() else {
        return Err(CommandError::Input(format!(
            "{id}: neither a folder of results nor a study file; --manager and --certs are required to explain study {id} \
             of a manager"
        )));
    };
    let client = connect(&manager, InterruptibleWait::until_killed()?)?;
    Ok(client.explanation(id, &selection(args)?)?)
}

/// Refuses options that only planning reads.
fn refuse_planning_options(args: &ExplainArgs, target: &str) -> CommandResult {
    let given = [
        ("--cache", args.cache.is_some()),
        ("--workers", args.workers.is_some()),
        ("--overhead", args.plan.buckets.overhead != OverheadArg::Auto),
        ("--parameter-sets", args.parameter_sets.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(CommandError::Input(format!(
            "{option}: allowed for a study file only, and {} is {target}",
            args.target.display()
        ))),
        None => Ok(()),
    }
}

impl From<ExplainError> for CommandError {
    fn from(error: ExplainError) -> Self {
        match &error {
            // The fields of a selection are options here.
            ExplainError::Selection { .. } => Self::Input(format!("--{error}")),
            _ => Self::of(&error),
        }
    }
}
