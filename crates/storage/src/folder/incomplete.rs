//! Regions of private folders that have the name by which they were written: whoever wrote them was killed before they got
//! their own, or the power failed before that was on the medium. Those that are whole may have been said to be stored.
//!
//! Nothing here is done while regions are stored and read.

use super::accounting::ShardUsage;
use super::layout::Layout;
use super::open::remove_left_over;
use super::{failed, read};
use crate::TierError;
use pleach_files::{FileSystem, OpenMode};
use pleach_regions::RegionKey;
use std::io;
use std::path::Path;

/// Makes a draft a region if it is whole and there is none of its key, and otherwise removes it. The caller syncs that.
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
    // Whoever wrote it may have been killed before it waited for that, and nobody looks at it again once it is a region.
    let synced = files.open_anywhere(draft, OpenMode::Write).and_then(|file| file.sync());
    let path = layout.region(key);
    match synced.and_then(|()| files.rename(draft, &path)) {
        // Another process that opens a shared folder was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        published => published.map_err(failed("publish", &path))?,
    }
    let taken_bytes = files.look(&path).map_err(failed("look at", &path))?.taken_bytes;
    found.regions.insert(key, taken_bytes);
    Ok(())
}

/// Whether all of it was written. What a later version of the program wrote counts as whole: reading it will tell.
fn is_whole(files: &dyn FileSystem, draft: &Path) -> Result<bool, TierError> {
    let (mut file, length_bytes) = match files.open(draft) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed("open", draft)(error)),
    };
    let decoded = read::decode(&mut *file, length_bytes).map_err(failed("read", draft))?;
    Ok(decoded.map_or_else(|error| error.is_newer(), |_| true))
}
