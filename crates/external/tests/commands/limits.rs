//! Commands that hang or grow, and commands of a pleach that is killed.

use crate::{Package, SCALAR_OUT, eventually, is_running, words};
use std::process::{Command, Stdio};

#[test]
fn hanging_command_is_killed_with_its_children_and_repeated_once() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let script = "sleep 1000 & echo $$ $! >> $2; wait";
    let rest = format!("{SCALAR_OUT}\ntimeout_seconds = 0.5");
    let package = Package::new(script, &["{out}", notes.to_str().unwrap()], &rest);
    let error = package.run(&[], &[]).unwrap_err();
    assert_eq!(error, "longer than 0.5 s (timeout_seconds); the process was killed");
    let processes = words(&notes);
    assert_eq!(processes.len(), 4, "{processes:?}");
    for process in processes {
        eventually("the group ends", || !is_running(&process));
    }
}

/// Allocates and touches 300 MB, and hangs.
const HOG: &str = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
                   int main(void) { memset(malloc(300000000), 1, 300000000); for (;;) pause(); }\n";

#[test]
fn growing_command_is_killed_and_repeated_once() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let rest = format!("{SCALAR_OUT}\nmemory = {{ limit = \"100MB\" }}\ntimeout_seconds = 30");
    // The program is a child of the script: the limit is that of the group.
    let program = folder.path().join("hog");
    let script = "echo $$ >> $2; $3; exit 1";
    let words_ = ["{out}", runs.to_str().unwrap(), program.to_str().unwrap()];
    let package = Package::new(script, &words_, &rest);
    std::fs::write(folder.path().join("hog.c"), HOG).unwrap();
    let mut compiler = Command::new("cc");
    assert!(compiler.arg("-o").arg(&program).arg(folder.path().join("hog.c")).status().unwrap().success());
    let error = package.run(&[], &[]).unwrap_err();
    let (bytes, rest) = error.split_once(" bytes in use; ").unwrap();
    assert!(bytes.parse::<u64>().unwrap() > 100_000_000, "{error}");
    assert_eq!(rest, "100000000 are allowed (memory.limit); the process was killed");
    let processes = words(&runs);
    assert_eq!(processes.len(), 2);
    for process in processes {
        eventually("the group ends", || !is_running(&process));
    }
}

/// Folder of the test that has started this process as a pleach to be killed.
const VICTIM: &str = "PLEACH_TEST_VICTIM";

#[test]
fn command_and_its_children_die_with_pleach() {
    if let Ok(notes) = std::env::var(VICTIM) {
        // The output keeps no pipe of the test's parent open.
        let script = "sleep 1000 & echo $$ $! > $2; wait";
        let package = Package::new(script, &["{out}", &notes], SCALAR_OUT);
        let _ = package.run(&[], &[]);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let mut pleach = Command::new(std::env::current_exe().unwrap());
    pleach.args(["--exact", "limits::command_and_its_children_die_with_pleach"]).env(VICTIM, &notes);
    // The killed process leaves its folders in this one.
    pleach.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut pleach = pleach.spawn().unwrap();
    eventually("the command starts", || words(&notes).len() == 2);
    let processes = words(&notes);
    assert!(processes.iter().all(|process| is_running(process)));
    pleach.kill().unwrap();
    pleach.wait().unwrap();
    for process in processes {
        eventually("the group ends", || !is_running(&process));
    }
}
