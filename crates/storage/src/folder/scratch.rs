//! Scratch folders: nothing in them was ever synced, and a marker file records that.
//!
//! The marker is on disk before anything else is written, so that a process that opens the folder as durable knows that its
//! names may hold arbitrary content. Storing and reading regions does not use this module.

use super::layout::{LEAVES, Layout, MARKER_NAME, PACK_NAME, QUARANTINE_NAME, SCRATCH_NAME};
use super::open::sync;
use super::{FolderSettings, FolderTier, failed};
use crate::{Durability, TierError};
use pleach_files::{FileSystem, UnsyncedFileSystem};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Determines whether the folder is scratch, and returns the file system to use. A former scratch folder is emptied when
/// opened as durable. It is refused when opened as shared, since another process may have stored regions meanwhile.
pub(super) fn begin(
    files: Arc<dyn FileSystem>,
    layout: &Layout,
    settings: FolderSettings,
) -> Result<Arc<dyn FileSystem>, TierError> {
    let path = layout.named(SCRATCH_NAME);
    let is_scratch = is_there(&*files, &path)?;
    match settings.durability {
        Durability::Process => {
            if !is_scratch {
                files.create(&path).and_then(|mut file| file.sync()).map_err(failed("write", &path))?;
            }
            // The process that created the marker may have been killed before this sync.
            sync(&*files, &layout.root)?;
            Ok(Arc::new(UnsyncedFileSystem(files)))
        }
        Durability::PowerLoss => {
            if is_scratch && settings.kind.is_shared() {
                return Err(TierError::Scratch { path: layout.root.clone() });
            }
            if is_scratch {
                // The marker goes last: a process killed in between leaves a folder that the next one empties again.
                empty(&*files, layout)?;
                files.remove(&path).map_err(failed("remove", &path))?;
                sync(&*files, &layout.root)?;
            }
            Ok(files)
        }
    }
}

fn is_there(files: &dyn FileSystem, path: &Path) -> Result<bool, TierError> {
    match files.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("look for", path)(error)),
    }
}

impl FolderTier {
    /// Returns the durability of regions in a folder as it is now, open or not. `None` if the folder holds no tier.
    ///
    /// # Errors
    /// Returns [`TierError::Io`] if the file system cannot be queried.
    pub fn durability_of(files: &dyn FileSystem, path: &Path) -> Result<Option<Durability>, TierError> {
        let layout = Layout::new(path);
        if !is_there(files, &layout.named(MARKER_NAME))? {
            return Ok(None);
        }
        let is_scratch = is_there(files, &layout.named(SCRATCH_NAME))?;
        Ok(Some(if is_scratch { Durability::Process } else { Durability::PowerLoss }))
    }
}

/// Removes all files below the folder and syncs the removal.
fn empty(files: &dyn FileSystem, layout: &Layout) -> Result<(), TierError> {
    let leaves = (0..LEAVES).map(|leaf| layout.leaf(leaf));
    for folder in leaves.chain([PACK_NAME, QUARANTINE_NAME].map(|name| layout.named(name))) {
        for (name, found) in files.list(&folder).map_err(failed("list", &folder))? {
            if !found.is_folder {
                let path = folder.join(name);
                files.remove(&path).map_err(failed("remove", &path))?;
            }
        }
        sync(files, &folder)?;
    }
    Ok(())
}
