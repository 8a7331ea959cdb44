//! What the cache and tiers ask of a file system, so that tests can put another one in its place that fails or loses power
//! (`tests/support/memory.rs`).
//!
//! [`OsFileSystem`] is the real one, whose files are their owner's alone, [`SharedDisk`] the same for folders of several users, and
//! [`UnsyncedFileSystem`] one that waits for no medium. [`private`] and [`scratch`] are for files that no cache and no tier holds. Nothing
//! here knows what files hold.

mod looks;
pub mod private;
pub mod scratch;
mod shared;
mod unsynced;
mod writeback;

pub use looks::Looks;
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

/// What is known of a file or a folder without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Whether it is a folder.
    pub is_folder: bool,
    /// The bytes in it; of a folder, whatever the file system says.
    pub length_bytes: u64,
    /// What it takes of the disk.
    pub taken_bytes: u64,
    /// When it was last written to.
    pub modified: SystemTime,
}

/// The room of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes of it altogether.
    pub total_bytes: u64,
    /// Bytes that this user can still write.
    pub free_bytes: u64,
    /// Bytes are taken in multiples of these.
    pub block_bytes: u64,
}

/// Who else may have a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Nobody.
    Exclusive,
    /// Others that share it.
    Shared,
}

/// A lock, given back when it is dropped and when the process ends.
pub trait FileLock: fmt::Debug + Send + Sync {}

/// A new file that is being written.
pub trait NewFile: Write {
    /// Waits until what was written is on the medium; the file's name may not be.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new file, for reading and writing; it is an error if there is one.
    Create,
}

/// A file that is read and written anywhere, by any number of threads. All errors are what the system says.
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
pub trait OpenFile: fmt::Debug + Send + Sync {
    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset` on, as far as the file goes, and says how far that was.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`; after an error, some of them may have been.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes a new file so long, by zeros, on room of the medium that is taken now: what is written there later neither
    /// looks for room nor makes the file longer. Where the file system cannot do that, nothing is done.
    fn reserve(&self, length_bytes: u64) -> io::Result<()>;

    /// Takes room of the medium for the file to become so long, and leaves its length as it is. Cutting the file gives that
    /// room back. Where the file system cannot do that, nothing is done.
    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()>;

    /// Has bytes that were written go to the medium from now on, and waits for nothing. It promises nothing either: that is
    /// what [`sync`](Self::sync) is for, which finds less to do then.
    fn begin_sync(&self, offset: u64, length_bytes: u64) -> io::Result<()>;

    /// Cuts the file, or makes it longer by zeros.
    fn set_length(&self, length_bytes: u64) -> io::Result<()>;

    /// Waits until what was written, and the length, is on the medium; the file's name may not be.
    fn sync(&self) -> io::Result<()>;

    /// Waits for the lock on this file, which [`unlock`](Self::unlock), closing the file and the end of the process give
    /// back. Only one open file has it at a time, be they of one process or of several.
    fn lock(&self) -> io::Result<()>;

    /// Takes the lock if nobody has it, and says whether it did.
    fn try_lock(&self) -> io::Result<bool>;

    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;
}

/// A file system. All errors are what the system says.
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// The names of what lies in a folder and what is known of each, in any order. What goes meanwhile is left out.
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>>;

    /// What is known of a file or a folder.
    fn look(&self, path: &Path) -> io::Result<FileMeta>;

    /// Makes one folder; that there is one already is an error.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Makes a folder, and those it lies in; that there is one already is none.
    fn create_folders(&self, folder: &Path) -> io::Result<()> {
        match self.create_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if self.look(folder)?.is_folder {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(around) = folder.parent().filter(|around| !around.as_os_str().is_empty()) else {
                    return Err(error);
                };
                self.create_folders(around)?;
                self.create_folders(folder)
            }
            made => made,
        }
    }

    /// Makes a file; that there is one already is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>>;

    /// Opens a file for reading, and says how long it is. It can be read to its end, whatever becomes of its name.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)>;

    /// Opens a file, to read and write anywhere in it.
    fn open_anywhere(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>>;

    /// Gives a file another name, at once; what had that name is gone.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; whoever has it open goes on reading it.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Waits until the names in a folder are on the medium: those of files made, renamed and removed.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Takes the lock of a file, which is made where there is none; none where others have it.
    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>>;

    /// The room that there is for a folder.
    fn space(&self, folder: &Path) -> io::Result<DiskSpace>;
}

/// The operating system's files. Those created are private: mode 0600, folders 0700.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFileSystem;

/// The unit in which the system counts what a file takes, whatever its blocks are.
const COUNTED_BYTES: u64 = 512;

impl From<Metadata> for FileMeta {
    fn from(metadata: Metadata) -> Self {
        let (is_folder, length_bytes) = (metadata.is_dir(), metadata.len());
        // File systems that compress, or decide late where a file goes, may count too little.
        let least_bytes = if is_folder { 0 } else { length_bytes };
        let taken_bytes = (metadata.blocks() * COUNTED_BYTES).max(least_bytes);
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Self { is_folder, length_bytes, taken_bytes, modified }
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

    fn look(&self, path: &Path) -> io::Result<FileMeta> {
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

    fn open_anywhere(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
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
        let bytes = |blocks: u64| blocks.saturating_mul(block_bytes);
        Ok(DiskSpace { total_bytes: bytes(found.f_blocks), free_bytes: bytes(found.f_bavail), block_bytes })
    }
}

/// Takes the lock of a file, which these options create if it is missing.
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
        // When it was written to is not worth a second wait.
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
