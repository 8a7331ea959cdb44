//! Buffers on a device, and the regions that stay there for later tasks.

use opencl3::memory::{Buffer as ClBuffer, ClMem, release_mem_object};
use pleach_regions::DataRegion;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Bytes on a device. Clones refer to the same bytes, which are freed with the last one.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<Allocation>);

#[derive(Debug)]
struct Allocation {
    memory: ManuallyDrop<ClBuffer<u8>>,
    bytes: usize,
    used_bytes: Arc<AtomicU64>,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // A lost device answers with an error, which the wrapper's own drop would turn into a panic. Its memory is gone anyway.
        // SAFETY: the buffer is valid, and nothing uses it after its last owner.
        let _ = unsafe { release_mem_object(self.memory.get()) };
        self.used_bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

impl Buffer {
    /// Counts `memory` of `bytes` bytes in `used_bytes` until it is freed.
    pub(super) fn new(memory: ClBuffer<u8>, bytes: usize, used_bytes: &Arc<AtomicU64>) -> Self {
        used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let used_bytes = Arc::clone(used_bytes);
        Self(Arc::new(Allocation { memory: ManuallyDrop::new(memory), bytes, used_bytes }))
    }

    pub(super) fn memory(&self) -> &ClBuffer<u8> {
        &self.0.memory
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }
}

/// Identity of a region in memory: its attachment owns it, so it ends with the region.
#[derive(Debug, Default)]
struct Identity(#[expect(dead_code, reason = "identities differ by their address")] u8);

/// Buffers of regions, least recently used first.
#[derive(Debug, Default)]
pub(super) struct ResidentRegions(Vec<(Weak<Identity>, Buffer)>);

fn identity(region: &DataRegion) -> Option<Weak<Identity>> {
    Some(Arc::downgrade(&region.attachment()?.get_or_init(Identity::default)))
}

impl ResidentRegions {
    /// Returns the buffer of a region, which becomes the most recently used one. `None` if the region is not on the device.
    pub(super) fn get(&mut self, region: &DataRegion) -> Option<Buffer> {
        let identity = identity(region)?;
        let index = self.0.iter().position(|(known, _)| known.ptr_eq(&identity))?;
        let entry = self.0.remove(index);
        let buffer = entry.1.clone();
        self.0.push(entry);
        Some(buffer)
    }

    /// Keeps the buffer of a region, unless the region is of a small type without attachment.
    pub(super) fn insert(&mut self, region: &DataRegion, buffer: Buffer) {
        if let Some(identity) = identity(region) {
            self.0.push((identity, buffer));
        }
    }

    /// Frees the buffers of regions that were dropped.
    pub(super) fn remove_dropped(&mut self) {
        self.0.retain(|(identity, _)| identity.strong_count() > 0);
    }

    /// Frees the least recently used buffer that no task uses. Returns whether one was freed.
    pub(super) fn evict(&mut self) -> bool {
        let unused = self.0.iter().position(|(_, buffer)| Arc::strong_count(&buffer.0) == 1);
        unused.map(|index| self.0.remove(index)).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of regions on the device.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
