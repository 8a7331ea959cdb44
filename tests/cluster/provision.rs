//! Workers that the manager starts, adopts and ends itself.

use crate::cluster::{self, Cluster, DEADLINE, LOOK_AGAIN};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::Instant;

/// A pool of processes on this machine.
pub(crate) const PROCESSES: &str = "\
[[pool]]
name = \"burst\"
cores = 1
price_per_hour = 36
startup_seconds = 1
max = 3

[pool.provision]
driver = \"process\"
idle_seconds = 1
options = [\"--memory\", \"1GB\", \"--listen\", \"127.0.0.1:0\"]
";

/// Creates the files of a cluster whose manager has these pools. Dropping the second value ends workers that are left.
pub(crate) fn cluster<'a>(study: &'a crate::study::Study, pools: &str) -> (Cluster<'a>, Workers) {
    let mut cluster = Cluster::to_be(study);
    fs::write(cluster.path("pools.toml"), pools).expect("a folder");
    cluster.manager_options = vec!["--pools".to_owned(), "pools.toml".to_owned()];
    let workers = Workers { folder: cluster.state.display().to_string() };
    cluster.start_manager();
    (cluster, workers)
}

/// Worker processes below a state directory.
pub(crate) struct Workers {
    folder: String,
}

impl Workers {
    /// The name and the process number of each running worker.
    pub(crate) fn running(&self) -> Vec<(String, u32)> {
        let numbers = fs::read_dir("/proc").expect("Linux").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut workers: Vec<(String, u32)> = numbers
            .filter_map(|pid| {
                let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
                let arguments: Vec<_> =
                    arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
                let certs = arguments.iter().find(|argument| argument.starts_with(&self.folder))?;
                let name = certs.strip_suffix("/certs")?.rsplit('/').next()?.to_owned();
                (arguments.get(1)? == "worker").then_some((name, pid))
            })
            .collect();
        workers.sort();
        workers
    }

    fn names(&self) -> Vec<String> {
        self.running().into_iter().map(|(name, _)| name).collect()
    }

    /// Waits until no worker runs.
    pub(crate) fn all_end(&self, cluster: &Cluster<'_>) {
        let begun = Instant::now();
        while !self.running().is_empty() {
            assert!(begun.elapsed() < DEADLINE, "{:?}\n{}", self.running(), cluster.log("manager"));
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }
}

impl Drop for Workers {
    #[expect(clippy::print_stderr, reason = "a test that fails shows the logs of its workers")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let folder = format!("{}/workers/burst", self.folder);
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let log = fs::read_to_string(entry.path().join("worker.log")).unwrap_or_default();
                eprintln!("--- {}\n{log}", entry.path().display());
            }
        }
        self.running().iter().for_each(|(_, pid)| kill(*pid));
    }
}

pub(crate) fn kill(pid: u32) {
    // The process may have ended.
    let _ = Command::new("bash").args(["-c", &format!("kill -KILL {pid}")]).status();
}

/// The pool's part of the scaling status.
pub(crate) fn pool(cluster: &Cluster<'_>, number: usize) -> Value {
    cluster.status()["scaling"]["pools"][number].clone()
}

/// The names of all workers that the manager has requested, in order.
pub(crate) fn requested(cluster: &Cluster<'_>) -> Vec<String> {
    let log = cluster.log("manager");
    let name = |line: &str| Some(line.split_once("worker ")?.1.split_once(" of pool")?.0.to_owned());
    log.lines().filter(|line| line.contains("is being started")).filter_map(name).collect()
}

#[test]
fn provisioned_workers_meet_the_deadline_and_end_after_the_study() {
    let study = cluster::study(10, 128);
    let expected = cluster::expected(&study);
    let (mut cluster, workers) = cluster(&study, PROCESSES);
    let id = cluster.submit(&["--deadline", "60m", "--budget", "1000"]);
    // The manager charges the workers until the study ends.
    cluster.wait_until(|cluster| {
        cluster.has_ended(&id) || cluster.status()["scaling"]["cost_so_far"].as_f64() > Some(0.0)
    });
    assert_eq!(cluster.completed(&id), expected);
    assert_eq!(requested(&cluster).len(), 1, "one worker meets the deadline");
    workers.all_end(&cluster);
    cluster.wait_until(|cluster| pool(cluster, 0)["provisioned"]["leaving"] == 0);
    assert_eq!(pool(&cluster, 0)["provisioned"]["failed_starts"], 0);
    assert!(cluster.end_manager().success());
    // The journal owns nothing.
    let audit = cluster.call(&["pools", "--pools", "pools.toml", "--state", "state"]);
    assert_eq!((audit.code, audit.stdout.trim()), (0, "no workers of this manager"), "{audit:?}");
}

/// The manager keeps the minimum of the pool, and ends all workers with itself.
#[test]
fn killed_worker_is_replaced_and_all_end_with_the_manager() {
    let study = cluster::study(20, 128);
    let expected = cluster::expected(&study);
    let (mut cluster, workers) = cluster(&study, &PROCESSES.replace("max = 3", "min = 2\nmax = 3"));
    cluster.wait_until(|cluster| pool(cluster, 0)["running"].as_u64() == Some(2));
    let id = cluster.submit(&[]);
    let (name, pid) = workers.running().remove(0);
    kill(pid);
    cluster.wait_until(|cluster| {
        cluster.log("manager").contains(&format!("worker {name} has ended: it was lost"))
    });
    cluster.wait_until(|cluster| {
        requested(cluster).len() == 3 && pool(cluster, 0)["running"].as_u64() == Some(2)
    });
    assert!(!workers.names().contains(&name));
    assert_eq!(cluster.completed(&id), expected);
    assert!(cluster.end_manager().success());
    assert_eq!(workers.names(), Vec::<String>::new());
    assert!(cluster.log("manager").contains("all provisioned workers have ended"));
}

#[test]
fn restarted_manager_adopts_its_workers_and_starts_none_twice() {
    let study = cluster::study(150, 256);
    let expected = cluster::expected(&study);
    let (mut cluster, workers) = cluster(&study, PROCESSES);
    let id = cluster.submit(&["--deadline", "1s"]);
    cluster.wait_until(|cluster| pool(cluster, 0)["running"].as_u64() == Some(3));
    let before = workers.running();
    cluster.kill_manager();
    cluster.start_manager();
    cluster.wait_until(|cluster| {
        let log = cluster.log("manager");
        before.iter().all(|(name, _)| log.contains(&format!("worker {name} (")))
    });
    assert!(cluster.log("manager").contains("is adopted"));
    cluster.wait_until(|cluster| cluster.has_ended(&id) || pool(cluster, 0)["running"].as_u64() == Some(3));
    assert_eq!(requested(&cluster).len(), 3);
    assert_eq!(cluster.completed(&id), expected);
    let mut names = requested(&cluster);
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
    workers.all_end(&cluster);
}

#[test]
fn auditor_lists_and_reaps_orphans() {
    let study = cluster::study(200, 256);
    let (mut cluster, workers) = cluster(&study, PROCESSES);
    cluster.submit(&["--deadline", "1s"]);
    cluster.wait_until(|cluster| pool(cluster, 0)["running"].as_u64() == Some(3));
    let audit = |cluster: &Cluster<'_>, options: &[&str]| {
        let mut all = vec!["pools", "--pools", "pools.toml", "--state", "state", "--json"];
        all.extend(options);
        let answer = cluster.call(&all);
        let states: Value = serde_json::from_str(&answer.stdout).unwrap_or(Value::Null);
        let states: Vec<String> = states
            .as_array()
            .map(|all| all.iter().map(|worker| worker["state"].as_str().unwrap_or("").to_owned()).collect())
            .unwrap_or_default();
        (answer.code, states)
    };
    let of = |state: &str| vec![state.to_owned(); 3];
    assert_eq!(audit(&cluster, &[]), (0, of("owned")));
    let refused = cluster.call(&["pools", "--pools", "pools.toml", "--state", "state", "--reap", "--all"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("--all: the manager of state is running"),
        "{refused:?}"
    );
    cluster.kill_manager();
    assert_eq!(audit(&cluster, &["--reap"]), (0, of("owned")));
    // A driver that fails hides neither the pools after it nor the failures of others.
    let failing = ["first", "last"].map(|name| {
        format!(
            "[[pool]]\nname = \"{name}\"\ncores = 1\nprice_per_hour = 1\nstartup_seconds = 1\nmax = 1\n[pool.provision]\n\
             driver = \"command\"\nstart = [\"true\"]\nstop = [\"true\"]\nlist = [\"sh\", \"-c\", \"echo expired >&2; exit 1\"]\n"
        )
    });
    let [first, last] = failing;
    fs::write(cluster.path("pools.toml"), [&first, PROCESSES, &last].concat()).expect("a folder");
    assert_eq!(audit(&cluster, &[]), (4, of("owned")));
    let answer = cluster.call(&["pools", "--pools", "pools.toml", "--state", "state"]);
    let is_reported = |pool: &str| {
        answer.stderr.contains(&format!("error: pool {pool}: ")) && answer.stderr.contains("expired")
    };
    assert!(is_reported("first") && is_reported("last"), "{answer:?}");
    fs::remove_file(cluster.state.join("workers.journal")).expect("a journal");
    assert_eq!(audit(&cluster, &["--reap"]), (4, Vec::new()));
    fs::write(cluster.path("pools.toml"), PROCESSES).expect("a folder");
    assert_eq!(audit(&cluster, &[]), (0, Vec::new()));
    assert_eq!(workers.names(), Vec::<String>::new());
}

/// A pool of programs that refuse, one whose answers are garbage, and one that does not answer.
#[test]
fn studies_end_on_other_workers_if_drivers_fail() {
    let pool_of = |name: &str, script: &str| {
        format!(
            "[[pool]]\nname = \"{name}\"\ncores = 1\nprice_per_hour = 1\nstartup_seconds = 1\nmax = 4\n[pool.provision]\n\
             driver = \"command\"\nstart = [\"sh\", \"-c\", \"{script}\"]\nstop = [\"true\"]\nlist = [\"true\"]\n"
        )
    };
    let pools = [
        pool_of("refusing", "echo quota reached >&2; exit 1"),
        pool_of("babbling", "echo one; echo two"),
        pool_of("hanging", "sleep 20"),
    ];
    let study = cluster::study(20, 256);
    let expected = cluster::expected(&study);
    let (mut cluster, _workers) = cluster(&study, &pools.concat());
    let id = cluster.submit(&["--deadline", "1s"]);
    let remark = |cluster: &Cluster<'_>, number: usize| -> String {
        pool(cluster, number)["provisioned"]["remark"].as_str().unwrap_or_default().to_owned()
    };
    cluster.wait_until(|cluster| remark(cluster, 0).contains("quota reached"));
    cluster.wait_until(|cluster| remark(cluster, 1).contains("one line with the handle of the worker"));
    // The third failure exhausts the pool, and the decision stops to count on it.
    cluster.wait_until(|cluster| pool(cluster, 0)["provisioned"]["has_capacity"] == false);
    let words = cluster.ask(&["status"]).done();
    assert!(words.contains("pool refusing: 0 workers started, 0 starting, 0 leaving, "), "{words}");
    assert!(words.contains("; no capacity; pool refusing has no capacity: "), "{words}");
    cluster.start_worker("base", &[]);
    assert_eq!(cluster.completed(&id), expected);
}

#[test]
fn driver_without_certificates_is_refused() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::to_be(&study);
    fs::write(cluster.path("pools.toml"), PROCESSES).expect("a folder");
    fs::create_dir(cluster.path("alone")).expect("a folder");
    fs::rename(cluster.path("ca/boss"), cluster.path("alone/boss")).expect("moved");
    cluster.called.insert(
        "manager".to_owned(),
        [
            "manager",
            "--state",
            "state",
            "--certs",
            "alone/boss",
            "--listen",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
        ]
        .iter()
        .chain(&["--pools", "pools.toml"])
        .map(|text| (*text).to_owned())
        .collect(),
    );
    let (code, text) = cluster.try_start_manager().expect_err("it is refused");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("pool burst: the driver \"process\" needs certificates for its workers"), "{text}");
}
