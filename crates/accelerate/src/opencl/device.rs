//! An OpenCL device with its context and queue.

use super::download::Downloads;
use super::errors::call_error;
use super::memory::{Buffer, DeviceMemory};
use super::prefetcher::OpenClPrefetcher;
use super::program::CompiledKernels;
use super::task::Task;
use crate::{Device, DeviceError, Prefetcher, Transfers};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::Device as ClDevice;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An OpenCL device. One thread owns it. A second one may prefetch regions.
#[derive(Debug)]
pub struct OpenClDevice {
    pub(super) name: String,
    pub(super) memory: Arc<DeviceMemory>,
    pub(super) compiled: ManuallyDrop<CompiledKernels>,
    pub(super) queue: ManuallyDrop<CommandQueue>,
    pub(super) downloads: Arc<Downloads>,
    pub(super) transfers: Transfers,
    pub(super) limit: Option<Duration>,
    /// End of the present task's time.
    pub(super) deadline: Option<Instant>,
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
        let limit_bytes = memory_limit.map_or(memory_bytes, |limit| limit.min(memory_bytes));
        let memory = DeviceMemory::new(context, name.clone(), limit_bytes, max_buffer_bytes);
        let memory = Arc::new(memory);
        Ok(Self {
            downloads: Arc::new(Downloads::new(&memory)?),
            memory,
            name,
            compiled: ManuallyDrop::default(),
            queue: ManuallyDrop::new(queue),
            transfers: Transfers::default(),
            limit: None,
            deadline: None,
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
        if let Some(lost) = self.memory.lost() {
            return Err(lost);
        }
        self.memory.regions().begin_task();
        let started = Instant::now();
        self.deadline = self.limit.and_then(|limit| started.checked_add(limit));
        Ok(Task::new(self, started))
    }

    /// Returns the number of regions whose bytes are on the device.
    #[must_use]
    pub fn resident_regions(&self) -> usize {
        self.memory.regions().len()
    }

    /// Returns a buffer with undefined content. Evicts resident regions, the least recently used ones first, until it fits.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.memory.allocate(bytes, self.deadline)
    }
}

impl Device for OpenClDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.memory.limit_bytes()
    }

    fn used_bytes(&self) -> u64 {
        self.memory.used_bytes()
    }

    fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    fn transfers(&self) -> Transfers {
        let prefetched = self.memory.regions().prefetched();
        Transfers {
            prefetched_bytes: prefetched.uploaded,
            used_prefetched_bytes: prefetched.used,
            downloaded_bytes: self.transfers.downloaded_bytes + self.memory.downloaded_bytes(),
            ..self.transfers
        }
    }

    fn clear(&mut self) {
        self.memory.regions().clear();
    }

    fn prefetcher(&mut self) -> Option<Box<dyn Prefetcher>> {
        Some(Box::new(OpenClPrefetcher::new(&self.memory)?))
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for OpenClDevice {
    fn drop(&mut self) {
        // A driver may wait for a hanging kernel when its queue is released, and an error of a lost device would panic.
        if !self.memory.is_broken() {
            // SAFETY: each field is dropped once, here, and not used afterwards. Kernels come before
            // their context, which `memory` releases.
            unsafe {
                ManuallyDrop::drop(&mut self.compiled);
                ManuallyDrop::drop(&mut self.queue);
            }
        }
    }
}
