//! A trial of the OpenCL drivers in a child process, since a driver may crash when it is loaded.
//!
//! The child is this program again with [`VARIABLE`] set: a fork of a process with threads could only call functions that are safe
//! in signal handlers, and loading a library is none. [`serve_probe`] is therefore the first call in `main`. A program that does not
//! call it, such as a test, loads the drivers without a trial.

use super::candidates;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Set in the child.
const VARIABLE: &str = "PLEACH_PROBE_DEVICES";

/// 20 s: drivers load within 1 s, on a busy machine within a few.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// 5 ms between two looks at the child, which takes some 50 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

static IS_SERVED: AtomicBool = AtomicBool::new(false);

/// Result of a trial.
pub(crate) enum Trial {
    /// This program does not serve trials.
    NotServed,
    /// A driver crashes or hangs: a remark for users.
    Failed(String),
    /// The drivers load. Number of their devices that are no processors.
    Passed { accelerators: usize },
}

/// Tries the drivers if this process is the child of [`find`](crate::find), and returns the text that `main` prints before it ends.
/// Otherwise lets `find` start such a child.
#[must_use]
pub fn serve_probe() -> Option<String> {
    if std::env::var_os(VARIABLE).is_some() {
        // An error is no crash: the parent meets it again and reports it.
        return Some(candidates::count_accelerators().map_or_else(|_| "error".into(), |n| n.to_string()));
    }
    IS_SERVED.store(true, Ordering::Relaxed);
    None
}

/// Loads the drivers in a child process.
pub(crate) fn trial() -> Trial {
    if !IS_SERVED.load(Ordering::Relaxed) {
        return Trial::NotServed;
    }
    let mut printed = String::new();
    let ended = std::env::current_exe().and_then(|program| {
        let mut child = Command::new(program)
            .env(VARIABLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let status = wait(&mut child)?;
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut printed)?;
        }
        Ok(status)
    });
    let cause = match ended {
        // Drivers may print as well. A count that cannot be read lets this process list the devices itself.
        Ok(Some(status)) if status.success() => {
            return printed.parse().map_or(Trial::NotServed, |accelerators| Trial::Passed { accelerators });
        }
        Ok(Some(status)) => format!("a driver crashes when it is loaded ({status})"),
        Ok(None) => format!("a driver does not load within {} s", TIME_LIMIT.as_secs()),
        Err(error) => format!("the trial of the drivers did not start: {error}"),
    };
    Trial::Failed(format!(
        "OpenCL: {cause}; no device is used. Drivers are listed in /etc/OpenCL/vendors or by OCL_ICD_VENDORS"
    ))
}

fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > TIME_LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}
