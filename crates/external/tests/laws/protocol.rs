//! Answers that break the protocol: the process is replaced, and its memory files are never trusted.

use crate::python::{Package, entry, has_ended, until};

/// Finds the socket to pleach among the open files.
const LINK: &str = r#"
import __main__
import json, socket, stat
import numpy as np
def link():
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                return int(name)
        except OSError:
            pass
"#;

fn package(test: &str, module: &str, functions: &[&str]) -> Option<Package> {
    let manifest: String = functions.iter().chain(&["pid"]).map(|function| entry(function, "")).collect();
    Package::new(test, &manifest, &format!("{LINK}{module}"))
}

/// Asserts that a task fails with `error` without a second attempt, and that its process is replaced.
fn assert_replaced(package: &Package, function: &str, error: &str) {
    let before = package.number("pid").unwrap() as u32;
    let found = package.failure(function);
    assert!(found.contains(error), "{function}: {found}");
    assert_ne!(package.number("pid"), Ok(f64::from(before)));
    until(|| has_ended(before));
}

#[test]
fn garbage_is_a_protocol_error() {
    let module = r#"
def garbage():
    mark()
    os.write(link(), b"\x00garbage")
    return 1
def long():
    os.write(link(), b" " * 100_000)
    return 1
def many():
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
    socket.send_fds(socket.socket(fileno=os.dup(link())), [b"{}"], files)
    return 1
def ready():
    os.write(link(), b'{"kind": "ready", "contract": 1}')
    return 1
"#;
    let names = ["garbage", "long", "many", "ready"];
    let Some(package) = package("garbage_is_a_protocol_error", module, &names) else { return };
    assert_replaced(&package, "garbage", "invalid answer of the process: ");
    assert_eq!(package.marks("runs").len(), 1, "not repeated");
    assert_replaced(&package, "long", "a packet is too long");
    assert_replaced(&package, "many", "a packet is too long");
    assert_replaced(&package, "ready", "Ready");
}

#[test]
fn answer_ahead_of_time_is_not_the_next_result() {
    let module = r#"
def forged():
    file = __main__.stored([np.array([7.0])])
    done = {"kind": "done", "task": 1 << 63, "shapes": [[]], "bytes": [8], "reversed": [False], "seconds": 0, "peak_bytes": 0, "reusable": True}
    socket.send_fds(socket.socket(fileno=os.dup(link())), [json.dumps(done).encode()], [file])
    return 8
"#;
    let Some(package) = package("answer_ahead_of_time", module, &["forged"]) else { return };
    let _ = package.number("forged");
    for _ in 0..5 {
        assert!(!matches!(package.number("pid"), Ok(7.0 | 8.0)), "an answer to another task");
    }
}

#[test]
fn memory_files_are_checked() {
    let module = r#"
import fcntl
SEALED = __main__.stored
def unsealed(parts):
    file = os.memfd_create("region", os.MFD_ALLOW_SEALING)
    os.write(file, b"".join(bytes(part) for part in parts))
    return file
def half_sealed(parts):
    file = unsealed(parts)
    fcntl.fcntl(file, 1033, 0x1 | 0x2 | 0x4)
    return file
def short(parts):
    return SEALED([bytes(part)[:-1] for part in parts])
def plain(parts):
    path = os.path.join(HERE, "plain")
    with open(path, "wb") as stream:
        stream.write(b"12345678")
    return os.open(path, os.O_RDWR)
def huge(parts):
    file = os.memfd_create("region", os.MFD_ALLOW_SEALING)
    os.ftruncate(file, 1 << 40)
    fcntl.fcntl(file, 1033, 0xF)
    return file
def device(parts):
    return os.open("/dev/zero", os.O_RDONLY)
def sends(stored):
    def function():
        __main__.stored = stored
        return 5
    return function
bad_unsealed, bad_half, bad_short = sends(unsealed), sends(half_sealed), sends(short)
bad_plain, bad_huge, bad_device = sends(plain), sends(huge), sends(device)
def bad_shape():
    __main__.region = lambda port, value: ((2, 2), [np.array([1.0])])
    return 5
"#;
    let cases = [
        ("bad_unsealed", "out: the memory file is not sealed"),
        ("bad_half", "out: the memory file is not sealed"),
        ("bad_short", "out: 7 bytes and shape [] are no scalar"),
        ("bad_plain", "out: the memory file is not sealed"),
        ("bad_huge", "out: 1099511627776 bytes; "),
        ("bad_device", "out: the memory file is not sealed"),
        ("bad_shape", "out: 8 bytes and shape [2, 2] are no scalar"),
    ];
    let names = cases.map(|(name, _)| name);
    let Some(package) = package("memory_files_are_checked", module, &names) else { return };
    for (function, error) in cases {
        assert_replaced(&package, function, error);
    }
}
