//! An OpenCL device with its context and queue.

use super::errors::{call_error, is_out_of_memory};
use super::memory::{Buffer, ResidentRegions};
use super::program::CompiledKernels;
use super::task::Task;
use crate::{Device, DeviceError, Transfers};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::Device as ClDevice;
use opencl3::memory::{Buffer as ClBuffer, CL_MEM_READ_WRITE};
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An OpenCL device. One thread owns it.
#[derive(Debug)]
pub struct OpenClDevice {
    pub(super) name: String,
    memory_bytes: u64,
    max_buffer_bytes: u64,
    pub(super) used_bytes: Arc<AtomicU64>,
    pub(super) resident: ResidentRegions,
    pub(super) compiled: ManuallyDrop<CompiledKernels>,
    pub(super) queue: ManuallyDrop<CommandQueue>,
    pub(super) context: ManuallyDrop<Context>,
    pub(super) transfers: Transfers,
    pub(super) limit: Option<Duration>,
    /// Why no task can run on it any more.
    pub(super) broken: Option<String>,
}

impl OpenClDevice {
    /// Opens a device. `memory_limit` bounds its buffers, bytes.
    pub(super) fn open(id: &ClDevice, name: String, memory_limit: Option<u64>) -> Result<Self, DeviceError> {
        let failed = |call, error| call_error(&name, call, &error);
        let context = Context::from_device(id).map_err(|error| failed("clCreateContext", error))?;
        // A queue of OpenCL 1.2, which all drivers have: in order, without timestamps.
        let queue = CommandQueue::create_default(&context, 0)
            .map_err(|error| failed("clCreateCommandQueue", error))?;
        let memory_bytes = id.global_mem_size().map_err(|error| failed("clGetDeviceInfo", error))?;
        let max_buffer_bytes = id.max_mem_alloc_size().map_err(|error| failed("clGetDeviceInfo", error))?;
        Ok(Self {
            name,
            memory_bytes: memory_limit.map_or(memory_bytes, |limit| limit.min(memory_bytes)),
            max_buffer_bytes,
            used_bytes: Arc::default(),
            resident: ResidentRegions::default(),
            compiled: ManuallyDrop::default(),
            queue: ManuallyDrop::new(queue),
            context: ManuallyDrop::new(context),
            transfers: Transfers::default(),
            limit: None,
            broken: None,
        })
    }

    /// Returns the OpenCL device behind `device`.
    ///
    /// # Errors
    /// Returns [`DeviceError::Unsupported`] for a device of another kind.
    pub fn of(device: &mut dyn Device) -> Result<&mut Self, DeviceError> {
        let name = device.name().to_owned();
        let other = || DeviceError::Unsupported { device: name, cause: "runs no OpenCL kernels".to_owned() };
        device.as_any_mut().downcast_mut().ok_or_else(other)
    }

    /// Begins a task: its time limit starts.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] after an error that ended the device.
    pub fn begin(&mut self) -> Result<Task<'_>, DeviceError> {
        if let Some(cause) = &self.broken {
            return Err(DeviceError::Lost { device: self.name.clone(), cause: cause.clone() });
        }
        self.resident.remove_dropped();
        Ok(Task::new(self))
    }

    /// Returns the number of regions whose bytes are on the device.
    #[must_use]
    pub fn resident_regions(&self) -> usize {
        self.resident.len()
    }

    /// Returns a buffer with undefined content. Evicts resident regions, the least recently used ones first, until it fits.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<Buffer, DeviceError> {
        let wanted = bytes as u64;
        let used = Arc::clone(&self.used_bytes);
        let fits = |limit: u64| used.load(Ordering::Relaxed).saturating_add(wanted) <= limit;
        while !fits(self.memory_bytes) && self.resident.evict() {}
        if wanted > self.max_buffer_bytes || !fits(self.memory_bytes) {
            return Err(self.out_of_memory(wanted));
        }
        loop {
            // SAFETY: without CL_MEM_USE_HOST_PTR the host pointer is null and unused.
            let created =
                unsafe { ClBuffer::create(&self.context, CL_MEM_READ_WRITE, bytes.max(1), ptr::null_mut()) };
            match created {
                Ok(memory) => return Ok(Buffer::new(memory, bytes, &self.used_bytes)),
                // Other programs may use the device's memory too.
                Err(error) if is_out_of_memory(&error) && self.resident.evict() => {}
                Err(error) if is_out_of_memory(&error) => return Err(self.out_of_memory(wanted)),
                Err(error) => return Err(call_error(&self.name, "clCreateBuffer", &error)),
            }
        }
    }

    pub(super) fn out_of_memory(&self, bytes: u64) -> DeviceError {
        let (device, used_bytes) = (self.name.clone(), self.used_bytes());
        DeviceError::OutOfMemory { device, bytes, used_bytes, memory_bytes: self.memory_bytes }
    }
}

impl Device for OpenClDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    fn transfers(&self) -> Transfers {
        self.transfers
    }

    fn clear(&mut self) {
        self.resident.clear();
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for OpenClDevice {
    fn drop(&mut self) {
        // A driver may wait for a hanging kernel when its queue is released, and an error of a lost device would panic.
        if self.broken.is_none() {
            // SAFETY: each field is dropped once, here, and not used afterwards. Kernels come before their context.
            unsafe {
                ManuallyDrop::drop(&mut self.compiled);
                ManuallyDrop::drop(&mut self.queue);
                ManuallyDrop::drop(&mut self.context);
            }
        }
    }
}
