//! The draft of a folder of results.
//!
//! The draft of `out` is the hidden folder `.out.pleach-results` beside it, on the same file system; where there can be none, as
//! beside a mounted disk, `.pleach-results` in it. It holds the files, and a lock that is held while they arrive: what a killed
//! process leaves is removed by the next one.
//!
//! A folder that is missing or empty becomes the draft's files by one rename. Into others files are renamed one by one,
//! `plan.json` first: if that is interrupted, the folder is known to be this study's, and the next process begins again.

use crate::exit::{CommandError, CommandResult};
use crate::output::folder::{self, Owner, PLAN, RESULTS};
use pleach_storage::files::private;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The end of a draft's name, and its name within a folder.
const DRAFT: &str = ".pleach-results";

/// How often a draft is looked for that its process removes at the same time.
const ATTEMPTS: usize = 16;

/// See the module. It is removed on drop.
#[derive(Debug)]
pub(super) struct Draft {
    out: PathBuf,
    /// Of the study.
    digest: String,
    path: PathBuf,
    /// Held as long as it is open.
    _lock: File,
}

impl Draft {
    /// Begins the draft of a folder that may become, or is, one of this study's results. What another process has left of
    /// one is removed.
    ///
    /// # Errors
    /// [`CommandError::Input`] when the folder holds another study's results, cannot be written to, or is another process's;
    /// [`CommandError::NoSpace`] when its disk is full.
    pub(super) fn open(out: &Path, digest: &str) -> CommandResult<Self> {
        let fail = |text: &str| CommandError::Input(format!("--out {}: {text}", out.display()));
        let unwritable = |error: io::Error| {
            CommandError::writing(format!("--out {}: cannot be written to", out.display()), &error)
        };
        if let Owner::Study(owner) = folder::owner(out)
            && owner != digest
        {
            return Err(folder::of_another(out, PLAN));
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
            // Nothing may be made beside it, but it may be written to.
            Some(Err(error)) if exists && is_refusal(&error) => within(out),
            Some(locked) => locked,
            None => within(out),
        };
        let (path, lock) = locked.map_err(unwritable)?;
        let lock =
            lock.ok_or_else(|| fail("another pleach brings results there; one at a time is allowed"))?;
        let draft = Self { out: out.to_owned(), digest: digest.to_owned(), path, _lock: lock };
        let files = draft.files();
        match fs::remove_dir_all(&files) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        fs::create_dir(&files).map_err(unwritable)?;
        Ok(draft)
    }

    /// Where the files go.
    pub(super) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// A file that could not be written.
    pub(super) fn failed(&self, name: &str, error: &io::Error) -> CommandError {
        CommandError::writing(format!("--out {}: failed to write {name}", self.out.display()), error)
    }

    /// Makes the folder hold these files, all of which are in the draft.
    ///
    /// # Errors
    /// [`CommandError::Input`] when it holds something else by now, or cannot be written to, [`CommandError::NoSpace`] when its disk is full.
    /// What has been published by then is of this study, and a repetition publishes the rest.
    pub(super) fn publish(self, names: &[String]) -> CommandResult {
        let fail = |error: io::Error| {
            CommandError::writing(format!("--out {}: failed to publish results", self.out.display()), &error)
        };
        let files = self.files();
        let folders = folders(names);
        for folder in &folders {
            sync(&files.join(folder)).map_err(fail)?;
        }
        match folder::owner(&self.out) {
            Owner::None => {
                if self.become_all(&files).map_err(fail)? {
                    return Ok(());
                }
            }
            Owner::Study(owner) if owner == self.digest => {}
            Owner::Study(_) => return Err(folder::of_another(&self.out, PLAN)),
            Owner::Damaged(why) => {
                if let Some(name) = self.differs(&files, names)? {
                    return Err(folder::damaged(
                        &self.out,
                        &format!("{why}, and {name} is not of this study"),
                    ));
                }
            }
            Owner::Unknown(name) => {
                if self.differs(&files, names)?.is_some() {
                    return Err(folder::of_another(&self.out, name));
                }
            }
        }
        for folder in &folders {
            fs::create_dir_all(self.out.join(folder)).map_err(fail)?;
        }
        let plan_first =
            names.iter().filter(|name| *name == PLAN).chain(names.iter().filter(|name| *name != PLAN));
        for name in plan_first {
            fs::rename(files.join(name), self.out.join(name)).map_err(|error| self.failed(name, &error))?;
            if name == PLAN {
                sync(&self.out).map_err(fail)?;
            }
        }
        self.clear(names, &folders).map_err(fail)?;
        folders.iter().try_for_each(|folder| sync(&self.out.join(folder))).map_err(fail)
    }

    /// Lets the files become the folder, if that is missing or empty and not where this process works; whether it did.
    fn become_all(&self, files: &Path) -> io::Result<bool> {
        let target = match self.out.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => self.out.clone(),
            Err(error) => return Err(error),
            Ok(target) => {
                let works_there = std::env::current_dir().is_ok_and(|place| place.starts_with(&target));
                if works_there || fs::read_dir(&target)?.next().is_some() {
                    return Ok(false);
                }
                fs::set_permissions(files, fs::metadata(&target)?.permissions())?;
                target
            }
        };
        match fs::rename(files, &target) {
            Ok(()) => sync(parent(&target)).map(|()| true),
            // Somebody mounted it, or has just put something there: files go one by one.
            Err(error) if target.is_dir() && !is_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A result file in the folder, or another one that would be replaced, whose content is not what the draft's begins
    /// with. Without one, nothing is lost by replacing them all: they are what an interrupted download left.
    fn differs(&self, files: &Path, names: &[String]) -> CommandResult<Option<String>> {
        let replaced = names.iter().filter(|name| self.out.join(name).symlink_metadata().is_ok());
        for name in folder::results_in(&self.out).iter().chain(replaced) {
            let begins = begins_with(&files.join(name), &self.out.join(name));
            if !begins.map_err(|error| self.failed(name, &error))? {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }

    /// Removes result files of earlier downloads that this one has not, and parts of files that older versions left.
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
        // What cannot be removed now is removed by the next download into the same folder. The lock goes last.
        let _ = fs::remove_dir_all(self.files());
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The folders that files lie in, their common one among them.
fn folders(names: &[String]) -> BTreeSet<PathBuf> {
    let around = names.iter().flat_map(|name| Path::new(name).ancestors().skip(1));
    around.map(Path::to_owned).chain([PathBuf::new()]).collect()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where the draft of a folder is beside it; none where that would be another file system, or it has no name.
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

/// Makes the folder of a draft, unless it is there, and takes its lock; `None` where another process has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        match private::create_folder(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() && found.uid() == private::user() => {}
            Ok(_) => {
                let text = format!("{} is no draft of this user's; remove it", path.display());
                return Err(io::Error::new(ErrorKind::AlreadyExists, text));
            }
            // Its process has just ended.
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
            // Without locks, nothing tells that another process is at it.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
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

/// Whether a file begins with all that another one holds. One that is missing begins with nothing.
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
