//! Draft of a results folder, published when it is complete.
//!
//! The draft of `out` is the hidden folder `.out.pleach-results` beside it, on the same file system. If that is
//! impossible, as beside a mount point, the draft is `.pleach-results` inside `out`. It holds the files and a lock
//! file. The process holds the lock while files arrive. The next process removes the draft of a killed one.
//!
//! Publishing renames the draft onto a missing or empty folder. Into any other folder it renames file by file,
//! `plan.json` first. After an interruption `plan.json` then identifies the folder as this study's, and the next
//! process begins again.

use super::{OutError, OutProblem};
use pleach_results::folder::{self, Owner, PLAN, RESULTS};
use pleach_storage::files::private;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Suffix of the draft's name beside `out`, and its full name inside `out`.
const DRAFT: &str = ".pleach-results";

/// Attempts to lock a draft that another process removes at the same time.
const ATTEMPTS: usize = 16;

/// Draft of a results folder. Removed on drop.
#[derive(Debug)]
pub(super) struct Draft {
    out: PathBuf,
    /// Digest of the study.
    digest: String,
    path: PathBuf,
    /// Holds the lock while it is open.
    _lock: File,
}

impl Draft {
    /// Creates the draft of a folder that may receive this study's results. Removes files that another process left in
    /// the draft.
    ///
    /// # Errors
    /// [`OutError`] if the folder holds another study's results, is not writable or belongs to another running process.
    pub(super) fn open(out: &Path, digest: &str) -> Result<Self, OutError> {
        let fail = |problem| OutError { out: out.to_owned(), problem };
        let unwritable = |cause: io::Error| fail(OutProblem::Unwritable(cause));
        if let Owner::Study(owner) = folder::owner(out)
            && owner != digest
        {
            return Err(fail(OutProblem::OtherStudy { name: PLAN.to_owned() }));
        }
        let exists = match fs::metadata(out) {
            Ok(found) if found.is_dir() => true,
            Ok(_) => return Err(unwritable(ErrorKind::NotADirectory.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(unwritable(error)),
        };
        if exists {
            folder::probe(out).map_err(unwritable)?;
        }
        let beside = beside(out, exists).map_err(unwritable)?;
        let locked = match beside.map(|path| lock(&path).map(|lock| (path, lock))) {
            // The parent folder is read-only, but `out` itself may be writable.
            Some(Err(error)) if exists && is_refusal(&error) => within(out),
            Some(locked) => locked,
            None => within(out),
        };
        let (path, lock) = locked.map_err(unwritable)?;
        let lock = lock.ok_or_else(|| fail(OutProblem::Busy))?;
        let draft = Self { out: out.to_owned(), digest: digest.to_owned(), path, _lock: lock };
        let files = draft.files();
        match fs::remove_dir_all(&files) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        fs::create_dir(&files).map_err(unwritable)?;
        Ok(draft)
    }

    /// Returns the folder for the files.
    pub(super) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// Returns the error of a file that could not be written.
    pub(super) fn failed(&self, name: &str, cause: io::Error) -> OutError {
        self.error(OutProblem::File { name: name.to_owned(), cause })
    }

    fn error(&self, problem: OutProblem) -> OutError {
        OutError { out: self.out.clone(), problem }
    }

    /// Publishes these files, which are all in the draft, into the folder.
    ///
    /// # Errors
    /// [`OutError`] if the folder now holds other content or is not writable. Files published before the error belong
    /// to this study. A repeated download publishes the rest.
    pub(super) fn publish(self, names: &[String]) -> Result<(), OutError> {
        let fail = |cause: io::Error| self.error(OutProblem::Publish(cause));
        let of_another = |name: &str| self.error(OutProblem::OtherStudy { name: name.to_owned() });
        let files = self.files();
        let folders = folders(names);
        for folder in &folders {
            // The entries of the draft are durable before a rename publishes them.
            sync(&files.join(folder)).map_err(fail)?;
        }
        match folder::owner(&self.out) {
            Owner::None => {
                if self.become_all(&files).map_err(fail)? {
                    return Ok(());
                }
            }
            Owner::Study(owner) if owner == self.digest => {}
            Owner::Study(_) => return Err(of_another(PLAN)),
            Owner::Damaged(why) => {
                if let Some(name) = self.differs(&files, names)? {
                    return Err(self.error(OutProblem::Corrupt { why, name }));
                }
            }
            Owner::Unknown(name) => {
                if self.differs(&files, names)?.is_some() {
                    return Err(of_another(name));
                }
            }
        }
        for folder in &folders {
            fs::create_dir_all(self.out.join(folder)).map_err(fail)?;
        }
        // Publish `plan.json` first and sync it: it identifies the other files after an interruption.
        let plan_first =
            names.iter().filter(|name| *name == PLAN).chain(names.iter().filter(|name| *name != PLAN));
        for name in plan_first {
            fs::rename(files.join(name), self.out.join(name)).map_err(|cause| self.failed(name, cause))?;
            if name == PLAN {
                sync(&self.out).map_err(fail)?;
            }
        }
        self.clear(names, &folders).map_err(fail)?;
        folders.iter().try_for_each(|folder| sync(&self.out.join(folder))).map_err(fail)
    }

    /// Renames the draft onto the folder if that is missing or empty. Returns `false` if the folder has content or
    /// contains the working directory.
    fn become_all(&self, files: &Path) -> io::Result<bool> {
        let target = match self.out.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => self.out.clone(),
            Err(error) => return Err(error),
            Ok(target) => {
                let works_there = std::env::current_dir().is_ok_and(|place| place.starts_with(&target));
                if works_there || fs::read_dir(&target)?.next().is_some() {
                    return Ok(false);
                }
                // The rename replaces the user's empty folder, whose permissions the new one takes over.
                fs::set_permissions(files, fs::metadata(&target)?.permissions())?;
                target
            }
        };
        match fs::rename(files, &target) {
            Ok(()) => sync(parent(&target)).map(|()| true),
            // Another process has mounted the folder or written into it, so files are renamed one by one.
            Err(error) if target.is_dir() && !is_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the name of a result file, or of a file to be replaced, whose content is not a prefix of the draft's
    /// file. `None` if the folder has no such file: it then holds parts of an interrupted download, and replacing them
    /// loses nothing.
    fn differs(&self, files: &Path, names: &[String]) -> Result<Option<String>, OutError> {
        let replaced = names.iter().filter(|name| self.out.join(name).symlink_metadata().is_ok());
        for name in folder::results_in(&self.out).iter().chain(replaced) {
            let begins = begins_with(&files.join(name), &self.out.join(name));
            if !begins.map_err(|cause| self.failed(name, cause))? {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }

    /// Removes result files that this download does not contain, and `.part` files of older versions.
    fn clear(&self, names: &[String], folders: &BTreeSet<PathBuf>) -> io::Result<()> {
        let has = |path: &Path| names.iter().any(|name| Path::new(name) == path);
        let stale = folders.iter().flat_map(|folder| RESULTS.map(|name| folder.join(name)));
        let parts = names.iter().map(|name| PathBuf::from(format!("{name}.part")));
        for path in stale.chain(parts).filter(|path| !has(path)) {
            match fs::remove_file(self.out.join(&path)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The next download into the same folder removes the rest. The lock file is removed last.
        let _ = fs::remove_dir_all(self.files());
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Returns the folders of the files, relative to the common folder, which is included.
fn folders(names: &[String]) -> BTreeSet<PathBuf> {
    let around = names.iter().flat_map(|name| Path::new(name).ancestors().skip(1));
    around.map(Path::to_owned).chain([PathBuf::new()]).collect()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the path of the draft beside a folder. `None` if that is on another file system or the folder has no name.
fn beside(out: &Path, exists: bool) -> io::Result<Option<PathBuf>> {
    let out = if exists { out.canonicalize()? } else { out.to_owned() };
    let Some(name) = out.file_name() else { return Ok(None) };
    let around = parent(&out);
    if exists && fs::metadata(around)?.dev() != fs::metadata(&out)?.dev() {
        return Ok(None);
    }
    fs::create_dir_all(around)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(DRAFT);
    Ok(Some(around.join(hidden)))
}

fn within(out: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let path = out.join(DRAFT);
    lock(&path).map(|lock| (path, lock))
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Creates the folder of a draft if it is missing, and locks it. Returns `None` if another process holds the lock.
fn lock(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        match private::create_folder(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() && found.uid() == private::user() => {}
            Ok(_) => {
                let text = format!("{} does not belong to this user; remove it", path.display());
                return Err(io::Error::new(ErrorKind::AlreadyExists, text));
            }
            // The process that owned the draft has just removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        let opened = private::options().write(true).create(true).truncate(false).open(path.join("lock"));
        let lock = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // On a file system without locks, concurrent downloads cannot be detected.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The owner may have removed the lock file between open and lock. Such a lock excludes no process.
        if lock.metadata()?.nlink() > 0 {
            return Ok(Some(lock));
        }
    }
    Ok(None)
}

fn sync(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Returns whether `file` begins with the whole content of `other`. A missing `file` returns `false`.
fn begins_with(file: &Path, other: &Path) -> io::Result<bool> {
    let mut file = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut other = File::open(other)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    loop {
        theirs.clear();
        ours.clear();
        let length = (&mut other).take(1 << 20).read_to_end(&mut theirs)? as u64;
        (&mut file).take(length).read_to_end(&mut ours)?;
        if ours != theirs {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}
