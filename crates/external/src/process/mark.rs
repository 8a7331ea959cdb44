//! Mark of a program and all that it starts: an environment variable, which children inherit.
//!
//! A child that leaves the process group (`setsid`) keeps the mark, unless it is started with an environment of its own.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the variable.
pub(super) const VARIABLE: &str = "PLEACH_PROCESS_GROUP";

/// Maximum walks through all processes. A process that starts a second one while it is killed needs a second walk.
pub(super) const WALKS: u32 = 8;

/// Value of the variable. Its length is fixed, so no mark is a part of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// Returns a mark that no other process group on this machine has.
    pub(super) fn unique() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
        Self(format!("{now:016x}{:08x}{:08x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Kills all processes with the mark.
    pub(super) fn kill_all(&self) {
        for _ in 0..WALKS {
            let numbers = std::fs::read_dir("/proc").into_iter().flatten();
            let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            if numbers.filter(|number| self.kill(*number)).count() == 0 {
                return;
            }
        }
    }

    /// Kills a process if it has the mark. Returns whether it does.
    fn kill(&self, number: i32) -> bool {
        let is_marked = || self.is_of(number);
        // The descriptor first, so that no other process has the number when the signal is sent.
        let Some(process) =
            is_marked().then(|| pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()).flatten()
        else {
            return false;
        };
        is_marked() && pidfd_send_signal(&process, Signal::KILL).is_ok()
    }

    fn is_of(&self, number: i32) -> bool {
        let Ok(variables) = std::fs::read(format!("/proc/{number}/environ")) else { return false };
        let is_own = |variable: &[u8]| {
            variable.strip_prefix(VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
                == Some(self.0.as_bytes())
        };
        variables.split(|byte| *byte == 0).any(is_own)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
