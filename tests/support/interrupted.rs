//! Studies interrupted at a chosen moment.

use crate::study::Study;
use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// 120 s: bounds waits that would otherwise be endless, far above the longest.
const DEADLINE: Duration = Duration::from_secs(120);

/// Starts or resumes the study into `out`.
pub(crate) fn start(study: &Study, out: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("pleach"))
        .current_dir(study.folder())
        .args(["run", "study.toml", "--out", out, "--quiet", "--resume", "--workers", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pleach starts")
}

/// Waits until a file has `bytes` bytes or the process has ended. Returns the exit status if it ended.
pub(crate) fn wait_for(study: &Study, child: &mut Child, file: &str, bytes: u64) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        if fs::metadata(study.path(file)).is_ok_and(|file| file.len() >= bytes) {
            return None;
        }
        assert!(begun.elapsed() < DEADLINE, "{file} does not grow to {bytes} bytes");
        std::thread::yield_now();
    }
}

/// Sends a signal, such as `KILL`. Returns the exit code and the error output.
pub(crate) fn end(child: Child, signal: &str) -> (Option<i32>, String) {
    // The shell's built-in `kill`: a bare system has no other.
    let status = Command::new("bash").arg("-c").arg(format!("kill -{signal} {}", child.id())).status();
    assert!(status.expect("bash starts").success());
    let output = child.wait_with_output().expect("a child");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}
