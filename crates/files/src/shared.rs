//! The operating system's files, in folders that several users may share: what is created has the modes that the umask leaves.
//!
//! Everything else is as [`Disk`] does it.

use super::{Disk, Files, Found, Held, NewFile, OpenFile, Opening, Sharing, Space, lock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The operating system's files, with modes by the umask.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedDisk;

impl Files for SharedDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<(String, Found)>> {
        Disk.list(folder)
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        Disk.look(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        Disk.open(path)
    }

    fn open_anywhere(&self, path: &Path, how: Opening) -> io::Result<Box<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(how != Opening::Read).create_new(how == Opening::Create);
        Ok(Box::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        Disk.sync_folder(folder)
    }

    fn lock(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        lock(OpenOptions::new(), path, sharing)
    }

    fn space(&self, folder: &Path) -> io::Result<Space> {
        Disk.space(folder)
    }
}
