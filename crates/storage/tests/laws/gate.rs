//! File system that calls a hook before each operation. The hook may count or block.

use pleach_storage::files::{
    DiskSpace, FileLock, FileMeta, FileSystem, LockMode, NewFile, OpenFile, OpenMode,
};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Hook, called with the operation and its path.
type Ask = dyn Fn(&str, &Path) + Send + Sync;

#[derive(Clone)]
pub(crate) struct Gate {
    files: Arc<dyn FileSystem>,
    ask: Arc<Ask>,
    has_locks: bool,
}

impl Gate {
    pub(crate) fn new(
        files: impl FileSystem + 'static,
        ask: impl Fn(&str, &Path) + Send + Sync + 'static,
    ) -> Self {
        Self { files: Arc::new(files), ask: Arc::new(ask), has_locks: true }
    }

    /// Makes every lock unsupported, as on a file system mounted without locks.
    pub(crate) fn without_locks(self) -> Self {
        Self { has_locks: false, ..self }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

impl FileSystem for Gate {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>> {
        (self.ask)("list", folder);
        self.files.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMeta> {
        (self.ask)("look", path);
        self.files.metadata(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        (self.ask)("create folder", folder);
        self.files.create_folder(folder)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        (self.ask)("create", path);
        self.files.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        (self.ask)("open", path);
        self.files.open(path)
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        (self.ask)("open", path);
        let file = self.files.open_random_access(path, how)?;
        Ok(Box::new(GatedFile { file, gate: self.clone(), path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.ask)("rename", from);
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        (self.ask)("remove", path);
        self.files.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        (self.ask)("sync folder", folder);
        self.files.sync_folder(folder)
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        (self.ask)("lock", path);
        if !self.has_locks {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.files.lock(path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        (self.ask)("space", folder);
        self.files.space(folder)
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Box<dyn OpenFile>,
    gate: Gate,
    path: PathBuf,
}

impl OpenFile for GatedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.gate.ask)("read", &self.path);
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (self.gate.ask)("write", &self.path);
        self.file.write_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        (self.gate.ask)("look", &self.path);
        self.file.length()
    }

    fn reserve(&self, length_bytes: u64) -> io::Result<()> {
        (self.gate.ask)("reserve", &self.path);
        self.file.reserve(length_bytes)
    }

    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()> {
        (self.gate.ask)("reserve", &self.path);
        self.file.reserve_behind(length_bytes)
    }

    fn begin_sync(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        (self.gate.ask)("begin to sync", &self.path);
        self.file.begin_sync(offset, length_bytes)
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        (self.gate.ask)("cut", &self.path);
        self.file.set_length(length_bytes)
    }

    fn lock(&self) -> io::Result<()> {
        (self.gate.ask)("lock", &self.path);
        self.file.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        (self.gate.ask)("lock", &self.path);
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        (self.gate.ask)("unlock", &self.path);
        self.file.unlock()
    }

    fn sync(&self) -> io::Result<()> {
        (self.gate.ask)("sync", &self.path);
        self.file.sync()
    }
}
