//! A program with its children: its output, its memory, and its end.
//!
//! The program is in a process group of its own, which is killed as a whole: by this process, or by the group's
//! [watcher](super::watcher) if this process is killed. A child that leaves the group ends as well, unless it also has an
//! environment of its own (`mark.rs`).

use super::mark::{Mark, VARIABLE};
use super::output_tail::OutputTail;
use super::watcher::Watcher;
use crate::failure::Failure;
use crate::process::{Limits, MEMORY_INTERVAL};
use pleach_files::scratch::Scratch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Ratio of the interval between measurements to the duration of one: measuring takes at most 5 % of a core.
const MEASUREMENT_RATIO: u32 = 20;

/// A running program. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Child,
    watcher: Watcher,
    mark: Mark,
    /// Readable once the program has ended.
    end: OwnedFd,
    /// Status of the reaped program.
    status: Option<ExitStatus>,
    output: OutputTail,
    /// The working folder, removed after the end.
    folder: Scratch,
}

impl ProcessGroup {
    /// Starts a program in a working folder. Call it on a thread that lives as long as the program may.
    pub(crate) fn start(mut command: Command, stdin: Stdio, folder: Scratch) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let output = OutputTail::read(reader)?;
        command.current_dir(folder.path()).env("TMPDIR", folder.path());
        command.stdin(stdin).stdout(Stdio::from(writer.try_clone()?)).stderr(Stdio::from(writer));
        // First, so that the program is watched from its start. A watcher without pleach ends.
        let mark = Mark::unique();
        let mut watcher = Watcher::start(&mark)?;
        command.env(VARIABLE, mark.to_string());
        let started = command.process_group(watcher.group().as_raw_pid()).spawn().and_then(with_end);
        // Closes this process's copies of the child's ends: their end is how both sides notice the other's death.
        drop(command);
        match started {
            Ok((child, end)) => Ok(Self { child, watcher, mark, end, status: None, output, folder }),
            // A child without a descriptor is in the group, too.
            Err(error) => {
                let _ = kill_process_group(watcher.group(), Signal::KILL);
                watcher.reap();
                Err(error)
            }
        }
    }

    /// Returns the number of the program.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the working folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the output.
    pub(crate) fn output(&self) -> &OutputTail {
        &self.output
    }

    /// Returns the resident bytes of the program, without its children. `None` if it has ended.
    pub(crate) fn program_bytes(&self) -> Option<u64> {
        resident_bytes(self.id())
    }

    /// Returns the resident bytes of the program and its children in the group. Pages that several of them share count several times.
    fn bytes(&self) -> u64 {
        let numbers = std::fs::read_dir("/proc").into_iter().flatten();
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let group = self.watcher.group().as_raw_pid();
        let is_member = |number: &u32| *number != group as u32 && group_of(*number) == Some(group);
        let members = numbers.filter(is_member);
        members.filter_map(resident_bytes).sum()
    }

    /// Waits until the program has ended. Returns `false` after `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the end of the program within the limits, and kills the rest of its group.
    pub(crate) fn finish(&mut self, limits: Limits) -> Result<ExitStatus, Failure> {
        let ended = self.wait_within(limits);
        let status = self.kill();
        ended?;
        status.ok_or_else(|| Failure::System("failed to wait for the process".to_owned()))
    }

    fn wait_within(&self, limits: Limits) -> Result<(), Failure> {
        let start = Instant::now();
        let mut interval = MEMORY_INTERVAL;
        loop {
            let left = limits.timeout.saturating_sub(start.elapsed());
            let waited = self.wait(left.min(interval));
            if waited.map_err(|error| Failure::System(format!("failed to wait for the process: {error}")))? {
                return Ok(());
            }
            if left.is_zero() {
                return Err(Failure::TooLong { limit: limits.timeout });
            }
            let measured = Instant::now();
            let bytes = self.bytes();
            if bytes > limits.bytes {
                return Err(Failure::TooLarge { bytes, limit: limits.bytes });
            }
            interval = MEMORY_INTERVAL.max(measured.elapsed() * MEASUREMENT_RATIO);
        }
    }

    /// Kills the group, and waits for the end of the program. Returns its status.
    pub(crate) fn kill(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.mark.kill_all();
            // The watcher is reaped last: until then no other group has the number.
            let _ = kill_process_group(self.watcher.group(), Signal::KILL);
            self.status = self.child.wait().ok();
            self.watcher.reap();
        }
        self.status
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a child with a descriptor that is readable once it has ended.
fn with_end(child: Child) -> io::Result<(Child, OwnedFd)> {
    let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    Ok((child, end))
}

fn resident_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

fn group_of(process: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may have any character. State, parent and group follow its last parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// Words the end of a process.
pub(crate) fn worded(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}{}", name(signal)),
        (None, None) => status.to_string(),
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str) -> ProcessGroup {
        let folder = Scratch::create(&std::env::temp_dir(), "pleach-group-test").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ProcessGroup::start(command, Stdio::null(), folder).unwrap()
    }

    const AMPLE: Limits = Limits { timeout: Duration::from_mins(1), bytes: u64::MAX };

    #[test]
    fn memory_of_children_counts() {
        let group = started("sleep 1000 & sleep 1000");
        let deadline = Instant::now() + Duration::from_secs(10);
        while group.bytes() <= group.program_bytes().unwrap_or(u64::MAX) {
            assert!(Instant::now() < deadline, "{} bytes", group.bytes());
            std::thread::yield_now();
        }
    }

    #[test]
    fn child_in_a_session_of_its_own_ends_with_the_group() {
        let mut group = started("setsid sh -c 'echo $$ >number; exec sleep 1000' & sleep 1000");
        let deadline = Instant::now() + Duration::from_secs(20);
        let number = loop {
            assert!(Instant::now() < deadline, "no child");
            let text = std::fs::read_to_string(group.folder().join("number")).unwrap_or_default();
            match text.trim_end().parse::<u32>() {
                Ok(number) if text.ends_with('\n') => break number,
                _ => std::thread::yield_now(),
            }
        };
        assert_ne!(group_of(number), Some(group.watcher.group().as_raw_pid()));
        group.kill();
        let is_running = || resident_bytes(number).is_some();
        while is_running() {
            assert!(Instant::now() < deadline, "process {number} runs");
            std::thread::yield_now();
        }
    }

    #[test]
    fn status_is_that_of_the_program() {
        let status = started("exit 3").finish(AMPLE).unwrap();
        assert_eq!(worded(status), "status 3");
        let status = started("kill -9 $$").finish(AMPLE).unwrap();
        assert_eq!(worded(status), "signal 9 (SIGKILL)");
    }
}
