//! Memory files of inputs, kept while other tasks may read the same region.
//!
//! A file is attached to its region, and ends with it. The number and the bytes of files are limited: the oldest end first.

use super::sealed;
use parking_lot::Mutex;
use pleach_regions::DataRegion;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// 256 KiB: least bytes of a kept file. Smaller ones are written within 100 µs.
const LEAST_BYTES: u64 = 256 * 1024;

/// Maximum kept files. A process may have 1024 open files by default.
const MAX_FILES: usize = 64;

/// 10 s: maximum time without a reader. Tasks that read one region follow each other.
const IDLE: Duration = Duration::from_secs(10);

/// The kept files of a pool.
#[derive(Debug, Default)]
pub(crate) struct KeptFiles {
    /// Those of dropped regions, too, until the next file. The oldest first.
    slots: Mutex<VecDeque<Weak<Slot>>>,
    bytes: Arc<AtomicU64>,
}

/// Place of a file, attached to a region.
#[derive(Debug, Default)]
struct Slot {
    /// Locked while the file is written: other readers wait for it.
    file: Mutex<Option<KeptFile>>,
}

#[derive(Debug)]
struct KeptFile {
    file: Arc<OwnedFd>,
    used: Instant,
    _counted: Counted,
}

/// Bytes of a file, counted until its end.
#[derive(Debug)]
struct Counted {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl KeptFiles {
    /// Returns a sealed memory file of the content of a region: the kept one, or a new one, which is kept if `most` bytes suffice.
    pub(crate) fn file(&self, region: &DataRegion, most: u64) -> io::Result<Arc<OwnedFd>> {
        let new = || sealed(&region.content()).map(Arc::new);
        let bytes = region.bytes();
        let attachment = region.attachment().filter(|_| (LEAST_BYTES..=most).contains(&bytes));
        let Some(slot) = attachment.map(|attachment| attachment.get_or_init(Slot::default)) else {
            return new();
        };
        let mut place = slot.file.lock();
        if let Some(kept) = &mut *place {
            kept.used = Instant::now();
            return Ok(Arc::clone(&kept.file));
        }
        let file = new()?;
        self.shrink(MAX_FILES - 1, most - bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let counted = Counted { all: Arc::clone(&self.bytes), bytes };
        *place = Some(KeptFile { file: Arc::clone(&file), used: Instant::now(), _counted: counted });
        self.slots.lock().push_back(Arc::downgrade(&slot));
        Ok(file)
    }

    /// Returns the bytes of all kept files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends the oldest files until at most `files` files with `bytes` bytes are kept. Tasks that use them keep them until their end.
    pub(crate) fn shrink(&self, files: usize, bytes: u64) {
        let mut slots = self.slots.lock();
        slots.retain(|slot| slot.strong_count() > 0);
        while slots.len() > files || (self.bytes() > bytes && !slots.is_empty()) {
            let oldest = slots.pop_front().and_then(|slot| slot.upgrade());
            // A locked one is that of the caller, or in use at this moment.
            if let Some(mut file) = oldest.as_ref().and_then(|slot| slot.file.try_lock()) {
                *file = None;
            }
        }
    }

    /// Ends files that no task has read for long.
    pub(crate) fn sweep(&self) {
        self.slots.lock().retain(|slot| {
            let Some(slot) = slot.upgrade() else { return false };
            let Some(mut place) = slot.file.try_lock() else { return true };
            if place.as_ref().is_some_and(|kept| kept.used.elapsed() > IDLE) {
                *place = None;
            }
            place.is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Raster;

    fn region(value: u8) -> DataRegion {
        DataRegion::Gray8(Raster::filled(1024, 512, 1, value).unwrap())
    }

    const BYTES: u64 = 1024 * 512;

    #[test]
    fn file_is_kept_until_the_region_is_dropped() {
        let files = KeptFiles::default();
        let (first, second) = (region(1), region(2));
        let file = files.file(&first, u64::MAX).unwrap();
        assert!(Arc::ptr_eq(&file, &files.file(&first, u64::MAX).unwrap()));
        assert!(
            !Arc::ptr_eq(&file, &files.file(&first.clone(), u64::MAX).unwrap()),
            "a copy is another region"
        );
        assert!(!Arc::ptr_eq(&file, &files.file(&second, u64::MAX).unwrap()));
        assert_eq!(files.bytes(), 2 * BYTES);
        drop(first);
        assert_eq!(files.bytes(), BYTES);
        let content =
            super::super::content("x", files.file(&second, u64::MAX).unwrap().try_clone().unwrap(), BYTES);
        assert_eq!(content.unwrap(), *second.content());
    }

    #[test]
    fn oldest_files_end_first_and_small_ones_are_not_kept() {
        let files = KeptFiles::default();
        let regions = [region(1), region(2), region(3)];
        let kept: Vec<_> = regions.iter().map(|region| files.file(region, 2 * BYTES).unwrap()).collect();
        assert_eq!(files.bytes(), 2 * BYTES);
        assert!(Arc::ptr_eq(&kept[2], &files.file(&regions[2], 2 * BYTES).unwrap()));
        assert!(!Arc::ptr_eq(&kept[0], &files.file(&regions[0], 2 * BYTES).unwrap()));
        files.shrink(0, 0);
        assert_eq!(files.bytes(), 0);
        let small = DataRegion::Gray8(Raster::filled(8, 8, 1, 1).unwrap());
        files.file(&small, u64::MAX).unwrap();
        files.file(&regions[0], BYTES - 1).unwrap();
        assert_eq!(files.bytes(), 0);
    }
}
