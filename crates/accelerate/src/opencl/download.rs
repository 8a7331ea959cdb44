//! Downloads of outputs by a queue of their own, while the thread of the device runs a later task.

use super::errors::call_error;
use super::memory::{Buffer, DeviceMemory};
use crate::output::{OnDevice, RasterForm};
use crate::{DeviceError, DeviceOutput};
use opencl3::command_queue::CommandQueue;
use opencl3::types::CL_BLOCKING;
use pleach_regions::{DataRegion, Raster};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Queue for downloads of an OpenCL device.
#[derive(Debug)]
pub(super) struct Downloads {
    queue: ManuallyDrop<CommandQueue>,
    memory: Arc<DeviceMemory>,
}

impl Downloads {
    pub(super) fn new(memory: &Arc<DeviceMemory>) -> Result<Self, DeviceError> {
        let failed = |error| call_error(memory.name(), "clCreateCommandQueue", &error);
        let queue = CommandQueue::create_default(&memory.context, 0).map_err(failed)?;
        Ok(Self { queue: ManuallyDrop::new(queue), memory: Arc::clone(memory) })
    }

    fn read(&self, buffer: &Buffer) -> Result<Vec<u8>, DeviceError> {
        let mut data = vec![0; buffer.bytes()];
        if data.is_empty() {
            return Ok(data);
        }
        // SAFETY: `data` is as long as the buffer, and a blocking call does not keep the pointer.
        let read = unsafe { self.queue.enqueue_read_buffer(buffer.memory(), CL_BLOCKING, 0, &mut data, &[]) };
        read.map_err(|error| {
            let error = call_error(self.memory.name(), "clEnqueueReadBuffer", &error);
            if let DeviceError::Lost { cause, .. } = &error {
                self.memory.set_broken(cause.clone());
            }
            error
        })?;
        self.memory.count_downloaded(data.len());
        Ok(data)
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        // A driver may wait for a hanging kernel when a queue of its device is released.
        if !self.memory.is_broken() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.queue) }
        }
    }
}

/// The pixels of an output on the device. Its bytes are not evicted.
struct PixelsOnDevice {
    /// `None` once it is dropped.
    buffer: Option<Buffer>,
    form: RasterForm,
    downloads: Arc<Downloads>,
}

impl PixelsOnDevice {
    fn region(&self) -> Result<DataRegion, DeviceError> {
        if let Some(lost) = self.downloads.memory.lost() {
            return Err(lost);
        }
        let data = self.buffer.as_ref().map_or(Ok(Vec::new()), |buffer| self.downloads.read(buffer))?;
        let RasterForm { width_px, height_px, channels, region } = self.form;
        let raster = Raster::new(width_px, height_px, channels, data).map_err(|error| {
            let device = self.downloads.memory.name().to_owned();
            DeviceError::Call { device, call: "download", cause: error.to_string() }
        })?;
        Ok(region(raster))
    }
}

impl OnDevice for PixelsOnDevice {
    /// Keeps the bytes on the device as well, for later tasks that read the region.
    fn download(mut self: Box<Self>) -> Result<DataRegion, DeviceError> {
        let region = self.region()?;
        if let Some(buffer) = self.buffer.take() {
            self.downloads.memory.keep(&region, buffer);
        }
        Ok(region)
    }
}

impl Drop for PixelsOnDevice {
    fn drop(&mut self) {
        // The memory must be free when a task that waits for it is woken.
        drop(self.buffer.take());
        self.downloads.memory.end_download();
    }
}

/// Returns pixels as an output. All kernels that write them have ended.
pub(super) fn output(downloads: &Arc<Downloads>, buffer: Buffer, form: RasterForm) -> DeviceOutput {
    downloads.memory.begin_download();
    DeviceOutput::Device(Box::new(PixelsOnDevice {
        buffer: Some(buffer),
        form,
        downloads: Arc::clone(downloads),
    }))
}
