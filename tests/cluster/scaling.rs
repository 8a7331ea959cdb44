//! Desired workers for deadlines and budgets, as clients see them.

use crate::cluster::{self, Cluster};
use crate::watched::get;
use serde_json::Value;
use std::fs;

/// One pool with the workers w0, w1, ….
pub(crate) const POOLS: &str = "\
[[pool]]
name = \"w\"
workers = \"w\"
cores = 1
price_per_hour = 36
startup_seconds = 5
max = 50
";

/// Starts a cluster whose manager has one pool.
pub(crate) fn cluster_with_a_pool(study: &crate::study::Study) -> Cluster<'_> {
    let mut cluster = Cluster::to_be(study);
    fs::write(cluster.path("pools.toml"), POOLS).expect("a folder");
    cluster.manager_options = vec!["--pools".to_owned(), "pools.toml".to_owned()];
    cluster.start_manager();
    cluster
}

#[test]
fn deadline_and_budget_determine_desired_workers() {
    let study = cluster::study(6, 256);
    let expected = cluster::expected(&study);
    let mut cluster = cluster_with_a_pool(&study);
    let idle = cluster.status()["scaling"].clone();
    assert_eq!((&idle["workers_desired"], &idle["reason"]), (&Value::from(0), &Value::from("idle")));
    // The study waits for workers. One worker meets a deadline of 1 h.
    let id = cluster.submit(&["--deadline", "60m", "--budget", "1000"]);
    cluster.wait_until(|cluster| cluster.study_of(&id)["remaining_work_seconds"].as_f64().is_some());
    let told = cluster.study_of(&id);
    assert!(told["deadline"].is_string() && told["budget"] == 1000.0, "{told}");
    let scaling = cluster.status()["scaling"].clone();
    assert_eq!(
        (&scaling["workers_desired"], &scaling["reason"]),
        (&Value::from(1), &Value::from("deadline"))
    );
    assert!(scaling["predicted_remaining_seconds"].as_f64().is_some_and(|left| left < 3600.0), "{scaling}");
    assert!(scaling["predicted_cost"].as_f64().is_some_and(|cost| cost > 0.0), "{scaling}");
    // A deadline of 1 s is infeasible. JSON and text show the fastest option.
    let hasty = cluster.submit(&["--deadline", "1s"]);
    cluster.wait_until(|cluster| cluster.status()["scaling"]["reason"] == "infeasible");
    let fastest = cluster.status()["scaling"]["fastest"].clone();
    assert!(fastest["seconds"].as_f64().is_some_and(|seconds| seconds > 1.0), "{fastest}");
    let words = cluster.ask(&["status"]).done();
    assert!(words.contains("workers desired: ") && words.contains("(infeasible)"), "{words}");
    assert!(words.contains("a deadline cannot be met; the fastest plan takes "), "{words}");
    // Workers join and their cost is counted. Later the surplus ones are listed in drain order.
    cluster.start_workers(0..2);
    assert_eq!(cluster.completed(&id), expected);
    assert_eq!(cluster.completed(&hasty), expected);
    cluster.nothing_is_left();
}

/// The study is planned without workers. Two workers need more buckets than one.
#[test]
fn buckets_of_trtma_are_replanned_when_workers_join() {
    // Several seconds of work, so that the second worker joins while the first has buckets left.
    let study = cluster::study(60, 128);
    let expected = cluster::expected(&study);
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(&["--strategy", "trtma"]);
    cluster.wait_until(|cluster| cluster.study_of(&id)["remaining_work_seconds"].as_f64().is_some());
    cluster.start_workers(0..2);
    cluster.wait_until(|cluster| cluster.log("manager").contains("replanned for 2 slots"));
    assert_eq!(cluster.completed(&id), expected);
    assert!(count(&cluster, "pleach_replans_total{cause=\"workers\"} ") >= 1);
    assert!(count(&cluster, "pleach_replanned_instances_total ") >= 2);
    cluster.nothing_is_left();
}

/// As [`buckets_of_trtma_are_replanned_when_workers_join`], with a number of buckets from the user.
#[test]
fn given_number_of_buckets_is_kept_when_workers_join() {
    let study = cluster::study(10, 128);
    let expected = cluster::expected(&study);
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(&["--strategy", "trtma", "--max-buckets", "3"]);
    cluster.wait_until(|cluster| cluster.study_of(&id)["remaining_work_seconds"].as_f64().is_some());
    cluster.start_workers(0..2);
    assert_eq!(cluster.completed(&id), expected);
    assert_eq!(count(&cluster, "pleach_replans_total{cause=\"workers\"} "), 0);
    cluster.nothing_is_left();
}

/// A second plan is made with the costs that the first study has measured, also after a restart of the manager.
#[test]
fn measured_costs_are_used_by_the_next_plan() {
    let study = cluster::study(4, 128);
    let expected = cluster::expected(&study);
    let mut cluster = Cluster::new(&study);
    cluster.start_workers(0..2);
    cluster.wait_until(|cluster| cluster.status()["workers"].as_array().is_some_and(|all| all.len() == 2));
    let first = cluster.submit(&[]);
    assert_eq!(cluster.completed(&first), expected);
    // One line for each operation, and for each value of a parameter with few values: name, version, value, runs, ratio.
    let text = fs::read_to_string(cluster.state.join("costs")).expect("the manager keeps costs");
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let runs = |lines: &mut dyn Iterator<Item = &Vec<&str>>| -> u64 {
        lines.map(|line| line[3].parse::<u64>().expect("a number of runs")).sum()
    };
    let state = cluster.state.clone();
    let result = |id: &str, file: &str| -> Value {
        let path = state.join(format!("studies/{id}/results/{file}"));
        serde_json::from_slice(&fs::read(path).expect("a result file")).expect("JSON")
    };
    let executed = result(&first, "run.json")["tasks_executed"].as_u64();
    assert_eq!(Some(runs(&mut lines.iter().filter(|line| line[2].is_empty()))), executed);
    for operation in ["nuclei.reconstruct", "nuclei.separate"] {
        let of: Vec<&Vec<&str>> = lines.iter().filter(|line| line[0] == operation).collect();
        let by_value = runs(&mut of.iter().copied().filter(|line| !line[2].is_empty()));
        assert_eq!(by_value, runs(&mut of.iter().copied().filter(|line| line[2].is_empty())), "{of:?}");
        assert!(of.len() > 2, "each connectivity is measured: {of:?}");
    }
    assert!(cluster.end_manager().success());
    cluster.start_manager();
    cluster.wait_until(|cluster| cluster.status()["workers"].as_array().is_some_and(|all| all.len() == 2));
    let second = cluster.submit(&[]);
    assert_eq!(cluster.completed(&second), expected);
    let predicted =
        |id: &str| result(id, "plan.json")["predicted_makespan_seconds"].as_f64().expect("a prediction");
    assert!((predicted(&first) / predicted(&second) - 1.0).abs() > 1e-3, "{}", predicted(&first));
    cluster.nothing_is_left();
}

/// The manager has measured leases of earlier studies, and writes the measurements of this one beside them.
#[test]
fn measured_overhead_of_buckets_is_used_by_the_next_plan() {
    let study = cluster::study(4, 64);
    let expected = cluster::expected(&study);
    let mut cluster = Cluster::to_be(&study);
    let lines = format!("bucket-overhead\t1\t{}\t64\t60", vec!["60"; 64].join(","));
    let costs = format!("pleach-costs-1 {}\n{lines}", blake3::hash(lines.as_bytes()).to_hex());
    fs::create_dir(&cluster.state).expect("a folder");
    fs::write(cluster.state.join("costs"), costs).expect("written");
    cluster.start_manager();
    cluster.start_workers(0..2);
    cluster.wait_until(|cluster| cluster.status()["workers"].as_array().is_some_and(|all| all.len() == 2));
    let (fixed, learned) = (cluster.submit(&["--overhead", "0"]), cluster.submit(&[]));
    let plan = |id: &str| -> (Value, Value) {
        assert_eq!(cluster.completed(id), expected);
        let path = cluster.state.join(format!("studies/{id}/results/plan.json"));
        let plan: Value = serde_json::from_slice(&fs::read(path).expect("a plan")).expect("JSON");
        (plan["bucket_overhead_seconds"].clone(), plan["max_buckets"].clone())
    };
    assert_eq!(plan(&fixed), (Value::from(0.0), Value::from(6)));
    assert_eq!(plan(&learned), (Value::from(60.0), Value::from(2)));
    let path = cluster.state.join(format!("studies/{learned}/results/run.json"));
    let run: Value = serde_json::from_slice(&fs::read(path).expect("a run")).expect("JSON");
    assert!(run["bucket_overhead_seconds"].is_f64(), "{run}");
    let kept = fs::read_to_string(cluster.state.join("costs")).expect("the manager keeps costs");
    let line = kept.lines().find(|line| line.starts_with("bucket-overhead")).expect("a measurement");
    let leases: u64 = line.split('\t').nth(3).expect("a field").parse().expect("a number");
    assert!(leases > 64, "no lease was measured: {line}");
    assert!(count(&cluster, "pleach_bucket_overhead_seconds_count ") > 0);
    cluster.nothing_is_left();
}

/// Returns the value of a counter of the manager.
fn count(cluster: &Cluster<'_>, name: &str) -> u64 {
    let metrics = get(&format!("https://{}/metrics", cluster.http));
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("{name}: {metrics}"))
}

#[test]
fn invalid_deadlines_and_budgets_are_refused() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::new(&study);
    let refused = |options: &[&str], expected: &str| {
        let args: Vec<&str> = ["submit", "study.toml"].iter().chain(options).copied().collect();
        let answer = cluster.ask(&args);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        assert!(answer.stderr.contains(expected), "{answer:?}");
    };
    refused(
        &["--deadline", "2020-01-01T00:00:00Z"],
        "--deadline: 2020-01-01T00:00:00Z has passed; a future time is allowed",
    );
    refused(&["--deadline", "tomorrow"], "a time as in 2026-12-24T18:00:00Z, seconds since 1970");
    refused(&["--budget", "-1"], "a number, 0 or more, is allowed");
    refused(&["--budget", "NaN"], "a number, 0 or more, is allowed");
    assert_eq!(cluster.status()["studies"], Value::Array(Vec::new()));
    // Without pools the manager desires no number of workers and prints no scaling text.
    assert_eq!(cluster.status()["scaling"]["workers_desired"], Value::Null);
    assert!(!cluster.ask(&["status"]).done().contains("wanted"));
}

#[test]
fn a_wrong_list_of_pools_is_refused_before_anything_is_written() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::to_be(&study);
    fs::write(cluster.path("pools.toml"), POOLS.replace("= 36", "= -36")).expect("a folder");
    let answer = cluster.call(&["manager", "--state", "new", "--certs", "ca/boss", "--pools", "pools.toml"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    let expected = "error: pools.toml: pool 1.price_per_hour: -36 is not allowed; 0 or more per worker and hour is allowed";
    assert!(answer.stderr.starts_with(expected), "{answer:?}");
    assert!(!cluster.path("new").exists());
}
