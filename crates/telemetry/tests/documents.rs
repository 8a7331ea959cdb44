//! Documents refer only to existing metrics: the reference, dashboards, rules and their tests.

use pleach_telemetry::catalog::ALL;
use pleach_telemetry::{Family, Kind, markdown};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files of a folder with this extension.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    assert!(!files.is_empty(), "{} has no .{ending}", folder.display());
    files
}

/// Returns the names of series in a text: `pleach_…`, `process_…`, and `pleach:…` of recording rules.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let words = text.split(|letter| !is_part(letter));
    words
        .filter(|word| {
            ["pleach_", "process_", "pleach:"].iter().any(|start| word.starts_with(start) && word != start)
        })
        .collect()
}

/// Returns the series of a metric.
fn series(family: &Family) -> Vec<String> {
    match family.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", family.name)).to_vec(),
        Kind::Counter | Kind::Gauge => vec![family.name.to_owned()],
    }
}

/// Returns all possible series: those of metrics, and those that rules record.
fn known(rules: &str) -> BTreeSet<String> {
    let recorded = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    ALL.iter().flat_map(|family| series(family)).chain(recorded.map(str::to_owned)).collect()
}

#[test]
fn the_reference_is_that_of_the_code() {
    let path = root().join("docs/metrics.md");
    let now = markdown::markdown();
    if std::env::var_os("PLEACH_WRITE_DOCS").is_some() {
        fs::write(&path, &now).expect("it can be written");
    }
    assert_eq!(read(&path), now, "write it anew: PLEACH_WRITE_DOCS=1 cargo test -p pleach-telemetry");
}

#[test]
fn dashboards_and_rules_name_no_unknown_metric() {
    let rules = read(&root().join("deploy/prometheus/rules.yml"));
    let known = known(&rules);
    let mut files = files("grafana/dashboards", "json");
    files.extend(self::files("deploy/prometheus/tests", "yml"));
    files.push(root().join("deploy/prometheus/rules.yml"));
    for file in files {
        let text = read(&file);
        for name in names(&text) {
            assert!(known.contains(name), "{}: {name} is no metric", file.display());
        }
    }
}

/// Each alert of the rules has one runbook heading.
#[test]
fn every_alert_has_its_runbook_entry() {
    let rules = read(&root().join("deploy/prometheus/rules.yml"));
    let after = |start: &str| -> BTreeSet<String> {
        rules.lines().filter_map(|line| line.trim().strip_prefix(start)).map(str::to_owned).collect()
    };
    let alerts = after("- alert: ");
    assert!(alerts.len() >= 18, "{alerts:?}");
    let watch = read(&root().join("docs/watch.md"));
    let headings: BTreeSet<String> =
        watch.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect();
    assert_eq!(alerts, headings);
    let anchors: BTreeSet<String> =
        alerts.iter().map(|alert| format!("docs/watch.md#{}", alert.to_lowercase())).collect();
    assert_eq!(after("runbook: "), anchors);
    let tests = read(&root().join("deploy/prometheus/tests/rules.yml"));
    for alert in &alerts {
        let looked_at = tests.matches(&format!("alertname: {alert}\n        exp_alerts:")).count();
        let fires = tests.matches(&format!("alertname: {alert}\n        exp_alerts:\n")).count();
        assert!(fires > 0 && looked_at > fires, "{alert}: no test fires it and keeps it silent");
    }
}

#[test]
fn unknown_metric_name_is_detected() {
    let known = known("      - record: pleach:tasks:rate5m\n");
    let expression =
        "sum(rate(pleach_taks_executed_total[5m])) / pleach:tasks:rate5m > pleach_bucket_wait_seconds";
    let unknown: Vec<&str> = names(expression).into_iter().filter(|name| !known.contains(*name)).collect();
    assert_eq!(unknown, ["pleach_bucket_wait_seconds", "pleach_taks_executed_total"]);
}
