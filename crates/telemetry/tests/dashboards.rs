//! Dashboards suit Grafana and their readers: every panel has a description and a unit, joins and leaves are marked,
//! and no two panels overlap.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the names and contents of the dashboards.
fn dashboards() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../grafana/dashboards");
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).expect("a file");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    let mut all: Vec<(String, Value)> = entries.map(read).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, what: &str) -> &'a str {
    let text = value.as_str().unwrap_or_else(|| panic!("{what} is no text: {value}"));
    assert!(!text.is_empty(), "{what} is empty");
    text
}

#[test]
fn four_dashboards_have_unique_addresses() {
    let names: Vec<String> = dashboards().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["elasticity", "overview", "study", "workers"]);
    for (name, dashboard) in dashboards() {
        assert_eq!(text(&dashboard["uid"], &name), format!("pleach-{name}"));
        assert!(text(&dashboard["title"], &name).starts_with("pleach: "));
        assert!(text(&dashboard["description"], &name).ends_with('.'));
        assert!(dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 36), "{name}");
    }
}

#[test]
fn panels_have_a_description_and_a_unit() {
    for (name, dashboard) in dashboards() {
        for panel in array(&dashboard["panels"]).iter().filter(|panel| panel["type"] != "row") {
            let what = format!("{name}: {}", panel["title"]);
            assert!(text(&panel["description"], &what).ends_with('.'), "{what}");
            text(&panel["fieldConfig"]["defaults"]["unit"], &what);
            let steps = array(&panel["fieldConfig"]["defaults"]["thresholds"]["steps"]);
            assert!(
                steps.first().is_some_and(|first| first["value"].is_null()),
                "{what}: no first threshold"
            );
            let targets = array(&panel["targets"]);
            assert!(!targets.is_empty(), "{what} asks for nothing");
            let ids: BTreeSet<&str> = targets.iter().map(|target| text(&target["refId"], &what)).collect();
            assert_eq!(ids.len(), targets.len(), "{what}");
            for target in targets {
                text(&target["expr"], &what);
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{what}");
            }
        }
    }
}

#[test]
fn panels_do_not_overlap() {
    for (name, dashboard) in dashboards() {
        let (mut taken, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for panel in array(&dashboard["panels"]) {
            let place = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
            assert!(place("x") + place("w") <= 24, "{name}: {} is too wide", panel["title"]);
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    assert!(taken.insert((x, y)), "{name}: {} at {x}, {y}", panel["title"]);
                }
            }
            assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{name}: {}", panel["title"]);
        }
    }
}

#[test]
fn joins_leaves_and_re_plans_are_marked() {
    for (name, dashboard) in dashboards() {
        let marks = array(&dashboard["annotations"]["list"]).iter();
        let marks: Vec<&str> =
            marks.filter(|mark| mark["expr"].is_string()).map(|mark| text(&mark["name"], &name)).collect();
        assert_eq!(marks, ["Joins", "Leaves", "Replans"], "{name}");
    }
}

#[test]
fn used_variables_are_defined() {
    for (name, dashboard) in dashboards() {
        let declared: BTreeSet<String> = array(&dashboard["templating"]["list"])
            .iter()
            .map(|variable| text(&variable["name"], &name).to_owned())
            .collect();
        let everything = dashboard.to_string();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let used = everything.split('$').skip(1).map(|rest| {
            let rest = rest.strip_prefix('{').unwrap_or(rest);
            rest.split(|letter| !is_part(letter)).next().unwrap_or_default().to_owned()
        });
        // Names with two underscores are Grafana's own.
        let used: BTreeSet<String> = used.filter(|name| !name.starts_with("__")).collect();
        assert_eq!(used, declared, "{name}");
    }
}
