//! Generates the reference of all metrics.

use crate::catalog::ALL;
use crate::family::{Family, ProcessRole, SeriesLifetime};
use std::fmt::Write;

/// Returns the content of `docs/metrics.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         The code generates this page (`PLEACH_WRITE_DOCS=1 cargo test -p pleach-telemetry`), and a test compares them.\n\n\
         The manager exports its metrics at `/metrics` of its HTTPS address, without a token. A worker exports its metrics at \
         `/metrics` of the address in `--metrics`, over plain HTTP. Both use Prometheus' text format. \
         [Watch a cluster](watch.md) has dashboards and alerts.\n\n\
         The column *series* gives the lifetime of a metric's series. *process*: from the first value to the end of the \
         process. *object*: as long as the object exists. The series of a study end with the study, those of a worker when \
         it leaves.\n",
    );
    section(&mut text, "Manager and workers", ProcessRole::Both);
    section(&mut text, "Manager", ProcessRole::Manager);
    section(&mut text, "Workers", ProcessRole::Worker);
    text
}

fn section(text: &mut String, heading: &str, role: ProcessRole) {
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## {heading}\n\n| metric | kind | labels | series | meaning |\n| --- | --- | --- | --- | --- |\n"
    );
    let is_there = |family: &&&Family| family.role == role;
    for family in ALL.iter().filter(is_there) {
        let Family { name, kind, labels, life, help, .. } = **family;
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let life = match life {
            SeriesLifetime::Recorded | SeriesLifetime::Process => "process",
            SeriesLifetime::Sampled => "object",
        };
        let _ = writeln!(text, "| `{name}` | {} | {} | {life} | {help} |", kind.as_str(), labels.join(", "));
    }
}
