//! Shared memory buffers, reused for one peer: memory new to a process costs several times as much as filling it.

use super::{Reserved, SharedMemoryFolder, private};
use memmap2::{MmapMut, MmapOptions};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of buffers per peer. With 2, one is filled while the peer reads the other. The rest serves slow reads.
const MOST: usize = 4;

/// Time after which an unused buffer is released.
const KEPT: Duration = Duration::from_secs(5);

/// A file in memory. It has a name until the peer has opened it.
#[derive(Debug)]
pub(in crate::exchange) struct SendBuffer {
    pub(in crate::exchange) number: u32,
    folder: Arc<SharedMemoryFolder>,
    room: Reserved,
    open: Option<Open>,
    last: Instant,
}

#[derive(Debug)]
struct Open {
    file: File,
    name: Arc<BufferName>,
    map: Option<MmapMut>,
}

/// Name of a file. The file keeps it at most until this is dropped.
#[derive(Debug)]
pub(in crate::exchange) struct BufferName {
    path: PathBuf,
    name: String,
    exists: AtomicBool,
}

impl BufferName {
    /// Returns the name while a file has it.
    pub(in crate::exchange) fn get(&self) -> Option<&str> {
        self.exists.load(Ordering::Relaxed).then_some(&self.name)
    }

    /// Removes the name. Processes that have opened the file keep it, and no other process can open it.
    pub(in crate::exchange) fn remove(&self) {
        // The swap lets one of two callers remove the file. Relaxed suffices, as no data depends on the flag.
        if self.exists.swap(false, Ordering::Relaxed) {
            // After a failure, a sweep removes the file once this process's lock is free.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for BufferName {
    fn drop(&mut self) {
        self.remove();
    }
}

impl SendBuffer {
    fn bytes(&self) -> u64 {
        self.room.bytes
    }

    /// Writes `content` at the start of the buffer. Returns the name for opening it.
    pub(in crate::exchange) fn fill(&mut self, content: &[u8]) -> io::Result<Arc<BufferName>> {
        if content.len() as u64 > self.bytes() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                // The first fill writes the file, because a full folder fails a write with an error, unlike an access to
                // mapped memory.
                let name = self.folder.file_name()?;
                let path = self.folder.path.join(&name);
                let mut file = private(&path)?;
                let name = Arc::new(BufferName { path, name, exists: AtomicBool::new(true) });
                file.write_all(content)?;
                self.open = Some(Open { file, name: Arc::clone(&name), map: None });
                return Ok(name);
            }
        };
        // Later fills use a mapping, because `write` costs more than sending the bytes over the network.
        let map = match &mut open.map {
            Some(map) => map,
            None => {
                // SAFETY: the file belongs to this process, has its full length and is never truncated. The peer maps it
                // read-only, and reads it only between the offer and the return. A read at another time would get bytes of
                // another digest.
                let map = unsafe { MmapOptions::new().populate().map_mut(&open.file)? };
                open.map.insert(map)
            }
        };
        map[..content.len()].copy_from_slice(content);
        Ok(Arc::clone(&open.name))
    }
}

/// Buffers of one peer.
#[derive(Debug, Default)]
pub(in crate::exchange) struct SendBuffers {
    free: Vec<SendBuffer>,
    lent: usize,
    next: u32,
}

impl SendBuffers {
    /// Returns a buffer of at least `bytes` and the number of the buffer evicted for it. `None` if all are in use or the
    /// limit is reached.
    pub(in crate::exchange) fn take(
        &mut self,
        folder: &Arc<SharedMemoryFolder>,
        bytes: u64,
    ) -> (Option<SendBuffer>, Option<u32>) {
        let fits = |slot: &&SendBuffer| slot.bytes() >= bytes;
        // The smallest that fits leaves larger buffers to larger regions. The number breaks ties.
        let best = self.free.iter().filter(fits).map(|slot| (slot.bytes(), slot.number)).min();
        if let Some((_, number)) = best {
            let at = self.free.iter().position(|slot| slot.number == number);
            self.lent += 1;
            return (at.map(|at| self.free.swap_remove(at)), None);
        }
        if self.lent >= MOST {
            return (None, None);
        }
        // All free buffers are too small.
        let gone =
            if self.lent + self.free.len() >= MOST { self.free.pop().map(|slot| slot.number) } else { None };
        // After the eviction, whose bytes count toward the same limit.
        let Some(room) = folder.reserve(bytes) else { return (None, gone) };
        let number = self.next;
        // Each buffer gets a new number, because the peer keeps a mapping under the number until it is withdrawn.
        self.next = self.next.wrapping_add(1);
        self.lent += 1;
        let slot = SendBuffer { number, folder: Arc::clone(folder), room, open: None, last: Instant::now() };
        (Some(slot), gone)
    }

    /// Returns a buffer that the peer has read.
    pub(in crate::exchange) fn release(&mut self, mut slot: SendBuffer) {
        self.lent -= 1;
        slot.last = Instant::now();
        self.free.push(slot);
    }

    /// Gives up a buffer that will not be returned.
    pub(in crate::exchange) fn lose(&mut self, slot: SendBuffer) {
        self.lent -= 1;
        drop(slot);
    }

    /// Releases unused buffers. Returns their numbers.
    pub(in crate::exchange) fn trim(&mut self) -> Vec<u32> {
        let (keep, go) =
            std::mem::take(&mut self.free).into_iter().partition(|slot| slot.last.elapsed() < KEPT);
        self.free = keep;
        go.iter().map(|slot: &SendBuffer| slot.number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::shared_memory::receive_buffers::ReceiveBuffers;
    use pleach_regions::{DataRegion, Decoder, Raster};
    use std::path::Path;

    fn files(place: &Path) -> usize {
        fs::read_dir(place).unwrap().count()
    }

    /// Uses one file three times. It has a name only until both sides have opened it.
    #[test]
    fn buffer_is_read_in_place_and_reused() {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(SharedMemoryFolder::open(place.path(), 1 << 20).unwrap());
        let (mut slots, views) = (SendBuffers::default(), ReceiveBuffers::default());
        for (value, height) in [(1, 700), (2, 700), (3, 500)] {
            let region = DataRegion::Gray8(Raster::filled(1000, height, 1, value).unwrap());
            let (head, body) = region.encode_parts(&region.digest(), false);
            let (slot, gone) = slots.take(&folder, body.len() as u64);
            let mut slot = slot.unwrap();
            assert_eq!((slot.number, gone), (0, None));
            let name = slot.fill(&body).unwrap();
            assert_eq!(name.get().is_some(), value == 1);
            let view = views.open(0, place.path(), name.get(), body.len() as u64).unwrap();
            name.remove();
            assert_eq!(files(place.path()), 1, "the lock");
            let (decoder, body) = view.read(Decoder::new(&head).unwrap());
            assert_eq!(decoder.finish(body), Ok(region));
            slots.release(slot);
        }
        assert!(
            views.open(1, place.path(), None, 1).is_err()
                && views.open(0, place.path(), None, 700_001).is_err()
        );
    }

    #[test]
    fn slots_and_their_bytes_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(SharedMemoryFolder::open(place.path(), 100).unwrap());
        let mut slots = SendBuffers::default();
        let mut lent: Vec<_> = (0..MOST).filter_map(|_| slots.take(&folder, 10).0).collect();
        assert_eq!(lent.len(), MOST);
        assert!(slots.take(&folder, 10).0.is_none(), "all are lent");
        let first = lent.remove(0);
        slots.release(first);
        // The free buffer is too small and is evicted.
        let (larger, gone) = slots.take(&folder, 70);
        assert_eq!((larger.map(|slot| slot.bytes()), gone), (Some(70), Some(0)));
        lent.drain(..).for_each(|slot| slots.lose(slot));
        assert!(slots.take(&folder, 101).0.is_none(), "too much is lent");
        assert_eq!(files(place.path()), 1, "nothing has been filled");
    }

    #[test]
    fn unopened_file_is_removed_with_its_buffer() {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(SharedMemoryFolder::open(place.path(), 100).unwrap());
        let mut slots = SendBuffers::default();
        let mut slot = slots.take(&folder, 10).0.unwrap();
        let name = slot.fill(&[7; 10]).unwrap();
        assert!(slot.fill(&[7; 11]).is_err());
        assert_eq!(files(place.path()), 2);
        slots.lose(slot);
        drop(name);
        assert_eq!(files(place.path()), 1);
    }
}
