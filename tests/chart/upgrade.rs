//! Upgrades from earlier charts: their values render, and no field changes that Kubernetes refuses to change.

use crate::chart::{Tools, root};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Values files of earlier charts, each with the immutable fields of its release.
fn earlier() -> Vec<(PathBuf, Value)> {
    let charts = fs::read_dir(root().join("tests/fixtures/chart")).expect("a folder");
    let charts = charts.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    let files = charts.flat_map(|chart| fs::read_dir(chart).expect("a folder"));
    let mut all: Vec<(PathBuf, Value)> = files
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name()?.to_str()?.strip_suffix("-values.yaml")?.to_owned();
            let fields = fs::read_to_string(path.with_file_name(format!("{name}.json"))).expect("its fields");
            Some((path, serde_json::from_str(&fields).expect("JSON")))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Immutable fields that differ between an earlier release and a rendered text.
fn differences(tools: &Tools, before: &Value, rendered: &str) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), rendered).expect("a file written");
    let path = file.path().to_str().expect("UTF-8");
    let now = tools.call("python", &["tests/chart/immutable.py", path]).expect("fields");
    let now: Value = serde_json::from_str(&now).expect("JSON");
    let objects = before.as_object().expect("objects");
    let differing = objects.iter().filter(|(object, fields)| now[object.as_str()] != **fields);
    differing.map(|(object, fields)| format!("{object}: {fields} before, {} now", now[object])).collect()
}

#[test]
fn earlier_releases_can_be_upgraded() {
    let Some(tools) = Tools::of("earlier_releases_can_be_upgraded") else { return };
    let releases = earlier();
    assert!(releases.len() >= 9, "{}", releases.len());
    for (values, before) in &releases {
        let values = values.to_str().expect("UTF-8");
        let template = ["template", "rel", "helm/pleach", "--namespace", "studies", "--values", values];
        let text = tools.call("helm", &template).unwrap_or_else(|why| panic!("{values}: {why}"));
        assert_eq!(differences(&tools, before, &text), Vec::<String>::new(), "{values}");
        // A pool that is scaled by the manager is the same deployment.
        let scaled = [&template[..], &["--set", "workerDefaults.autoscaling.kind=manager"]].concat();
        let text = tools.call("helm", &scaled).unwrap_or_else(|why| panic!("{values}: {why}"));
        assert_eq!(differences(&tools, before, &text), Vec::<String>::new(), "{values}, scaled");
    }
}

/// Changes that a cluster refuses are found, each by its object.
#[test]
fn changed_immutable_fields_are_detected() {
    let Some(tools) = Tools::of("changed_immutable_fields_are_detected") else { return };
    let (values, before) = earlier().into_iter().next().expect("a release");
    let args = ["template", "rel", "helm/pleach", "--namespace", "studies", "--values"];
    let text =
        tools.call("helm", &[&args[..], &[values.to_str().expect("UTF-8")]].concat()).expect("objects");
    for (right, wrong, object) in [
        ("serviceName: rel-pleach-manager", "serviceName: rel-pleach", "StatefulSet rel-pleach-manager"),
        ("storage: \"50Gi\"", "storage: \"60Gi\"", "StatefulSet rel-pleach-manager"),
        (
            "    matchLabels:\n      app.kubernetes.io/name: pleach",
            "    matchLabels:\n      app.kubernetes.io/name: rel",
            "Deployment rel-pleach-base",
        ),
        ("kind: Role, name: rel-pleach-certificates", "kind: Role, name: other", "RoleBinding "),
        ("helm.sh/hook-delete-policy: before-hook-creation", "x: y", "Job rel-pleach-certificates"),
    ] {
        assert!(text.contains(right), "{right}");
        let found = differences(&tools, &before, &text.replace(right, wrong));
        assert!(found.iter().any(|difference| difference.starts_with(object)), "{right}: {found:?}");
    }
}
