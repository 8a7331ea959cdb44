//! What lies in a folder, for whoever looks after it: regions with their sizes and ages, and what is in quarantine.
//!
//! Nothing here decides what may go.

use super::layout::{FileKind, LEAVES, QUARANTINE_NAME, named};
use super::{FolderTier, failed};
use crate::{TierError, TierMaintenance};
use pleach_regions::RegionKey;
use std::path::PathBuf;
use std::time::SystemTime;

/// One region in a folder or a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionFile {
    /// The region.
    pub key: RegionKey,
    /// What it takes of the disk; of a packed one, its record.
    pub taken_bytes: u64,
    /// When it was written; of a packed one, when its file was last written to.
    pub modified: SystemTime,
    /// Whether it shares a file with others.
    pub is_packed: bool,
}

/// One file, or object, that did not hold what it should have held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The file.
    pub path: PathBuf,
    /// What it takes of the disk.
    pub taken_bytes: u64,
    /// When it was last written to.
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
                    let (taken_bytes, modified) = (about.taken_bytes, about.modified);
                    all.push(RegionFile { key, taken_bytes, modified, is_packed: false });
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
            taken_bytes: about.taken_bytes,
            modified: about.modified,
        };
        Ok(all.into_iter().filter(|(_, about)| !about.is_folder).map(file).collect())
    }

    fn discard(&self, file: &Quarantined) -> Result<(), TierError> {
        self.files.remove(&file.path).map_err(failed("remove", &file.path))?;
        self.books().remove_overhead(file.taken_bytes);
        Ok(())
    }

    fn compact(&self) -> usize {
        self.compact_worn(0)
    }
}
