//! Scratch folders: nothing in them was ever synced, and a file says so.
//!
//! That file is on the medium before anything else is written, so that whoever opens the folder to be durable knows that
//! names in it may stand for anything. Nothing here is done while regions are stored and read.

use super::layout::{LEAVES, Layout, MARKER_NAME, PACK_NAME, QUARANTINE_NAME, SCRATCH_NAME};
use super::open::sync;
use super::{FolderSettings, FolderTier, failed};
use crate::{Durability, TierError};
use pleach_files::{FileSystem, UnsyncedFileSystem};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Says of a folder whether it is scratch, and gives the files to use it with. One that was, and is to be durable, is
/// emptied, or refused if it is to be shared: another process may have stored something meanwhile.
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
            // Whoever made it may have been killed just before it came to this.
            sync(&*files, &layout.root)?;
            Ok(Arc::new(UnsyncedFileSystem(files)))
        }
        Durability::PowerLoss => {
            if is_scratch && settings.kind.is_shared() {
                return Err(TierError::Scratch { path: layout.root.clone() });
            }
            if is_scratch {
                empty(&*files, layout)?;
                files.remove(&path).map_err(failed("remove", &path))?;
                sync(&*files, &layout.root)?;
            }
            Ok(files)
        }
    }
}

fn is_there(files: &dyn FileSystem, path: &Path) -> Result<bool, TierError> {
    match files.look(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("look for", path)(error)),
    }
}

impl FolderTier {
    /// What the regions of a folder survive as it is now, opened or not; none if no tier has been begun there.
    ///
    /// # Errors
    /// [`TierError::Io`] when that cannot be found out.
    pub fn durability_of(files: &dyn FileSystem, path: &Path) -> Result<Option<Durability>, TierError> {
        let layout = Layout::new(path);
        if !is_there(files, &layout.named(MARKER_NAME))? {
            return Ok(None);
        }
        let is_scratch = is_there(files, &layout.named(SCRATCH_NAME))?;
        Ok(Some(if is_scratch { Durability::Process } else { Durability::PowerLoss }))
    }
}

/// Removes all files below the folder, and syncs that.
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
