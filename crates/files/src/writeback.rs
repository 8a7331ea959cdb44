//! Starts writeback of a file's content before a later fsync. Never waits.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Starts writing a part of a file to disk. Ignores errors of the system, since the later fsync reports them.
pub(crate) fn begin(file: &File, offset: u64, length_bytes: u64) -> io::Result<()> {
    let wrong = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (offset, length) =
        (i64::try_from(offset).map_err(wrong)?, i64::try_from(length_bytes).map_err(wrong)?);
    // SAFETY: the call takes only numbers, and the file stays open while it is borrowed.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
    Ok(())
}
