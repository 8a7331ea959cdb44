//! One process that runs operations, and its end.
//!
//! It dies with the thread that has started it (`PR_SET_PDEATHSIG`), so the [pool](crate::pool) starts all processes on one
//! lasting thread. Its children die with this process ([`watcher`]). Its output is read at all times, so that it never waits for pleach.

mod group;
mod link;
mod mark;
mod output_stream;
mod output_tail;
mod watcher;

pub(crate) use group::{ProcessGroup, worded};
pub(crate) use link::MAX_DESCRIPTORS;
pub(crate) use output_stream::is_pipe;

use crate::failure::Failure;
use crate::packet::{Answer, Request};
use link::Link;
use pleach_files::scratch::Scratch;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
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
    group: ProcessGroup,
    link: Link,
}

impl Process {
    /// Starts a process. Call it on a thread that lives as long as the process may.
    pub(crate) fn start(command: Command) -> io::Result<Self> {
        let folder = Scratch::create(&std::env::temp_dir(), SCRATCH)?;
        let (link, other) = Link::pair()?;
        let group = ProcessGroup::start(command, Stdio::from(other), folder)?;
        Ok(Self { group, link })
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
            self.group.kill();
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

    /// Reads an output of `bytes` bytes that the process writes to a pipe, within the limits. `on_bytes` gets all bytes so far each
    /// time that some have been read.
    pub(crate) fn read(
        &mut self,
        pipe: &OwnedFd,
        bytes: u64,
        limits: Limits,
        mut on_bytes: impl FnMut(&mut [u8]),
    ) -> Result<Vec<u8>, Failure> {
        let content = output_stream::read(pipe, bytes, limits, &mut on_bytes)?;
        if content.len() as u64 == bytes {
            return Ok(content);
        }
        if self.group.wait(MEMORY_INTERVAL).unwrap_or(false) {
            return Err(self.death());
        }
        Err(Failure::Protocol(format!("{} bytes of an output of {bytes}", content.len())))
    }

    /// Returns how the process has ended, with its last output.
    pub(crate) fn death(&mut self) -> Failure {
        // A process that has closed its link without ending is killed.
        let has_ended = self.group.wait(MEMORY_INTERVAL).unwrap_or(false);
        let status = self.group.kill().filter(|_| has_ended);
        let how = status.map_or_else(|| "a closed link".to_owned(), worded);
        Failure::Died { how, output: self.group.output().last() }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.group.id()
    }

    /// Returns the output of the process since the last call.
    pub(crate) fn take_output(&self) -> String {
        self.group.output().take()
    }

    /// Returns the resident bytes. `None` for an ended process.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        self.group.program_bytes()
    }
}
