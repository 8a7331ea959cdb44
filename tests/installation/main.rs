//! Checks of an installation: `pleach doctor` on machines with defects, and `pleach upgrade-check` on files of releases.

mod doctor;
#[path = "../support/disk.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod mounted;
mod packages;
#[path = "../support/pleach.rs"]
mod pleach;
mod upgrade;

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
pub(crate) fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}
