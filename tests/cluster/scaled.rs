//! Pools whose deployments the manager scales through the API of a cluster. Their pods are real workers.

use crate::chart::Tools;
use crate::cluster::{self, Cluster, DEADLINE, LOOK_AGAIN};
use crate::kubernetes::{Kubernetes, PodPhase, PodRequest, WatchFault};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

const DEPLOYMENT: &str = "rel-spot";

const POOLS: &str = "\
[[pool]]
name = \"spot\"
workers = \"rel-spot-\"
cores = 1
price_per_hour = 36
startup_seconds = 1
max = 3

[pool.provision]
driver = \"kubernetes\"
deployment = \"rel-spot\"
idle_seconds = 1
";

/// A manager, an API, and a node that runs the pods.
struct Site<'a> {
    cluster: Cluster<'a>,
    kubernetes: Kubernetes,
    /// Pods that were asked to end.
    asked: BTreeSet<String>,
}

impl<'a> Site<'a> {
    /// Creates a site with one deployment of this many pods. The manager does not run.
    fn new(study: &'a crate::study::Study, pools: &str, replicas: u64) -> Self {
        let mut cluster = Cluster::to_be(study);
        fs::write(cluster.path("pools.toml"), pools).expect("a folder");
        let kubernetes = Kubernetes::start(&cluster.path("account"));
        kubernetes.add_deployment(DEPLOYMENT, replicas);
        let options = ["--pools", "pools.toml", "--service-account", "account"];
        cluster.manager_options = options.map(str::to_owned).to_vec();
        cluster.environment.extend(kubernetes.environment());
        Self { cluster, kubernetes, asked: BTreeSet::new() }
    }

    /// Acts as the kubelet: starts the processes of new pods, and ends those of pods that are being ended.
    fn sync(&mut self) {
        for (name, phase) in self.kubernetes.deployed() {
            match phase {
                PodPhase::Pending => {
                    self.cluster.start_worker(&name, &[]);
                    self.kubernetes.run_pod(&name);
                }
                PodPhase::Terminating if self.cluster.workers.contains_key(&name) => {
                    if self.asked.insert(name.clone()) {
                        self.cluster.ask_to_leave(&name);
                    }
                }
                PodPhase::Evicted if self.cluster.workers.contains_key(&name) => {
                    self.cluster.kill_worker(&name)
                }
                PodPhase::Running | PodPhase::Terminating | PodPhase::Evicted => {}
            }
        }
        for (name, _) in self.cluster.ended() {
            self.kubernetes.remove_pod(&name);
        }
    }

    /// Runs the pods until the condition holds.
    fn until(&mut self, happened: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        loop {
            self.sync();
            if happened(self) {
                return;
            }
            let log = || self.cluster.log("manager");
            assert!(begun.elapsed() < DEADLINE, "{:?}\n{}", self.kubernetes.deployed(), log());
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Exit code and output of `pleach pools`.
    fn audit(&self, options: &[&str]) -> (i32, String) {
        let audit = ["pools", "--pools", "pools.toml", "--state", "state", "--service-account", "account"];
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
        command.current_dir(self.cluster.path("")).args(audit).args(options).envs(&self.cluster.environment);
        let answer = crate::pleach::answer(&mut command);
        (answer.code, answer.stdout.trim().to_owned())
    }

    fn replicas(&self) -> u64 {
        self.kubernetes.replicas(DEPLOYMENT)
    }

    /// Numbers that the manager has set, in order.
    fn set(&self) -> Vec<u64> {
        let (requests, _) = self.kubernetes.scale_requests();
        requests
            .iter()
            .filter(|request| request.status == 200)
            .filter_map(|request| request.replicas)
            .collect()
    }

    fn joined(&self) -> Option<u64> {
        let pool: Value = self.cluster.status()["scaling"]["pools"][0].clone();
        pool["provisioned"]["joined"].as_u64()
    }

    fn remark(&self) -> String {
        let pool: Value = self.cluster.status()["scaling"]["pools"][0].clone();
        pool["provisioned"]["remark"].as_str().unwrap_or_default().to_owned()
    }
}

/// Conflicts, expired lists and an expired token delay the manager and stop nothing.
#[test]
fn deployment_is_scaled_for_a_study_and_to_its_minimum_after_it() {
    let study = cluster::study(150, 256);
    let expected = cluster::expected(&study);
    let mut site = Site::new(&study, &POOLS.replace("idle_seconds = 1", "idle_seconds = 20"), 2);
    // The first list has 2 pods on several pages, and expires twice.
    site.kubernetes.disturb(2, 2);
    site.cluster.start_manager();
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| site.joined() == Some(3));
    // The token expires some time before the cluster replaces the file. A lost pod is replaced by its deployment.
    site.kubernetes.expire_token("second");
    let lost = site.kubernetes.deployed().remove(0).0;
    site.cluster.kill_worker(&lost);
    site.kubernetes.remove_pod(&lost);
    site.until(|site| site.remark().contains("401: Unauthorized"));
    site.kubernetes.give_token("second");
    site.until(|site| site.cluster.has_ended(&id));
    assert_eq!(site.cluster.completed(&id), expected);
    site.until(|site| site.replicas() == 0 && site.kubernetes.deployed().is_empty());
    assert!(site.cluster.workers.is_empty());

    let (requests, continued) = site.kubernetes.scale_requests();
    let with = |status: u16| requests.iter().filter(|request| request.status == status).count();
    assert_eq!(with(409), 2, "{requests:?}");
    assert!(continued >= 2, "{continued}: the list of pods has several pages");
    let set = site.set();
    assert_eq!((set[0], set.last()), (3, Some(&0)), "{set:?}");
    assert!(set.windows(2).all(|two| two[0] != two[1]), "no number is set twice: {set:?}");
    let log = site.cluster.log("manager");
    assert!(log.contains("pool spot is scaled from 2 to 3 workers"), "{log}");
    assert!(!log.contains("not by this manager"), "{log}");
    // Conflicts and expired lists need no second attempt of the manager.
    assert!(!log.contains(": 409: ") && !log.contains(": 410: "), "{log}");
}

/// Ends of watches cause one more watch, expired versions one more list, and nothing else lists the pods.
#[test]
fn pods_are_watched_through_all_ends_of_a_watch_and_evictions_are_reported() {
    let study = cluster::study(150, 256);
    let expected = cluster::expected(&study);
    let mut site = Site::new(&study, &POOLS.replace("idle_seconds = 1", "idle_seconds = 600"), 0);
    site.kubernetes.disturb_watches(&[
        WatchFault::Close,
        WatchFault::Cut,
        WatchFault::Gone,
        WatchFault::GoneEvent,
    ]);
    site.cluster.start_manager();
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| site.joined() == Some(3) && site.kubernetes.has_disturbed_watches());
    // Fault 4 is answered at once by a list, from whose version the fifth watch begins.
    let watches = |site: &Site<'_>| {
        let requests = site.kubernetes.pod_requests();
        requests.into_iter().filter(|request| *request != PodRequest::List).count()
    };
    site.until(|site| watches(site) == 5);
    let evicted = site.kubernetes.deployed().remove(0).0;
    site.kubernetes.evict_pod(&evicted);
    let reason =
        format!("pool spot: pod {evicted} has failed: Evicted: The node was low on resource: memory.");
    site.until(|site| site.remark() == reason);
    site.until(|site| site.cluster.has_ended(&id));
    assert_eq!(site.cluster.completed(&id), expected);

    let requests = site.kubernetes.pod_requests();
    let lists = requests.iter().filter(|request| **request == PodRequest::List).count();
    // The first observation, the first list of the watch, and one list for each expired version.
    assert_eq!(lists, 4, "{requests:?}");
    let versions: Vec<&String> = requests
        .iter()
        .filter_map(|request| match request {
            PodRequest::Watch(version) => Some(version),
            PodRequest::List => None,
        })
        .collect();
    assert!(versions.len() >= 5, "{requests:?}");
    // A closed watch continues after its last event, and a cut event comes again.
    assert_ne!(versions[0], versions[1], "{requests:?}");
    assert_eq!(versions[1], versions[2], "{requests:?}");
    let log = site.cluster.log("manager");
    assert!(!log.contains("are not watched"), "{log}");
}

/// A watch whose connection hangs is given up after 70 s, and the next one continues from its version.
#[test]
fn watch_that_hangs_is_given_up_and_continued() {
    let study = cluster::study(10, 128);
    let expected = cluster::expected(&study);
    let mut site = Site::new(&study, &POOLS.replace("idle_seconds = 1", "idle_seconds = 600"), 0);
    site.kubernetes.disturb_watches(&[WatchFault::Hang]);
    site.cluster.start_manager();
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| site.joined() == Some(3) && site.kubernetes.has_disturbed_watches());
    let evicted = site.kubernetes.deployed().remove(0).0;
    site.kubernetes.evict_pod(&evicted);
    site.until(|site| site.cluster.has_ended(&id));
    assert_eq!(site.cluster.completed(&id), expected);
    let reason =
        format!("pool spot: pod {evicted} has failed: Evicted: The node was low on resource: memory.");
    site.until(|site| site.remark() == reason);
    let requests = site.kubernetes.pod_requests();
    let watches: Vec<&PodRequest> =
        requests.iter().filter(|request| matches!(request, PodRequest::Watch(_))).collect();
    assert!(watches.len() >= 2 && watches[0] == watches[1], "{requests:?}");
}

/// A role of an earlier chart has no right to watch. The pods are listed.
#[test]
fn pods_are_listed_without_the_right_to_watch() {
    let study = cluster::study(10, 128);
    let expected = cluster::expected(&study);
    let mut site = Site::new(&study, POOLS, 0);
    site.kubernetes.grant(vec![
        serde_json::json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}),
        serde_json::json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update"]}),
    ]);
    site.cluster.start_manager();
    site.until(|site| site.remark().contains("the pods of pool spot are not watched: "));
    assert!(site.remark().contains("403: GET "), "{}", site.remark());
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| site.cluster.has_ended(&id));
    assert_eq!(site.cluster.completed(&id), expected);
}

/// A restarted manager reads the number and keeps it. Without a study, the pods end with the manager.
#[test]
fn restarted_manager_keeps_the_number_and_the_last_one_sets_the_minimum() {
    let study = cluster::study(150, 256);
    let expected = cluster::expected(&study);
    let mut site = Site::new(&study, &POOLS.replace("idle_seconds = 1", "idle_seconds = 600"), 0);
    site.cluster.start_manager();
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| site.joined() == Some(3));
    let before: Vec<String> = site.kubernetes.deployed().into_iter().map(|(name, _)| name).collect();
    site.cluster.kill_manager();
    site.cluster.start_manager();
    site.until(|site| site.cluster.has_ended(&id));
    assert_eq!(site.cluster.completed(&id), expected);
    let after: Vec<String> = site.kubernetes.deployed().into_iter().map(|(name, _)| name).collect();
    assert!(after.iter().all(|name| before.contains(name)), "{before:?}, {after:?}");
    // Another party is reported. The manager sets its own number while the study needs it, and none before the idle time.
    site.kubernetes.scale_elsewhere(DEPLOYMENT, 2);
    site.until(|site| site.remark().contains("workers, and not by this manager"));
    assert!(site.cluster.end_manager().success());
    assert_eq!(site.replicas(), 0, "{}", site.cluster.log("manager"));
    site.until(|site| site.kubernetes.deployed().is_empty());
    assert_eq!(site.audit(&[]), (0, "no workers of this manager".to_owned()));
    // Pods that are left are listed, and end with their deployment's number.
    site.kubernetes.scale_elsewhere(DEPLOYMENT, 2);
    let (code, listed) = site.audit(&[]);
    assert_eq!((code, listed.matches(": owned").count()), (0, 2), "{listed}");
    assert_eq!(site.audit(&["--reap", "--all"]), (0, "no workers of this manager".to_owned()));
    assert_eq!(site.replicas(), 0);
}

/// A surplus worker with the least work is the one that the replica set ends.
#[test]
fn surplus_pods_have_deletion_costs_before_the_number_is_lowered() {
    let study = cluster::study(2, 64);
    let mut site = Site::new(&study, &POOLS.replace("max = 3", "min = 1\nmax = 3"), 3);
    site.cluster.start_manager();
    site.until(|site| site.replicas() == 1 && site.kubernetes.deployed().len() == 1);
    let (kept, _) = site.kubernetes.deployed().remove(0);
    let ended = site.asked.clone();
    let patched: BTreeSet<String> = site.kubernetes.patches().into_iter().map(|patch| patch.pod).collect();
    assert!(ended.len() == 2 && !ended.contains(&kept), "{ended:?}, {kept}");
    assert!(ended.is_subset(&patched), "{ended:?}, {patched:?}");
}

#[test]
fn refusals_of_the_cluster_are_reported_and_studies_end_on_other_workers() {
    let study = cluster::study(10, 128);
    let expected = cluster::expected(&study);
    let missing = POOLS.replace("spot", "gone");
    let mut site = Site::new(&study, &format!("{POOLS}{missing}"), 0);
    site.kubernetes.forbid(Some("deployments.apps \"rel-spot\" is forbidden: cannot update resource"));
    site.cluster.start_manager();
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| site.remark().contains("403: deployments.apps \"rel-spot\" is forbidden"));
    site.until(|site| {
        let pool = site.cluster.status()["scaling"]["pools"][1].clone();
        let remark = pool["provisioned"]["remark"].as_str().unwrap_or_default().to_owned();
        remark.contains("404: deployments.apps \"rel-gone\" not found")
    });
    site.cluster.start_worker("base", &[]);
    assert_eq!(site.cluster.completed(&id), expected);
    assert_eq!(site.replicas(), 0);
}

/// The pools that the chart writes are scaled with the rights of the role that the chart creates.
#[test]
fn pools_of_the_chart_are_scaled_with_the_rights_of_its_role() {
    let test = "pools_of_the_chart_are_scaled_with_the_rights_of_its_role";
    let Some(tools) = Tools::of(test) else { return };
    let objects = tools.render(&["--values", "helm/pleach/ci/manager-scaled-values.yaml"]).expect("objects");
    let pools = objects.iter().find_map(|object| object["data"]["pools.toml"].as_str()).expect("pools");
    // Two pools that fit this machine, and that follow soon.
    let mut smaller = pools.to_owned();
    for (large, small) in [
        ("cores = 16", "cores = 1"),
        ("cores = 4", "cores = 1"),
        ("max = 64", "max = 2"),
        ("max = 4", "max = 1"),
        ("startup_seconds = 180", "startup_seconds = 1"),
        ("idle_seconds = 120", "idle_seconds = 1"),
    ] {
        assert!(smaller.contains(large), "{large}: {pools}");
        smaller = smaller.replace(large, small);
    }
    let study = cluster::study(150, 256);
    let expected = cluster::expected(&study);
    let mut site = Site::new(&study, &smaller, 0);
    for deployment in ["rel-pleach-spot", "rel-pleach-large"] {
        assert!(
            objects
                .iter()
                .any(|object| { object["kind"] == "Deployment" && object["metadata"]["name"] == deployment })
        );
        site.kubernetes.add_deployment(deployment, 1);
    }
    let role =
        |object: &&Value| object["kind"] == "Role" && object["metadata"]["name"] == "rel-pleach-manager";
    let role = objects.iter().find(role).expect("a role");
    site.kubernetes.grant(role["rules"].as_array().expect("rules").clone());
    site.cluster.start_manager();
    // The minimum of one pool is 0, and of the other 1.
    let numbers =
        |site: &Site<'_>| ["rel-pleach-spot", "rel-pleach-large"].map(|name| site.kubernetes.replicas(name));
    site.until(|site| numbers(site) == [0, 1]);
    let id = site.cluster.submit(&["--deadline", "1s"]);
    site.until(|site| numbers(site) == [2, 1] || site.cluster.has_ended(&id));
    site.until(|site| site.cluster.has_ended(&id));
    assert_eq!(site.cluster.completed(&id), expected);
    site.until(|site| numbers(site) == [0, 1] && site.kubernetes.deployed().len() == 1);
    let (requests, _) = site.kubernetes.scale_requests();
    assert!(requests.iter().all(|request| request.status == 200), "{requests:?}");
    assert!(
        requests.iter().any(|request| request.deployment == "rel-pleach-spot" && request.replicas == Some(2))
    );
    let log = site.cluster.log("manager");
    assert!(!log.contains("forbidden"), "{log}");
}

#[test]
fn manager_outside_a_cluster_refuses_the_driver() {
    let study = cluster::study(2, 64);
    let mut site = Site::new(&study, POOLS, 0);
    site.cluster.environment.insert("KUBERNETES_SERVICE_HOST".to_owned(), String::new());
    let (code, text) = site.cluster.try_start_manager().expect_err("it is refused");
    assert_eq!(code, Some(2), "{text}");
    let expected = "error: driver \"kubernetes\": environment variable KUBERNETES_SERVICE_HOST is missing; ";
    assert!(text.contains(expected), "{text}");
    assert!(!site.cluster.state.exists());
}
