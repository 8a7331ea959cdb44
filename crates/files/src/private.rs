//! Files and folders for their owner alone: modes 0600 and 0700 from their creation on, whatever the umask.
//!
//! Folders that exist keep their modes, unless the caller claims them.

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

/// Bits that let users outside the owner's group in.
const EVERYONE: u32 = 0o007;

/// Owner of volumes that a cluster mounts for its pods.
const ROOT: u32 = 0;

/// Creates a private folder, and those above it that are missing, private as well. An existing folder keeps its mode.
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

/// Options to open a file with, and to create it as a private one.
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

/// The state of a folder before it was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It was missing, or private.
    Private,
    /// Other users could enter it by this mode. Its mode and those of its entries were restricted.
    Restricted {
        /// The mode before.
        mode: u32,
        /// Restricted files and folders below.
        entries: u64,
    },
    /// It belongs to root and its mode admits every user. Only root can change that.
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
/// Returns the system error, and [`io::ErrorKind::PermissionDenied`] for a folder of another user. A folder of root that this
/// user may use is a volume that was given to it.
pub fn claim(folder: &Path) -> io::Result<Claim> {
    create_folders(folder)?;
    let found = fs::metadata(folder)?;
    let (mode, user) = (found.mode() & 0o7777, user());
    if found.uid() == ROOT && user != ROOT {
        return Ok(if mode & EVERYONE == 0 { Claim::Private } else { Claim::OpenVolume { mode } });
    }
    if found.uid() != user {
        let why = format!(
            "belongs to user {}, and this process runs as user {user}; a folder of its own is allowed",
            found.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if mode & OTHERS == 0 {
        return Ok(Claim::Private);
    }
    // First the folder: from here on other users reach nothing in it, whatever the modes below.
    fs::set_permissions(folder, Permissions::from_mode(mode & !OTHERS))?;
    Ok(Claim::Restricted { mode, entries: restrict_below(folder, user)? })
}

/// Restricts this user's files and folders below a folder, and counts them. Links stay as they are.
fn restrict_below(folder: &Path, user: u32) -> io::Result<u64> {
    let mut restricted = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
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
