//! File system that fails in the middle of a write, when its disk is full, because it is read-only, or that has no locks.

use pleach_files::{
    DiskSpace, FileLock, FileMeta, FileSystem, LockMode, NewFile, OpenFile, OpenMode, OsFileSystem,
};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Failure once the allowed number of bytes has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Every further write fails. The write that exceeds the limit is partial.
    Full,
    /// The process is killed: every further operation fails.
    Killed,
}

/// One completed write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

#[derive(Debug, Default)]
struct State {
    room: Option<(u64, Then)>,
    killed: bool,
    read_only: bool,
    lockless: bool,
    writes: Vec<Write>,
}

/// The file system of the operating system, until it fails.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faulty(Arc<Mutex<State>>);

impl Faulty {
    /// Fails after `bytes` bytes have been written.
    pub(crate) fn after(bytes: u64, then: Then) -> Self {
        let files = Self::default();
        files.state().room = Some((bytes, then));
        files
    }

    /// Creates a read-only file system.
    pub(crate) fn read_only() -> Self {
        let files = Self::default();
        files.state().read_only = true;
        files
    }

    /// Creates a file system without file locks, as some network file systems are.
    pub(crate) fn without_locks() -> Self {
        let files = Self::default();
        files.state().lockless = true;
        files
    }

    /// Returns all writes so far.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.state().writes.clone()
    }

    /// Returns the bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.state().writes.iter().map(|write| write.length).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn alive(&self) -> io::Result<()> {
        if self.state().killed { Err(io::Error::other("the process has been killed")) } else { Ok(()) }
    }

    fn locks(&self) -> io::Result<()> {
        self.alive()?;
        // ENOLCK of Linux.
        if self.state().lockless { Err(io::Error::from_raw_os_error(37)) } else { Ok(()) }
    }

    fn changes(&self) -> io::Result<()> {
        self.alive()?;
        if self.state().read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }
}

impl FileSystem for Faulty {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>> {
        self.alive()?;
        OsFileSystem.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMeta> {
        self.alive()?;
        OsFileSystem.metadata(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.changes()?;
        OsFileSystem.create_folder(folder)
    }

    /// Unsupported, since the cache writes only to files that it has opened.
    fn create(&self, _: &Path) -> io::Result<Box<dyn NewFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        self.alive()?;
        OsFileSystem.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.changes()?;
        OsFileSystem.rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.alive()?;
        OsFileSystem.sync_folder(folder)
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        self.changes()?;
        OsFileSystem.lock(path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        self.alive()?;
        OsFileSystem.space(folder)
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        if how == OpenMode::Read {
            self.alive()?
        } else {
            self.changes()?
        }
        Ok(Box::new(FaultyFile {
            file: OsFileSystem.open_random_access(path, how)?,
            path: path.to_owned(),
            files: self.clone(),
        }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.changes()?;
        OsFileSystem.remove(path)
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn OpenFile>,
    path: PathBuf,
    files: Faulty,
}

impl OpenFile for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        self.files.alive()?;
        self.file.length()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.alive()?;
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.files.changes()?;
        let mut state = self.files.state();
        let mut length = bytes.len() as u64;
        let mut outcome = Ok(());
        if let Some((room, then)) = &mut state.room {
            if length > *room {
                length = *room;
                outcome = Err(io::ErrorKind::StorageFull.into());
            }
            *room -= length;
            let killed = outcome.is_err() && *then == Then::Killed;
            state.killed |= killed;
        }
        state.writes.push(Write { path: self.path.clone(), offset, length });
        self.file.write_at(&bytes[..length as usize], offset)?;
        outcome
    }

    fn reserve(&self, length_bytes: u64) -> io::Result<()> {
        self.files.changes()?;
        self.file.reserve(length_bytes)
    }

    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()> {
        self.files.changes()?;
        self.file.reserve_behind(length_bytes)
    }

    fn begin_sync(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        self.files.changes()?;
        self.file.begin_sync(offset, length_bytes)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.files.changes()?;
        self.file.set_length(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.files.changes()?;
        self.file.sync()
    }

    fn lock(&self) -> io::Result<()> {
        self.files.locks()?;
        self.file.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.files.locks()?;
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.files.alive()?;
        self.file.unlock()
    }
}
