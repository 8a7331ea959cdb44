//! Exceptions and other failures of a function that its process survives.

use crate::python::{Package, entry, has_ended, until};

/// Asserts that the process still runs tasks, and returns its number.
fn process(package: &Package) -> u32 {
    package.number("pid").unwrap() as u32
}

#[test]
fn exception_has_type_text_and_traceback_and_is_not_repeated() {
    let module = "def broken():\n    mark()\n    return inner()\ndef inner():\n    raise ValueError('level 7 is too high')\n";
    let manifest = entry("broken", "") + &entry("pid", "");
    let Some(package) = Package::new("exception_has_type_text_and_traceback", &manifest, module) else {
        return;
    };
    let before = process(&package);
    let error = package.failure("broken");
    assert!(error.starts_with("ValueError: level 7 is too high\n"), "{error}");
    assert!(error.contains("m.py\", line ") && error.contains("in inner"), "{error}");
    assert!(error.ends_with("ValueError: level 7 is too high"), "{error}");
    assert_eq!(package.marks("runs"), [before], "not repeated");
    assert_eq!(process(&package), before);
}

#[test]
fn deep_tracebacks_are_cut() {
    let module = "def deep(level=0):\n    return deep(level + 1)\n";
    let manifest = entry("deep", "") + &entry("pid", "");
    let Some(package) = Package::new("deep_tracebacks_are_cut", &manifest, module) else { return };
    let error = package.failure("deep");
    assert!(error.starts_with("RecursionError: ") && error.lines().count() < 30, "{error}");
    process(&package);
}

/// Texts that JSON or a packet cannot carry as they are.
#[test]
fn any_text_of_an_exception_arrives() {
    let module = r#"
def wide():
    raise ValueError("\U0001f52c" * 100_000)
def surrogate():
    raise ValueError("file \udcff.png")
def unprintable():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")
    raise Odd()
def long():
    exec("def " + "n" * 50_000 + "():\n    raise KeyError(1)\n" + "n" * 50_000 + "()")
"#;
    let names = ["wide", "surrogate", "unprintable", "long", "pid"];
    let manifest: String = names.map(|name| entry(name, "")).concat();
    let Some(package) = Package::new("any_text_of_an_exception_arrives", &manifest, module) else { return };
    let before = process(&package);
    let wide = package.failure("wide");
    assert!(wide.starts_with("ValueError: \u{1f52c}\u{1f52c}"), "{wide:.200}");
    let surrogate = package.failure("surrogate");
    assert!(surrogate.starts_with("ValueError: file "), "{surrogate}");
    let unprintable = package.failure("unprintable");
    assert!(unprintable.starts_with("Odd"), "{unprintable}");
    let long = package.failure("long");
    assert!(long.starts_with("KeyError: 1"), "{long:.200}");
    assert_eq!(process(&package), before);
}

#[test]
fn exit_of_the_interpreter_is_an_exception() {
    let module = "def leave():\n    mark()\n    sys.exit(3)\ndef interrupt():\n    raise KeyboardInterrupt\n";
    let manifest: String = ["leave", "interrupt", "pid"].map(|name| entry(name, "")).concat();
    let Some(package) = Package::new("exit_of_the_interpreter_is_an_exception", &manifest, module) else {
        return;
    };
    let before = process(&package);
    let error = package.failure("leave");
    assert!(error.starts_with("SystemExit: 3\n"), "{error}");
    let error = package.failure("interrupt");
    assert!(error.starts_with("KeyboardInterrupt"), "{error}");
    assert_eq!(package.marks("runs"), [before]);
    assert_eq!(process(&package), before);
}

#[test]
fn returned_generators_and_coroutines_are_refused() {
    let module = "def lazy():\n    return (x for x in [1])\ndef later():\n    async def inner():\n        return 1\n    return inner()\n";
    let manifest: String = ["lazy", "later", "pid"].map(|name| entry(name, "")).concat();
    let Some(package) = Package::new("returned_generators_are_refused", &manifest, module) else { return };
    for function in ["lazy", "later"] {
        assert_eq!(
            package.failure(function),
            "the function returned a generator or coroutine; regions are allowed"
        );
    }
    process(&package);
}

#[test]
fn copy_of_the_process_ends() {
    let module = r#"
def fork():
    mark()
    child = os.fork()
    mark("both")
    if child:
        os.waitpid(child, 0)
        return 7
    return 8
def fork_and_raise():
    if os.fork() == 0:
        mark("copies")
        raise ValueError("in the copy")
    return 9
"#;
    let manifest: String = ["fork", "fork_and_raise", "pid"].map(|name| entry(name, "")).concat();
    let Some(package) = Package::new("copy_of_the_process_ends", &manifest, module) else { return };
    let before = process(&package);
    assert_eq!(package.number("fork"), Ok(7.0));
    assert_eq!(package.number("fork_and_raise"), Ok(9.0));
    assert_eq!(process(&package), before);
    until(|| package.marks("copies").len() == 1);
    let copies = [package.marks("both"), package.marks("copies")].concat();
    until(|| copies.iter().all(|copy| *copy == before || has_ended(*copy)));
    assert_eq!(package.number("fork"), Ok(7.0));
}

#[test]
fn copy_of_a_loading_process_ends() {
    let module = "def load():\n    mark('loads')\n    os.fork()\n    mark('copies')\ndef used(_):\n    mark()\n    return os.getpid()\n";
    let manifest = entry("used", "setup = \"m:load\"");
    let Some(package) = Package::new("copy_of_a_loading_process_ends", &manifest, module) else { return };
    let first = package.number("used").unwrap();
    for _ in 0..20 {
        assert_eq!(package.number("used"), Ok(first));
    }
    assert_eq!(package.marks("loads"), [first as u32]);
    until(|| package.marks("copies").iter().all(|copy| *copy == first as u32 || has_ended(*copy)));
}

#[test]
fn process_with_a_thread_left_behind_is_replaced() {
    let module = r#"
import threading
def start():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
def leave():
    start()
    return os.getpid()
def leave_and_raise():
    mark()
    start()
    raise ValueError("with a thread")
"#;
    let manifest: String = ["leave", "leave_and_raise", "pid"].map(|name| entry(name, "")).concat();
    let Some(package) = Package::new("process_with_a_thread_is_replaced", &manifest, module) else { return };
    let first = package.number("leave").unwrap() as u32;
    let second = process(&package);
    assert_ne!(first, second);
    until(|| has_ended(first));
    let error = package.failure("leave_and_raise");
    assert!(error.starts_with("ValueError: with a thread"), "{error}");
    assert_eq!(package.marks("runs"), [second]);
    assert_ne!(process(&package), second);
}

#[test]
fn printed_gigabyte_blocks_nothing() {
    let module = r#"
def talk():
    text = "x" * (1 << 20)
    for _ in range(512):
        print(text)
        print(text, file=sys.stderr)
    return 1
"#;
    let manifest = entry("talk", "") + &entry("pid", "");
    let Some(package) = Package::new("printed_gigabyte_blocks_nothing", &manifest, module) else { return };
    let before = process(&package);
    assert_eq!(package.number("talk"), Ok(1.0));
    assert_eq!(process(&package), before);
}
