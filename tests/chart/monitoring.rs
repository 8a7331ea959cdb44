//! Monitoring in the chart: rules and dashboards equal those of the repository, and Grafana knows their keys.

use crate::chart::{Tools, root};
use crate::objects::{name, of_kind};
use serde_json::Value;
use std::fs;

/// The chart packages copies of the dashboards, because it sees no file outside its folder. `scripts/sync-chart` copies
/// them.
#[test]
fn dashboards_are_those_of_the_repository() {
    let Some(tools) = Tools::of("dashboards_are_those_of_the_repository") else { return };
    let of = |folder: &str| -> Vec<(String, Vec<u8>)> {
        let folder = root().join(folder);
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
        let json = entries.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let named = |path: std::path::PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("a dashboard"))
        };
        let mut all: Vec<_> = json.map(named).collect();
        all.sort();
        all
    };
    let ours = of("grafana/dashboards");
    assert!(ours == of("helm/pleach/dashboards"), "run scripts/sync-chart");
    let objects = tools.render(&["--set", "monitoring.dashboards.enabled=true"]).expect("objects");
    let maps = of_kind(&objects, "ConfigMap").into_iter().filter(|map| name(map).contains("-dashboard-"));
    let shown = maps.flat_map(|map| map["data"].as_object().expect("files").clone());
    let shown: Vec<(String, Vec<u8>)> =
        shown.map(|(name, text)| (name, text.as_str().expect("a text").as_bytes().to_vec())).collect();
    let parsed = |all: &[(String, Vec<u8>)]| -> Vec<(String, Value)> {
        all.iter().map(|(name, text)| (name.clone(), serde_json::from_slice(text).expect("JSON"))).collect()
    };
    assert_eq!(parsed(&shown), parsed(&ours));
}

/// The chart packages copies of the rules as well. The Prometheus operator receives every group, so panels that query
/// recorded series have data.
#[test]
fn rules_of_the_chart_are_those_of_the_repository() {
    let Some(tools) = Tools::of("rules_of_the_chart_are_those_of_the_repository") else { return };
    let read =
        |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let ours = read("deploy/prometheus/rules.yml");
    assert!(ours == read("helm/pleach/prometheus/rules.yml"), "run scripts/sync-chart");
    let none = tools.render(&[]).expect("objects");
    assert!(of_kind(&none, "PrometheusRule").is_empty());
    let set = "monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.labels.release=prometheus";
    let objects = tools.render(&["--set", set]).expect("objects");
    let rules = of_kind(&objects, "PrometheusRule");
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["spec"], tools.read(&ours)[0]);
    assert_eq!(rules[0]["metadata"]["labels"]["release"], "prometheus");
    let recorded: Vec<&Value> = rules[0]["spec"]["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"))
        .collect();
    for file in fs::read_dir(root().join("grafana/dashboards")).expect("a folder") {
        let text = fs::read_to_string(file.expect("an entry").path()).expect("a dashboard");
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
        let queried = text
            .split(|letter| !is_part(letter))
            .filter(|word| word.starts_with("pleach:") && *word != "pleach:");
        for series in queried {
            assert!(recorded.iter().any(|rule| rule["record"] == series), "{series} is recorded by no rule");
        }
    }
}

/// Grafana's own types know every key of every dashboard. Without the types the check fails.
#[test]
fn dashboards_have_no_key_unknown_to_grafana() {
    let Some(tools) = Tools::of("dashboards_have_no_key_unknown_to_grafana") else { return };
    let said = tools.call("python", &["grafana/check"]).expect("dashboards that Grafana knows");
    let files = fs::read_dir(root().join("grafana/dashboards")).expect("a folder").count();
    assert_eq!(said.lines().filter(|line| line.ends_with(" panels")).count(), files, "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(root().join("grafana/dashboards/overview.json")).expect("a dashboard");
    let wrong = text.replacen("\"gridPos\"", "\"gridPosition\"", 1);
    assert_ne!(wrong, text);
    let place = folder.path().join("overview.json");
    fs::write(&place, wrong).expect("a file written");
    let said =
        tools.call("python", &["grafana/check", place.to_str().expect("UTF-8")]).expect_err("a wrong key");
    assert!(said.contains("unknown: overview.json.panels[0].gridPosition"), "{said}");
    // A Python without the types, isolated from installed packages.
    let said = tools.call("python", &["-I", "-S", "grafana/check"]).expect_err("no types");
    assert!(said.contains("grafana-foundation-sdk is not installed"), "{said}");
}
