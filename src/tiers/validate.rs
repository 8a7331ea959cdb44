//! What tiers may not be: folders that are not there or are each other's, more than the disk, or out of order.
//!
//! Nothing here changes a folder.

use super::error::{Problem, TierListError};
use super::fields::Fields;
use super::{Place, StorageKind, TierEntry};
use pleach_storage::files::{DiskSpace, FileSystem, OsFileSystem};
use rustix::fs::{Access, access};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks a tier against those before it.
pub(super) fn check(
    fields: &Fields<'_>,
    before: &[TierEntry],
    entry: &TierEntry,
) -> Result<(), TierListError> {
    order(fields, before, entry.kind)?;
    match &entry.place {
        Place::Ram => Ok(()),
        Place::Bucket(bucket) => {
            let same = |other: &TierEntry| matches!(&other.place, Place::Bucket(other) if other == bucket);
            match before.iter().position(same) {
                Some(other) => Err(fields.error("bucket", Problem::SameBucket { other: other + 1 })),
                None => Ok(()),
            }
        }
        Place::Folder { path, .. } => {
            let disk_bytes = look(fields, path)?.total_bytes;
            if entry.capacity_bytes > disk_bytes {
                let bytes = entry.capacity_bytes;
                return Err(fields.error("capacity", Problem::BeyondDisk { bytes, disk_bytes }));
            }
            apart(fields, before, path)
        }
    }
}

fn order(fields: &Fields<'_>, before: &[TierEntry], kind: StorageKind) -> Result<(), TierListError> {
    let Some(last) = before.last() else { return Ok(()) };
    if kind == StorageKind::Ram && last.kind == StorageKind::Ram {
        return Err(fields.error("kind", Problem::Twice { kind: kind.name() }));
    }
    if kind < last.kind {
        return Err(fields.error("kind", Problem::Order { kind: kind.name(), before: last.kind.name() }));
    }
    Ok(())
}

/// The disk of a folder that can be written to.
pub(super) fn look(fields: &Fields<'_>, path: &Path) -> Result<DiskSpace, TierListError> {
    let named = || path.to_owned();
    let of_path = |cause| fields.error("path", Problem::Path { path: named(), cause });
    if !fs::metadata(path).map_err(of_path)?.is_dir() {
        return Err(fields.error("path", Problem::NotAFolder { path: named() }));
    }
    access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|cause| fields.error("path", Problem::NotWritable { path: named(), cause: cause.into() }))?;
    OsFileSystem.space(path).map_err(of_path)
}

/// Refuses a folder that is another tier's, or in it, or around it, by whatever path.
fn apart(fields: &Fields<'_>, before: &[TierEntry], path: &Path) -> Result<(), TierListError> {
    let failed = |cause| fields.error("path", Problem::Path { path: path.to_owned(), cause });
    let ours = identities(path).map_err(failed)?;
    for (place, other) in before.iter().enumerate() {
        let Place::Folder { path: other_path, .. } = &other.place else { continue };
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
        return Err(fields.error("path", problem));
    }
    Ok(())
}

/// Device and number of a folder and of all that it lies in, itself first: two paths to one folder have the same.
fn identities(path: &Path) -> std::io::Result<Vec<(u64, u64)>> {
    let whole = path.canonicalize()?;
    let about = |folder: &Path| fs::metadata(folder).map(|found| (found.dev(), found.ino()));
    whole.ancestors().map(about).collect()
}
