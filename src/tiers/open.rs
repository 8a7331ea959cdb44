//! Checked tiers as a stack.
//!
//! Nothing here decides what goes where, and RAM is left to whoever holds it.

use super::{Place, TierEntry, TierList};
use pleach_storage::files::{FileSystem, OsFileSystem, SharedDisk};
use pleach_storage::{
    FolderSettings, FolderTier, Tier, TierError, TierLevel, TierMaintenance, locks_are_local,
};
use std::path::PathBuf;
use std::sync::Arc;

/// An open tier and what it was said to be.
#[derive(Debug)]
pub(crate) struct OpenTier {
    pub(crate) level: TierLevel,
    /// The same tier, as whoever looks after it sees it.
    pub(crate) upkeep: Arc<dyn TierMaintenance>,
    /// Where the folder is, if it is one.
    pub(crate) folder: Option<PathBuf>,
}

/// Opens all tiers below RAM.
///
/// # Errors
/// [`TierError`] of the first that cannot be opened.
pub(crate) fn open(list: &TierList) -> Result<Vec<OpenTier>, TierError> {
    let mut opened: Vec<OpenTier> = Vec::new();
    for entry in &list.0 {
        let same = opened.iter().filter(|other| other.level.name.starts_with(entry.kind.name())).count();
        let name = match same {
            0 => entry.kind.name().to_owned(),
            more => format!("{}-{}", entry.kind.name(), more + 1),
        };
        opened.extend(open_one(entry, name)?);
    }
    Ok(opened)
}

fn open_one(entry: &TierEntry, name: String) -> Result<Option<OpenTier>, TierError> {
    let capacity_bytes = entry.capacity_bytes;
    let (upkeep, folder): (Arc<dyn TierMaintenance>, _) = match &entry.place {
        Place::Ram => return Ok(None),
        Place::Folder { kind, path, durability, reserve_bytes, striping } => {
            striping.apply(path)?;
            let mut settings = FolderSettings::new(*kind, capacity_bytes).packed();
            (settings.durability, settings.reserve_bytes) = (*durability, *reserve_bytes);
            if kind.is_shared() && locks_are_local(path)? {
                // Two machines would take each other for dead, and write to the same files.
                settings.pack_below_bytes = 0;
            }
            // Users of a shared folder decide by its mode and their umask who reads what they write there.
            let files: Arc<dyn FileSystem> =
                if kind.is_shared() { Arc::new(SharedDisk) } else { Arc::new(OsFileSystem) };
            (Arc::new(FolderTier::open(files, path, settings)?), Some(path.clone()))
        }
        Place::Bucket(bucket) => (pleach_objects::open(bucket, capacity_bytes)?, None),
    };
    let (policy, write, shared) = (entry.policy, entry.write, entry.kind.is_shared());
    let tier = Arc::clone(&upkeep) as Arc<dyn Tier>;
    Ok(Some(OpenTier { level: TierLevel { name, tier, policy, write, shared }, upkeep, folder }))
}
