//! Folder as a tier: one file per region, on any kind of disk.
//!
//! A region is written under a temporary name that contains its key. The file and its folder are synced, and only then is
//! the file renamed and the region reported as stored. After a power loss the next opener finds it under either name
//! (`folder/incomplete.rs`). In shared folders, which other processes have open, the rename comes before the folder sync.
//! Scratch folders follow the same steps without syncing (`folder/scratch.rs`). Small regions share segments
//! (`folder/pack.rs`), since each file takes blocks, a name and two fsyncs. Eviction is left to the caller. `folder/open.rs`
//! indexes existing files, `folder/read.rs` reads them.

mod accounting;
mod incomplete;
mod inventory;
mod layout;
mod open;
mod pack;
mod read;
mod scratch;
mod write;

pub use inventory::{Quarantined, RegionFile};
pub use layout::MARKER;

use crate::{Durability, Inserted, Tier, TierError};
use accounting::FolderAccounting;
use layout::{Layout, shard_of};
use pack::Pack;
use parking_lot::{Mutex, MutexGuard};
use pleach_files::{FileLock, FileSystem};
use pleach_regions::{DataRegion, RegionKey};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Kind of disk under a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    /// Local disk without moving parts.
    Ssd,
    /// Local disk with moving parts.
    Hdd,
    /// Cluster file system: several processes on several machines have the folder open at the same time.
    Lustre,
}

impl FolderKind {
    /// Returns whether several processes may have the folder open at the same time.
    #[must_use]
    pub fn is_shared(self) -> bool {
        self == Self::Lustre
    }
}

/// Settings of a folder tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderSettings {
    /// Kind of disk.
    pub kind: FolderKind,
    /// Maximum disk usage of the folder with all its content. In a shared folder each process enforces it as far as it knows
    /// the writes of other processes ([`FolderTier::refresh`]).
    pub capacity_bytes: u64,
    /// Failures that regions survive. [`Durability::Process`] is for scratch: no write waits for the disk. Without a power
    /// loss, the next process finds everything the last one stored. After a power loss, regions may be missing, corrupt
    /// (detected on read) or present although they were removed. Opening a former scratch folder as durable empties it.
    /// Shared folders are always durable, regardless of this setting.
    pub durability: Durability,
    /// Bytes that must stay free on the disk, whichever program uses the rest.
    pub reserve_bytes: u64,
    /// Minimum region size in memory. Smaller regions are refused.
    pub min_bytes: u64,
    /// Regions with encodings below this size share segments. In a shared folder without locks, nothing is packed.
    pub pack_below_bytes: u64,
}

/// 64 KiB: a smaller file of its own is half empty or takes longer to name than to write.
const PACK_BELOW_BYTES: u64 = 64 << 10;

impl FolderSettings {
    /// Creates durable settings without a reserve, for regions of any size, each in a file of its own.
    #[must_use]
    pub fn new(kind: FolderKind, capacity_bytes: u64) -> Self {
        let durability = Durability::PowerLoss;
        Self { kind, capacity_bytes, durability, reserve_bytes: 0, min_bytes: 0, pack_below_bytes: 0 }
    }

    /// Makes the folder scratch: regions need not survive a power loss.
    #[must_use]
    pub fn scratch(self) -> Self {
        Self { durability: Durability::Process, ..self }
    }

    /// Packs regions below 64 KiB.
    #[must_use]
    pub fn packed(self) -> Self {
        Self { pack_below_bytes: PACK_BELOW_BYTES, ..self }
    }
}

/// Tier that stores data regions in a folder.
#[derive(Debug)]
pub struct FolderTier {
    files: Arc<dyn FileSystem>,
    layout: Layout,
    settings: FolderSettings,
    block_bytes: u64,
    // Lock order: a leaf lock or the state lock of the pack first, the accounting last.
    // Each change of the accounting is one call, so a panic leaves it consistent.
    books: Mutex<FolderAccounting>,
    pack: Pack,
    /// One lock per leaf, held while a file gains or loses its name and the accounting changes, so that both agree.
    leaves: Vec<Mutex<()>>,
    /// Next unused suffix of a file name.
    unique: AtomicU64,
    /// A folder sync failed. The content on disk is unknown, and a second sync would not reveal it.
    stopped: AtomicBool,
    /// `None` on shared file systems without locks.
    _lock: Option<Box<dyn FileLock>>,
}

/// Converts a system error to a [`TierError`].
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TierError {
    move |source| TierError::Io { action, path: path.to_owned(), source }
}

impl FolderTier {
    /// Rescans the folder for regions that other processes have written and removed.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the folder cannot be listed.
    pub fn refresh(&self) -> Result<(), TierError> {
        for leaf in 0..layout::LEAVES {
            // The leaf lock covers listing and accounting, so that no insertion or removal of this process falls in
            // between.
            let _held = self.hold(leaf);
            let open::ShardScan { found, .. } = open::scan(&*self.files, &self.layout, leaf)?;
            self.books.lock().replace(leaf, found);
        }
        // A failed refresh may have read some segments, so their disk usage is counted before the error is returned.
        let refreshed = self.pack.refresh();
        self.count_packed();
        refreshed
    }

    /// Returns the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.layout.root
    }

    /// Returns the path of a region that has a file of its own, whether or not the file exists.
    #[must_use]
    pub fn path(&self, key: RegionKey) -> PathBuf {
        self.layout.region(key)
    }

    /// Returns whether files unknown to the accounting may exist.
    fn is_shared(&self) -> bool {
        self.settings.kind.is_shared()
    }

    /// Returns whether a file with that key exists on disk, regardless of the accounting.
    fn is_there(&self, key: RegionKey) -> Result<bool, TierError> {
        let path = self.layout.region(key);
        match self.files.metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("look for", &path)(error)),
        }
    }

    fn unique(&self) -> u64 {
        self.unique.fetch_add(1, Ordering::Relaxed)
    }

    fn sync_leaf(&self, key: RegionKey) -> Result<(), TierError> {
        let leaf = self.layout.leaf(shard_of(key));
        self.files.sync_folder(&leaf).map_err(|error| {
            self.stopped.store(true, Ordering::Relaxed);
            failed("sync", &leaf)(error)
        })
    }

    /// Updates the accounting with the disk usage of the segments.
    fn count_packed(&self) {
        self.pack.with_disk_usage(|bytes| self.books.lock().set_packed(bytes));
    }

    fn hold(&self, leaf: usize) -> MutexGuard<'_, ()> {
        self.leaves[leaf].lock()
    }
}

impl Tier for FolderTier {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        self.write(key, region)
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        self.read(key)
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let was_packed = self.remove_packed(key)?;
        // In a shared folder, another process may have stored the region in a file of its own.
        if was_packed && !self.is_shared() {
            return Ok(true);
        }
        let _held = self.hold(shard_of(key));
        let known = self.books.lock().contains(key);
        if !known && !self.is_shared() {
            return Ok(was_packed);
        }
        let path = self.layout.region(key);
        match self.files.remove(&path) {
            Ok(()) => {
                // Before the sync: the file is gone even if the sync fails, and a listed region must be readable.
                self.books.lock().forget(key);
                // The file must not reappear after a power loss.
                self.sync_leaf(key)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.books.lock().forget(key);
                Ok(known || was_packed)
            }
            Err(error) => Err(failed("remove", &path)(error)),
        }
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        // In a shared folder another process may have removed the file, so the accounting alone proves nothing.
        if self.books.lock().contains(key) && !self.is_shared() {
            return Ok(true);
        }
        Ok(self.pack.contains(key)? || (self.is_shared() && self.is_there(key)?))
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        if self.is_shared() {
            self.refresh()?;
        }
        let mut keys = self.pack.keys();
        keys.append(&mut self.books.lock().keys());
        keys.sort_unstable();
        Ok(keys)
    }

    fn held_bytes(&self) -> u64 {
        self.books.lock().bytes()
    }

    fn capacity_bytes(&self) -> u64 {
        self.settings.capacity_bytes
    }

    /// Returns 0 if the disk cannot be queried. Bytes that compaction would free count as free.
    fn free_bytes(&self) -> u64 {
        // The pack comes before the accounting lock, the order that `count_packed` uses. The disk is queried without
        // it, since a system call may hang.
        let (dead_bytes, spare_bytes) = (self.pack.dead_bytes(), self.pack.spare_bytes());
        let disk = self.files.space(&self.layout.root).map_or(0, |space| space.free_bytes);
        let books = self.books.lock();
        let left_bytes =
            disk.saturating_sub(self.settings.reserve_bytes).saturating_sub(books.reserved_bytes());
        let capacity_bytes = self.settings.capacity_bytes.saturating_sub(spare_bytes);
        capacity_bytes.saturating_sub(books.bytes()).min(left_bytes) + dead_bytes
    }

    fn durability(&self) -> Durability {
        self.settings.durability
    }
}
