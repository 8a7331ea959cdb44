//! Pieces of shared memory that a peer has lent: read into memory of this process, and kept open for the next time.

use super::is_name;
use memmap2::{Mmap, MmapOptions};
use pleach_regions::Decoder;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Open at once, of one peer. It lends fewer, but is told late of those that are not needed.
const MOST: usize = 16;

/// Copied and digested at once: it stays in the second cache.
const PIECE_BYTES: usize = 128 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::exchange) struct ReceiveBuffers {
    open: Mutex<HashMap<u32, Arc<Mmap>>>,
}

impl ReceiveBuffers {
    /// The piece `slot`, of at least `bytes` bytes, which is the file of this name when it is seen for the first time.
    pub(in crate::exchange) fn open(
        &self,
        slot: u32,
        folder: &Path,
        file: Option<&str>,
        bytes: u64,
    ) -> io::Result<MappedBuffer> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let map = match (open.get(&slot), file) {
            (Some(map), _) => Arc::clone(map),
            (None, Some(name)) if is_name(name) && open.len() < MOST => {
                let map = Arc::new(map(&folder.join(name), bytes)?);
                open.insert(slot, Arc::clone(&map));
                map
            }
            (None, _) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        drop(open);
        if (map.len() as u64) < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(MappedBuffer { map, bytes: bytes as usize })
    }

    /// A piece that will not be lent again.
    pub(in crate::exchange) fn close(&self, slot: u32) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot);
    }
}

fn map(path: &Path, bytes: u64) -> io::Result<Mmap> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // SAFETY: the lender, a worker of this cluster and of this user, does not make the file shorter. What it holds is
    // copied before anything is made of it: were it changed meanwhile, the copy would have another digest.
    unsafe { MmapOptions::new().populate().map(&file) }
}

/// A piece that is open.
pub(in crate::exchange) struct MappedBuffer {
    map: Arc<Mmap>,
    bytes: usize,
}

impl MappedBuffer {
    /// A copy of what is in it, which the decoder has seen while it was in the processor's caches.
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
