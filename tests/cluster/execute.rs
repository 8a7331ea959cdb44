//! `pleach cluster --execute`: emulated tasks on processes of this machine and on the workers of a manager, the
//! counts of the manager, a killed worker, a killed command, and refused input.

use crate::cluster::{Cluster, DEADLINE, LOOK_AGAIN};
use crate::pleach::{Answer, pleach};
use crate::study::Study;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Number of tasks between `start` and `end`.
const WIDTH: usize = 12;

/// A fan: `start` → 12 tasks → `end`. Each task takes 20 ms and writes a file of 100 kB.
fn fan(folder: &Path) {
    let mut text = String::from("FILE input 100000\n");
    let middle: Vec<String> = (0..WIDTH).map(|number| format!("m{number}")).collect();
    let all = || ["start"].into_iter().chain(middle.iter().map(String::as_str)).chain(["end"]);
    all().for_each(|id| {
        text.push_str(&format!("FILE {id}.out 100000\nTASK {id} run 0.02\nOUTPUTS {id} {id}.out\n"))
    });
    text.push_str("INPUTS start input\n");
    for id in &middle {
        text.push_str(&format!("INPUTS {id} start.out\nEDGE start {id}\nEDGE {id} end\n"));
    }
    let inputs: Vec<String> = middle.iter().map(|id| format!("{id}.out")).collect();
    text.push_str(&format!("INPUTS end {}\n", inputs.join(" ")));
    fs::write(folder.join("fan.dag"), text).expect("written");
}

/// Two workers behind a queue of 60 ms.
const PLATFORM: [&str; 8] =
    ["--workers", "2", "--queue", "0.06", "--clustering", "0.01", "--bandwidth", "100MB"];

/// Returns the clusterings of the only workflow of a document.
#[track_caller]
fn clusterings(answer: Answer) -> Vec<Value> {
    let document: Value = serde_json::from_str(&answer.done()).expect("JSON");
    document["workflows"][0]["clusterings"].as_array().expect("clusterings").clone()
}

/// Counts by hand. Without clustering, a job has the emulated tasks of its queue delay, of each input, of its run time and of its
/// output, if another job reads that: 4 of `start` and of each task of the fan, 2 + 12 of `end`. In jobs of six, each has its
/// queue delay, one input, the clustering delay, six run times and six outputs. Two emulated tasks end the execution.
#[test]
fn clusterings_are_executed_by_processes_of_this_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    fan(folder.path());
    let args = [&["cluster", "fan.dag", "--execute", "--jobs", "2", "--json"][..], &PLATFORM].concat();
    let clusterings = clusterings(pleach(folder.path(), &args));
    let executed: Vec<&Value> = clusterings.iter().map(|one| &one["executed"]["replicates"][0]).collect();
    let counts = |record: &Value| (record["jobs"].as_u64(), record["emulated_tasks"].as_u64());
    assert_eq!(counts(executed[0]), (Some(14), Some(4 + 4 * 12 + 14 + 2)));
    assert_eq!(counts(executed[1]), (Some(4), Some(4 + 2 * 15 + 14 + 2)));
    let seconds = |value: &Value| value.as_f64().expect("seconds");
    for clustering in &clusterings {
        let (simulated, executed) = (&clustering["makespan_seconds"], &clustering["executed"]);
        // Emulated tasks wait for no less than the simulated times.
        assert!(seconds(&executed["makespan_seconds"]) > 0.95 * seconds(simulated), "{clustering}");
    }
    // The queue of 10 more jobs: 0.38 s without clustering, 0.17 s with it, between `start` and `end`.
    assert!(seconds(&clusterings[1]["gain"]) > 0.3, "{}", clusterings[1]);
    assert!(seconds(&clusterings[1]["executed"]["gain"]) > 0.1, "{}", clusterings[1]);
}

#[test]
fn executions_of_a_manager_survive_a_killed_worker() {
    let study = Study::of_tissue(64);
    fan(study.folder());
    let cluster = &Cluster::of(&study, 2);
    let active = |cluster: &Cluster| cluster.status()["workers"].as_array().map(Vec::len);
    cluster.wait_until(|cluster| active(cluster) == Some(2));
    let answer = std::thread::scope(|scope| {
        let slow = ["--queue", "0.25", "--workers", "2", "--method", "none", "--json"];
        let args = [&["cluster", "fan.dag", "--execute"][..], &slow].concat();
        let command = scope.spawn(move || cluster.ask(&args));
        let start = Instant::now();
        let executed = |status: &Value| status["studies"][0]["tasks_executed"].as_u64().unwrap_or(0);
        while executed(&cluster.status()) < 12 {
            assert!(start.elapsed() < DEADLINE, "nothing is executed: {}", cluster.status());
            std::thread::park_timeout(LOOK_AGAIN);
        }
        // The shell's built-in `kill`. The cluster has the process until the end of the test.
        let kill = format!("kill -KILL {}", cluster.workers["w1"].id());
        assert!(Command::new("bash").args(["-c", &kill]).status().expect("bash").success());
        command.join().expect("it ends")
    });
    let record = clusterings(answer)[0]["executed"]["replicates"][0].clone();
    let at_least = |field: &str, least: u64| record[field].as_u64().is_some_and(|count| count >= least);
    // Jobs of the killed worker count again.
    assert!(at_least("jobs", 14) && at_least("emulated_tasks", 68), "{record}");
    // The manager has forgotten the study.
    assert_eq!(cluster.status()["studies"].as_array().map(Vec::len), Some(0));
    // The remaining worker is not two.
    let args = [&["cluster", "fan.dag", "--execute"][..], &PLATFORM].concat();
    let refused = cluster.ask(&args);
    let cause = "--workers 2: the manager has 1 active workers; 2 idle workers of 1 core are needed";
    assert!(refused.code == 2 && refused.stderr.contains(cause), "{refused:?}");
}

/// Returns the ids of the processes whose parent is a process.
fn children(parent: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |number: &u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // The fields after the name, which may have spaces: state and parent.
        let parent_of = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parent_of == Some(parent)
    };
    numbers.filter(is_child).collect()
}

/// Returns whether a process has not ended. A zombie has ended: no process of a container may reap it.
fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

#[test]
fn a_killed_command_leaves_no_processes_and_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let temporary = tempfile::tempdir().expect("a folder");
    fan(folder.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command.args(["cluster", "fan.dag", "--execute", "--workers", "2", "--queue", "60", "--method", "none"]);
    command.current_dir(folder.path()).env("TMPDIR", temporary.path());
    let mut command = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let wait_until = |is_done: &dyn Fn() -> bool, what: &str| {
        let start = Instant::now();
        while !is_done() {
            assert!(start.elapsed() < DEADLINE, "{what}");
            std::thread::park_timeout(LOOK_AGAIN);
        }
    };
    // The watcher, the manager, and two workers.
    wait_until(&|| children(command.id()).len() == 4, "no processes");
    let processes = children(command.id());
    let clusters = || {
        let entries = fs::read_dir(temporary.path()).expect("a folder").flatten();
        entries.filter(|entry| entry.path().join("manager.log").exists()).count()
    };
    assert_eq!(clusters(), 1);
    command.kill().expect("it is ours");
    command.wait().expect("it has ended");
    wait_until(&|| !processes.iter().any(|process| is_running(*process)), "processes survive");
    assert_eq!(clusters(), 0);
}

#[test]
fn executions_that_are_not_possible_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fan(folder.path());
    let refused = |args: &[&str], cause: &str| {
        let args = [&["cluster"][..], args].concat();
        let answer = pleach(folder.path(), &args);
        assert!(answer.code == 2 && answer.stderr.contains(cause), "{answer:?}");
        assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    };
    refused(&["fan.dag", "--execute", "--engine", "1"], "--engine 1: --execute has no place for a delay");
    refused(&["fan.dag", "--execute", "--post", "0.5"], "--post 0.5: --execute has no place for a delay");
    refused(&["fan.dag", "--execute", "--workers", "65"], "--workers 65: --execute without --manager starts");
    refused(&["fan.dag", "--execute", "--replicates", "0"], "--replicates");
    refused(&["fan.dag", "--replicates", "2"], "--execute");
    refused(
        &["fan.dag", "--execute", "--manager", "https://127.0.0.1:1"],
        "--manager https://127.0.0.1:1: no certificates; --certs DIR",
    );
    refused(
        &["fan.dag", "--execute", "--scale-data", "10000"],
        "fan.dag: --execute: no clustering: files of 14000000000 bytes; at most 1073741824 bytes",
    );
    refused(
        &["fan.dag", "--execute", "--scale-time", "10000000", "--workers", "2"],
        "fan.dag: --execute: no clustering: job start: a wait of 200000 s; at most 86400 s",
    );
}
