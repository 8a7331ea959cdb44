//! Processes that end: each costs one task, which runs once more in a new process.

use crate::python::{Package, entry, has_ended, until};
use std::process::{Command, Stdio};

fn package(test: &str, module: &str, functions: &[&str]) -> Option<Package> {
    let manifest: String = functions.iter().chain(&["pid"]).map(|function| entry(function, "")).collect();
    Package::new(test, &manifest, module)
}

/// Asserts that both attempts of `function` have ended, and that the next task works.
fn assert_two_attempts(package: &Package) {
    let attempts = package.marks("runs");
    assert_eq!(attempts.len(), 2, "once more, and no third time");
    assert_ne!(attempts[0], attempts[1], "in a new process");
    until(|| attempts.iter().all(|process| has_ended(*process)));
    assert!(package.number("pid").is_ok());
}

#[test]
fn abort_is_repeated_once_and_named() {
    let module = "def broken():\n    mark()\n    print('before the end')\n    os.abort()\n";
    let Some(package) = package("abort_is_repeated_once_and_named", module, &["broken"]) else { return };
    let error = package.failure("broken");
    assert!(error.starts_with("the process ended with signal 6 (SIGABRT); its last output:\n"), "{error}");
    assert!(error.contains("before the end"), "{error}");
    assert!(error.contains("in broken"), "the function is named: {error}");
    assert_two_attempts(&package);
}

#[test]
fn death_of_the_first_attempt_alone_fails_nothing() {
    let module = "def broken():\n    mark()\n    if marks() == 1:\n        os.abort()\n    return marks()\n";
    let Some(package) = package("death_of_the_first_attempt_alone", module, &["broken"]) else { return };
    assert_eq!(package.number("broken"), Ok(2.0));
}

#[test]
fn exit_status_is_named() {
    let module = "def broken():\n    mark()\n    os._exit(3)\n";
    let Some(package) = package("exit_status_is_named", module, &["broken"]) else { return };
    assert_eq!(package.failure("broken"), "the process ended with status 3");
    assert_two_attempts(&package);
}

#[test]
fn process_that_closes_its_files_is_replaced() {
    let module = "def broken():\n    mark()\n    os.closerange(0, 4096)\n    while True:\n        pass\n";
    let Some(package) = package("process_that_closes_its_files", module, &["broken"]) else { return };
    let error = package.failure("broken");
    assert!(error.starts_with("the process ended with a closed link"), "{error}");
    assert_two_attempts(&package);
}

/// A copy by the C library, which runs no hooks of Python, keeps the link open.
#[test]
fn death_is_noticed_although_a_copy_keeps_the_link() {
    let module = r#"
import ctypes
def broken():
    mark()
    if ctypes.CDLL(None).fork() == 0:
        mark("copies")
        while True:
            pass
    os.abort()
"#;
    let manifest = entry("broken", "timeout_seconds = 30") + &entry("pid", "");
    let Some(package) = Package::new("death_is_noticed_although_a_copy", &manifest, module) else { return };
    let error = package.failure("broken");
    assert!(error.starts_with("the process ended with signal 6 (SIGABRT)"), "{error}");
    assert_two_attempts(&package);
    let copies = package.marks("copies");
    until(|| copies.iter().all(|copy| has_ended(*copy)));
}

#[test]
fn idle_processes_that_were_killed_fail_no_task() {
    let module = r#"
import time
def meet():
    mark("met")
    while marks("met") < 2:
        time.sleep(0.001)
    return os.getpid()
"#;
    let Some(package) = package("idle_processes_that_were_killed", module, &["meet"]) else { return };
    let both = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| package.number("meet").unwrap() as u32));
        runs.map(|run| run.join().unwrap())
    });
    assert_ne!(both[0], both[1]);
    for process in both {
        let kill = Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status();
        assert!(kill.unwrap().success());
    }
    until(|| both.iter().all(|process| has_ended(*process)));
    assert!(!both.contains(&(package.number("pid").unwrap() as u32)));
}

#[test]
fn hanging_exit_handler_does_not_delay_the_end_of_a_pool() {
    let module = r#"
import atexit, threading
def register():
    atexit.register(threading.Event().wait)
    threading.Thread(target=threading.Event().wait).start()
    return os.getpid()
"#;
    let Some(package) = package("hanging_exit_handler", module, &["register"]) else { return };
    let first = package.number("register").unwrap() as u32;
    let second = package.number("pid").unwrap() as u32;
    // A hang would outlive the harness.
    drop(package);
    assert!(has_ended(first) && has_ended(second));
}
