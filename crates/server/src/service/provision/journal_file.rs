//! File of the journal of owned workers, in the state directory.

use parking_lot::Mutex;
use pleach_provision::{ProvisionJournal, ProvisionRecord};
use pleach_results::folder::publish;
use pleach_storage::files::private;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tracing::warn;

/// Name of the file in a state directory.
pub const FILE: &str = "workers.journal";

/// Compacted beyond 1 MiB: about 3000 workers, which are read in milliseconds.
const MAX_BYTES: u64 = 1 << 20;

/// Reason why the journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalFileError {
    /// The file cannot be read or written.
    #[error("{}: {cause}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        cause: io::Error,
    },
    /// The file is of another format.
    #[error("{}: first line {line:?}; the journal of a manager's workers is allowed", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// First line.
        line: String,
    },
}

/// Open journal. The state directory's lock excludes other writers.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    state: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Bytes of complete lines.
    bytes: u64,
    content: ProvisionJournal,
}

/// Reads the journal of a state directory. A missing file is an empty journal.
///
/// # Errors
/// [`JournalFileError`]
pub fn read(state: &Path) -> Result<ProvisionJournal, JournalFileError> {
    let path = state.join(FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(cause) => return Err(JournalFileError::File { path, cause }),
    };
    ProvisionJournal::parse(&bytes).map_err(|line| JournalFileError::Format { path, line })
}

impl JournalFile {
    /// Reads and compacts the journal of a state directory.
    pub(super) fn open(state: &Path) -> Result<(Self, ProvisionJournal), JournalFileError> {
        let mut content = read(state)?;
        let path = state.join(FILE);
        if content.corrupt_lines > 0 {
            warn!(
                "{}: {} corrupt lines are skipped; workers that only they have are stopped as orphans",
                path.display(),
                content.corrupt_lines
            );
            content.corrupt_lines = 0;
        }
        let open = compact(&path, content.clone())
            .map_err(|cause| JournalFileError::File { path: path.clone(), cause })?;
        Ok((Self { path, state: Mutex::new(open) }, content))
    }

    /// Appends a record with its time in milliseconds since 1970, and waits until it is on disk.
    ///
    /// # Errors
    /// [`JournalFileError::File`]. The record is not in the journal then.
    pub(super) fn append(&self, record: ProvisionRecord, at_ms: u64) -> Result<(), JournalFileError> {
        let fail = |cause| JournalFileError::File { path: self.path.clone(), cause };
        let mut state = self.state.lock();
        let line = record.line(at_ms);
        // After a failed write, the next one overwrites the rest of that line.
        let at = state.bytes;
        let written =
            state.file.seek(SeekFrom::Start(at)).and_then(|_| state.file.write_all(line.as_bytes()));
        let written = written.and_then(|()| state.file.sync_data());
        if let Err(cause) = written {
            // A part of a line that stays counts as torn.
            let _ = state.file.set_len(at);
            return Err(fail(cause));
        }
        state.bytes += line.len() as u64;
        state.content.apply(record, Some(at_ms));
        if state.bytes > MAX_BYTES {
            *state = compact(&self.path, state.content.clone()).map_err(fail)?;
        }
        Ok(())
    }
}

/// Replaces the file by one with the unfinished workers only, and opens it.
fn compact(path: &Path, content: ProvisionJournal) -> io::Result<Open> {
    let text = content.text();
    publish(path, text.as_bytes())?;
    let file = private::options().write(true).open(path)?;
    Ok(Open { file, bytes: text.len() as u64, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intended(number: u32) -> ProvisionRecord {
        ProvisionRecord::Intended { name: format!("spot-{number}"), pool: "spot".to_owned() }
    }

    #[test]
    fn records_survive_a_restart_and_a_torn_line_does_not_hide_later_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, content) = JournalFile::open(folder.path()).unwrap();
        assert!(content.workers().is_empty());
        (1..4).for_each(|number| journal.append(intended(number), 7).unwrap());
        journal.append(ProvisionRecord::Ended { name: "spot-2".to_owned() }, 7).unwrap();
        drop(journal);
        let path = folder.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(b"0123 {\"intend");
        fs::write(&path, bytes).unwrap();
        let (journal, content) = JournalFile::open(folder.path()).unwrap();
        journal.append(intended(9), 7).unwrap();
        assert!(content.workers().keys().eq(["spot-1", "spot-3"]));
        let found = read(folder.path()).unwrap();
        assert!(found.workers().keys().eq(["spot-1", "spot-3", "spot-9"]));
        assert_eq!(found.corrupt_lines, 0);
    }

    #[test]
    fn journal_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = JournalFile::open(folder.path()).unwrap();
        // Long names: 20 records exceed the limit once.
        let name = "x".repeat(60_000);
        for _ in 0..20 {
            journal
                .append(ProvisionRecord::Intended { name: name.clone(), pool: "spot".to_owned() }, 7)
                .unwrap();
        }
        assert!(fs::metadata(folder.path().join(FILE)).unwrap().len() < MAX_BYTES);
        assert_eq!(read(folder.path()).unwrap().workers().len(), 1);
    }

    #[test]
    fn file_of_another_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "{}\n").unwrap();
        let error = JournalFile::open(folder.path()).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "workers.journal: first line \"{}\"; the journal of a manager's workers is allowed"
            )
        );
    }
}
