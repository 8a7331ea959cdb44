//! A killed pleach leaves no process behind.

use crate::python::{Package, entry, has_ended, until};
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the folder of the package that the test binary loads as a child.
const FOLDER: &str = "PLEACH_TEST_CHILD_FOLDER";
const PYTHON: &str = "PLEACH_TEST_CHILD_PYTHON";

/// Runs tasks that never end, in a process of its own. It is no test without the variables.
#[test]
fn child_process() {
    let (Ok(folder), Ok(python)) = (std::env::var(FOLDER), std::env::var(PYTHON)) else { return };
    let pool = pleach_external::Pool::new();
    let manifest = Path::new(&folder).join("pleach.toml");
    let operations = pleach_external::load(&manifest, Some(Path::new(&python)), &pool).unwrap();
    std::thread::scope(|scope| {
        for operation in &operations {
            scope.spawn(|| operation.operation.run(&[], &[]).map(drop));
        }
    });
}

#[test]
fn killed_pleach_leaves_no_process() {
    let module = r#"
import ctypes, multiprocessing, subprocess
def endless():
    mark()
    while True:
        pass
def uninterruptible():
    mark()
    # No handler of Python runs meanwhile.
    ctypes.PyDLL(None).pause()
def parent():
    context = multiprocessing.get_context("fork")
    child = context.Process(target=endless)
    child.start()
    mark()
    child.join()
def program():
    # The program that it starts has no death signal of its own.
    child = subprocess.Popen(["sleep", "1000"])
    mark()
    with open(os.path.join(HERE, "runs"), "a") as stream:
        stream.write(f"{child.pid}\n")
    child.wait()
def session():
    # It leaves the process group, and ends before its own child.
    reader, writer = os.pipe()
    subprocess.Popen(["setsid", "sh", "-c", f"sleep 1000 & echo $! >&{writer}"], pass_fds=[writer])
    os.close(writer)
    line = os.read(reader, 99).decode()
    mark()
    with open(os.path.join(HERE, "runs"), "a") as stream:
        stream.write(line)
    while True:
        pass
"#;
    let manifest: String = ["endless", "uninterruptible", "parent", "program", "session"]
        .map(|function| entry(function, ""))
        .concat();
    let Some(package) = Package::written("killed_pleach_leaves_no_process", &manifest, module) else {
        return;
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "kills::child_process", "--nocapture"]);
    child.env(FOLDER, package.folder.path()).env(PYTHON, &package.environment);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| package.marks("runs").len() == 8);
    let processes = package.marks("runs");
    assert!(!processes.iter().any(|process| has_ended(*process)));
    child.kill().unwrap();
    child.wait().unwrap();
    let time = until(|| processes.iter().all(|process| has_ended(*process)));
    println!("all processes had ended {time:?} after pleach");
}
