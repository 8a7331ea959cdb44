//! Cache folder: file layout and locking between processes.
//!
//! - `FORMAT` identifies the cache and the format version.
//! - `lock` is held while segments are created, extended, repaired or evicted, and no longer. A writer closes its own
//!   segment without it. It contains the highest segment number ever used: numbers are not reused, so that no process
//!   mistakes one segment for another.
//! - `000000000001.segment` and so on. The writer of a segment holds its lock while writing. An unlocked segment is never
//!   written to again, whether its writer closed it or was killed.
//!
//! The size of a cache is the sum of its file lengths. A writer extends its segment before writing, so every process can
//! compute the sum. This module does not know the content of segments.

use crate::error::CacheError;
use pleach_files::{FileSystem, OpenFile, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file with the marker.
pub const MARKER_NAME: &str = "FORMAT";

/// Name of the marker while it is written.
const MARKER_PART_NAME: &str = "FORMAT.part";
const LOCK_NAME: &str = "lock";

/// File of operation costs, which `pleach run` keeps beside the segments. A full disk may leave it without a marker.
const COSTS_NAME: &str = "costs";

const SEGMENT_SUFFIX: &str = ".segment";

/// The marker of this version. The number is raised when anything on disk changes its meaning: segments, records, traces,
/// encodings of regions, digests, or the components of keys.
pub const MARKER: &str = "pleach cache 2";

/// Marker of the format without users in segment heads and labels in traces. All else is equal, so such a folder is read as it
/// is. Its first writer replaces the marker, since programs of that format would drop labeled traces.
pub const EARLIER_MARKER: &str = "pleach cache 1";

/// Longer than any marker. Of a foreign file, at most these bytes are read and shown.
const MARKER_LIMIT_BYTES: usize = 64;

/// Size of the number in the lock file.
const NUMBER_BYTES: usize = size_of::<u64>();

/// Numbers from here on count as corrupt: no folder has had this many segments.
const NUMBER_LIMIT: u64 = 1 << 48;

/// The folder of a cache.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
}

/// The folder lock, held until drop.
#[derive(Debug)]
pub(crate) struct FolderLock<'a>(&'a dyn OpenFile);

impl Drop for FolderLock<'_> {
    fn drop(&mut self) {
        // Closing the file also releases the lock, so a failure needs no handling.
        let _ = self.0.unlock();
    }
}

impl Folder {
    /// Opens an existing folder, or creates one if `create` is set.
    ///
    /// # Errors
    /// Fails if the folder cannot be read, or is neither empty nor a cache of this version.
    pub(crate) fn find(files: Arc<dyn FileSystem>, path: &Path, create: bool) -> Result<Self, CacheError> {
        let folder = Self { files, path: path.to_owned() };
        let refuse = |source| CacheError::Io { path: path.to_owned(), source };
        let names = match folder.files.list(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
                folder.files.create_folders(path).map_err(refuse)?;
                Vec::new()
            }
            names => names.map_err(refuse)?.into_iter().map(|(name, _)| name).collect(),
        };
        let marker = names.iter().any(|name| name == MARKER_NAME);
        let found = if marker { folder.marker().map_err(refuse)? } else { String::new() };
        // An unfinished marker of a killed writer belongs to a folder without segments.
        let unfinished = MARKER.starts_with(&found) && !names.iter().any(|name| number(name).is_some());
        let ours =
            |name: &String| [MARKER_NAME, MARKER_PART_NAME, LOCK_NAME, COSTS_NAME].contains(&name.as_str());
        if found == MARKER || found == EARLIER_MARKER || (unfinished && names.iter().all(ours)) {
            Ok(folder)
        } else if marker && !found.is_empty() {
            Err(CacheError::Version { path: path.to_owned(), found, allowed: MARKER })
        } else {
            Err(CacheError::NotACache { path: path.to_owned() })
        }
    }

    /// Returns the printable part of the marker's first line.
    fn marker(&self) -> io::Result<String> {
        let mut bytes = [0; MARKER_LIMIT_BYTES];
        let length = self.open(MARKER_NAME, OpenMode::Read)?.read_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// Opens the lock file of the folder for writing, and marks the folder as a cache.
    pub(crate) fn prepare(&self) -> io::Result<Box<dyn OpenFile>> {
        let lock = self.open_or_create(LOCK_NAME)?;
        let locked = Self::lock(&*lock)?;
        // Created at its full length: numbering segments must not change the size of the folder.
        if lock.length()? < NUMBER_BYTES as u64 {
            lock.write_at(&[0; NUMBER_BYTES], 0)?;
        }
        let is_marked = match self.open(MARKER_NAME, OpenMode::Read) {
            // The newline behind the marker shows that it is complete.
            Ok(marker) if marker.length()? > MARKER.len() as u64 && self.marker()? == MARKER => {
                // The process that wrote the marker may have been killed before this sync.
                marker.sync()?;
                self.files.sync_folder(&self.path)?;
                true
            }
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_marked {
            self.mark()?;
        }
        drop(locked);
        Ok(lock)
    }

    /// Writes the marker and syncs it before anything else. Other files remain readable after a power loss, but a torn
    /// marker would look like another version's or a foreign folder's.
    fn mark(&self) -> io::Result<()> {
        let (part, marker) = (self.path.join(MARKER_PART_NAME), self.path.join(MARKER_NAME));
        match self.files.remove(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.open(MARKER_PART_NAME, OpenMode::Create)?;
        file.write_at(format!("{MARKER}\n").as_bytes(), 0)?;
        file.sync()?;
        self.files.rename(&part, &marker)?;
        self.files.sync_folder(&self.path)
    }

    fn open_or_create(&self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        match self.open(name, OpenMode::Create) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(name, OpenMode::Write),
            opened => opened,
        }
    }

    fn open(&self, name: &str, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        self.files.open_random_access(&self.path.join(name), how)
    }

    /// Waits for the folder lock. A process must not request it twice at a time through one file.
    pub(crate) fn lock(lock: &dyn OpenFile) -> io::Result<FolderLock<'_>> {
        lock.lock().map_err(without_locks)?;
        Ok(FolderLock(lock))
    }

    /// Returns the numbers of all segments in ascending order.
    pub(crate) fn numbers(&self) -> io::Result<Vec<u64>> {
        let names = self.files.list(&self.path)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|(name, _)| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens a segment. `None` if it has just been removed.
    pub(crate) fn segment(&self, number: u64, how: OpenMode) -> io::Result<Option<Box<dyn OpenFile>>> {
        match self.open(&name(number), how) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && how != OpenMode::Create => Ok(None),
            file => file.map(Some),
        }
    }

    /// Creates a segment with an unused number. The caller holds the folder lock.
    pub(crate) fn new_segment(&self, lock: &dyn OpenFile) -> io::Result<(u64, Box<dyn OpenFile>)> {
        let mut bytes = [0; NUMBER_BYTES];
        let known = if lock.read_at(&mut bytes, 0)? == bytes.len() { u64::from_le_bytes(bytes) } else { 0 };
        // The counter covers removed segments, and the listing covers a corrupt counter.
        let last = self.numbers()?.last().copied().unwrap_or(0);
        let number = last.max(if known < NUMBER_LIMIT { known } else { 0 }) + 1;
        // Written before the file exists: a process killed in between skips a number and reuses none.
        lock.write_at(&number.to_le_bytes(), 0)?;
        Ok((number, self.open(&name(number), OpenMode::Create)?))
    }

    /// Removes a segment. A missing segment is not an error.
    pub(crate) fn remove(&self, number: u64) -> io::Result<()> {
        match self.files.remove(&self.path.join(name(number))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Returns the size of all files other than segments.
    pub(crate) fn small_files_bytes(&self) -> io::Result<u64> {
        let length = |name| self.open(name, OpenMode::Read)?.length();
        Ok(length(MARKER_NAME)? + length(LOCK_NAME)?)
    }
}

/// Names the cause of errors that file systems without locks return: `ENOLCK`, `ENOSYS` and `EOPNOTSUPP` of Linux.
fn without_locks(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(37 | 38 | 95) => {
            io::Error::new(io::ErrorKind::Unsupported, format!("its file system has no file locks ({error})"))
        }
        _ => error,
    }
}

/// Returns the file name of a segment.
pub(crate) fn name(number: u64) -> String {
    format!("{number:012x}{SEGMENT_SUFFIX}")
}

fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
    let number = u64::from_str_radix(digits, 16).ok().filter(|number| *number < NUMBER_LIMIT)?;
    // Only the canonical spelling is accepted.
    (self::name(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_files::OsFileSystem;
    use std::fs;

    fn find(path: &Path) -> Result<Folder, String> {
        Folder::find(Arc::new(OsFileSystem), path, true).map_err(|error| error.to_string())
    }

    #[test]
    fn a_new_folder_is_marked_and_found_again() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        find(&path).unwrap().prepare().unwrap();
        assert_eq!(fs::read_to_string(path.join("FORMAT")).unwrap(), "pleach cache 2\n");
        assert!(find(&path).is_ok());
    }

    #[test]
    fn a_marker_that_was_being_written_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        for unfinished in ["", "pleach", "pleach cache 2"] {
            fs::write(folder.path().join("FORMAT"), unfinished).unwrap();
            find(folder.path()).unwrap().prepare().unwrap();
            assert_eq!(fs::read_to_string(folder.path().join("FORMAT")).unwrap(), "pleach cache 2\n");
        }
    }

    #[test]
    fn folder_of_format_1_is_read_and_marked_by_its_first_writer() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("FORMAT");
        fs::write(&marker, "pleach cache 1\n").unwrap();
        fs::write(folder.path().join(name(1)), "").unwrap();
        let read = Folder::find(Arc::new(OsFileSystem), folder.path(), false).unwrap();
        assert_eq!(read.numbers().unwrap(), [1]);
        assert_eq!(fs::read_to_string(&marker).unwrap(), "pleach cache 1\n");
        find(folder.path()).unwrap().prepare().unwrap();
        assert_eq!(fs::read_to_string(&marker).unwrap(), "pleach cache 2\n");
    }

    #[test]
    fn another_version_and_another_folder_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().display();
        fs::write(folder.path().join("FORMAT"), "pleach cache 3\nmore").unwrap();
        let expected = format!(
            "open the cache {shown}: FORMAT is \"pleach cache 3\"; \"pleach cache 2\" is allowed; name \
             another folder"
        );
        assert_eq!(find(folder.path()).unwrap_err(), expected);

        fs::remove_file(folder.path().join("FORMAT")).unwrap();
        fs::write(folder.path().join("thesis.txt"), "").unwrap();
        let expected = format!(
            "open the cache {shown}: the folder contains other files; an empty or new folder is \
                     allowed"
        );
        assert_eq!(find(folder.path()).unwrap_err(), expected);
        let missing =
            Folder::find(Arc::new(OsFileSystem), &folder.path().join("missing"), false).unwrap_err();
        assert!(matches!(missing, CacheError::Io { .. }));
    }

    #[test]
    fn segment_numbers_are_not_reused_after_removal() {
        let directory = tempfile::tempdir().unwrap();
        let folder = find(directory.path()).unwrap();
        let lock = folder.prepare().unwrap();
        let new = || folder.new_segment(&*lock).unwrap().0;
        assert_eq!([new(), new()], [1, 2]);
        folder.remove(2).unwrap();
        folder.remove(2).unwrap();
        assert_eq!(new(), 3);
        assert_eq!(folder.numbers().unwrap(), [1, 3]);
        // With a corrupt counter, the existing segments still determine the next free number.
        lock.write_at(&[0xff; 8], 0).unwrap();
        assert_eq!(new(), 4);
    }

    #[test]
    fn only_names_of_segments_are_numbers() {
        assert_eq!(number(&name(0x1234)), Some(0x1234));
        for other in ["FORMAT", "lock", "1.segment", "00000000000G.segment", "00000000000A.segment"] {
            assert_eq!(number(other), None);
        }
    }
}
