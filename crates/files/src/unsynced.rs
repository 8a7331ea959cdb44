//! File system without fsync: written content is visible to every process, but may be lost in a power loss.
//!
//! All other operations are those of the wrapped file system.

use super::{DiskSpace, FileLock, FileMeta, FileSystem, LockMode, NewFile, OpenFile, OpenMode};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Files of another file system, without its fsyncs.
#[derive(Clone, Debug)]
pub struct UnsyncedFileSystem(pub Arc<dyn FileSystem>);

impl FileSystem for UnsyncedFileSystem {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>> {
        self.0.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMeta> {
        self.0.metadata(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.0.create_folder(folder)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(UnsyncedNew(self.0.create(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        self.0.open(path)
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(UnsyncedFile(self.0.open_random_access(path, how)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        self.0.lock(path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        self.0.space(folder)
    }
}

struct UnsyncedNew(Box<dyn NewFile>);

impl Write for UnsyncedNew {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl NewFile for UnsyncedNew {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct UnsyncedFile(Box<dyn OpenFile>);

impl OpenFile for UnsyncedFile {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn reserve(&self, length_bytes: u64) -> io::Result<()> {
        self.0.reserve(length_bytes)
    }

    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()> {
        self.0.reserve_behind(length_bytes)
    }

    fn begin_sync(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.0.set_length(length_bytes)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}
