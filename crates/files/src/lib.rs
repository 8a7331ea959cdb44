//! File system interface of the cache and the tiers. Tests substitute a file system that fails or loses power
//! (`tests/support/memory.rs`).
//!
//! [`OsFileSystem`] uses the operating system, with files private to their owner. [`SharedDisk`] does the same for folders
//! of several users, and [`UnsyncedFileSystem`] never waits for an fsync. [`private`] and [`scratch`] are for files outside
//! of caches and tiers. The crate does not interpret file content.

mod looks;
pub mod private;
pub mod scratch;
mod shared;
mod unsynced;
mod writeback;

pub use looks::FileStamp;
pub use shared::SharedDisk;
pub use unsynced::UnsyncedFileSystem;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

/// Metadata of a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Length of a file in bytes. For a folder, the value is up to the file system.
    pub length_bytes: u64,
    /// Disk usage in bytes.
    pub disk_bytes: u64,
    /// Time of the last write.
    pub modified: SystemTime,
}

/// Space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Total bytes.
    pub total_bytes: u64,
    /// Bytes that this user can still write.
    pub free_bytes: u64,
    /// Allocation unit in bytes.
    pub block_bytes: u64,
}

/// Number of simultaneous holders of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Held by one holder.
    Exclusive,
    /// Shared with other holders in this mode.
    Shared,
}

/// A lock, released on drop and when the process ends.
pub trait FileLock: fmt::Debug + Send + Sync {}

/// A new file that is being written.
pub trait NewFile: Write {
    /// Waits until the written content is on disk, but not for the name of the file.
    ///
    /// # Errors
    /// Returns the system error.
    fn sync(&mut self) -> io::Result<()>;
}

/// Mode of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new file, for reading and writing. An existing file is an error.
    Create,
}

/// File with random access, usable from any number of threads. All errors are system errors.
#[expect(clippy::missing_errors_doc, reason = "the comment of the trait covers all methods")]
pub trait OpenFile: fmt::Debug + Send + Sync {
    /// Returns the length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset` on, up to the end of the file. Returns the number of bytes read.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. After an error, some of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Extends a new file to this length with zeros on preallocated disk space. Later writes there neither allocate nor
    /// extend the file. Does nothing if the file system does not support it.
    fn reserve(&self, length_bytes: u64) -> io::Result<()>;

    /// Preallocates disk space up to this length without changing the file length. Truncating the file releases the space.
    /// Does nothing if the file system does not support it.
    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()>;

    /// Starts writeback of written bytes without waiting. It guarantees no durability, but leaves less to write for
    /// [`sync`](Self::sync).
    fn begin_sync(&self, offset: u64, length_bytes: u64) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros.
    fn set_length(&self, length_bytes: u64) -> io::Result<()>;

    /// Waits until the written content and the length are on disk, but not for the name of the file.
    fn sync(&self) -> io::Result<()>;

    /// Waits for the lock on this file. [`unlock`](Self::unlock), closing the file and the end of the process release it.
    /// Only one open file holds it at a time, within a process and across processes.
    fn lock(&self) -> io::Result<()>;

    /// Takes the lock if it is free. Returns whether it did.
    fn try_lock(&self) -> io::Result<bool>;

    /// Releases the lock.
    fn unlock(&self) -> io::Result<()>;
}

/// File system interface. All errors are system errors.
#[expect(clippy::missing_errors_doc, reason = "the comment of the trait covers all methods")]
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// Lists the names in a folder with their metadata, in any order. Entries removed meanwhile are omitted.
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>>;

    /// Returns the metadata of a file or a folder.
    fn metadata(&self, path: &Path) -> io::Result<FileMeta>;

    /// Creates one folder. An existing folder is an error.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Creates a folder and its parents. An existing folder is not an error.
    fn create_folders(&self, folder: &Path) -> io::Result<()> {
        match self.create_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if self.metadata(folder)?.is_folder { Ok(()) } else { Err(error) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(around) = folder.parent().filter(|around| !around.as_os_str().is_empty()) else {
                    return Err(error);
                };
                self.create_folders(around)?;
                // Not `create_folder`: another process may create the folder first, which is no error.
                self.create_folders(folder)
            }
            made => made,
        }
    }

    /// Creates a file. An existing file is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>>;

    /// Opens a file for reading. Returns it with its length. It stays readable to its end even if its name is removed or
    /// replaced.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)>;

    /// Opens a file for random access.
    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>>;

    /// Renames a file atomically, replacing any file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Processes that have it open can continue to read it.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Waits until the names in a folder are on disk: created, renamed and removed files.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Locks the file, creating it if missing. Returns `None` if another holder has the lock.
    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>>;

    /// Returns the space of the file system that contains a folder.
    fn space(&self, folder: &Path) -> io::Result<DiskSpace>;
}

/// The operating system's files. Created files are private: mode 0600, folders 0700.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFileSystem;

/// Unit of `st_blocks` (stat(2)): 512 bytes, independent of the block size.
const COUNTED_BYTES: u64 = 512;

impl From<Metadata> for FileMeta {
    fn from(metadata: Metadata) -> Self {
        let (is_folder, length_bytes) = (metadata.is_dir(), metadata.len());
        // File systems with compression or delayed allocation may report too little.
        let least_bytes = if is_folder { 0 } else { length_bytes };
        let disk_bytes = (metadata.blocks() * COUNTED_BYTES).max(least_bytes);
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Self { is_folder, length_bytes, disk_bytes, modified }
    }
}

impl FileSystem for OsFileSystem {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) => all.push((entry.file_name().to_string_lossy().into_owned(), metadata.into())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMeta> {
        fs::metadata(path).map(FileMeta::from)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        private::create_folder(folder)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(private::options().read(true).write(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let file = File::open(path)?;
        let length_bytes = file.metadata()?.len();
        Ok((Box::new(file), length_bytes))
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let mut options = private::options();
        options.read(true).write(how != OpenMode::Read).create_new(how == OpenMode::Create);
        Ok(Box::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        lock(private::options(), path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        let found = statvfs(folder)?;
        let block_bytes = found.f_frsize.max(1);
        // `f_bavail` and not `f_bfree`: the latter includes blocks reserved for root.
        let bytes = |blocks: u64| blocks.saturating_mul(block_bytes);
        Ok(DiskSpace { total_bytes: bytes(found.f_blocks), free_bytes: bytes(found.f_bavail), block_bytes })
    }
}

/// Locks the file, creating it with these options if missing. Returns `None` if another holder has the lock.
fn lock(mut options: OpenOptions, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
    let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    let locked = match sharing {
        LockMode::Exclusive => File::try_lock(&file),
        LockMode::Shared => File::try_lock_shared(&file),
    };
    match locked {
        Ok(()) => Ok(Some(Box::new(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl NewFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

fn take_room(file: &File, flags: FallocateFlags, length_bytes: u64) -> io::Result<()> {
    match fallocate(file, flags, 0, length_bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

impl OpenFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match FileExt::read_at(self, &mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn reserve(&self, length_bytes: u64) -> io::Result<()> {
        take_room(self, FallocateFlags::empty(), length_bytes)
    }

    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()> {
        take_room(self, FallocateFlags::KEEP_SIZE, length_bytes)
    }

    fn begin_sync(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        writeback::begin(self, offset, length_bytes)
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.set_len(length_bytes)
    }

    fn sync(&self) -> io::Result<()> {
        // The modification time is not worth a second disk write.
        self.sync_data()
    }

    fn lock(&self) -> io::Result<()> {
        Self::lock(self)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match Self::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Self::unlock(self)
    }
}

impl FileLock for File {}

#[cfg(test)]
mod tests;
