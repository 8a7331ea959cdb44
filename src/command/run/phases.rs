//! A study in phases: each in a folder of its own beside the others, what survives one written down before the next begins.
//!
//! All phases run on one engine, so that a phase finds what an earlier one has computed. An interrupted study goes on with
//! the phase that was interrupted: what earlier phases came to is in their journals, which stay until the study is over.

use super::part::{Ended, Part, Runner};
use super::{already_complete, nothing_left, status};
use crate::cli::RunArgs;
use crate::command::weigh;
use crate::exit::{Outcome, Stop};
use crate::journal;
use crate::output::folder::Folder;
use crate::output::{print_json, print_line};
use crate::results::phases::{self as results, Screened};
use crate::study::Prepared;
use crate::summary;
use pleach_sensitivity::screening;
use pleach_workflow::{Study, Survivors};
use std::path::Path;
use std::time::Instant;

/// Runs all phases of a study, and writes what they come to together.
pub(super) fn execute(args: &RunArgs, runner: &mut Runner<'_>, whole: &Prepared, out: &Path) -> Outcome {
    let start = Instant::now();
    let names = names(&whole.study);
    let mut first = whole.of_phase(0, None)?;
    let digest = format!("phases {}", first.digest);
    // What cannot be executed at all is refused before anything is written.
    weigh(&mut first, args.way.buckets, args.cache.cache.as_deref())?;
    runner.can_be_planned(&first)?;
    let folder = match begin(out, &digest, &names, args.resume)? {
        Begun::Complete(folder) => return already_complete(args, &folder),
        Begun::Open(folder) => folder,
    };
    folder.write_json("plan.json", &results::PlanOfPhases::new(&whole.study.name, &digest, &names))?;
    let mut parts: Vec<(Part, Option<Screened>)> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let survivors = parts.last().and_then(|(_, screened)| screened.as_ref());
        let prepared = whole.of_phase(number, survivors.map(|screened| screened.survivors.as_slice()))?;
        prepared.check_runnable()?;
        let is_last = number + 1 == names.len();
        let part = match runner.execute(prepared, &out.join(name), !is_last)? {
            Ended::Now(part) => *part,
            Ended::Before(folder) => {
                return Err(Stop::Input(format!(
                    "--out {}: {} has no {} to go on from; a new folder is allowed",
                    out.display(),
                    folder.path().display(),
                    journal::NAME
                )));
            }
        };
        let rule = whole.study.phases[number].survivors;
        let screened = rule.map(|rule| screened(whole, number, rule, &part)).transpose()?;
        parts.push((part, screened));
    }
    runner.end();
    let phases: Vec<results::Phase<'_>> = parts
        .iter()
        .zip(&names)
        .map(|((part, screened), name)| results::Phase {
            folder: name,
            prepared: &part.prepared,
            plan: &part.plan,
            written: &part.written,
            collected: &part.collected,
            screened: screened.as_ref(),
        })
        .collect();
    let run = results::write(&phases, start.elapsed().as_secs_f64(), &folder)?;
    let failed: usize = parts.iter().map(|(part, _)| part.collected.failed()).sum();
    // The last one first: where one is gone, all results are known to be written.
    for (part, _) in parts.iter().rev() {
        part.session.end(failed == 0)?;
    }
    if args.json {
        print_json(&run)?;
    } else if !args.quiet {
        summary::print_phases(&phases, &run, folder.path(), Some(runner.memory_bytes));
        run.cache.iter().flat_map(|cache| &cache.reports).for_each(|report| {
            print_line(&format!("--cache: {report}"));
        });
        for (part, _) in &parts {
            let told = part.written.gallery.told(runner.previews(), &part.session.folder);
            told.iter().for_each(|told| print_line(told));
        }
    }
    nothing_left(parts.iter().map(|(part, _)| part.left_bytes).sum())?;
    parts.iter().try_for_each(|(part, _)| status(&part.collected, &part.session.folder))
}

/// The folders of the phases.
fn names(study: &Study) -> Vec<String> {
    let name = |(number, phase): (usize, &pleach_workflow::Phase)| {
        format!("phase-{}-{}", number + 1, phase.method.kind())
    };
    study.phases.iter().enumerate().map(name).collect()
}

enum Begun {
    /// All phases are over.
    Complete(Folder),
    /// The study can be run.
    Open(Folder),
}

/// Takes the folder of all phases. Without `resume`, what an earlier run left of them is removed.
fn begin(out: &Path, digest: &str, names: &[String], resume: bool) -> Outcome<Begun> {
    let folder = Folder::take(out, digest)?;
    let journals = names.iter().filter(|name| out.join(name).join(journal::NAME).exists()).count();
    let is_done = folder.holds("run.json");
    if resume {
        // Journals go when all is written, unless runs failed that may be tried again.
        let is_complete = is_done && journals < names.len();
        return Ok(if is_complete { Begun::Complete(folder) } else { Begun::Open(folder) });
    }
    if journals > 0 && !is_done {
        return Err(Stop::Input(format!(
            "--out {}: holds an interrupted run of this study; --resume continues it, and in a new folder it begins anew",
            out.display()
        )));
    }
    folder.clear()?;
    for name in names {
        let part = folder.part(name);
        part.clear()?;
        if part.holds(journal::NAME) {
            part.remove(journal::NAME)?;
        }
    }
    Ok(Begun::Open(folder))
}

/// The survivors of a phase: those that were written down, or else those that the rule keeps, which are written down now.
fn screened(whole: &Prepared, number: usize, rule: Survivors, part: &Part) -> Outcome<Screened> {
    let study = &part.prepared.study;
    let (response, _) = &study.workflow.response.metrics[rule.metric];
    let folder = &part.session.folder;
    if let Some(known) = Screened::read(folder)? {
        if (known.rule.as_str(), known.response.as_str()) != (&rule.rule.text(), response) {
            return Err(Stop::Input(format!(
                "--out {}: its survivors were chosen by {} of {}, and the study says {} of {response}; a new folder is allowed",
                folder.path().display(),
                known.rule,
                known.response,
                rule.rule.text(),
            )));
        }
        return Ok(known);
    }
    let fail = |why: String| {
        let place = format!("phase[{}].survivors", number + 1);
        let file = whole.parameter_sets().display();
        let written = folder.path().display();
        Stop::Input(format!(
            "{file}: {place}: {}: {why}; results of the phase are in {written}",
            rule.rule.text()
        ))
    };
    let place = study.metrics().position(|metric| metric == rule.metric);
    let analysis = place.and_then(|place| part.written.analyses.get(place));
    let analysis = analysis.ok_or_else(|| Stop::defect("a screening of a response that is not analysed"))?;
    let indices = analysis.moat().ok_or_else(|| fail(analysis.note().unwrap_or_default().to_owned()))?;
    let survivors = screening::survivors(rule.rule, indices).map_err(|error| fail(error.to_string()))?;
    let fixed = indices.parameters.iter().map(|parameter| &parameter.name);
    let fixed = fixed.filter(|name| !survivors.contains(name)).cloned().collect();
    let screened =
        Screened { phase: number + 1, response: response.clone(), rule: rule.rule.text(), survivors, fixed };
    screened.write(folder)?;
    Ok(screened)
}
