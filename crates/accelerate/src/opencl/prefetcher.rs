//! Uploads of regions by a second queue of a device, while the thread of the device runs a task.

use super::errors::call_error;
use super::memory::{Buffer, DeviceMemory};
use crate::{DeviceError, Prefetcher};
use opencl3::command_queue::{CommandQueue, enqueue_write_buffer};
use opencl3::event::Event;
use opencl3::memory::ClMem;
use opencl3::types::CL_BLOCKING;
use pleach_regions::DataRegion;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Second queue of an OpenCL device. Its uploads become resident regions, in the form of the inputs of tasks.
#[derive(Debug)]
pub(super) struct OpenClPrefetcher {
    queue: ManuallyDrop<CommandQueue>,
    memory: Arc<DeviceMemory>,
}

impl OpenClPrefetcher {
    /// Returns `None` if the driver has no second queue.
    pub(super) fn new(memory: &Arc<DeviceMemory>) -> Option<Self> {
        let queue = CommandQueue::create_default(&memory.context, 0).ok()?;
        Some(Self { queue: ManuallyDrop::new(queue), memory: Arc::clone(memory) })
    }

    fn write(&self, buffer: &Buffer, data: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the buffer has the length of `data`, and a blocking call does not keep the pointer.
        let written = unsafe {
            enqueue_write_buffer(
                self.queue.get(),
                buffer.memory().get(),
                CL_BLOCKING,
                0,
                data.len(),
                data.as_ptr().cast_mut().cast(),
                0,
                std::ptr::null(),
            )
        };
        let failed = |code: i32| call_error(self.memory.name(), "clEnqueueWriteBuffer", &code.into());
        written.map(|event| drop(Event::new(event))).map_err(failed)
    }
}

impl Prefetcher for OpenClPrefetcher {
    fn prefetch(&mut self, region: &DataRegion) -> Result<u64, DeviceError> {
        let Ok(raster) = region.raster(region.element()) else { return Ok(0) };
        if self.memory.is_broken() {
            return Ok(0);
        }
        let data = raster.data();
        self.memory.prefetch(region, data.len(), |buffer| self.write(buffer, data))
    }
}

impl Drop for OpenClPrefetcher {
    fn drop(&mut self) {
        // A driver may wait for a hanging kernel when a queue of its device is released.
        if !self.memory.is_broken() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.queue) }
        }
    }
}
