//! The whole command line with an operation of its own: checked, run in one process, and on a manager with two workers.

/// The program that `pleach workflow stub` writes for `stub/stage.json`. A test of `pleach-interop` compares it with the output.
#[rustfmt::skip]
#[expect(dead_code, reason = "main ends the process")]
#[path = "../stub/main.rs"]
mod stub;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

fn program(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-operation"));
    command.current_dir(folder).args(args);
    command
}

/// Runs a command to its end. Returns its standard output.
fn call(folder: &Path, args: &[&str]) -> String {
    let ended = program(folder, args).output().expect("the program starts");
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{args:?}: {}: {error}", ended.status);
    String::from_utf8(ended.stdout).expect("text")
}

/// Returns a folder with the files of this example and three tiles.
fn example() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["workflow.json", "darkness.json", "study.toml"] {
        let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
        fs::copy(from, folder.path().join(name)).expect("a copy");
    }
    call(folder.path(), &["tissue", "--out", "tiles", "--size", "64", "--count", "3"]);
    folder
}

/// Returns the rows of a file of results, without the first line.
fn rows(file: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(file).expect("a file of results");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process. Returns it with the rest of its first line that contains `text`.
fn start(folder: &Path, args: &[&str], text: &str) -> (Running, String) {
    let mut command = program(folder, args);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().expect("the program starts"));
    let mut lines = BufReader::new(running.0.stdout.take().expect("piped")).lines();
    let rest = lines.find_map(|line| line.expect("text").split_once(text).map(|(_, rest)| rest.to_owned()));
    // Read on, so that the process never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    (running, rest.unwrap_or_else(|| panic!("{args:?} ended before {text:?}")))
}

#[test]
fn own_operation_is_checked_and_run() {
    let folder = example();
    let folder = folder.path();
    let checked = call(folder, &["workflow", "check", "workflow.json"]);
    assert!(checked.contains("1 stages, 1 tasks, 1 parameters, valid"), "{checked}");
    call(folder, &["plan", "study.toml"]);
    call(folder, &["explain", "study.toml", "--evaluation", "1"]);
    call(folder, &["sample", "study.toml", "--out", "drawn.csv"]);
    call(folder, &["run", "study.toml", "--out", "out", "--quiet"]);
    let sets: BTreeSet<String> =
        rows(&folder.join("out/samples.csv")).into_iter().map(|row| row[1].clone()).collect();
    let responses = rows(&folder.join("out/responses.csv"));
    let dark: BTreeSet<&String> = responses.iter().filter_map(|row| row.last()).collect();
    assert!(sets.len() > 1 && dark.len() > 1, "{sets:?} {dark:?}");
    // Equal thresholds are one task for each tile.
    let run = fs::read_to_string(folder.join("out/run.json")).expect("run.json");
    let executed = format!("\"tasks_executed\": {},", 3 * sets.len());
    assert!(run.contains(&executed), "{executed} in {run}");
}

#[test]
fn manager_and_workers_have_the_operation() {
    let folder = example();
    let folder = folder.path();
    call(folder, &["run", "study.toml", "--out", "one", "--quiet"]);
    call(folder, &["certs", "init", "--dir", "ca"]);
    for (name, role) in [("boss", "manager"), ("w1", "worker"), ("w2", "worker"), ("me", "client")] {
        call(folder, &["certs", "issue", "--dir", "ca", "--name", name, "--role", role]);
    }
    let any = "127.0.0.1:0";
    let manager = ["manager", "--state", "state", "--certs", "ca/boss", "--listen", any, "--http", any];
    let (_manager, addresses) = start(folder, &manager, "workers connect to ");
    let (listen, http) = addresses.split_once(", clients to ").expect("two addresses");
    let _workers = ["ca/w1", "ca/w2"].map(|certs| {
        let process = program(
            folder,
            &["worker", "--manager", listen, "--certs", certs, "--cores", "1", "--listen", any],
        )
        .stdout(Stdio::null())
        .spawn();
        Running(process.expect("the program starts"))
    });
    call(folder, &["submit", "study.toml", "--manager", http.trim(), "--certs", "ca/me", "--out", "two"]);
    let read = |out: &str| fs::read(folder.join(out).join("responses.csv")).expect("responses");
    assert_eq!(read("one"), read("two"));
}

#[test]
fn generated_operations_fit_their_stage() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("stub/stage.json");
    let registry = stub::operations();
    let stage = pleach::workflow::stage_file(&file, &registry).expect("a valid stage");
    assert_eq!(stage.tasks.len(), 3);
    let dark = registry.get("example.dark-fraction", 1).expect("an operation of the program");
    let tile = pleach::regions::DataRegion::Table(pleach::regions::Table::new([("x", 1.0)]));
    let error = dark.run(&[&tile], &[pleach::workflow::Value::Integer(64)]).expect_err("it is not written");
    let wanted =
        "operation example.dark-fraction is not written yet; called with 1 regions and the numbers [64.0]";
    assert_eq!(error.to_string(), wanted);
}
