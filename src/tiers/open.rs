//! Opens validated tiers as levels of a tier stack.
//!
//! RAM is the tier above them, which its owner manages. `pleach-storage` decides the placement of regions.

use super::{TierEntry, TierList, TierTarget};
use pleach_storage::files::{FileSystem, OsFileSystem, SharedDisk};
use pleach_storage::{
    Availability, FolderSettings, FolderTier, GuardTimes, GuardedTier, Tier, TierError, TierLevel,
    TierLocation, TierMaintenance, locks_are_local,
};
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// Open tier with its settings.
#[derive(Debug)]
pub(crate) struct OpenTier {
    pub(crate) level: TierLevel,
    /// Maintenance interface of the same tier.
    pub(crate) upkeep: Arc<dyn TierMaintenance>,
    /// Path of the folder. `None` for a bucket.
    pub(crate) folder: Option<PathBuf>,
}

/// Opens all tiers under RAM.
///
/// # Errors
/// [`TierError`] of the first tier that cannot be opened.
pub(crate) fn open(list: &TierList) -> Result<Vec<OpenTier>, TierError> {
    let mut opened: Vec<OpenTier> = Vec::new();
    for entry in &list.0 {
        let same = opened.iter().filter(|other| other.level.name.starts_with(entry.kind.name())).count();
        let name = match same {
            0 => entry.kind.name().to_owned(),
            more => format!("{}-{}", entry.kind.name(), more + 1),
        };
        opened.push(open_one(entry, name)?);
    }
    Ok(opened)
}

fn open_one(entry: &TierEntry, name: String) -> Result<OpenTier, TierError> {
    let capacity_bytes = entry.capacity_bytes;
    let (upkeep, folder): (Arc<dyn TierMaintenance>, _) = match &entry.target {
        TierTarget::Folder { kind, path, durability, reserve_bytes, striping } => {
            striping.apply(path)?;
            let mut settings = FolderSettings::new(*kind, capacity_bytes).packed();
            (settings.durability, settings.reserve_bytes) = (*durability, *reserve_bytes);
            if kind.is_shared() && locks_are_local(path)? {
                // With local locks, each of two machines would take the other's writer for dead and write to
                // its segments. Store each region as a file of its own instead.
                settings.pack_below_bytes = 0;
            }
            // The mode of a shared folder and the umask of its users determine who can read the files.
            let files: Arc<dyn FileSystem> =
                if kind.is_shared() { Arc::new(SharedDisk) } else { Arc::new(OsFileSystem) };
            (Arc::new(FolderTier::open(files, path, settings)?), Some(path.clone()))
        }
        TierTarget::Bucket(bucket) => (pleach_objects::open(bucket, capacity_bytes)?, None),
    };
    let (policy, write, shared) = (entry.policy, entry.write, entry.kind.is_shared());
    let mut tier = Arc::clone(&upkeep) as Arc<dyn Tier>;
    if shared {
        // A network file system hangs with its server. The worker continues without it.
        let location = match &entry.target {
            TierTarget::Folder { path, .. } => TierLocation::Folder(path.clone()),
            TierTarget::Bucket(bucket) => {
                TierLocation::Bucket(format!("s3://{}/{}", bucket.name, bucket.prefix))
            }
        };
        let place = location.to_string();
        let listener = move |change: &Availability| log_change(&place, change);
        tier = Arc::new(GuardedTier::new(tier, location, GuardTimes::default(), listener));
    }
    Ok(OpenTier { level: TierLevel { name, tier, policy, write, shared }, upkeep, folder })
}

/// Logs a change of a tier that others share.
fn log_change(place: &str, change: &Availability) {
    match change {
        Availability::Unavailable { cause } => {
            warn!("the tier {place} is unavailable: {cause}; outputs are kept elsewhere until it answers");
        }
        Availability::Available { after } => {
            info!("the tier {place} is available again, after {} s", after.as_secs());
        }
    }
}
