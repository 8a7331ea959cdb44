//! Shared memory buffers offered by a peer: copied into memory of this process, and kept mapped for reuse.

use super::is_name;
use memmap2::{Mmap, MmapOptions};
use parking_lot::Mutex;
use pleach_regions::Decoder;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of mapped buffers per peer. A peer uses fewer, but withdraws unused ones late.
const MOST: usize = 16;

/// Bytes copied and digested at once, which stay in the L2 cache.
const PIECE_BYTES: usize = 128 << 10;

/// Mapped buffers of one peer.
#[derive(Debug, Default)]
pub(in crate::exchange) struct ReceiveBuffers {
    open: Mutex<HashMap<u32, Arc<Mmap>>>,
}

impl ReceiveBuffers {
    /// Maps the buffer `slot` of at least `bytes` bytes. At first use, the buffer is the file of this name.
    pub(in crate::exchange) fn open(
        &self,
        slot: u32,
        folder: &Path,
        file: Option<&str>,
        bytes: u64,
    ) -> io::Result<MappedBuffer> {
        let mut open = self.open.lock();
        let map = match (open.get(&slot), file) {
            (Some(map), _) => Arc::clone(map),
            (None, Some(name)) if is_name(name) && open.len() < MOST => {
                let map = Arc::new(map(&folder.join(name), bytes)?);
                open.insert(slot, Arc::clone(&map));
                map
            }
            (None, _) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        // Released before the copy, so that other buffers of this peer are read in parallel.
        drop(open);
        if (map.len() as u64) < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Cannot truncate: the mapping, whose length is a usize, has at least this length.
        Ok(MappedBuffer { map, bytes: bytes as usize })
    }

    /// Unmaps a withdrawn buffer.
    pub(in crate::exchange) fn close(&self, slot: u32) {
        self.open.lock().remove(&slot);
    }
}

fn map(path: &Path, bytes: u64) -> io::Result<Mmap> {
    // Follows no link, because any user may create files in a folder such as `/dev/shm`.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // SAFETY: the sender, a worker of this cluster and of this user, does not truncate the file. The content is copied
    // before use, so a concurrent change would give the copy another digest.
    unsafe { MmapOptions::new().populate().map(&file) }
}

/// A mapped buffer.
pub(in crate::exchange) struct MappedBuffer {
    map: Arc<Mmap>,
    bytes: usize,
}

impl MappedBuffer {
    /// Copies the content. The decoder processes it while it is in the processor's caches.
    pub(in crate::exchange) fn read(&self, mut decoder: Decoder) -> (Decoder, Vec<u8>) {
        let mut body = Vec::with_capacity(self.bytes);
        for piece in self.map[..self.bytes].chunks(PIECE_BYTES) {
            let copied = body.len();
            body.extend_from_slice(piece);
            decoder.see(&body[copied..]);
        }
        (decoder, body)
    }
}
