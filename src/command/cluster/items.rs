//! Checked items of an installation: each with its severity and, if anything is to be done, the remedy.

use crate::terminal::print_line;
use serde::Serialize;
use std::fmt;

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// A file is corrupt, missing or unreadable, or pleach cannot work as the options ask for: exit code 3.
    Error,
    /// An operator should investigate.
    Warning,
    /// No action is needed.
    Note,
    /// The item is in order.
    Ok,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Ok => "ok",
        })
    }
}

/// A checked item.
#[derive(Debug, Serialize)]
pub(super) struct Item {
    severity: Severity,
    subject: String,
    found: String,
    /// What to do. `None` if the item is in order.
    remedy: Option<String>,
}

/// Checked items, in the order of the checks.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Items(Vec<Item>);

impl Items {
    pub(super) fn ok(&mut self, subject: impl Into<String>, found: impl Into<String>) {
        let (subject, found) = (subject.into(), found.into());
        self.0.push(Item { severity: Severity::Ok, subject, found, remedy: None });
    }

    pub(super) fn note(
        &mut self,
        subject: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(Severity::Note, subject, found, remedy);
    }

    pub(super) fn warning(
        &mut self,
        subject: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(Severity::Warning, subject, found, remedy);
    }

    pub(super) fn error(
        &mut self,
        subject: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(Severity::Error, subject, found, remedy);
    }

    pub(super) fn add(
        &mut self,
        severity: Severity,
        subject: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (subject, found, remedy) = (subject.into(), found.into(), Some(remedy.into()));
        self.0.push(Item { severity, subject, found, remedy });
    }

    pub(super) fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|item| item.severity == severity).count()
    }

    /// Prints a line for each item, a line with its remedy, and the sum under this title.
    pub(super) fn print(&self, title: &str) {
        for Item { severity, subject, found, remedy } in &self.0 {
            print_line(&format!("{:<8} {subject}: {found}", severity.to_string()));
            if let Some(remedy) = remedy {
                print_line(&format!("         what to do: {remedy}"));
            }
        }
        let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| self.count(severity));
        print_line(&format!("{title}: {} checked; errors: {errors}, warnings: {warnings}", self.0.len()));
    }
}
