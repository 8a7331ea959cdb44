//! The operating system's files in folders shared by several users: the umask determines the modes of created files.
//!
//! All other operations are those of [`OsFileSystem`].

use super::{
    DiskSpace, FileLock, FileMeta, FileSystem, LockMode, NewFile, OpenFile, OpenMode, OsFileSystem, lock,
};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The operating system's files, with modes determined by the umask.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedDisk;

impl FileSystem for SharedDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, FileMeta)>> {
        OsFileSystem.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMeta> {
        OsFileSystem.metadata(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        OsFileSystem.open(path)
    }

    fn open_random_access(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(how != OpenMode::Read).create_new(how == OpenMode::Create);
        Ok(Box::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFileSystem.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        OsFileSystem.sync_folder(folder)
    }

    fn lock(&self, path: &Path, sharing: LockMode) -> io::Result<Option<Box<dyn FileLock>>> {
        lock(OpenOptions::new(), path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        OsFileSystem.space(folder)
    }
}
