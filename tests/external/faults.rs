//! Faults of a function: each fails its own runs only, and no process outlives pleach.

use crate::environment;
use crate::pleach::pleach;
use crate::results::text;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum duration of a wait in a test.
const DEADLINE: Duration = Duration::from_secs(60);

/// Writes the new pipeline with this body of `threshold`, which gets `density` and `level`.
fn pipeline(body: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let parent = tempfile::tempdir().expect("a folder");
    pleach(parent.path(), &["workflow", "new", "faulty", "--python"]).done();
    let folder = parent.path().join("faulty");
    pleach(&folder, &["tissue", "--out", "tiles", "--size", "64", "--count", "1"]).done();
    let module = text(&folder.join("measure.py"));
    let old = "    return density > level\n";
    assert!(module.contains(old));
    fs::write(folder.join("measure.py"), module.replace(old, body)).expect("written");
    (parent, folder)
}

#[test]
fn crash_fails_the_runs_of_its_parameter_value() {
    let Some(python) = environment("crash_fails_the_runs_of_its_parameter_value") else { return };
    let (_parent, folder) = pipeline(
        "    import os\n    if level > 0.3:\n        print('about to crash', flush=True)\n        os.abort()\n    return density > level\n",
    );
    let args =
        ["run", "study.toml", "--out", "results", "--quiet", "--python", python.to_str().expect("UTF-8")];
    let answer = pleach(&folder, &args);
    assert_eq!(answer.code, 3, "{answer:?}");
    let samples = text(&folder.join("results/samples.csv"));
    let level = samples.lines().next().expect("a header").split(',').position(|name| name == "level");
    let level = level.expect("a column");
    let value = |line: &str| line.split(',').nth(level).expect("a field").parse::<f64>().expect("a number");
    let crashing = samples.lines().skip(1).filter(|line| value(line) > 0.3).count();
    let failed = text(&folder.join("results/failed.csv"));
    let count = failed.matches("signal 6 (SIGABRT)").count();
    assert!(crashing > 0 && crashing < samples.lines().count() - 1);
    assert_eq!(count, crashing, "{failed}");
    assert!(failed.contains("about to crash"), "the last output is part of the message: {failed}");
}

#[test]
fn python_processes_end_with_pleach() {
    let Some(python) = environment("python_processes_end_with_pleach") else { return };
    let (_parent, folder) = pipeline(
        "    import os, pathlib\n    pathlib.Path(os.environ['HOME'], 'pid').write_text(str(os.getpid()))\n    while True:\n        pass\n",
    );
    let mut pleach = Command::new(assert_cmd::cargo::cargo_bin!("pleach"))
        .args(["run", "study.toml", "--out", "results", "--quiet", "--python"])
        .arg(&python)
        .env("HOME", &folder)
        .current_dir(&folder)
        .stderr(Stdio::null())
        .spawn()
        .expect("pleach starts");
    let start = Instant::now();
    let pid = loop {
        assert!(start.elapsed() < DEADLINE, "no function runs");
        // The file may be half-written.
        let written = fs::read_to_string(folder.join("pid")).ok().and_then(|pid| pid.parse::<u32>().ok());
        match written.filter(|pid| is_alive(*pid)) {
            Some(pid) => break pid,
            None => std::thread::yield_now(),
        }
    };
    pleach.kill().expect("killed");
    pleach.wait().expect("reaped");
    let start = Instant::now();
    while is_alive(pid) {
        assert!(start.elapsed() < DEADLINE, "process {pid} outlives pleach");
        std::thread::yield_now();
    }
}

#[test]
fn check_finds_results_that_differ_between_processes() {
    let Some(python) = environment("check_finds_results_that_differ_between_processes") else { return };
    let python = python.to_str().expect("UTF-8");
    let (_parent, folder) = pipeline(
        "    import os\n    return density > level + int.from_bytes(os.urandom(4), 'little') * 1e-10\n",
    );
    let check = ["workflow", "check", "workflow.json", "--twice", "tiles/tissue_01.png", "--python", python];
    let answer = pleach(&folder, &check);
    assert_eq!(answer.code, 2, "{answer:?}");
    let message = "task threshold: region \"mask\" differs between two runs of python:measure.threshold";
    assert!(answer.stderr.contains(message), "{answer:?}");
    let manifest = text(&folder.join("pleach.toml"));
    let declared = manifest.replace("measure.threshold\"", "measure.threshold\"\ndeterminism = \"none\"");
    fs::write(folder.join("pleach.toml"), declared).expect("written");
    assert!(
        pleach(&folder, &check).done().contains("threshold: results differ between two runs, as declared")
    );
    // Results that differ are not for later studies, and neither are those that depend on them.
    let run = ["run", "study.toml", "--quiet", "--python", python, "--cache", "cache", "--out"];
    pleach(&folder, &[&run[..], &["first"]].concat()).done();
    pleach(&folder, &[&run[..], &["second"]].concat()).done();
    let record = crate::results::json(&folder.join("second/run.json"));
    let operations = record["operations"].as_array().expect("a list");
    let runs = |name: &str| operations.iter().find(|of| of["name"] == name).map(|of| of["runs"].as_u64());
    assert_eq!(runs("python:density.smooth"), Some(Some(0)), "{operations:?}");
    assert!(runs("python:measure.threshold") > Some(Some(0)), "{operations:?}");
}

/// Returns whether a process runs. A process that has ended may still wait for its parent.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
