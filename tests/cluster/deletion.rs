//! Pod deletion costs of surplus workers, set by a manager that runs as if it were a pod of the cluster.

use crate::cluster::{self, Cluster};
use crate::kubernetes::{Kubernetes, Patch};
use crate::scaling::POOLS;
use crate::watched::get;
use std::fs;

/// A manager with one pool and the right to annotate pods.
fn start<'a>(study: &'a crate::study::Study, pods: &[&str]) -> (Cluster<'a>, Kubernetes) {
    let mut cluster = Cluster::to_be(study);
    let kubernetes = Kubernetes::start(&cluster.path("account"));
    pods.iter().for_each(|pod| kubernetes.add_pod(pod));
    fs::write(cluster.path("pools.toml"), POOLS).expect("a folder");
    let options = ["--pools", "pools.toml", "--pod-deletion-cost", "--service-account", "account"];
    cluster.manager_options = options.map(str::to_owned).to_vec();
    cluster.environment.extend(kubernetes.environment());
    cluster.start_manager();
    (cluster, kubernetes)
}

impl Cluster<'_> {
    /// Waits until the pods with negative costs are these, in this order.
    fn wait_for_costs(&self, kubernetes: &Kubernetes, order: &[&str]) {
        let is_so = || {
            let below: Vec<_> = kubernetes.costs().into_iter().filter(|(cost, _)| *cost < 0).collect();
            below.iter().map(|(_, name)| name.as_str()).eq(order.iter().copied())
        };
        self.wait_until(|_| is_so());
    }

    fn counted(&self, outcome: &str) -> u64 {
        let name = format!("pleach_pod_deletion_costs_total{{outcome=\"{outcome}\"}} ");
        let metrics = get(&format!("https://{}/metrics", self.http));
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.parse().expect("a number"))
    }
}

/// Pods and costs of the requests with this response status.
fn with(patches: &[Patch], status: u16) -> Vec<(&str, &str)> {
    patches
        .iter()
        .filter(|patch| patch.status == status)
        .map(|patch| (patch.pod.as_str(), patch.cost.as_deref().unwrap_or_default()))
        .collect()
}

#[test]
fn pods_get_deletion_costs_in_drain_order() {
    // More work than the deadline allows on any machine.
    let study = cluster::study(150, 256);
    let expected = cluster::expected(&study);
    let (mut cluster, kubernetes) = start(&study, &["w0", "w1", "w2"]);
    // No study runs, so all workers are surplus. At first the account lacks the right to set costs.
    kubernetes.fail(Some(403));
    cluster.start_workers(0..3);
    cluster.wait_until(|cluster| cluster.counted("refused") >= 2);
    let said = "failed to set pod deletion costs: ";
    let log = cluster.log("manager");
    let line = log.lines().find(|line| line.contains(said)).expect("it is said");
    assert!(line.contains("403: pods \"w0\" is forbidden: not in the mood"), "{line}");
    assert_eq!(log.matches(said).count(), 1, "once, and counted from there on: {log}");
    kubernetes.fail(None);
    cluster.wait_for_costs(&kubernetes, &["w0", "w1", "w2"]);
    cluster.wait_until(|cluster| cluster.log("manager").contains("pod deletion costs are set again"));
    assert_eq!(cluster.status()["scaling"]["drain_order"], serde_json::json!(["w0", "w1", "w2"]));
    assert_eq!(kubernetes.costs()[0], (-1_000_000, "w0".to_owned()));

    // The deadline needs all workers, for some time, and the API is unavailable. Studies do not depend on it.
    kubernetes.fail(Some(503));
    let id = cluster.submit(&["--deadline", "1s"]);
    // Near its end it needs fewer.
    cluster.wait_until(|cluster| cluster.status()["scaling"]["drain_order"] == serde_json::json!([]));
    cluster.wait_until(|cluster| cluster.counted("failed") >= 1);
    assert_eq!(cluster.completed(&id), expected);
    // A restarted manager reads the costs that its predecessor set and resets them, because the pool's minimum needs all
    // workers. The token has changed as well.
    cluster.kill_manager();
    fs::write(cluster.path("pools.toml"), format!("{POOLS}min = 3\n")).expect("a folder");
    kubernetes.give_token("second");
    kubernetes.fail(None);
    cluster.start_manager();
    cluster.wait_for_costs(&kubernetes, &[]);
    assert_eq!(kubernetes.costs().len(), 3, "each of them is 0: {:?}", kubernetes.costs());

    // No cost is sent twice.
    let patches = kubernetes.patches();
    for pod in ["w0", "w1", "w2"] {
        let heard: Vec<&str> =
            with(&patches, 200).into_iter().filter(|(name, _)| *name == pod).map(|(_, cost)| cost).collect();
        assert!(heard.windows(2).all(|two| two[0] != two[1]), "{pod}: {heard:?}");
        assert_eq!(heard.last(), Some(&"0"), "{pod}");
    }
    assert!(patches.iter().all(|patch| [200, 403, 503].contains(&patch.status)), "{patches:?}");
}

#[test]
fn worker_without_a_pod_is_reported_once() {
    let study = cluster::study(2, 64);
    let (mut cluster, kubernetes) = start(&study, &["w1"]);
    cluster.start_workers(0..1);
    cluster.wait_until(|cluster| cluster.log("manager").contains("worker w0 joined with"));
    cluster.start_workers(1..2);
    cluster.wait_for_costs(&kubernetes, &["w1"]);
    cluster.wait_until(|cluster| cluster.counted("gone") == 1);
    // Nothing changes for two rounds and a possible third one.
    cluster.let_pass(std::time::Duration::from_secs(25));
    let patches = kubernetes.patches();
    assert_eq!(with(&patches, 404), [("w0", "-1000000")]);
    assert_eq!((with(&patches, 200).len(), patches.len()), (1, 2), "{patches:?}");
}

#[test]
fn manager_without_kubernetes_refuses_deletion_costs() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::to_be(&study);
    fs::write(cluster.path("pools.toml"), POOLS).expect("a folder");
    let manager = ["manager", "--state", "new", "--certs", "ca/boss", "--pod-deletion-cost"];
    let refused = |more: &[&str], environment: &[(String, String)], expected: &str| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
        command.current_dir(cluster.path("")).args(manager).args(more);
        command.env_remove("KUBERNETES_SERVICE_HOST").envs(environment.iter().cloned());
        let answer = crate::pleach::answer(&mut command);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(expected), "{answer:?}");
        assert!(!cluster.path("new").exists());
    };
    refused(&[], &[], "--pools <FILE>");
    let pools = ["--pools", "pools.toml"];
    refused(
        &pools,
        &[],
        "error: --pod-deletion-cost: environment variable KUBERNETES_SERVICE_HOST is missing; ",
    );
    let kubernetes = Kubernetes::start(&cluster.path("account"));
    let of_folder = [&pools[..], &["--service-account", "nowhere"]].concat();
    refused(
        &of_folder,
        &kubernetes.environment(),
        "error: --pod-deletion-cost: nowhere/namespace: No such file",
    );
    fs::write(cluster.path("account/ca.crt"), "-----BEGIN CERTIFICATE-----").expect("a file");
    let of_folder = [&pools[..], &["--service-account", "account"]].concat();
    refused(&of_folder, &kubernetes.environment(), "error: --pod-deletion-cost: account/ca.crt: ");
}
