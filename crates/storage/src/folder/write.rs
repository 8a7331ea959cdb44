//! Writes a region to a file: reserves space, writes and syncs the file, syncs its folder, renames the file. In shared
//! folders the rename comes before the folder sync.
//!
//! For a large region the disk is kept busy: the file is preallocated at once, writeback of each piece starts as soon as it
//! is written, and the digest is computed in parallel. Writing evicts nothing from the folder.

use super::layout::{Layout, shard_of};
use super::{FolderKind, FolderTier, failed};
use crate::{Durability, Inserted, TierError, TierLocation};
use pleach_files::OpenMode;
use pleach_regions::{DataRegion, ElementType, Head, RegionKey};
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, Builder};

/// Minimum size for a digest thread and extra system calls: writing 1 MiB takes about 1 ms.
const LARGE_BYTES: u64 = 1 << 20;

/// Bytes per writeback request: a disk takes as long for a few smaller pieces as for one of this size.
const PIECE_BYTES: usize = 8 << 20;

/// Maximum growth of a folder by one more name, in blocks: a table of names splits, the table of tables splits too, and
/// either may be the first of its kind.
const GROWTH_BLOCKS: u64 = 4;

/// Dead bytes of packed regions below which compaction does not pay off.
const DEAD_BYTES: u64 = 32 << 20;

/// Maximum compaction rounds when all space is wanted: a tombstone becomes useless once its record is gone, which only the
/// next round sees.
const ROUNDS: usize = 4;

/// Reserved space, released on drop.
struct Reserved<'a> {
    tier: &'a FolderTier,
    bytes: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.tier.books.lock().release(self.bytes);
    }
}

impl FolderTier {
    pub(super) fn write(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        if self.is_known(key)? {
            return Ok(Inserted::AlreadyPresent);
        }
        let (bytes, least_bytes) = (region.bytes(), self.settings.min_bytes);
        if bytes < least_bytes {
            return Err(TierError::TooSmall { key, path: self.layout.root.clone(), bytes, least_bytes });
        }
        // Masks and labels compress many times over. Images hardly compress, and an SSD writes them faster than compression
        // takes.
        let is_flat = matches!(region.element(), ElementType::Mask | ElementType::Labels);
        let is_small = is_flat || self.settings.kind != FolderKind::Ssd;
        if bytes < LARGE_BYTES {
            let (head, body) = region.encode_parts(&region.digest(), is_small);
            return self.store(key, &body, || head);
        }
        thread::scope(|scope| {
            let digesting = Builder::new().spawn_scoped(scope, || region.digest());
            let digest = || match digesting {
                // A panic of the digest continues on the thread of the caller.
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // Without a thread, the digest is computed here.
                Err(_) => region.digest(),
            };
            // The head is written last, so the digest is joined only when writeback of the body has started.
            if let Some((head, body)) = region.encode_undigested(is_small) {
                return self.store(key, &body, || head.with(&digest()));
            }
            let (head, body) = region.encode_parts(&digest(), is_small);
            self.store(key, &body, || head)
        })
    }

    /// Stores an encoding. `head` is called after writeback of the body has started.
    fn store(&self, key: RegionKey, body: &[u8], head: impl FnOnce() -> Head) -> Result<Inserted, TierError> {
        let length_bytes = (Head::BYTES + body.len()) as u64;
        let is_packed = length_bytes < self.settings.pack_below_bytes && self.pack.may_hold(length_bytes)?;
        let mut reserved = self.reserve(key, length_bytes);
        // Compaction copies live records, so it runs only when dead ones take the space that is missing.
        if reserved.as_ref().is_err_and(TierError::is_lack_of_room) && self.compact_worn(0) > 0 {
            reserved = self.reserve(key, length_bytes);
        }
        let reserved = reserved?;
        if is_packed {
            let head = head();
            let mut inserted = self.pack.insert(key, &head, body);
            if inserted.as_ref().is_err_and(TierError::is_lack_of_room) && self.compact_worn(0) > 0 {
                inserted = self.pack.insert(key, &head, body);
            }
            self.count_packed();
            return inserted;
        }
        let is_draft = self.makes_drafts();
        let name = if is_draft { Layout::draft } else { Layout::part };
        let part = name(&self.layout, key, self.unique());
        let written = self.write_part(&part, body, head);
        // After the write: the leaf lock covers names and accounting, and writes of large files run in parallel.
        let _held = self.hold(shard_of(key));
        let published = written.and_then(|()| self.publish(key, &part, reserved));
        if !matches!(published, Ok(Inserted::New)) {
            // Removed under the leaf lock, so that the sync of a later removal covers this one too. If the name stays on
            // disk, the next process that opens the folder removes it or finds it whole.
            let _ = self.files.remove(&part);
        }
        if is_draft && published.is_err() {
            // The region was not reported as stored.
            let _ = self.files.sync_folder(&self.layout.leaf(shard_of(key)));
        }
        published
    }

    /// Returns whether a whole file counts as a region under its draft name. Shared folders have no drafts, since other
    /// processes read by name. Scratch folders have none, since they are not recovered after a power loss.
    fn makes_drafts(&self) -> bool {
        !self.is_shared() && self.settings.durability == Durability::PowerLoss
    }

    /// Returns whether the region is stored and on disk.
    fn is_known(&self, key: RegionKey) -> Result<bool, TierError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(TierError::Stopped { key, path: self.layout.root.clone() });
        }
        if !self.is_shared() {
            return Ok(self.books.lock().contains(key) || self.pack.is_durable(key)?);
        }
        if self.pack.is_durable(key)? {
            return Ok(true);
        }
        let is_there = self.is_there(key)?;
        if is_there {
            // The writer of the region may not have synced the folder yet.
            self.sync_leaf(key)?;
        }
        Ok(is_there)
    }

    /// Reserves space for a file of `length_bytes` and its name.
    fn reserve(&self, key: RegionKey, length_bytes: u64) -> Result<Reserved<'_>, TierError> {
        let (root, settings) = (&self.layout.root, self.settings);
        let blocks = length_bytes.div_ceil(self.block_bytes) + GROWTH_BLOCKS;
        let needed_bytes = blocks * self.block_bytes;
        // The disk is queried before the accounting lock is taken: a hanging disk must not block other threads.
        let free_bytes = self.files.space(root).map_err(failed("look for room in", root))?.free_bytes;
        let capacity_bytes = settings.capacity_bytes.saturating_sub(self.pack.spare_bytes());
        let mut books = self.books.lock();
        // Reserved bytes may already be written. Then the disk has slightly more space than computed here.
        let all_bytes = needed_bytes + books.reserved_bytes();
        let reserve_bytes = settings.reserve_bytes;
        if free_bytes < all_bytes.saturating_add(reserve_bytes) {
            let (path, needed_bytes) = (root.clone(), all_bytes);
            return Err(TierError::DiskFull { key, path, needed_bytes, free_bytes, reserve_bytes });
        }
        if !books.reserve(0, needed_bytes, capacity_bytes) {
            let (place, held_bytes) = (TierLocation::Folder(root.clone()), books.bytes());
            return Err(TierError::Full { key, place, needed_bytes, held_bytes, capacity_bytes });
        }
        Ok(Reserved { tier: self, bytes: needed_bytes })
    }

    /// Removes a packed region. Returns false if there was none.
    pub(super) fn remove_packed(&self, key: RegionKey) -> Result<bool, TierError> {
        let removed = self.pack.remove(key);
        self.count_packed();
        if matches!(removed, Ok(true)) {
            // Up to half of the bytes may be dead. Below the size of a segment, compaction waits for lack of space.
            self.compact_worn(DEAD_BYTES);
        }
        removed
    }

    /// Compacts segments while more than `dead_bytes` are dead and the dead bytes exceed the live ones. With `dead_bytes` =
    /// 0, compacts whatever can be compacted. Returns the number of segments removed.
    pub(super) fn compact_worn(&self, dead_bytes: u64) -> usize {
        if dead_bytes > 0 {
            return self.compact_own(dead_bytes);
        }
        let mut gone = 0;
        for _ in 0..ROUNDS {
            // Includes segments of dead writers. If those cannot be acquired, only this process's segments are compacted.
            let adopted = self.pack.acquire_compactable().unwrap_or_default();
            let now = self.compact_own(dead_bytes);
            self.pack.release(&adopted);
            gone += now;
            if now == 0 {
                break;
            }
        }
        gone
    }

    fn compact_own(&self, dead_bytes: u64) -> usize {
        let mut gone = 0;
        for (name, live_bytes) in self.pack.compactable() {
            let all_dead_bytes = self.pack.dead_bytes();
            if all_dead_bytes <= dead_bytes || (dead_bytes > 0 && all_dead_bytes < self.pack.live_bytes()) {
                break;
            }
            let needed_bytes =
                live_bytes.next_multiple_of(self.block_bytes) + GROWTH_BLOCKS * self.block_bytes;
            // Up to the full capacity: `reserve` withholds the spare bytes from regions so that these copies fit.
            if !self.books.lock().reserve(0, needed_bytes, self.settings.capacity_bytes) {
                continue;
            }
            let _reserved = Reserved { tier: self, bytes: needed_bytes };
            // A segment that cannot be compacted stays as it is.
            gone += usize::from(self.pack.compact(name).is_ok());
            self.count_packed();
        }
        gone
    }

    fn full(&self, key: RegionKey, needed_bytes: u64, held_bytes: u64) -> TierError {
        let place = TierLocation::Folder(self.layout.root.clone());
        let capacity_bytes = self.settings.capacity_bytes;
        TierError::Full { key, place, needed_bytes, held_bytes, capacity_bytes }
    }

    /// Writes a file and waits until its content is on disk. The head is written last because it contains the digest.
    fn write_part(&self, part: &Path, body: &[u8], head: impl FnOnce() -> Head) -> Result<(), TierError> {
        let write = || -> io::Result<()> {
            let file = self.files.open_random_access(part, OpenMode::Create)?;
            let mut end = Head::BYTES as u64;
            let is_large = body.len() as u64 >= LARGE_BYTES;
            if is_large {
                file.reserve(end + body.len() as u64)?;
            }
            for piece in body.chunks(PIECE_BYTES) {
                file.write_at(piece, end)?;
                if is_large {
                    file.begin_sync(end, piece.len() as u64)?;
                }
                end += piece.len() as u64;
            }
            file.write_at(&head().0, 0)?;
            file.sync()
        };
        write().map_err(failed("write", part))
    }

    /// Renames a synced file to the name of its region. The caller holds the leaf lock.
    fn publish(
        &self,
        key: RegionKey,
        part: &Path,
        mut reserved: Reserved<'_>,
    ) -> Result<Inserted, TierError> {
        let (path, leaf) = (self.layout.region(key), self.layout.leaf(shard_of(key)));
        let taken_bytes = self.files.metadata(part).map_err(failed("look at", part))?.disk_bytes;
        // Another thread may have stored the region first, or an fsync may have failed.
        if self.stopped.load(Ordering::Relaxed) {
            return Err(TierError::Stopped { key, path: self.layout.root.clone() });
        }
        if self.books.lock().contains(key) && (!self.is_shared() || self.is_there(key)?) {
            return Ok(Inserted::AlreadyPresent);
        }
        let growth_bytes = GROWTH_BLOCKS * self.block_bytes;
        let needed_bytes = taken_bytes + growth_bytes;
        // A fragmented file takes extra blocks for its extent list.
        if needed_bytes > reserved.bytes {
            let mut books = self.books.lock();
            if !books.reserve(reserved.bytes, needed_bytes, self.settings.capacity_bytes) {
                let held_bytes = books.bytes() - reserved.bytes;
                // `Reserved` releases its bytes on return, and that takes the lock on the accounting.
                drop(books);
                return Err(self.full(key, needed_bytes, held_bytes));
            }
            reserved.bytes = needed_bytes;
        }
        let before = self.files.metadata(&leaf).map_err(failed("look at", &leaf))?.disk_bytes;
        let is_draft = self.makes_drafts();
        if is_draft {
            // The draft name makes the region recoverable from here on. On most file systems the fsync of the file has
            // already written the name.
            self.sync_leaf(key)?;
        }
        self.files.rename(part, &path).map_err(failed("publish", &path))?;
        if !is_draft && let Err(error) = self.sync_leaf(key) {
            // The region was not reported as stored. If the file cannot be removed, the next process that opens the tier
            // finds it whole.
            let _ = self.files.remove(&path);
            return Err(error);
        }
        // The region is stored. A failed lookup of its folder does not change that.
        let after = self.files.metadata(&leaf).map_or(before, |found| found.disk_bytes);
        let mut books = self.books.lock();
        books.add(key, taken_bytes);
        books.grow(key, after.saturating_sub(before));
        drop(books);
        drop(reserved);
        Ok(Inserted::New)
    }
}
