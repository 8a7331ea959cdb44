//! Has the system write what a file holds before anybody waits for that. Nothing here waits.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Begins to write a part of a file to the medium. What the system refuses is left to whoever syncs.
pub(crate) fn begin(file: &File, offset: u64, length_bytes: u64) -> io::Result<()> {
    let wrong = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (offset, length) =
        (i64::try_from(offset).map_err(wrong)?, i64::try_from(length_bytes).map_err(wrong)?);
    // SAFETY: the call takes numbers only, and the file is open for as long as it is borrowed.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
    Ok(())
}
