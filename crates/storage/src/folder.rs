//! A folder as a tier: one file a region, on a disk of any kind.
//!
//! A region is written under a temporary name that tells its key, and synced, and so is its folder; only then is it renamed and
//! said to be there. Whoever opens the folder after a loss of power finds it under either name (`folder/incomplete.rs`). In shared
//! folders, which others have open meanwhile, it is renamed before the folder is synced. Scratch folders do the same without
//! syncing (`folder/scratch.rs`).
//! Small ones share files (`folder/pack.rs`), since each file takes blocks, a name and two waits. Making room is left to
//! somebody else. How files are found again is in `folder/open.rs`, how they are read in `folder/read.rs`.

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

use crate::{Durability, Inserted, Tier, TierError};
use accounting::FolderAccounting;
use layout::{Layout, shard_of};
use pack::Pack;
use pleach_files::{FileLock, FileSystem};
use pleach_regions::{DataRegion, RegionKey};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What kind of disk a folder lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    /// A disk without moving parts, of this machine.
    Ssd,
    /// A disk with moving parts, of this machine.
    Hdd,
    /// A file system of the cluster: several processes, on several machines, have the folder open at a time.
    Lustre,
}

impl FolderKind {
    /// Whether several processes may have the folder open at a time.
    #[must_use]
    pub fn is_shared(self) -> bool {
        self == Self::Lustre
    }
}

/// What a folder is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderSettings {
    /// The kind of disk.
    pub kind: FolderKind,
    /// What the folder may take of the disk, with everything in it. Of a shared folder each process keeps to it as far as
    /// it knows what the others have written ([`FolderTier::refresh`]).
    pub capacity_bytes: u64,
    /// What regions survive. [`Durability::Process`] is for scratch: nothing waits for the medium. As long as the power does
    /// not fail, the next process finds what the last one stored; when it does, regions may be gone, damaged (reading
    /// finds that) or there again though they were removed. A folder that was scratch and is opened to be durable is
    /// emptied. Shared folders are durable, whatever this says.
    pub durability: Durability,
    /// What has to stay free of the disk, whoever takes the rest.
    pub reserve_bytes: u64,
    /// Regions of fewer bytes in memory are refused.
    pub least_bytes: u64,
    /// Regions whose encodings take fewer bytes share files; in a shared folder without locks, none do.
    pub pack_below_bytes: u64,
}

/// Below this, a file of its own is half empty or takes longer to name than to write.
const PACK_BELOW_BYTES: u64 = 64 << 10;

impl FolderSettings {
    /// Durable, without a reserve, for regions of any size, each in a file of its own.
    #[must_use]
    pub fn new(kind: FolderKind, capacity_bytes: u64) -> Self {
        let durability = Durability::PowerLoss;
        Self { kind, capacity_bytes, durability, reserve_bytes: 0, least_bytes: 0, pack_below_bytes: 0 }
    }

    /// The same for what nobody needs any more when the power has failed.
    #[must_use]
    pub fn scratch(self) -> Self {
        Self { durability: Durability::Process, ..self }
    }

    /// The same, with regions below 64 KiB packed.
    #[must_use]
    pub fn packed(self) -> Self {
        Self { pack_below_bytes: PACK_BELOW_BYTES, ..self }
    }
}

/// Data regions in a folder.
#[derive(Debug)]
pub struct FolderTier {
    files: Arc<dyn FileSystem>,
    layout: Layout,
    settings: FolderSettings,
    block_bytes: u64,
    books: Mutex<FolderAccounting>,
    pack: Pack,
    /// One a leaf: held while a file gets or loses its name and the books are changed, so that they tell the same.
    leaves: Vec<Mutex<()>>,
    /// The next name that no file has had.
    unique: AtomicU64,
    /// A folder could not be synced: what is on the medium is not known, and asking again would not tell.
    stopped: AtomicBool,
    /// None on shared file systems without locks.
    _lock: Option<Box<dyn FileLock>>,
}

/// An error of the system, as one of the tier.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TierError {
    move |source| TierError::Io { action, path: path.to_owned(), source }
}

impl FolderTier {
    /// Looks at the folder again: what other processes have written and removed is known from here on.
    ///
    /// # Errors
    /// [`TierError`] when it cannot be listed.
    pub fn refresh(&self) -> Result<(), TierError> {
        for leaf in 0..layout::LEAVES {
            let _held = self.hold(leaf);
            let open::ShardScan { found, .. } = open::scan(&*self.files, &self.layout, leaf)?;
            self.books().replace(leaf, found);
        }
        let refreshed = self.pack.refresh();
        self.count_packed();
        refreshed
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.layout.root
    }

    /// Where the file of a region is, or would be if it has one of its own.
    #[must_use]
    pub fn path(&self, key: RegionKey) -> PathBuf {
        self.layout.region(key)
    }

    /// Whether there may be files of which the books know nothing.
    fn is_shared(&self) -> bool {
        self.settings.kind.is_shared()
    }

    /// Whether there is a file of that key, books or not.
    fn is_there(&self, key: RegionKey) -> Result<bool, TierError> {
        let path = self.layout.region(key);
        match self.files.look(&path) {
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

    /// Enters what the files of packed regions take into the books.
    fn count_packed(&self) {
        self.pack.tell_taken(|bytes| self.books().set_packed(bytes));
    }

    // A thread that panicked while it held one of these left it whole: each change of the books is one call.
    fn books(&self) -> MutexGuard<'_, FolderAccounting> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, leaf: usize) -> MutexGuard<'_, ()> {
        self.leaves[leaf].lock().unwrap_or_else(PoisonError::into_inner)
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
        // Of a shared folder, another process may have stored it in a file of its own.
        if was_packed && !self.is_shared() {
            return Ok(true);
        }
        let _held = self.hold(shard_of(key));
        let known = self.books().contains(key);
        if !known && !self.is_shared() {
            return Ok(was_packed);
        }
        let path = self.layout.region(key);
        match self.files.remove(&path) {
            Ok(()) => {
                self.books().forget(key);
                // It must not come back when the power fails.
                self.sync_leaf(key)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.books().forget(key);
                Ok(known || was_packed)
            }
            Err(error) => Err(failed("remove", &path)(error)),
        }
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        if self.books().contains(key) && !self.is_shared() {
            return Ok(true);
        }
        Ok(self.pack.contains(key)? || (self.is_shared() && self.is_there(key)?))
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        if self.is_shared() {
            self.refresh()?;
        }
        let mut keys = self.pack.keys();
        keys.append(&mut self.books().keys());
        keys.sort_unstable();
        Ok(keys)
    }

    fn held_bytes(&self) -> u64 {
        self.books().bytes()
    }

    fn capacity_bytes(&self) -> u64 {
        self.settings.capacity_bytes
    }

    /// A disk that cannot be asked has nothing free; what compacting would regain is free.
    fn free_bytes(&self) -> u64 {
        let (dead_bytes, spare_bytes) = (self.pack.dead_bytes(), self.pack.spare_bytes());
        let disk = self.files.space(&self.layout.root).map_or(0, |space| space.free_bytes);
        let books = self.books();
        let left_bytes =
            disk.saturating_sub(self.settings.reserve_bytes).saturating_sub(books.reserved_bytes());
        let capacity_bytes = self.settings.capacity_bytes.saturating_sub(spare_bytes);
        capacity_bytes.saturating_sub(books.bytes()).min(left_bytes) + dead_bytes
    }

    fn durability(&self) -> Durability {
        self.settings.durability
    }
}
