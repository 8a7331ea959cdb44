//! One process that runs operations, and its end.
//!
//! The process leads a group of its own, which is killed as a whole. It dies with the thread that has started it
//! (`PR_SET_PDEATHSIG`), so the [pool](crate::pool) starts all processes on one lasting thread. Its output is read at all
//! times, so that it never waits for pleach.

use crate::failure::Failure;
use crate::link::Link;
use crate::output_tail::OutputTail;
use crate::packet::{Answer, Request};
use pleach_files::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Prefix of the working folders, in the system's temporary folder.
pub(crate) const SCRATCH: &str = "pleach-external";

/// Interval between measurements of a running process's memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(100);

/// Limits of one task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    /// Maximum resident bytes of the process.
    pub(crate) bytes: u64,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    link: Link,
    output: OutputTail,
    /// Its working folder, removed after its end.
    _folder: Scratch,
}

impl Process {
    /// Starts a process. Call it on a thread that lives as long as the process may.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let folder = Scratch::create(&std::env::temp_dir(), SCRATCH)?;
        let (link, other) = Link::pair()?;
        let (reader, writer) = io::pipe()?;
        command.current_dir(folder.path()).env("TMPDIR", folder.path());
        command
            .stdin(Stdio::from(other))
            .stdout(Stdio::from(writer.try_clone()?))
            .stderr(Stdio::from(writer));
        let child = command.process_group(0).spawn()?;
        // Closes this process's copies of the child's ends: their end is how both sides notice the other's death.
        drop(command);
        Ok(Self { child, link, output: OutputTail::read(reader)?, _folder: folder })
    }

    /// Sends a packet with descriptors.
    pub(crate) fn send(&self, request: &Request<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let packet = serde_json::to_vec(request).map_err(io::Error::other)?;
        self.link.send(&packet, descriptors)
    }

    /// Waits for the next answer within the limits. A process that fails is killed.
    pub(crate) fn answer(&mut self, limits: Limits) -> Result<(Answer, Vec<OwnedFd>), Failure> {
        let answer = self.received(limits);
        if answer.is_err() {
            self.kill();
        }
        answer
    }

    fn received(&mut self, limits: Limits) -> Result<(Answer, Vec<OwnedFd>), Failure> {
        let system = |error: io::Error| Failure::System(format!("failed to read from the process: {error}"));
        let start = Instant::now();
        loop {
            let left = limits.timeout.saturating_sub(start.elapsed());
            if self.link.wait(left.min(MEMORY_INTERVAL)).map_err(system)? {
                break;
            }
            if left.is_zero() {
                return Err(Failure::TooLong { limit: limits.timeout });
            }
            match self.resident_bytes() {
                Some(bytes) if bytes > limits.bytes => {
                    return Err(Failure::TooLarge { bytes, limit: limits.bytes });
                }
                // It has ended without an answer, and a copy of it keeps the link open.
                None if !self.link.wait(Duration::ZERO).map_err(system)? => return Err(self.death()),
                _ => {}
            }
        }
        match self.link.receive() {
            Ok(Some((packet, descriptors))) => match serde_json::from_slice(&packet) {
                Ok(answer) => Ok((answer, descriptors)),
                Err(error) => Err(Failure::Protocol(error.to_string())),
            },
            Ok(None) => Err(self.death()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(Failure::Protocol("a packet is too long".to_owned()))
            }
            Err(error) => Err(system(error)),
        }
    }

    /// Returns how the process has ended, with its last output.
    pub(crate) fn death(&mut self) -> Failure {
        // A process that has closed its link without ending is killed.
        let deadline = Instant::now() + MEMORY_INTERVAL;
        let mut status = self.child.try_wait().ok().flatten();
        while status.is_none() && Instant::now() < deadline {
            std::thread::yield_now();
            status = self.child.try_wait().ok().flatten();
        }
        let how = status.map_or_else(|| "a closed link".to_owned(), worded);
        self.kill();
        Failure::Died { how, output: self.output.last() }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the output of the process since the last call.
    pub(crate) fn take_output(&self) -> String {
        self.output.take()
    }

    /// Returns the resident bytes. `None` for an ended process.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    }

    /// Kills the process and its group, and waits for its end.
    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // The group is gone if all its processes have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Words the end of a process.
fn worded(status: ExitStatus) -> String {
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
