//! `pleach doctor`: checks an installation without changing it.
//!
//! Each entry of [`CHECKS`] returns findings, which this module prints and counts.

mod state;
mod study;

use crate::cli::DoctorArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_planner::memory_size::human;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Check of one part of an installation.
struct Check {
    name: &'static str,
    execute: fn(&DoctorArgs) -> CommandResult<Report>,
}

/// All checks, in the order of the output.
const CHECKS: [Check; 1] = [Check { name: "state directory", execute: state::check }];

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// A file is corrupt, missing or unreadable: exit code 3.
    Error,
    /// An operator should investigate.
    Warning,
    /// No action is needed.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

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

/// Report with the name of its check.
#[derive(Serialize)]
struct Named {
    check: &'static str,
    #[serde(flatten)]
    report: Report,
}

/// Runs the command.
pub(in crate::command) fn execute(args: &DoctorArgs) -> CommandResult {
    let run = |check: &Check| Ok(Named { check: check.name, report: (check.execute)(args)? });
    let reports: Vec<Named> = CHECKS.iter().map(run).collect::<CommandResult<_>>()?;
    let errors: usize = reports.iter().map(|named| named.report.count(Severity::Error)).sum();
    if args.json {
        print_json(&reports)?;
    } else {
        reports.iter().for_each(print);
    }
    if errors > 0 {
        return Err(CommandError::SomeFailed(format!("{errors} files are corrupt, missing or unreadable")));
    }
    Ok(())
}

fn print(named: &Named) {
    let report = &named.report;
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        for finding in report.findings.iter().filter(|finding| finding.severity == severity) {
            let Finding { path, problem, remedy, .. } = finding;
            print_line(&format!("{severity}: {}: {problem}; {remedy}", path.display()));
        }
    }
    let (files, bytes) = (report.sound_files, human(report.sound_bytes));
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| report.count(severity));
    print_line(&format!(
        "{}: {files} files are intact ({bytes}); errors: {errors}, warnings: {warnings}",
        named.check
    ));
}
