//! How a region becomes a file: room is reserved, the file written and synced, its folder synced, and the file renamed; in
//! shared folders, renamed before the folder is synced.
//!
//! Of a large region the medium is kept busy meanwhile: room on it is taken at once, every piece is on its way as soon as it is
//! written, and the digest is computed beside all that. Nothing here makes room in the folder.

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

/// What is worth a thread for its digest, and more calls: writing it takes a millisecond.
const LARGE_BYTES: u64 = 1 << 20;

/// What is on its way to the medium at a time: a disk takes as long for a few smaller pieces as for one of these.
const PIECE_BYTES: usize = 8 << 20;

/// Blocks that a folder may grow by when it gets one more name: a table of names is split, the table of tables as well,
/// and either may be the first of its kind.
const GROWTH_BLOCKS: u64 = 4;

/// Dead bytes of packed regions that are not worth copying others for.
const DEAD_BYTES: u64 = 32 << 20;

/// How often all that is worn is compacted, when all room is wanted: a stone is of no more use once what it buried is gone,
/// which is known in the round after.
const ROUNDS: usize = 4;

/// Room that is reserved until it is dropped.
struct Reserved<'a> {
    tier: &'a FolderTier,
    bytes: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.tier.books().release(self.bytes);
    }
}

impl FolderTier {
    pub(super) fn write(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        if self.is_known(key)? {
            return Ok(Inserted::AlreadyPresent);
        }
        let (bytes, least_bytes) = (region.bytes(), self.settings.least_bytes);
        if bytes < least_bytes {
            return Err(TierError::TooSmall { key, path: self.layout.root.clone(), bytes, least_bytes });
        }
        // Masks and labels become many times smaller. Images hardly do, and an SSD writes them in less time than trying takes.
        let is_flat = matches!(region.element(), ElementType::Mask | ElementType::Labels);
        let is_small = is_flat || self.settings.kind != FolderKind::Ssd;
        if bytes < LARGE_BYTES {
            let (head, body) = region.encode_parts(&region.digest(), is_small);
            return self.store(key, &body, || head);
        }
        thread::scope(|scope| {
            let digesting = Builder::new().spawn_scoped(scope, || region.digest());
            let digest = || match digesting {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system gives no thread.
                Err(_) => region.digest(),
            };
            if let Some((head, body)) = region.encode_ahead(is_small) {
                return self.store(key, &body, || head.with(&digest()));
            }
            let (head, body) = region.encode_parts(&digest(), is_small);
            self.store(key, &body, || head)
        })
    }

    /// Stores an encoding, whose head is asked for when what follows it is on its way.
    fn store(&self, key: RegionKey, body: &[u8], head: impl FnOnce() -> Head) -> Result<Inserted, TierError> {
        let length_bytes = (Head::BYTES + body.len()) as u64;
        let is_packed = length_bytes < self.settings.pack_below_bytes && self.pack.may_hold(length_bytes)?;
        let mut reserved = self.reserve(key, length_bytes);
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
        let _held = self.hold(shard_of(key));
        let published = written.and_then(|()| self.publish(key, &part, reserved));
        if !matches!(published, Ok(Inserted::New)) {
            // While the leaf is held, so that a removal that comes next has this on the medium as well. If its name stays,
            // the next who opens the folder removes it, or finds it whole.
            let _ = self.files.remove(&part);
        }
        if is_draft && published.is_err() {
            // It was not said to be there.
            let _ = self.files.sync_folder(&self.layout.leaf(shard_of(key)));
        }
        published
    }

    /// Whether files become regions by being whole, whatever their names: of a shared folder others read by name, and of
    /// scratch nobody looks for what the power has left.
    fn makes_drafts(&self) -> bool {
        !self.is_shared() && self.settings.durability == Durability::PowerLoss
    }

    /// Whether the region is there, on the medium.
    fn is_known(&self, key: RegionKey) -> Result<bool, TierError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(TierError::Stopped { key, path: self.layout.root.clone() });
        }
        if !self.is_shared() {
            return Ok(self.books().contains(key) || self.pack.is_known(key)?);
        }
        if self.pack.is_known(key)? {
            return Ok(true);
        }
        let is_there = self.is_there(key)?;
        if is_there {
            // Whoever wrote it may not have come to this yet.
            self.sync_leaf(key)?;
        }
        Ok(is_there)
    }

    /// Room for a file of `length_bytes` and its name.
    fn reserve(&self, key: RegionKey, length_bytes: u64) -> Result<Reserved<'_>, TierError> {
        let (root, settings) = (&self.layout.root, self.settings);
        let blocks = length_bytes.div_ceil(self.block_bytes) + GROWTH_BLOCKS;
        let needed_bytes = blocks * self.block_bytes;
        let free_bytes = self.files.space(root).map_err(failed("look for room in", root))?.free_bytes;
        let capacity_bytes = settings.capacity_bytes.saturating_sub(self.pack.spare_bytes());
        let mut books = self.books();
        // What is reserved may have been written already: then the disk is a little less full than it seems.
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

    /// Takes a packed region out; false where there is none.
    pub(super) fn remove_packed(&self, key: RegionKey) -> Result<bool, TierError> {
        let removed = self.pack.remove(key);
        self.count_packed();
        if matches!(removed, Ok(true)) {
            // Half of what there is may be dead; below a file's size it is left to lack of room.
            self.compact_worn(DEAD_BYTES);
        }
        removed
    }

    /// Compacts files of packed regions for as long as more than `dead_bytes` of them are dead, and more than they hold, or
    /// whatever they hold where nothing is allowed. How many files are gone.
    pub(super) fn compact_worn(&self, dead_bytes: u64) -> usize {
        if dead_bytes > 0 {
            return self.compact_own(dead_bytes);
        }
        let mut gone = 0;
        for _ in 0..ROUNDS {
            // Of dead processes as well; that theirs cannot be had leaves one's own.
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
            if !self.books().reserve(0, needed_bytes, self.settings.capacity_bytes) {
                continue;
            }
            let _reserved = Reserved { tier: self, bytes: needed_bytes };
            // What cannot be compacted stays as it is.
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

    /// Writes a file, and waits until its content is on the medium. The head comes last, since the digest does.
    fn write_part(&self, part: &Path, body: &[u8], head: impl FnOnce() -> Head) -> Result<(), TierError> {
        let write = || -> io::Result<()> {
            let file = self.files.open_anywhere(part, OpenMode::Create)?;
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

    /// Gives a file whose content is on the medium the name of its region. The caller holds the leaf.
    fn publish(
        &self,
        key: RegionKey,
        part: &Path,
        mut reserved: Reserved<'_>,
    ) -> Result<Inserted, TierError> {
        let (path, leaf) = (self.layout.region(key), self.layout.leaf(shard_of(key)));
        let taken_bytes = self.files.look(part).map_err(failed("look at", part))?.taken_bytes;
        // Another thread may have been faster, or have found that nothing can be synced.
        if self.stopped.load(Ordering::Relaxed) {
            return Err(TierError::Stopped { key, path: self.layout.root.clone() });
        }
        if self.books().contains(key) && (!self.is_shared() || self.is_there(key)?) {
            return Ok(Inserted::AlreadyPresent);
        }
        let growth_bytes = GROWTH_BLOCKS * self.block_bytes;
        let needed_bytes = taken_bytes + growth_bytes;
        // A file in many pieces takes blocks for the list of them.
        if needed_bytes > reserved.bytes {
            let mut books = self.books();
            if !books.reserve(reserved.bytes, needed_bytes, self.settings.capacity_bytes) {
                let held_bytes = books.bytes() - reserved.bytes;
                // What it reserved is given back when this returns, and that takes the books.
                drop(books);
                return Err(self.full(key, needed_bytes, held_bytes));
            }
            reserved.bytes = needed_bytes;
        }
        let before = self.files.look(&leaf).map_err(failed("look at", &leaf))?.taken_bytes;
        let is_draft = self.makes_drafts();
        if is_draft {
            // By this name it is found from here on. Most file systems have it on the medium already: it came with the file.
            self.sync_leaf(key)?;
        }
        self.files.rename(part, &path).map_err(failed("publish", &path))?;
        if !is_draft && let Err(error) = self.sync_leaf(key) {
            // It was not said to be there. If it cannot be removed either, whoever opens the tier next finds it whole.
            let _ = self.files.remove(&path);
            return Err(error);
        }
        // It is there: that its folder cannot be looked at changes nothing.
        let after = self.files.look(&leaf).map_or(before, |found| found.taken_bytes);
        let mut books = self.books();
        books.add(key, taken_bytes);
        books.grow(key, after.saturating_sub(before));
        drop(books);
        drop(reserved);
        Ok(Inserted::New)
    }
}
