//! Inventory of a folder for maintenance: regions with sizes and ages, and quarantined files.
//!
//! The caller decides what to delete.

use super::layout::{FileKind, LEAVES, QUARANTINE_NAME, named};
use super::{FolderTier, failed};
use crate::{TierError, TierMaintenance};
use pleach_regions::RegionKey;
use std::path::PathBuf;
use std::time::SystemTime;

/// One region in a folder or a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionFile {
    /// Key of the region.
    pub key: RegionKey,
    /// Disk usage. For a packed region, the size of its record.
    pub disk_bytes: u64,
    /// Time of the last write. For a packed region, that of its segment.
    pub modified: SystemTime,
    /// Whether it shares a file with other regions.
    pub is_packed: bool,
}

/// A corrupt file or object in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The file.
    pub path: PathBuf,
    /// Disk usage.
    pub disk_bytes: u64,
    /// Time of the last write.
    pub modified: SystemTime,
}

impl TierMaintenance for FolderTier {
    fn inventory(&self) -> Result<Vec<RegionFile>, TierError> {
        let mut all = self.pack.inventory()?;
        for leaf in 0..LEAVES {
            let path = self.layout.leaf(leaf);
            for (name, about) in self.files.list(&path).map_err(failed("list", &path))? {
                if let FileKind::Region(key) = named(leaf, &name)
                    && !about.is_folder
                {
                    let (disk_bytes, modified) = (about.disk_bytes, about.modified);
                    all.push(RegionFile { key, disk_bytes, modified, is_packed: false });
                }
            }
        }
        all.sort_unstable_by_key(|region| region.key);
        Ok(all)
    }

    fn quarantine_files(&self) -> Result<Vec<Quarantined>, TierError> {
        let folder = self.layout.named(QUARANTINE_NAME);
        let all = self.files.list(&folder).map_err(failed("list", &folder))?;
        let file = |(name, about): (String, pleach_files::FileMeta)| Quarantined {
            path: folder.join(name),
            disk_bytes: about.disk_bytes,
            modified: about.modified,
        };
        Ok(all.into_iter().filter(|(_, about)| !about.is_folder).map(file).collect())
    }

    fn discard(&self, file: &Quarantined) -> Result<(), TierError> {
        // Not synced: if the file reappears after a power loss, the next opener counts it again.
        self.files.remove(&file.path).map_err(failed("remove", &file.path))?;
        self.books.lock().remove_overhead(file.disk_bytes);
        Ok(())
    }

    fn compact(&self) -> usize {
        self.compact_worn(0)
    }
}
