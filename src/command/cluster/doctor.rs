//! `pleach doctor`: checks an installation without changing it.
//!
//! [`machine`] checks the machine, [`state`] the files of a state directory if the options name one.

mod machine;
mod state;
mod study;

use super::items::{Items, Severity};
use crate::cli::DoctorArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_planner::memory_size::human;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// File or folder with a problem.
#[derive(Debug, Serialize)]
struct Finding {
    severity: Severity,
    path: PathBuf,
    problem: String,
    /// Consequence and remedy.
    remedy: String,
}

/// Outcome of a check.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Files with intact content.
    sound_files: u64,
    sound_bytes: u64,
    findings: Vec<Finding>,
}

impl Report {
    /// Counts a sound file.
    fn sound(&mut self, path: &Path) {
        self.sound_files += 1;
        self.sound_bytes += std::fs::metadata(path).map_or(0, |found| found.len());
    }

    fn error(&mut self, path: &Path, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Error, path, problem, remedy);
    }

    fn warning(&mut self, path: &Path, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Warning, path, problem, remedy);
    }

    fn note(&mut self, path: &Path, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Note, path, problem, remedy);
    }

    fn add(
        &mut self,
        severity: Severity,
        path: &Path,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (path, problem, remedy) = (path.to_owned(), problem.into(), remedy.into());
        self.findings.push(Finding { severity, path, problem, remedy });
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// JSON document of the command.
#[derive(Serialize)]
struct Document<'a> {
    machine: &'a Items,
    /// State directory. `None` without `--state`.
    state: Option<&'a Report>,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &DoctorArgs) -> CommandResult {
    // First: a folder that is no state directory ends the command without any output.
    let state = args.state.as_deref().map(state::check).transpose()?;
    let machine = machine::check(args);
    if args.json {
        print_json(&Document { machine: &machine, state: state.as_ref() })?;
    } else {
        machine.print("machine");
        state.iter().for_each(print);
    }
    let of_machine = machine.count(Severity::Error);
    let of_files = state.map_or(0, |report| report.count(Severity::Error));
    let mut problems = Vec::new();
    if of_machine > 0 {
        problems.push(format!("{of_machine} checks of this machine failed"));
    }
    if of_files > 0 {
        problems.push(format!("{of_files} files are corrupt, missing or unreadable"));
    }
    if problems.is_empty() { Ok(()) } else { Err(CommandError::SomeFailed(problems.join("; "))) }
}

fn print(report: &Report) {
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        for finding in report.findings.iter().filter(|finding| finding.severity == severity) {
            let Finding { path, problem, remedy, .. } = finding;
            print_line(&format!("{severity}: {}: {problem}; {remedy}", path.display()));
        }
    }
    let (files, bytes) = (report.sound_files, human(report.sound_bytes));
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| report.count(severity));
    print_line(&format!(
        "state directory: {files} files are intact ({bytes}); errors: {errors}, warnings: {warnings}"
    ));
}
