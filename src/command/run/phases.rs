//! Executes a study in phases, each in a folder of its own. The survivors of a phase are stored before the next begins.
//!
//! All phases run on one engine, so that a phase reuses the results of earlier ones. A resumed study continues with the
//! interrupted phase. The journals of earlier phases keep their responses until the study has ended.

use super::part::{RunEnd, Runner, notice_of_nothing};
use super::{already_complete, nothing_left, status};
use crate::cli::RunArgs;
use crate::command::load_costs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_execution::result_files::phases as results;
use pleach_execution::rounds::phases;
use pleach_execution::session::{Existing, SessionError};
use pleach_report::summary;
use pleach_results::folder::Folder;
use pleach_results::journal;
use pleach_study::PreparedStudy;
use std::path::Path;
use std::time::Instant;

/// Executes all phases of a study and writes their combined results.
pub(super) fn execute(
    args: &RunArgs,
    runner: &mut Runner<'_>,
    study: &PreparedStudy,
    out: &Path,
) -> CommandResult {
    let start = Instant::now();
    let names = phases::names(&study.study);
    let mut first = study.of_phase(0, None)?;
    let digest = phases::digest(&first);
    // Reject a study that cannot be planned before writing any file.
    load_costs(&mut first, args.plan.buckets, args.cache.cache.as_deref())?;
    runner.can_be_planned(&first)?;
    let folder = match begin(args, out, &digest, &names)? {
        PhaseStart::Complete(folder) => return already_complete(args, &folder),
        PhaseStart::Open(folder) => folder,
    };
    folder.write_json("plan.json", &results::PlanOfPhases::new(&study.study.name, &digest, &names))?;
    let notify = |what: &str| {
        if !args.quiet && !args.json {
            print_line(what);
        }
    };
    let parts = phases::execute(study, out, notify, |phase, out_of_phase| {
        match runner.execute(phase.prepared, out_of_phase, phase.retains_results)? {
            RunEnd::Now(part) => Ok(*part),
            RunEnd::Before(folder) => Err(CommandError::Input(format!(
                "--out {}: {} has no {} to continue from; a new folder is allowed",
                out.display(),
                folder.path().display(),
                journal::NAME
            ))),
        }
    })?;
    runner.end();
    let phases = phases::report_phases(&parts, &names);
    let run = results::write(&phases, start.elapsed().as_secs_f64(), &folder)?;
    let failed: usize = parts.iter().map(|(part, _)| part.collected.failed()).sum();
    // End the last phase first: a missing journal then proves that all results are written.
    for (part, _) in parts.iter().rev() {
        part.session.end(failed == 0)?;
    }
    if args.json {
        print_json(&run)?;
    } else if !args.quiet {
        summary::lines_of_phases(&phases, &run, folder.path(), Some(runner.memory_bytes))
            .iter()
            .for_each(|line| print_line(line));
        run.cache.iter().flat_map(|cache| &cache.warnings).for_each(|report| {
            print_line(&format!("--cache: {report}"));
        });
        for (part, _) in &parts {
            let told = part.written.gallery.summary_line(runner.previews(), &part.session.folder);
            told.iter().for_each(|told| print_line(told));
        }
    }
    nothing_left(parts.iter().map(|(part, _)| part.retained_bytes).sum())?;
    parts.iter().try_for_each(|(part, _)| status(&part.collected, &part.session.folder))
}

enum PhaseStart {
    /// All phases have ended.
    Complete(Folder),
    /// The study can be run.
    Open(Folder),
}

/// Opens the folder of all phases. `args` decides how to treat results of an earlier run.
fn begin(args: &RunArgs, out: &Path, digest: &str, names: &[String]) -> CommandResult<PhaseStart> {
    let folder = Folder::take(out, digest)?;
    let journals = names.iter().filter(|name| out.join(name).join(journal::NAME).exists()).count();
    let is_done = folder.holds("run.json");
    // Journals are removed once all results are written. With failed runs they stay, so that these can be retried.
    let is_complete = is_done && journals < names.len();
    let fail = |text: &str| Err(CommandError::Input(format!("--out {}: {text}", out.display())));
    match args.existing() {
        Existing::Resume => {
            if journals == 0 && !is_done {
                notice_of_nothing(args, out);
            }
            return Ok(if is_complete { PhaseStart::Complete(folder) } else { PhaseStart::Open(folder) });
        }
        Existing::Keep if is_complete => {
            return Err(SessionError::Complete { folder: out.to_owned() }.into());
        }
        Existing::Keep if is_done => {
            return Err(SessionError::SomeFailed { folder: out.to_owned() }.into());
        }
        Existing::Keep if journals > 0 => {
            return fail(
                "holds an interrupted run of this study; --resume continues it, --overwrite starts again",
            );
        }
        Existing::Keep | Existing::Overwrite => {}
    }
    folder.clear()?;
    for name in names {
        let part = folder.part(name);
        part.clear()?;
        if part.holds(journal::NAME) {
            part.remove(journal::NAME)?;
        }
    }
    Ok(PhaseStart::Open(folder))
}
