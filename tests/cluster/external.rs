//! A pipeline in Python on a cluster: the manager has neither its code nor a Python, and one of the workers lacks it.

use crate::cluster::{self, Cluster};
use crate::pleach::pleach;
use crate::skipped;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn workers_with_the_operations_run_them_and_others_do_not() {
    let test = "workers_with_the_operations_run_them_and_others_do_not";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install-python");
    let python = Command::new(script).output().expect("the script runs");
    if !python.status.success() {
        return skipped(test, "no Python environment");
    }
    let python = String::from_utf8(python.stdout).expect("UTF-8").trim().to_owned();
    let study = cluster::study(4, 96);
    pleach(study.folder(), &["workflow", "new", "flow", "--python"]).done();
    let text = fs::read_to_string(study.path("flow/study.toml")).expect("a study");
    fs::write(study.path("study.toml"), text.replace("workflow.json", "flow/workflow.json"))
        .expect("written");
    let run = ["run", "study.toml", "--out", "alone", "--quiet", "--python", &python];
    pleach(study.folder(), &run).done();
    let expected = fs::read_to_string(study.path("alone/responses.csv")).expect("responses");

    let mut cluster = Cluster::new(&study);
    cluster.start_worker("without", &[]);
    let id = cluster.submit(&["--python", &python]);
    let missing = |cluster: &Cluster<'_>| {
        let status = cluster.status();
        let workers = status["workers"].as_array().cloned().unwrap_or_default();
        let all = workers.iter().flat_map(|worker| worker["missing_operations"].as_array().cloned());
        all.flatten().filter(|name| name.as_str().is_some_and(|name| name.contains("python:"))).count()
    };
    cluster.wait_until(|cluster| missing(cluster) > 0);
    assert_eq!(cluster.state_of(&id), "running", "it waits for a worker with the operations");
    let manifest = study.path("flow/pleach.toml");
    let with = ["--operations", manifest.to_str().expect("UTF-8"), "--python", &python];
    cluster.start_worker("first", &with);
    cluster.start_worker("second", &with);
    cluster.wait_for_responses(&id, 1);
    cluster.kill_worker("first");
    cluster.completed(&id);
    assert_eq!(cluster.responses(&id), expected);
    cluster.nothing_is_left();
}
