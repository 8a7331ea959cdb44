//! File system with stale reads, like a machine that caches parts of files. An open file shows its content at open, and also
//! the writes through the same handle.

use pleach_storage::files::{
    DiskSpace, FileLock, FileMeta, FileSystem, LockMode, NewFile, OpenFile, OpenMode,
};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
pub(crate) struct Stale(pub(crate) Arc<dyn FileSystem>);

impl FileSystem for Stale {
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
        self.0.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        self.0.open(path)
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let file = self.0.open_random_access(path, how)?;
        let mut seen = vec![0; file.length()? as usize];
        file.read_at(&mut seen, 0)?;
        Ok(Box::new(StaleFile { file, seen: Mutex::new(seen) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.0.sync_folder(folder)
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        self.0.lock(path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        self.0.space(folder)
    }
}

#[derive(Debug)]
struct StaleFile {
    file: Box<dyn OpenFile>,
    seen: Mutex<Vec<u8>>,
}

impl OpenFile for StaleFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.seen.lock().unwrap().len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let seen = self.seen.lock().unwrap();
        let rest = seen.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)?;
        let (mut seen, offset) = (self.seen.lock().unwrap(), offset as usize);
        let length = seen.len().max(offset + bytes.len());
        seen.resize(length, 0);
        seen[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn reserve(&self, length_bytes: u64) -> io::Result<()> {
        self.set_length(length_bytes)
    }

    fn reserve_behind(&self, length_bytes: u64) -> io::Result<()> {
        self.file.reserve_behind(length_bytes)
    }

    fn begin_sync(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        self.file.begin_sync(offset, length_bytes)
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.file.set_length(length_bytes)?;
        self.seen.lock().unwrap().resize(length_bytes as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
}
