//! A release of the chart on this machine. The hook, the manager and the workers run with the chart's commands, with folders
//! in place of volumes.
//!
//! Each worker is the first process of its PID namespace, as in a container, so that `preStop` has the same effect. Tests
//! make the decisions of a cluster (when, how many).

use crate::api::Api;
use crate::chart::{Container, Tools, containers, strings};
use crate::cluster::{Cluster, DEADLINE, LOOK_AGAIN};
use crate::kubernetes::Kubernetes;
use crate::place::Place;
use crate::study::Study;
use crate::watched::{address_of, asked};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Workers that fit any machine, and a pool that may shrink to one worker. All other values are the chart's.
const VALUES: [&str; 4] = [
    "--set-json",
    r#"workerDefaults={"cpu":1,"memory":"2Gi","regionsMemory":"1GB","drainSeconds":60,"ssd":{"size":"1Gi"},
        "autoscaling":{"kind":"hpa","min":1,"max":4}}"#,
    "--set-json",
    r#"manager={"podDeletionCost":true}"#,
];

/// Enters namespaces as a container does: the program is the first process and shares no memory with others.
const CONTAINER: [&str; 8] = [
    "unshare",
    "--pid",
    "--mount-proc",
    "--fork",
    "--kill-child",
    "sh",
    "-euc",
    "mount -t tmpfs tmpfs /dev/shm; exec \"$0\" \"$@\"",
];

/// An installed release: the cluster's processes, a Kubernetes API, and the rendered objects.
pub(crate) struct Release<'a> {
    pub(crate) cluster: Cluster<'a>,
    api: Api,
    kubernetes: Kubernetes,
    objects: Vec<Value>,
    /// Worker pods, the oldest first.
    pub(crate) pods: Vec<String>,
    started: u32,
}

impl<'a> Release<'a> {
    /// Installs the release without workers. Returns `None` if the tools or the namespaces are unavailable.
    pub(crate) fn install(test: &str, study: &'a Study) -> Option<Self> {
        let tools = Tools::of(test)?;
        let [unshare, options @ ..] = CONTAINER;
        let can = Command::new(unshare).args(options).arg("true").output();
        if !can.is_ok_and(|output| output.status.success()) {
            crate::skipped(test, "the system gives us no namespaces");
            return None;
        }
        let objects = tools.render(&VALUES).expect("objects");
        let mut cluster = Cluster::to_be(study);
        let api = Api::of(&objects, &cluster.path(""));
        cluster.state = cluster.path("pods/manager/var/lib/pleach/state");
        let kubernetes = Kubernetes::start(&cluster.path("manager-account"));
        cluster.environment.extend(kubernetes.environment());
        let roles = objects.iter().filter(|object| object["kind"] == "Role");
        let mut rules = roles.flat_map(|role| role["rules"].as_array().expect("rules"));
        let pods = serde_json::json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]});
        assert!(rules.any(|rule| *rule == pods), "the manager may do what it does");
        let mut release = Self { cluster, api, kubernetes, objects, pods: Vec::new(), started: 0 };
        let hook = release.container("certificates");
        let output = release.api.run(&hook, &release.api.secret("rel-pleach-authority"));
        assert!(output.status.success(), "{}: {output:?}", hook.of);
        // Clients use the secret that NOTES.txt names.
        copy(&release.api.secret("rel-pleach-client"), &release.cluster.path("ca/me"));
        release.start_manager();
        Some(release)
    }

    /// The first container with this name.
    pub(crate) fn container(&self, name: &str) -> Container {
        let all = containers(&self.objects);
        all.into_iter().find(|container| container.value["name"] == name).expect("a container")
    }

    /// The folder that replaces a pod's root.
    fn root(&self, pod: &str) -> PathBuf {
        self.cluster.path("pods").join(pod)
    }

    /// Replaces the paths and addresses of the chart by those of this machine.
    fn here(&self, pod: &str, words: &[String]) -> Vec<String> {
        let root = self.root(pod).display().to_string();
        let any = "127.0.0.1:0".to_owned();
        let at = |address: &String| if address.is_empty() { any.clone() } else { address.clone() };
        let replaced = |word: &String| {
            let word = ["/var/lib/pleach", "/var/cache/pleach", "/run/pleach", "/etc/pleach"]
                .iter()
                .fold(word.clone(), |word, path| word.replace(path, &format!("{root}{path}")));
            word.replace("rel-pleach-manager:7117", &self.cluster.listen)
                .replace("rel-pleach-manager:7118", &self.cluster.http)
                .replace("0.0.0.0:7117", &at(&self.cluster.listen))
                .replace("0.0.0.0:7118", &at(&self.cluster.http))
                .replace("127.0.0.1:7118", &self.cluster.http)
                .replace("0.0.0.0:7119", &any)
                .replace("0.0.0.0:7120", &any)
        };
        words.iter().map(replaced).collect()
    }

    /// Creates the folders of volume mounts, with the secrets and config maps of the container.
    fn mount(&self, pod: &str, container: &Container) {
        let root = self.root(pod);
        for mount in container.value["volumeMounts"].as_array().expect("mounts") {
            let path = mount["mountPath"].as_str().expect("a path");
            fs::create_dir_all(root.join(&path[1..])).expect("a folder");
        }
        let secret = |name: &str, path: &str| copy(&self.api.secret(name), &root.join(path));
        match container.value["name"].as_str() {
            Some("certificate") => secret("rel-pleach-authority", "run/pleach/authority"),
            Some("test") => secret("rel-pleach-client", "run/pleach/client"),
            Some("worker") => {
                secret("rel-pleach-join", "run/pleach/join");
                self.write_map(pod, "tiers.toml");
            }
            Some("manager") => self.write_map(pod, "pools.toml"),
            _ => {}
        }
    }

    /// Writes the file of a config map into a pod's folder.
    fn write_map(&self, pod: &str, file: &str) {
        let text = self.objects.iter().find_map(|object| object["data"][file].as_str()).expect("a file");
        let text = self.here(pod, &[text.to_owned()]).remove(0);
        fs::write(self.root(pod).join("etc/pleach").join(file), text).expect("a file");
    }

    /// Waits for pod deletion costs. Returns the pod that the cluster would delete first.
    pub(crate) fn first_to_go(&self) -> String {
        self.cluster.wait_until(|_| self.kubernetes.costs().first().is_some_and(|(cost, _)| *cost < 0));
        self.kubernetes.costs().remove(0).1
    }

    /// Starts the manager's pod: the init container, then the manager.
    pub(crate) fn start_manager(&mut self) {
        let first = self.container("certificate");
        self.mount("manager", &first);
        let output = self.shell("manager", &first).output().expect("a shell starts");
        assert!(output.status.success(), "{output:?}");
        let manager = self.container("manager");
        self.mount("manager", &manager);
        let mut args = self.here("manager", &manager.command[1..]);
        // The chart relies on the mounted service account. This machine has none, so the option names the test's folder.
        assert_eq!(manager.pod["automountServiceAccountToken"], true);
        args.push(format!("--service-account={}", self.kubernetes.account.display()));
        self.cluster.called.insert("manager".to_owned(), args);
        self.cluster.start_manager();
    }

    /// Deletes the manager's pod with a signal, because it has no hook.
    pub(crate) fn delete_manager(&mut self) {
        let manager = self.container("manager");
        assert_eq!(manager.value["lifecycle"], Value::Null);
        let grace = seconds(&manager);
        let begun = Instant::now();
        assert!(self.cluster.end_manager().success());
        assert!(begun.elapsed() < grace, "the manager would have been killed");
    }

    /// Returns the command of a container, in its folder and with its environment.
    pub(crate) fn shell(&self, pod: &str, container: &Container) -> Command {
        self.mount(pod, container);
        let pleach = assert_cmd::cargo::cargo_bin!("pleach").parent().expect("a folder").to_owned();
        let path = std::env::var("PATH").expect("a path");
        let words = self.here(pod, &container.command);
        let mut command = Command::new(&words[0]);
        let tmp = self.root(pod).join("tmp");
        fs::create_dir_all(&tmp).expect("a folder");
        command.args(&words[1..]).current_dir(tmp).env("PATH", format!("{}:{path}", pleach.display()));
        for (name, value) in &container.environment {
            command.env(name, &self.here(pod, std::slice::from_ref(value))[0]);
        }
        command
    }

    /// Starts a worker's pod.
    pub(crate) fn start_pod(&mut self) {
        self.started += 1;
        let name = format!("rel-pleach-base-5d8f9c7b6d-{:05}", self.started);
        let mut worker = self.container("worker");
        let named = |word: &String| word.replace("rel-pleach-base-5d8f9c7b6d-x2x9z", &name);
        worker.command = worker.command.iter().map(named).collect();
        self.mount(&name, &worker);
        let args = self.here(&name, &worker.command[1..]);
        self.cluster.called.insert(name.clone(), args);
        self.cluster.places.insert(name.clone(), Place::by(CONTAINER));
        self.kubernetes.add_pod(&name);
        self.cluster.start_worker(&name, &[]);
        self.pods.push(name);
    }

    /// Waits until the readiness probes of all workers succeed.
    pub(crate) fn wait_until_ready(&self) {
        let probe = &self.container("worker").value["readinessProbe"]["httpGet"];
        assert_eq!(probe["port"], "metrics");
        let path = probe["path"].as_str().expect("a path");
        for pod in &self.pods {
            self.cluster.wait_until(|cluster| cluster.log(pod).contains("metrics are at"));
            let url = format!("http://{}{path}", address_of(&self.cluster.log(pod)));
            self.cluster.wait_until(|_| asked(&url).0 == 200);
        }
    }

    /// Deletes the oldest worker's pod as a kubelet does: hook, signal, end.
    pub(crate) fn delete_oldest(&mut self) {
        let name = self.pods.remove(0);
        let worker = self.container("worker");
        let (grace, begun) = (seconds(&worker), Instant::now());
        let first = self.first_process(&name);
        let hook = strings(&worker.value["lifecycle"]["preStop"]["exec"]["command"]);
        let target = ["--target", &first, "--pid", "--mount", "--"].map(str::to_owned);
        let mut hook = Command::new("nsenter")
            .args(target)
            .args(hook)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nsenter starts");
        while hook.try_wait().expect("a child").is_none() {
            assert!(begun.elapsed() < DEADLINE, "{name}: the hook does not end: {}", self.cluster.log(&name));
            std::thread::park_timeout(LOOK_AGAIN);
        }
        // The hook has already ended the worker, so no process is left for the signal.
        let status = self.cluster.left(&name);
        assert!(begun.elapsed() < grace, "{name} would have been killed");
        let log = self.cluster.log(&name);
        assert!(status.success() && log.contains("the worker has left"), "{name}: {status}: {log}");
        assert!(!log.contains("no more time"), "{name}: {log}");
    }

    /// Process id of a container's first process, on this machine.
    fn first_process(&self, name: &str) -> String {
        let outer = self.cluster.workers[name].id();
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).expect("children");
        children.split_whitespace().next().expect("a process").to_owned()
    }
}

/// The grace period of a container's pod.
fn seconds(container: &Container) -> Duration {
    Duration::from_secs(container.pod["terminationGracePeriodSeconds"].as_u64().expect("seconds"))
}

/// Replaces the content of a folder by the files of another folder.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}
