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
    /// Labels that a mark of the dashboard shows, which the result must have.
    pub(super) labels: Vec<String>,
}

impl Expression {
    fn new(place: String, text: String) -> Self {
        Self { place, text, labels: Vec::new() }
    }
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
                all.push(Expression::new(format!("{file}: {}", panel["title"]), text));
            }
        }
        for annotation in array(&dashboard["annotations"]["list"]) {
            let Some(text) = annotation["expr"].as_str() else { continue };
            let mut mark = Expression::new(format!("{file}: {}", annotation["name"]), with_values(text));
            mark.labels = shown_labels(&annotation);
            all.push(mark);
        }
    }
    all.extend(rules());
    all
}

/// Labels in the formats of a mark, and those that it shows as tags.
fn shown_labels(annotation: &Value) -> Vec<String> {
    let text = |key: &str| annotation[key].as_str().unwrap_or_default().to_owned();
    let formats = text("titleFormat") + &text("textFormat");
    let in_formats = formats.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.to_owned()));
    in_formats.chain(text("tagKeys").split(',').map(str::to_owned)).collect()
}

/// Selectors of an expression: `name{label="value"}` without their ranges.
fn selectors(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find(is_part) {
        let word = &rest[start..];
        let end = word.find(|letter| !is_part(letter)).unwrap_or(word.len());
        let is_series = ["pleach_", "pleach:", "process_"].iter().any(|first| word.starts_with(first));
        let matchers = word[end..].strip_prefix('{').and_then(|matchers| matchers.find('}'));
        let end = matchers.map_or(end, |length| end + length + 2);
        if is_series {
            all.push(word[..end].to_owned());
        }
        rest = &word[end..];
    }
    all
}

#[test]
fn selectors_are_found_with_their_matchers() {
    let text = "sum(increase(pleach_a{b=\"pleach_x\"}[15m])) > pleach:c and on (job) process_d";
    assert_eq!(selectors(text), ["pleach_a{b=\"pleach_x\"}", "pleach:c", "process_d"]);
}

/// Expressions of the rules. Recorded series must have values. An alert is silent in a healthy cluster, so each of its selectors must have
/// series.
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
        let (place, text) = (format!("rules.yml: {name}"), text.join(" "));
        if name.starts_with("alert: ") {
            let selectors = selectors(&text);
            assert!(!selectors.is_empty(), "{place}: {text}");
            all.extend(selectors.into_iter().map(|selector| Expression::new(place.clone(), selector)));
        } else {
            all.push(Expression::new(place, text));
        }
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
