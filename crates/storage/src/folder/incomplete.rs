//! Recovers drafts in private folders.
//!
//! A draft is a region under its temporary name: the writer was killed before the rename, or the power failed before the
//! rename was on disk. A whole draft may have been reported as stored.
//!
//! Recovery runs only when the folder is opened.

use super::accounting::ShardUsage;
use super::layout::Layout;
use super::open::remove_left_over;
use super::{failed, read};
use crate::TierError;
use pleach_files::{FileSystem, OpenMode};
use pleach_regions::RegionKey;
use std::io;
use std::path::Path;

/// Turns a draft into a region if it is whole and the key is unused, and otherwise removes it. The caller syncs the folder.
pub(super) fn recover(
    files: &dyn FileSystem,
    layout: &Layout,
    key: RegionKey,
    draft: &Path,
    found: &mut ShardUsage,
) -> Result<(), TierError> {
    if found.regions.contains_key(&key) || !is_whole(files, draft)? {
        return remove_left_over(files, draft);
    }
    // The writer may have been killed before its fsync. A file under the name of a region is not synced again.
    let synced = files.open_random_access(draft, OpenMode::Write).and_then(|file| file.sync());
    let path = layout.region(key);
    match synced.and_then(|()| files.rename(draft, &path)) {
        // Another process that opens a shared folder has recovered or removed the draft first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        published => published.map_err(failed("publish", &path))?,
    }
    let taken_bytes = files.metadata(&path).map_err(failed("look at", &path))?.disk_bytes;
    found.regions.insert(key, taken_bytes);
    Ok(())
}

/// Returns whether the draft is complete. A file of a later format version counts as complete: reading it reports the
/// version.
fn is_whole(files: &dyn FileSystem, draft: &Path) -> Result<bool, TierError> {
    let (mut file, length_bytes) = match files.open(draft) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed("open", draft)(error)),
    };
    let decoded = read::decode(&mut *file, length_bytes).map_err(failed("read", draft))?;
    Ok(decoded.map_or_else(|error| error.is_newer(), |_| true))
}
