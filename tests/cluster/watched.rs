//! A real Prometheus scrapes a real cluster and evaluates every expression of every dashboard and rule. All expressions are
//! valid, and those with data in a healthy cluster return it.
//!
//! Without Debian's `prometheus` these tests are skipped. No other test needs it.

mod expressions;
mod server;

use crate::cluster::{self, Cluster, expected};
use crate::scaling::cluster_with_a_pool;
use crate::skipped;
use crate::study::Study;
use expressions::{Expression, expressions, label_values};
use server::{Prometheus, has_tools, promtool};
pub(crate) use server::{asked, get};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// A file of the repository.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Address of a worker's metrics, from its log.
pub(crate) fn address_of(worker_log: &str) -> String {
    let (_, rest) = worker_log.split_once("metrics are at http://").expect("it says where");
    rest.split_once("/metrics").expect("a path").0.to_owned()
}

/// Addresses on this machine that nothing uses: all of them are bound at the same time.
fn free_addresses<const N: usize>() -> [String; N] {
    let bound = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    bound.map(|listener| listener.local_addr().expect("an address").to_string())
}

#[test]
fn prometheus_has_data_for_dashboards_and_rules() {
    if !has_tools() {
        return skipped("prometheus_has_data_for_dashboards_and_rules", "there is no prometheus");
    }
    // The study is long enough for many scrapes. A replan rebuilds buckets without a lease, soon after a worker joins: on tiles of
    // this size the first tasks take longer, so that there are some.
    let study = Study::of_tissue(1536);
    study.edit(&[("\"nuclei-moat\"", "'a \"quoted\" name'"), ("trajectories = 2", "trajectories = 10")]);
    let expected = expected(&study);
    let mut cluster = cluster_with_a_pool(&study);
    // Workers that join a study have it replanned, so Prometheus looks before they do.
    let workers = free_addresses::<2>();
    let prometheus = Prometheus::start(&cluster.path("ca/ca.pem"), &cluster.http, &workers);
    // A deadline makes the manager predict costs.
    let id = cluster.submit(&["--deadline", "60m"]);
    cluster.wait_until(|cluster| cluster.study_of(&id)["remaining_work_seconds"].as_f64().is_some());
    prometheus.wait_for("sum(pleach_replans_total) == 0 and sum(pleach_studies{state=\"running\"}) == 1");
    for (name, metrics) in ["w0", "w1"].into_iter().zip(&workers) {
        // An emulated device, so that panels of devices have data.
        cluster.start_worker(name, &["--metrics", metrics, "--accelerators", "emulate:2x"]);
        cluster.wait_until(|cluster| cluster.log("manager").contains(": replanned for "));
    }
    prometheus.wait_for("count(up == 1) == 3");
    prometheus.wait_for("sum(pleach_replans_total) >= 1");
    cluster.start_worker("w2", &[]);
    cluster.wait_for_workers();
    prometheus.wait_for("sum(pleach_worker_joins_total) >= 3");
    // The prediction starts once each stage has run a task.
    prometheus.wait_for("max(pleach_study_remaining_seconds) > 0");
    cluster.ask_to_leave("w2");
    assert!(cluster.left("w2").success());
    prometheus.wait_for("sum(pleach_worker_leaves_total{reason=\"drained\"}) >= 1");
    assert_eq!(cluster.completed(&id), expected, "watching changes nothing");
    // The study's series end with the study.
    prometheus.wait_for("absent(pleach_study_info) and sum(pleach_studies{state=\"complete\"}) == 1");

    let all = expressions();
    assert!(all.len() > 100, "{}", all.len());
    let mut without = Vec::new();
    for Expression { place, text, labels } in &all {
        let found = prometheus.range(text).unwrap_or_else(|error| panic!("{place}: {text}: {error}"));
        if found.is_empty() {
            without.push(format!("{place}: {text}"));
        }
        for label in labels {
            if found.iter().any(|series| series[label].is_null()) {
                without.push(format!("{place}: {text}: label {label}"));
            }
        }
    }
    assert!(without.is_empty(), "no data for\n{}", without.join("\n"));
    for (metric, label) in label_values() {
        assert!(prometheus.has_label(&metric, &label), "{metric} has no {label}");
    }
    let named = r#"pleach_study_info{study="1", name="a \"quoted\" name"}"#;
    assert_eq!(prometheus.range(named).map(|series| series.len()), Ok(1), "{named}");
    prometheus.rules_are_healthy();
}

#[test]
fn promtool_accepts_metrics_rules_and_config() {
    if !has_tools() {
        return skipped("promtool_accepts_metrics_rules_and_config", "there is no promtool");
    }
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &["--metrics", "127.0.0.1:0"]);
    cluster.submit_and_wait(&[]);
    let worker = get(&format!("http://{}/metrics", address_of(&cluster.log("w0"))));
    assert!(
        worker.contains("pleach_task_duration_seconds_count{device=\"cpu\",operation=\"nuclei."),
        "{worker}"
    );
    assert_eq!(promtool(&["check", "metrics"], &worker, Path::new(".")), "");
    let manager = get(&format!("https://{}/metrics", cluster.http));
    assert!(
        manager.contains(
            "pleach_http_requests_total{method=\"POST\",route=\"/api/v1/studies\",status=\"201\"} 1"
        )
    );
    assert_eq!(promtool(&["check", "metrics"], &manager, Path::new(".")), "");

    let folder = project("deploy/prometheus");
    promtool(&["check", "rules", "rules.yml"], "", &folder);
    promtool(&["test", "rules", "rules.yml"], "", &folder.join("tests"));
    let example = tempfile::tempdir().expect("a folder");
    for file in ["prometheus.yml", "rules.yml"] {
        fs::copy(folder.join(file), example.path().join(file)).expect("a copy");
    }
    fs::copy(cluster.path("ca/ca.pem"), example.path().join("ca.pem")).expect("a copy");
    promtool(&["check", "config", "prometheus.yml"], "", example.path());
}

#[test]
fn occupied_metrics_port_is_refused_before_start() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::of(&study, 0);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let args = ["worker", "--manager", &cluster.listen, "--certs", "ca/nobody", "--metrics", &address];
    let answer = cluster.call(&args);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    let told = format!("error: --metrics {address}: ");
    assert!(answer.stderr.starts_with(&told) && answer.stderr.lines().count() == 1, "{}", answer.stderr);
}
