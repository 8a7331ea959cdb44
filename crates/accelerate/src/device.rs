//! The trait of devices, and their errors.

use pleach_regions::DataRegion;
use std::any::Any;
use std::time::Duration;
use thiserror::Error;

/// Bytes moved between host and device since the device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// From the host to the device, by tasks.
    pub uploaded_bytes: u64,
    /// From the device to the host.
    pub downloaded_bytes: u64,
    /// From the host to the device, by its [`Prefetcher`].
    pub prefetched_bytes: u64,
    /// Prefetched bytes that a task has used.
    pub used_prefetched_bytes: u64,
}

/// An accelerator: one queue of kernels and the buffers that they use. One thread owns it.
pub trait Device: Send {
    /// Returns the name for logs, metrics and reports, such as `NVIDIA A100 (NVIDIA CUDA)` or `emulated 2x`.
    fn name(&self) -> &str;

    /// Returns the limit of the buffers on the device, bytes.
    fn memory_bytes(&self) -> u64;

    /// Returns the bytes of the buffers on the device now, resident regions included.
    fn used_bytes(&self) -> u64;

    /// Returns the factor N of an emulated device `emulate:Nx`. It runs the CPU variant and waits until core seconds /
    /// (gain × N) have passed. `None` for a device that runs kernels.
    fn emulation(&self) -> Option<f64> {
        None
    }

    /// Limits the time of the next task, uploads, kernels and downloads together. A task that takes longer fails with
    /// [`DeviceError::TimedOut`]. `None` removes the limit.
    fn set_time_limit(&mut self, _limit: Option<Duration>) {}

    /// Returns the bytes moved so far.
    fn transfers(&self) -> Transfers {
        Transfers::default()
    }

    /// Returns the uploader of regions for later tasks. `None` for a device that cannot upload while it runs a task.
    fn prefetcher(&mut self) -> Option<Box<dyn Prefetcher>> {
        None
    }

    /// Removes all resident regions from the device.
    fn clear(&mut self) {}

    /// Gives kernels access to the type of the device.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Uploads regions to a device, while the thread of the device runs a task. Another thread owns it.
pub trait Prefetcher: Send {
    /// Uploads a region that a later task reads, unless it is on the device already. Evicts no region that the running task uses.
    /// Returns the uploaded bytes: 0 for a region that is on the device, is of a type without kernels, or does not fit.
    ///
    /// # Errors
    /// Returns a [`DeviceError`]. The task that reads the region uploads it then.
    fn prefetch(&mut self, region: &DataRegion) -> Result<u64, DeviceError>;
}

/// Error of a device. The task that met it can run on a core.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device or its driver does not answer any more. No later task can run on it.
    #[error("{device}: lost: {cause}")]
    Lost {
        /// Name of the device.
        device: String,
        /// Error of the driver.
        cause: String,
    },
    /// A buffer does not fit into the memory of the device.
    #[error("{device}: a buffer of {bytes} B does not fit; {used_bytes} B of {memory_bytes} B are in use")]
    OutOfMemory {
        /// Name of the device.
        device: String,
        /// Bytes of the buffer.
        bytes: u64,
        /// Bytes in use that no eviction could free.
        used_bytes: u64,
        /// Limit.
        memory_bytes: u64,
    },
    /// A kernel does not compile.
    #[error("{device}: kernels {program}: {log}")]
    Compile {
        /// Name of the device.
        device: String,
        /// Name of the program.
        program: String,
        /// Messages of the driver's compiler.
        log: String,
    },
    /// A task did not end within its time limit. The device may still be busy with it.
    #[error("{device}: no result within {} s", .limit.as_secs_f64())]
    TimedOut {
        /// Name of the device.
        device: String,
        /// The limit.
        limit: Duration,
    },
    /// The operation has no kernel for this kind of device, or not for these inputs.
    #[error("{device}: {cause}")]
    Unsupported {
        /// Name of the device.
        device: String,
        /// Reason.
        cause: String,
    },
    /// A call of the driver failed.
    #[error("{device}: {call}: {cause}")]
    Call {
        /// Name of the device.
        device: String,
        /// The call.
        call: &'static str,
        /// Error of the driver.
        cause: String,
    },
}

impl DeviceError {
    /// Returns a word for the error in metrics: `lost`, `memory`, `compile`, `timeout` or `other`.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost",
            Self::OutOfMemory { .. } => "memory",
            Self::Compile { .. } => "compile",
            Self::TimedOut { .. } => "timeout",
            Self::Unsupported { .. } | Self::Call { .. } => "other",
        }
    }

    /// Returns whether the device may still run other tasks.
    #[must_use]
    pub fn is_usable_after(&self) -> bool {
        !matches!(self, Self::Lost { .. } | Self::TimedOut { .. })
    }
}
