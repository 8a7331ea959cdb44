//! `pleach run`: executes a study from its file to its report.
//!
//! `part` executes a whole study or one phase, `memory_fit` plans it within the memory limit, and `phases` executes the
//! phases in order.

mod memory_fit;
mod part;
mod phases;

use crate::cli::RunArgs;
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::terminal::{print_json, print_line, print_notice};
use part::{RunEnd, Runner};
use pleach_execution::rounds::RoundResult;
use pleach_execution::session::Existing;
use pleach_report::summary;
use pleach_results::analysis::CollectedResponses;
use pleach_results::folder::Folder;
use pleach_study::{PreparedStudy, annotations};
use pleach_workflow::Registry;
use std::path::{Path, PathBuf};

impl RunArgs {
    /// Returns the treatment of existing results.
    fn existing(&self) -> Existing {
        match (self.resume, self.overwrite) {
            (true, _) => Existing::Resume,
            (false, true) => Existing::Overwrite,
            (false, false) => Existing::Keep,
        }
    }
}

/// Runs the command.
pub(super) fn execute(args: &RunArgs, registry: &Registry) -> CommandResult {
    let mut interrupt = Interrupt::listen()?;
    let prepared = PreparedStudy::load(&args.study, args.parameter_sets.as_deref(), registry)?;
    if !args.quiet {
        prepared.warnings().for_each(|warning| print_notice(&warning));
    }
    let mut runner = Runner::new(args, &prepared, &mut interrupt)?;
    if !args.quiet && !args.json {
        annotations::notes(&prepared.study).iter().for_each(|line| print_line(line));
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(&prepared.study.name));
    if prepared.study.phases.is_empty() {
        in_one_part(args, &mut runner, prepared, &out)
    } else {
        phases::execute(args, &mut runner, &prepared, &out)
    }
}

fn in_one_part(
    args: &RunArgs,
    runner: &mut Runner<'_>,
    prepared: PreparedStudy,
    out: &Path,
) -> CommandResult {
    let part = match runner.execute(prepared, out, false)? {
        RunEnd::Before(folder) => return already_complete(args, &folder),
        RunEnd::Now(part) => part,
    };
    runner.end();
    let RoundResult { collected, written, session, retained_bytes, .. } = *part;
    session.end(collected.failed() == 0)?;
    let folder = &session.folder;
    if args.json {
        print_json(&written.run)?;
    } else if !args.quiet {
        summary::lines(&written.run, &written.analyses, folder.path(), Some(runner.memory_bytes))
            .iter()
            .for_each(|line| print_line(line));
        written.run.cache.iter().flat_map(|cache| &cache.warnings).for_each(|report| {
            print_line(&format!("--cache: {report}"));
        });
        written.gallery.summary_line(runner.previews(), folder).iter().for_each(|told| print_line(told));
    }
    nothing_left(retained_bytes)?;
    status(&collected, folder)
}

/// Returns an internal error if regions were leaked. This is checked after the results are safe, since they are
/// correct.
fn nothing_left(left_bytes: u64) -> CommandResult {
    if left_bytes > 0 {
        return Err(CommandError::Internal(format!("{left_bytes} bytes of regions were not released")));
    }
    Ok(())
}

/// Reports that the folder is complete, in the format of a run.
fn already_complete(args: &RunArgs, folder: &Folder) -> CommandResult {
    if args.json {
        let fail = |error| {
            CommandError::Input(format!(
                "--out {}: failed to read run.json: {error}",
                folder.path().display()
            ))
        };
        let text = std::fs::read_to_string(folder.path().join("run.json")).map_err(fail)?;
        print_json(&serde_json::from_str::<serde_json::Value>(&text).map_err(CommandError::defect)?)?;
    } else if !args.quiet {
        print_line(&format!(
            "nothing to resume: {} contains all results of this study",
            folder.path().display()
        ));
    }
    Ok(())
}

/// Returns the result of the command. Failed runs give exit code 3.
fn status(collected: &CollectedResponses, folder: &Folder) -> CommandResult {
    let Some(first) = collected.runs.iter().find_map(|run| run.result.as_ref().err()) else { return Ok(()) };
    let file = folder.path().join("failed.csv");
    Err(CommandError::SomeFailed(format!(
        "{} of {} runs failed, listed in {}; the first: {}, {}: {}",
        collected.failed(),
        collected.runs.len(),
        file.display(),
        first.stage,
        first.at,
        first.cause,
    )))
}
