//! Files and folders that appear under their names when they are complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// 1 MiB: buffer of a file, so that many small writes cost few system calls.
const BUFFER_BYTES: usize = 1 << 20;

/// Returns the path of an incomplete file or folder: `NAME.part`.
#[must_use]
pub(crate) fn part_of(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    target.with_file_name(name)
}

/// File under a temporary name, which [`PartFile::publish`] replaces. Dropped before, it leaves no file.
#[derive(Debug)]
pub(crate) struct PartFile {
    target: PathBuf,
    file: Option<BufWriter<File>>,
}

impl PartFile {
    /// Creates the file.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(part_of(target))?);
        Ok(Self { target: target.to_owned(), file: Some(file) })
    }

    /// Syncs the file and gives it its name.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            // Before the rename: the name must not refer to bytes that a loss of power can take.
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(part_of(&self.target), &self.target)?;
            sync_folder_of(&self.target)?;
        }
        Ok(())
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Seek for PartFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.as_mut().map_or(Ok(0), |file| file.seek(position))
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // After `publish` the temporary name no longer exists.
        let _ = fs::remove_file(part_of(&self.target));
    }
}

/// Folder under a temporary name. Dropped before [`PartFolder::publish`], it is removed.
#[derive(Debug)]
pub(crate) struct PartFolder {
    target: PathBuf,
}

impl PartFolder {
    /// Creates an empty folder. Removes one that an interrupted process left.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let part = part_of(target);
        remove_folder(&part)?;
        fs::create_dir_all(&part)?;
        Ok(Self { target: target.to_owned() })
    }

    /// Returns the temporary path.
    #[must_use]
    pub(crate) fn path(&self) -> PathBuf {
        part_of(&self.target)
    }

    /// Gives the folder its name. Replaces a folder of this name.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn publish(self) -> io::Result<()> {
        remove_folder(&self.target)?;
        fs::rename(self.path(), &self.target)?;
        sync_folder_of(&self.target)
    }
}

impl Drop for PartFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.path());
    }
}

fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
