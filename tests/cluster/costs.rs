//! Costs of studies on workers that the manager starts, compared with the journal of these workers, and decisions that count
//! the reuse that more slots cost.

use crate::cluster::{self, Cluster};
use crate::provision::{PROCESSES, cluster as cluster_with, kill, pool, requested};
use crate::scaling::cluster_with_a_pool;
use crate::study::Study;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Billing period of the pool in the tests.
const PERIOD_MS: u64 = 7_000;

/// The pool of processes with that period. A worker costs 0.01 for each second.
fn pools() -> String {
    PROCESSES.replace("max = 3", "max = 3\nbilling_seconds = 7\negress_price_per_gb = 1000")
}

/// The operation of the gated study: it copies a mask.
const GATE: &str = r#"
[[operation]]
name = "exec:gate"
version = 1
command = ["./gate.sh", "{bw1}", "{kept}", "{minSize}", "{maxSize}"]
inputs = [{ name = "bw1", type = "mask", format = "npy" }]
outputs = [{ name = "kept", type = "mask", format = "npy" }]
arguments = [
  { name = "minSize", type = "integer", low = 0, high = 1000000 },
  { name = "maxSize", type = "integer", low = 0, high = 1000000 },
]
cost = { seconds = 0.01 }
memory = { resident = "2MB", bytes_a_pixel = 10 }
"#;

/// The times of request and end of each worker that was started, in milliseconds.
#[derive(Debug, Default)]
struct Records {
    requested: BTreeMap<String, u64>,
    started: Vec<String>,
    ended: BTreeMap<String, u64>,
}

impl Records {
    /// Reads the journal. A line has a checksum, the time and the record.
    fn read(&mut self, cluster: &Cluster<'_>) {
        let text = fs::read_to_string(cluster.state.join("workers.journal")).expect("a journal");
        for line in text.lines().skip(1) {
            let (at, record) =
                line.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')).expect("a line");
            let (at, record): (u64, Value) =
                (at.parse().expect("a time"), serde_json::from_str(record).expect("a record"));
            let name = |kind: &str| record[kind]["name"].as_str().map(str::to_owned);
            if let Some(name) = name("intended") {
                self.requested.insert(name, at);
            } else if let Some(name) = name("started") {
                self.started.push(name);
            } else if let Some(name) = name("ended") {
                self.ended.insert(name, at);
            }
        }
        self.started.sort();
        self.started.dedup();
    }

    /// The paid seconds, in whole periods.
    fn paid_seconds(&self) -> f64 {
        let paid = |name: &String| (self.ended[name] - self.requested[name]).div_ceil(PERIOD_MS) * PERIOD_MS;
        self.started.iter().map(paid).sum::<u64>() as f64 / 1e3
    }
}

/// The final cost of a study, after all workers have ended.
fn final_cost(cluster: &Cluster<'_>, id: &str) -> Value {
    cluster.wait_until(|cluster| cluster.study_of(id)["cost"]["is_final"] == true);
    cluster.study_of(id)["cost"].clone()
}

fn check(cost: &Value, records: &Records) {
    let part = &cost["pools"][0];
    let number = |value: &Value| value.as_f64().expect("a number");
    let paid = number(&part["paid_seconds"]);
    assert!((paid - records.paid_seconds()).abs() < 1e-6, "{cost}\n{records:?}");
    assert!((number(&part["worker_cost"]) - 0.01 * paid).abs() < 1e-6, "{cost}");
    let starting = number(&part["starting_seconds"]);
    assert!(0.0 < starting && starting < paid, "{cost}");
    let egress = number(&part["sent_bytes"]) * 1e-6;
    assert!(egress > 0.0 && (number(&part["egress_cost"]) - egress).abs() < 1e-5, "{cost}");
    assert!((number(&cost["cost"]) - 0.01 * paid - egress).abs() < 1e-5, "{cost}");
    assert!(number(&cost["predicted_cost"]) > 0.0 && number(&cost["predicted_seconds"]) > 0.0, "{cost}");
}

/// A study of small tiles. One task of each evaluation waits until the file `gate` exists. Returns the manifest of its
/// operation as well.
fn gated() -> (Study, String) {
    let study = cluster::study(4, 128);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join("examples/mixed").join(name)).expect("an example");
    study.write(
        "gated/workflow.json",
        read("workflow.json").replace("../../crates", root.join("crates").to_str().expect("UTF-8")),
    );
    let mut stage: Value = serde_json::from_str(&read("segmentation.json")).expect("JSON");
    let tasks = stage["tasks"].as_array_mut().expect("tasks");
    let minimum = tasks.remove(3);
    let waiting = &mut tasks[3];
    waiting["operation"] = "exec:gate".into();
    waiting["reads"] = minimum["reads"].clone();
    waiting["parameters"].as_array_mut().expect("parameters").push(minimum["parameters"][0].clone());
    study.write("gated/segmentation.json", stage.to_string());
    study.write("gated/pleach.toml", GATE);
    let gate = study.path("gate").display().to_string();
    let script = format!("#!/bin/sh\nuntil [ -e {gate} ]; do sleep 0.1; done\ncp \"$1\" \"$2\"\n");
    study.write("gated/gate.sh", script);
    fs::set_permissions(study.path("gated/gate.sh"), fs::Permissions::from_mode(0o755)).expect("executable");
    study.edit(&[
        ("trajectories = 2", "trajectories = 4"),
        ("workflow = \"nuclei\"", "workflow = \"gated/workflow.json\""),
    ]);
    let manifest = study.path("gated/pleach.toml").display().to_string();
    (study, manifest)
}

/// The study cannot end before the lost worker is replaced, however fast the machine is.
#[test]
fn paid_time_of_a_study_is_that_of_its_workers_records() {
    let (study, manifest) = gated();
    study.write("gate", "");
    let expected = cluster::expected(&study);
    fs::remove_file(study.path("gate")).expect("removed");
    let options = format!("options = [\"--operations\", \"{manifest}\", ");
    let (mut cluster, workers) = cluster_with(&study, &pools().replace("options = [", &options));
    let id = cluster.submit(&["--deadline", "1s", "--budget", "1000"]);
    cluster.wait_until(|cluster| pool(cluster, 0)["running"].as_u64() == Some(3));
    kill(workers.running().remove(0).1);
    cluster.wait_until(|cluster| cluster.study_of(&id)["cost"]["workers_replaced"] == 1);
    study.write("gate", "");
    assert_eq!(cluster.completed(&id), expected);
    workers.all_end(&cluster);
    let cost = final_cost(&cluster, &id);
    let mut records = Records::default();
    records.read(&cluster);
    check(&cost, &records);
    assert_eq!(
        (&cost["workers_started"], &cost["workers_lost"]),
        (&Value::from(4), &Value::from(1)),
        "{cost}"
    );
    let words = cluster.ask(&["status", &id]).done();
    assert!(
        words.contains("(predicted: ") && words.contains("; workers: 4 started, 1 lost, 1 replaced"),
        "{words}"
    );
    // The results have the cost until they were written.
    let run =
        fs::read_to_string(cluster.state.join(format!("studies/{id}/results/run.json"))).expect("a record");
    let run: Value = serde_json::from_str(&run).expect("a record");
    assert_eq!(run["cost"]["workers_lost"], 1, "{run}");
    assert!(run["cost"]["cost"].as_f64() <= cost["cost"].as_f64(), "{run} {cost}");
    // The stored cost outlives the manager.
    let stored = cluster.state.join(format!("studies/{id}/cost.json"));
    cluster.wait_until(|_| fs::read_to_string(&stored).is_ok_and(|text| text.contains("\"is_final\":true")));
    assert!(cluster.end_manager().success());
    cluster.start_manager();
    assert_eq!(cluster.study_of(&id)["cost"], cost);
    assert!(cluster.end_manager().success());
}

#[test]
fn restarted_manager_keeps_the_cost_of_its_studies() {
    let study = cluster::study(60, 256);
    let expected = cluster::expected(&study);
    let (mut cluster, workers) = cluster_with(&study, &pools());
    let id = cluster.submit(&["--deadline", "1s"]);
    cluster.wait_until(|cluster| pool(cluster, 0)["running"].as_u64() == Some(3));
    cluster.wait_until(|cluster| cluster.study_of(&id)["cost"]["cost"].as_f64() > Some(0.0));
    cluster.kill_manager();
    let mut records = Records::default();
    records.read(&cluster);
    cluster.start_manager();
    assert_eq!(cluster.completed(&id), expected);
    workers.all_end(&cluster);
    let cost = final_cost(&cluster, &id);
    records.read(&cluster);
    check(&cost, &records);
    assert_eq!(cost["workers_started"], records.started.len(), "{cost} {records:?}");
    assert_eq!(requested(&cluster).len(), records.started.len());
    assert!(cluster.end_manager().success());
}

/// With tree reuse, more slots need more buckets, which reuse less. With shared results more slots cost none.
#[test]
fn decision_counts_the_reuse_that_more_slots_cost() {
    // The first, expensive task is the same for all evaluations, so each bucket repeats it.
    let fixed = ["B", "G", "R"].map(|name| format!("{name} = {{ fixed = 220 }}\n")).concat();
    let fixed = fixed + "T1 = { fixed = 5 }\nT2 = { fixed = 4 }\n";
    let study = cluster::study(30, 64);
    study.edit(&[
        ("trajectories = 2", "trajectories = 30"),
        ("metric = \"dice\"", &format!("metric = \"dice\"\n[parameters]\n{fixed}")),
    ]);
    let cluster = cluster_with_a_pool(&study);
    let work = |cluster: &Cluster<'_>| cluster.status()["scaling"]["work_by_slots"].clone();
    let tree = cluster.submit(&["--strategy", "trtma", "--reuse", "tree", "--deadline", "60m"]);
    cluster.wait_until(|cluster| work(cluster).is_array());
    let by_slots = work(&cluster);
    let by_slots = by_slots.as_array().expect("several numbers of slots");
    assert_eq!(
        (by_slots.len(), &by_slots[0]["slots"], &by_slots[4]["slots"]),
        (5, &Value::from(1), &Value::from(51))
    );
    let seconds: Vec<f64> = by_slots.iter().filter_map(|work| work["seconds"].as_f64()).collect();
    assert!(seconds.is_sorted() && seconds[4] > 1.01 * seconds[0], "{seconds:?}");
    cluster.ask(&["cancel", &tree]).done();
    let shared = cluster.submit(&["--reuse", "dataflow", "--deadline", "60m"]);
    cluster.wait_until(|cluster| {
        cluster.study_of(&shared)["remaining_work_seconds"].as_f64().is_some() && work(cluster).is_null()
    });
    assert_eq!(cluster.status()["scaling"]["reason"], "deadline");
}

#[test]
fn pool_without_a_price_is_refused() {
    let study = cluster::study(2, 64);
    for (from, to, reason) in [
        ("price_per_hour = 36\n", "", "price_per_hour"),
        ("price_per_hour = 36", "price_per_hour = -1", "price_per_hour: -1"),
        ("price_per_hour = 36", "price_per_hour = 36\negress_price_per_gb = \"x\"", "egress_price_per_gb"),
    ] {
        let mut cluster = Cluster::to_be(&study);
        fs::write(cluster.path("pools.toml"), PROCESSES.replace(from, to)).expect("a folder");
        cluster.manager_options = vec!["--pools".to_owned(), "pools.toml".to_owned()];
        let (code, text) = cluster.try_start_manager().expect_err("it is refused");
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("pools.toml: pool") && text.contains(reason), "{text}");
    }
}
