//! Time and memory of tasks.

use crate::python::{Package, entry, has_ended, until};

#[test]
fn endless_loop_is_killed_and_repeated_once() {
    let module = "def endless():\n    mark()\n    while True:\n        pass\n";
    let manifest = entry("endless", "timeout_seconds = 0.5") + &entry("pid", "");
    let Some(package) = Package::new("endless_loop_is_killed", &manifest, module) else { return };
    assert_eq!(package.failure("endless"), "longer than 0.5 s (timeout_seconds); the process was killed");
    let attempts = package.marks("runs");
    assert_eq!(attempts.len(), 2);
    until(|| attempts.iter().all(|process| has_ended(*process)));
    assert!(package.number("pid").is_ok());
}

#[test]
fn children_of_a_killed_process_end_too() {
    let module = r#"
import subprocess
def endless():
    code = "import os, sys\nopen(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\nwhile True: pass"
    subprocess.run([sys.executable, "-c", code, os.path.join(HERE, "children")])
"#;
    let manifest = entry("endless", "timeout_seconds = 2") + &entry("pid", "");
    let Some(package) = Package::new("children_of_a_killed_process_end_too", &manifest, module) else {
        return;
    };
    assert!(package.failure("endless").starts_with("longer than 2 s"));
    let children = package.marks("children");
    assert_eq!(children.len(), 2);
    until(|| children.iter().all(|process| has_ended(*process)));
    assert!(package.number("pid").is_ok());
}

const HOG: &str = r#"
def grow(target):
    pieces = []
    while len(pieces) < target >> 24:
        pieces.append(b"x" * (1 << 24))
    return pieces
def hog():
    mark()
    pieces = grow(1 << 30)
    while True:
        pass
"#;

#[test]
fn memory_beyond_the_limit_is_repeated_once_and_named() {
    let manifest = entry("hog", "memory = { limit = \"200MB\" }") + &entry("pid", "");
    let Some(package) = Package::new("memory_beyond_the_limit", &manifest, HOG) else { return };
    let error = package.failure("hog");
    let bytes: u64 = error.split(' ').next().unwrap().parse().unwrap();
    assert!((200_000_000..2_000_000_000).contains(&bytes), "{error}");
    assert!(
        error.ends_with(" bytes in use; 200000000 are allowed (memory.limit); the process was killed"),
        "{error}"
    );
    assert_eq!(package.marks("runs").len(), 2);
    assert!(package.number("pid").is_ok());
}

#[test]
fn default_limit_exceeds_the_idle_process() {
    // Without `memory.limit`: the idle process and at least 256 MB.
    let module = format!(
        "{HOG}\ndef modest():\n    pieces = grow(1 << 27)\n    for _ in range(20_000_000):\n        pass\n    return 1\n"
    );
    let manifest = entry("modest", "") + &entry("hog", "");
    let Some(package) = Package::new("default_limit_exceeds_the_idle_process", &manifest, &module) else {
        return;
    };
    assert_eq!(package.number("modest"), Ok(1.0));
    assert!(package.failure("hog").contains("(memory.limit)"));
}

#[test]
fn repetition_for_memory_runs_alone() {
    let module = format!(
        "{HOG}
import time
def ended(process):
    try:
        with open(f'/proc/{{process}}/stat') as stream:
            return stream.read().rpartition(')')[2].split()[0] in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return True
def busy():
    mark('busy')
    while not marks():
        time.sleep(0.001)
    with open(os.path.join(HERE, 'runs')) as stream:
        hog = int(stream.readline())
    while not ended(hog):
        time.sleep(0.001)
    # Long enough for another process to start.
    time.sleep(1)
    os.remove(os.path.join(HERE, 'busy'))
    return 1
def first_hog():
    while not marks() and not marks('busy'):
        time.sleep(0.001)
    mark()
    if marks() == 1:
        hog()
    return marks('busy')
"
    );
    let manifest = entry("first_hog", "memory = { limit = \"200MB\" }") + &entry("busy", "");
    let Some(package) = Package::new("repetition_for_memory_runs_alone", &manifest, &module) else { return };
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| package.number("busy"));
        let first_hog = package.number("first_hog");
        assert_eq!(busy.join().unwrap(), Ok(1.0));
        assert_eq!(first_hog, Ok(0.0), "the other task has ended");
    });
}

#[test]
fn peak_of_a_task_is_measured() {
    let manifest = entry("peak", "") + &entry("pid", "");
    let module = format!("{HOG}\ndef peak():\n    grow(100 << 20)\n    return 1\n");
    let Some(package) = Package::new("peak_of_a_task_is_measured", &manifest, &module) else { return };
    let peak = |function: &str| {
        let (result, bytes) = package.operation(function).operation.run_metered(&[], &[], |_| None);
        result.map(|_| bytes.unwrap()).unwrap()
    };
    assert!(peak("pid") < 20_000_000);
    assert!((90 << 20..200 << 20).contains(&peak("peak")));
    assert!(peak("pid") < 20_000_000, "the peak of an earlier task is forgotten");
}
