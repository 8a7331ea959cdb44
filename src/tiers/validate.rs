//! Validation of tiers: missing or overlapping folders, capacity beyond the disk, and wrong order.
//!
//! Validation does not change any folder.

use super::error::Problem;
use super::{StorageKind, TierEntry, TierTarget};
use pleach_storage::files::{DiskSpace, FileSystem, OsFileSystem};
use rustix::fs::{Access, access};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Field and its problem.
type Mistake = (&'static str, Problem);

/// Checks a tier and its relation to the tiers before it.
pub(super) fn check(before: &[TierEntry], entry: &TierEntry) -> Result<(), Mistake> {
    order(before, entry.kind)?;
    match &entry.target {
        TierTarget::Bucket(bucket) => {
            let same =
                |other: &TierEntry| matches!(&other.target, TierTarget::Bucket(other) if other == bucket);
            match before.iter().position(same) {
                Some(other) => Err(("bucket", Problem::SameBucket { other: other + 1 })),
                None => Ok(()),
            }
        }
        TierTarget::Folder { path, .. } => {
            let disk_bytes = disk_space(path)?.total_bytes;
            if entry.capacity_bytes > disk_bytes {
                let bytes = entry.capacity_bytes;
                return Err(("capacity", Problem::BeyondDisk { bytes, disk_bytes }));
            }
            apart(before, path)
        }
    }
}

fn order(before: &[TierEntry], kind: StorageKind) -> Result<(), Mistake> {
    let Some(last) = before.last() else { return Ok(()) };
    if kind < last.kind {
        return Err(("kind", Problem::Order { kind: kind.name(), before: last.kind.name() }));
    }
    Ok(())
}

/// Returns the disk space of a folder. Fails if the folder is missing or not writable.
pub(super) fn disk_space(path: &Path) -> Result<DiskSpace, Mistake> {
    let named = || path.to_owned();
    let of_path = |cause| ("path", Problem::Path { path: named(), cause });
    if !fs::metadata(path).map_err(of_path)?.is_dir() {
        return Err(("path", Problem::NotAFolder { path: named() }));
    }
    access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|cause| ("path", Problem::NotWritable { path: named(), cause: cause.into() }))?;
    OsFileSystem.space(path).map_err(of_path)
}

/// Rejects a folder that is equal to, inside or around another tier's folder. Paths through symbolic links
/// count.
fn apart(before: &[TierEntry], path: &Path) -> Result<(), Mistake> {
    let failed = |cause| ("path", Problem::Path { path: path.to_owned(), cause });
    let ours = identities(path).map_err(failed)?;
    for (place, other) in before.iter().enumerate() {
        let TierTarget::Folder { path: other_path, .. } = &other.target else { continue };
        let theirs = identities(other_path).map_err(failed)?;
        let (path, other) = (path.to_owned(), place + 1);
        let problem = if ours.first() == theirs.first() {
            Problem::Same { path, other }
        } else if ours.iter().any(|folder| Some(folder) == theirs.first()) {
            Problem::Inside { path, other }
        } else if theirs.iter().any(|folder| Some(folder) == ours.first()) {
            Problem::Around { path, other }
        } else {
            continue;
        };
        return Err(("path", problem));
    }
    Ok(())
}

/// Returns device and inode number of a folder and all its ancestors, the folder itself first. They are equal
/// for all paths to a folder.
fn identities(path: &Path) -> std::io::Result<Vec<(u64, u64)>> {
    let whole = path.canonicalize()?;
    let about = |folder: &Path| fs::metadata(folder).map(|found| (found.dev(), found.ino()));
    whole.ancestors().map(about).collect()
}
