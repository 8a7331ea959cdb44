//! Large outputs: a process writes them to a pipe while pleach reads them.
//!
//! A memory file of an output is new memory, whose first touch takes longer than two copies through a pipe. Nothing is mapped,
//! so the other process cannot change data that pleach has read, and cannot end pleach by a signal.

use crate::failure::Failure;
use crate::process::{Limits, MEMORY_INTERVAL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_setfl, fstat};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The beginning of an output, and what has been read of it last.
type OnBytes<'a> = &'a mut dyn FnMut(&mut [u8]);

/// Returns whether a received descriptor is a pipe.
pub(crate) fn is_pipe(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Reads `bytes` bytes, or fewer if the pipe ends before. `on_bytes` gets all bytes that have been read so far, while they are in
/// the processor's cache.
pub(super) fn read(
    pipe: &OwnedFd,
    bytes: u64,
    limits: Limits,
    on_bytes: OnBytes<'_>,
) -> Result<Vec<u8>, Failure> {
    let system =
        |error: Errno| Failure::System(format!("failed to read an output: {}", io::Error::from(error)));
    fcntl_setfl(pipe, OFlags::NONBLOCK).map_err(system)?;
    let mut content = Vec::new();
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    content.try_reserve_exact(length).map_err(|_| Failure::System(format!("no memory for {bytes} bytes")))?;
    let start = Instant::now();
    while content.len() < length {
        match rustix::io::read(pipe, rustix::buffer::spare_capacity(&mut content)) {
            Ok(0) => break,
            Ok(_) => on_bytes(&mut content),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = limits.timeout.saturating_sub(start.elapsed());
                if left.is_zero() {
                    return Err(Failure::TooLong { limit: limits.timeout });
                }
                let slice = left.min(MEMORY_INTERVAL);
                let timeout = Timespec { tv_sec: 0, tv_nsec: slice.subsec_nanos().into() };
                match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(system(error)),
                }
            }
            Err(error) => return Err(system(error)),
        }
    }
    Ok(content)
}
