//! Memory of a device: its buffers, their limit, and the regions that stay there for later tasks.
//!
//! The thread of the device and that of its prefetcher share it. The lock is held for look-ups and evictions, never during a transfer
//! or an allocation of the driver. At most one region is being prefetched: a task that needs it, or its memory, waits for the end.
//! A task that needs the memory of outputs that are being downloaded waits for these as well.

use super::errors::{call_error, is_out_of_memory};
use crate::DeviceError;
use opencl3::context::Context;
use opencl3::memory::{Buffer as ClBuffer, CL_MEM_READ_WRITE, ClMem, release_mem_object};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pleach_regions::DataRegion;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// Bytes on a device. Clones refer to the same bytes, which are freed with the last one.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<Allocation>);

#[derive(Debug)]
struct Allocation {
    memory: ManuallyDrop<ClBuffer<u8>>,
    reservation: Reservation,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // A lost device answers with an error, which the wrapper's own drop would turn into a panic. Its memory is gone anyway.
        // SAFETY: the buffer is valid, and nothing uses it after its last owner.
        let _ = unsafe { release_mem_object(self.memory.get()) };
    }
}

/// Bytes that count as used until it is dropped.
#[derive(Debug)]
struct Reservation {
    bytes: usize,
    used_bytes: Arc<AtomicU64>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.used_bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

impl Buffer {
    pub(super) fn memory(&self) -> &ClBuffer<u8> {
        &self.0.memory
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.reservation.bytes
    }
}

/// Identity of a region in memory: its attachment owns it, so it ends with the region.
#[derive(Debug, Default)]
struct Identity(#[expect(dead_code, reason = "identities differ by their address")] u8);

fn identity(region: &DataRegion) -> Option<Weak<Identity>> {
    Some(Arc::downgrade(&region.attachment()?.get_or_init(Identity::default)))
}

/// A region on the device.
#[derive(Debug)]
struct Resident {
    identity: Weak<Identity>,
    buffer: Buffer,
    /// Number of the task that was running at its last use.
    used_in: u64,
    /// It was prefetched, and no task has used it yet.
    is_ahead: bool,
}

/// Bytes of prefetched regions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrefetchedBytes {
    pub(super) uploaded: u64,
    pub(super) used: u64,
}

/// Regions on a device, least recently used first.
#[derive(Debug, Default)]
pub(super) struct ResidentRegions {
    regions: Vec<Resident>,
    /// The region that is being prefetched.
    uploading: Option<Weak<Identity>>,
    /// Number of outputs that are not downloaded yet.
    downloads: usize,
    /// Number of the present task, or of the last one.
    task: u64,
    prefetched: PrefetchedBytes,
}

impl ResidentRegions {
    /// Makes a region the most recently used one. Returns false if it is not on the device.
    fn touch(&mut self, identity: &Weak<Identity>) -> bool {
        let index = self.regions.iter().position(|known| known.identity.ptr_eq(identity));
        let Some(index) = index else { return false };
        let mut entry = self.regions.remove(index);
        entry.used_in = self.task;
        self.regions.push(entry);
        true
    }

    /// Returns the buffer of a region for a task.
    fn get(&mut self, identity: &Weak<Identity>) -> Option<Buffer> {
        if !self.touch(identity) {
            return None;
        }
        let entry = self.regions.last_mut()?;
        if std::mem::take(&mut entry.is_ahead) {
            self.prefetched.used += entry.buffer.bytes() as u64;
        }
        Some(entry.buffer.clone())
    }

    fn insert(&mut self, identity: Weak<Identity>, buffer: Buffer, is_ahead: bool) {
        self.regions.push(Resident { identity, buffer, used_in: self.task, is_ahead });
    }

    /// Begins a task: frees the buffers of regions that were dropped.
    pub(super) fn begin_task(&mut self) {
        self.task += 1;
        self.regions.retain(|entry| entry.identity.strong_count() > 0);
    }

    /// Frees the least recently used buffer that no task uses and that was last used before task number `before`. Returns whether
    /// one was freed.
    fn evict(&mut self, before: u64) -> bool {
        let may = |entry: &Resident| entry.used_in < before && Arc::strong_count(&entry.buffer.0) == 1;
        let unused = self.regions.iter().position(may);
        unused.map(|index| self.regions.remove(index)).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.regions.clear();
    }

    /// Returns the number of regions on the device.
    pub(super) fn len(&self) -> usize {
        self.regions.len()
    }

    pub(super) fn prefetched(&self) -> PrefetchedBytes {
        self.prefetched
    }
}

/// Memory of a device, with its context.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    name: String,
    limit_bytes: u64,
    max_buffer_bytes: u64,
    used_bytes: Arc<AtomicU64>,
    regions: Mutex<ResidentRegions>,
    downloaded_bytes: AtomicU64,
    /// A prefetch or a download has ended.
    transferred: Condvar,
    pub(super) context: ManuallyDrop<Context>,
    /// Why no task can run on the device any more. No call of the driver may wait for it then.
    broken: OnceLock<String>,
}

impl DeviceMemory {
    pub(super) fn new(context: Context, name: String, limit_bytes: u64, max_buffer_bytes: u64) -> Self {
        Self {
            name,
            limit_bytes,
            max_buffer_bytes,
            used_bytes: Arc::default(),
            regions: Mutex::default(),
            downloaded_bytes: AtomicU64::new(0),
            transferred: Condvar::new(),
            context: ManuallyDrop::new(context),
            broken: OnceLock::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn regions(&self) -> MutexGuard<'_, ResidentRegions> {
        self.regions.lock()
    }

    /// Marks the device as unusable after an error.
    pub(super) fn set_broken(&self, cause: String) {
        // The first error is the cause of the others.
        let _ = self.broken.set(cause);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Returns the error of all calls after the one that ended the device.
    pub(super) fn lost(&self) -> Option<DeviceError> {
        let cause = self.broken.get()?.clone();
        Some(DeviceError::Lost { device: self.name.clone(), cause })
    }

    pub(super) fn downloaded_bytes(&self) -> u64 {
        self.downloaded_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn count_downloaded(&self, bytes: usize) {
        self.downloaded_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn begin_download(&self) {
        self.regions.lock().downloads += 1;
    }

    pub(super) fn end_download(&self) {
        self.regions.lock().downloads -= 1;
        self.transferred.notify_all();
    }

    /// Returns the buffer of a region for a task. Waits until `deadline` if the region is being prefetched. `None` if it is not on
    /// the device.
    pub(super) fn find(&self, region: &DataRegion, deadline: Option<Instant>) -> Option<Buffer> {
        let identity = identity(region)?;
        let mut regions = self.regions.lock();
        while regions.uploading.as_ref().is_some_and(|uploading| uploading.ptr_eq(&identity)) {
            if !self.wait(&mut regions, deadline) {
                break;
            }
        }
        regions.get(&identity)
    }

    /// Keeps the buffer of a region, unless the region is of a small type without attachment.
    pub(super) fn keep(&self, region: &DataRegion, buffer: Buffer) {
        if let Some(identity) = identity(region) {
            self.regions.lock().insert(identity, buffer, false);
        }
    }

    /// Returns a buffer with undefined content. Evicts resident regions, the least recently used ones first, until it fits.
    pub(super) fn allocate(&self, bytes: usize, deadline: Option<Instant>) -> Result<Buffer, DeviceError> {
        let mut regions = self.regions.lock();
        let reservation = loop {
            while !self.fits(bytes) && regions.evict(u64::MAX) {}
            if bytes as u64 <= self.max_buffer_bytes && self.fits(bytes) {
                break self.reserve(bytes);
            }
            // A prefetched region can be evicted once its upload has ended, and an output once it is downloaded.
            let is_waiting = regions.uploading.is_some() || regions.downloads > 0;
            if !is_waiting || !self.wait(&mut regions, deadline) {
                return Err(self.out_of_memory(bytes as u64));
            }
        };
        drop(regions);
        loop {
            match self.create(bytes) {
                Ok(memory) => return Ok(Buffer(Arc::new(Allocation { memory, reservation }))),
                // Other programs may use the device's memory too.
                Err(error) if is_out_of_memory(&error) && self.regions.lock().evict(u64::MAX) => {}
                Err(error) if is_out_of_memory(&error) => {
                    drop(reservation);
                    return Err(self.out_of_memory(bytes as u64));
                }
                Err(error) => return Err(call_error(&self.name, "clCreateBuffer", &error)),
            }
        }
    }

    /// Uploads a region by `write` while a task may run. Evicts only regions that were last used before that task. Returns the
    /// uploaded bytes: 0 for a region that is on the device, has no attachment or does not fit.
    pub(super) fn prefetch(
        &self,
        region: &DataRegion,
        bytes: usize,
        write: impl FnOnce(&Buffer) -> Result<(), DeviceError>,
    ) -> Result<u64, DeviceError> {
        let Some(identity) = identity(region) else { return Ok(0) };
        let mut regions = self.regions.lock();
        if regions.touch(&identity) {
            return Ok(0);
        }
        let task = regions.task;
        while !self.fits(bytes) && regions.evict(task) {}
        if bytes as u64 > self.max_buffer_bytes || !self.fits(bytes) {
            return Ok(0);
        }
        let reservation = self.reserve(bytes);
        regions.uploading = Some(Weak::clone(&identity));
        drop(regions);
        // Also ends a prefetch that fails or panics.
        let _ends = EndOfPrefetch(self);
        let memory = self.create(bytes).map_err(|error| call_error(&self.name, "clCreateBuffer", &error))?;
        let buffer = Buffer(Arc::new(Allocation { memory, reservation }));
        write(&buffer)?;
        let mut regions = self.regions.lock();
        // A task that did not wait any longer has uploaded it as well.
        if regions.touch(&identity) {
            return Ok(0);
        }
        regions.insert(identity, buffer, true);
        regions.prefetched.uploaded += bytes as u64;
        Ok(bytes as u64)
    }

    pub(super) fn out_of_memory(&self, bytes: u64) -> DeviceError {
        let (device, used_bytes) = (self.name.clone(), self.used_bytes());
        DeviceError::OutOfMemory { device, bytes, used_bytes, memory_bytes: self.limit_bytes }
    }

    fn fits(&self, bytes: usize) -> bool {
        self.used_bytes().saturating_add(bytes as u64) <= self.limit_bytes
    }

    /// Counts bytes as used. The caller holds the lock, so that two threads cannot take the same bytes.
    fn reserve(&self, bytes: usize) -> Reservation {
        self.used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Reservation { bytes, used_bytes: Arc::clone(&self.used_bytes) }
    }

    fn create(&self, bytes: usize) -> opencl3::Result<ManuallyDrop<ClBuffer<u8>>> {
        // SAFETY: without CL_MEM_USE_HOST_PTR the host pointer is null and unused.
        let created =
            unsafe { ClBuffer::create(&self.context, CL_MEM_READ_WRITE, bytes.max(1), ptr::null_mut()) };
        created.map(ManuallyDrop::new)
    }

    /// Waits for the end of a prefetch or of a download. Returns false after `deadline`.
    fn wait(&self, regions: &mut MutexGuard<'_, ResidentRegions>, deadline: Option<Instant>) -> bool {
        match deadline {
            Some(deadline) => !self.transferred.wait_until(regions, deadline).timed_out(),
            None => {
                self.transferred.wait(regions);
                true
            }
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if !self.is_broken() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.context) }
        }
    }
}

/// Ends a prefetch when it is dropped.
struct EndOfPrefetch<'m>(&'m DeviceMemory);

impl Drop for EndOfPrefetch<'_> {
    fn drop(&mut self) {
        self.0.regions.lock().uploading = None;
        self.0.transferred.notify_all();
    }
}
