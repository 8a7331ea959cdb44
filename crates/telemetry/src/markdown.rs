//! Generates the reference of all metrics.

use crate::catalog::ALL;
use crate::family::{Family, ProcessRole, SeriesLifetime};
use std::fmt::Write;

/// Returns the content of `docs/metrics.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         This page is made from the code (`PLEACH_WRITE_DOCS=1 cargo test -p pleach-telemetry`), and a test compares them.\n\n\
         The manager shows its metrics at `/metrics` of its HTTPS address, to anybody; a worker shows its own at `/metrics` of \
         the address that `--metrics` names, over plain HTTP. Both are in Prometheus' text format. [How to watch them](watch.md) \
         has dashboards and alerts.\n\n\
         A series is there *always* (from its first value to the end of the process), or *while* what it is about is: a study's \
         ends with the study, a worker's when it leaves, and the next look finds it gone.\n",
    );
    section(&mut text, "Of both", ProcessRole::Both);
    section(&mut text, "Of the manager", ProcessRole::Manager);
    section(&mut text, "Of workers", ProcessRole::Worker);
    text
}

fn section(text: &mut String, heading: &str, role: ProcessRole) {
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## {heading}\n\n| metric | kind | labels | series | what it says |\n| --- | --- | --- | --- | --- |\n"
    );
    let is_there = |family: &&&Family| family.role == role;
    for family in ALL.iter().filter(is_there) {
        let Family { name, kind, labels, life, help, .. } = **family;
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let life = match life {
            SeriesLifetime::Recorded | SeriesLifetime::Process => "always",
            SeriesLifetime::Sampled => "while",
        };
        let _ = writeln!(text, "| `{name}` | {} | {} | {life} | {help} |", kind.as_str(), labels.join(", "));
    }
}
