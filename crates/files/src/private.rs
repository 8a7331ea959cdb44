//! Files and folders for their owner alone: created with modes 0600 and 0700, regardless of the umask.
//!
//! Existing folders keep their modes, unless the caller claims them.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of a private folder.
pub const FOLDER_MODE: u32 = 0o700;

/// Mode of a private file.
pub const FILE_MODE: u32 = 0o600;

/// The bits of a mode that concern other users.
const OTHERS: u32 = 0o077;

/// The bits of a mode that admit users outside of the owner's group.
const EVERYONE: u32 = 0o007;

/// Owner of volumes that a cluster mounts for its pods.
const ROOT: u32 = 0;

/// Creates a private folder and its missing parents, private as well. An existing folder keeps its mode.
///
/// # Errors
/// Returns the system error.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Creates one private folder.
///
/// # Errors
/// Returns the system error. An existing folder is an error.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(folder)
}

/// Returns options with the mode of private files for created ones.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Restricts the umask, so that everything this process creates from here on is private. For processes that share no files.
pub fn restrict_process() {
    // SAFETY: the call takes a number and cannot fail.
    unsafe { libc::umask(OTHERS) };
}

/// Returns the effective user of this process.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// State of a folder before it was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The folder was missing or private.
    Private,
    /// Other users could enter the folder. Its mode and the modes of its entries were restricted.
    Restricted {
        /// The mode before.
        mode: u32,
        /// Restricted files and folders below.
        entries: u64,
    },
    /// The folder belongs to root and its mode admits every user. Only root can change that.
    OpenVolume {
        /// The mode.
        mode: u32,
    },
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Private => write!(f, "private"),
            Self::Restricted { mode, entries } => write!(
                f,
                "was open to other users (mode {mode:04o}); restricted to its owner, with {entries} entries below"
            ),
            Self::OpenVolume { mode } => {
                write!(f, "belongs to root and is open to other users (mode {mode:04o}); name a folder in it")
            }
        }
    }
}

/// Claims a folder for this user alone: creates it, or restricts it with all of its content if other users can enter it.
///
/// # Errors
/// Returns the system error, or [`io::ErrorKind::PermissionDenied`] for a folder of another user. A folder of root is no
/// error: it may be a volume mounted for this user.
pub fn claim(folder: &Path) -> io::Result<Claim> {
    create_folders(folder)?;
    let found = fs::metadata(folder)?;
    let (mode, user) = (found.mode() & 0o7777, user());
    if found.uid() == ROOT && user != ROOT {
        return Ok(if mode & EVERYONE == 0 { Claim::Private } else { Claim::OpenVolume { mode } });
    }
    if found.uid() != user {
        let why = format!(
            "belongs to user {}, but this process runs as user {user}; a folder of user {user} is allowed",
            found.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if mode & OTHERS == 0 {
        return Ok(Claim::Private);
    }
    // Restricts the folder first: from here on other users reach no entry, regardless of its mode.
    fs::set_permissions(folder, Permissions::from_mode(mode & !OTHERS))?;
    Ok(Claim::Restricted { mode, entries: restrict_below(folder, user)? })
}

/// Restricts this user's files and folders below a folder, and counts them. Links stay as they are.
fn restrict_below(folder: &Path, user: u32) -> io::Result<u64> {
    let mut restricted = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        // A change of mode follows links, which may lead out of the folder.
        if found.is_symlink() || found.uid() != user {
            continue;
        }
        if found.mode() & OTHERS != 0 {
            fs::set_permissions(&path, Permissions::from_mode(found.mode() & 0o7777 & !OTHERS))?;
            restricted += 1;
        }
        if found.is_dir() {
            restricted += restrict_below(&path, user)?;
        }
    }
    Ok(restricted)
}
