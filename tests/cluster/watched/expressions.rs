//! Expressions of dashboards and rules.

use super::project;
use serde_json::Value;
use std::fs;

/// An expression that a healthy cluster must answer.
pub(super) struct Expression {
    /// File and panel or rule of the expression.
    pub(super) place: String,
    /// The query, with values for the dashboard's variables.
    pub(super) text: String,
    /// Whether the result may be empty.
    pub(super) may_be_empty: bool,
}

fn dashboards() -> Vec<(String, Value)> {
    let entries = fs::read_dir(project("grafana/dashboards")).expect("a folder");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a file");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    entries.map(read).collect()
}

/// Replaces Grafana's variables: `.*` for each, and the shortest range that surely contains two scrapes.
fn with_values(text: &str) -> String {
    let text = text.replace("$__rate_interval", "5s");
    ["$study", "$instance", "$tier"].iter().fold(text, |text, name| text.replace(name, ".*"))
}

/// Expressions of all dashboards and rules.
pub(super) fn expressions() -> Vec<Expression> {
    let mut all = Vec::new();
    for (file, dashboard) in dashboards() {
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for panel in array(&dashboard["panels"]) {
            for target in array(&panel["targets"]) {
                let text = with_values(target["expr"].as_str().expect("an expression"));
                all.push(Expression {
                    place: format!("{file}: {}", panel["title"]),
                    text,
                    may_be_empty: false,
                });
            }
        }
        for annotation in array(&dashboard["annotations"]["list"]) {
            if let Some(text) = annotation["expr"].as_str() {
                // A worker that joins late may find no unstarted instances, and then no replan happens.
                let may_be_empty = annotation["name"] == "Replans";
                let place = format!("{file}: {}", annotation["name"]);
                all.push(Expression { place, text: with_values(text), may_be_empty });
            }
        }
    }
    all.extend(rules());
    all
}

/// Expressions of the rules. Recorded series must have values, alerts need not.
fn rules() -> Vec<Expression> {
    let text = fs::read_to_string(project("deploy/prometheus/rules.yml")).expect("a file");
    let mut all = Vec::new();
    for rule in text.split("\n      - ").skip(1) {
        let (name, rest) = rule.split_once('\n').expect("a rule of several lines");
        let (_, rest) = rest.split_once("expr: ").expect("an expression");
        // One line, or the following indented lines.
        let text: Vec<&str> = match rest.strip_prefix(">-\n") {
            Some(folded) => {
                folded.lines().take_while(|line| line.starts_with("          ")).map(str::trim).collect()
            }
            None => rest.lines().take(1).collect(),
        };
        let may_be_empty = name.starts_with("alert: ");
        all.push(Expression { place: format!("rules.yml: {name}"), text: text.join(" "), may_be_empty });
    }
    all
}

/// Metrics and labels that the variables' values are read from.
pub(super) fn label_values() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (_, dashboard) in dashboards() {
        for variable in dashboard["templating"]["list"].as_array().cloned().unwrap_or_default() {
            let Some(text) = variable["query"]["query"].as_str() else { continue };
            let inner = text.strip_prefix("label_values(").and_then(|text| text.strip_suffix(')'));
            let (metric, label) = inner.and_then(|inner| inner.split_once(", ")).expect("two names");
            all.push((metric.to_owned(), label.to_owned()));
        }
    }
    assert!(!all.is_empty());
    all
}
