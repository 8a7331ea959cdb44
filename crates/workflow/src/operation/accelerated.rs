//! The device variant of an operation.

use super::OperationError;
use crate::value::Value;
use pleach_accelerate::{Device, DeviceError, DeviceOutput};
use pleach_regions::DataRegion;
use thiserror::Error;

/// The variant of an operation that runs on an accelerator. It has the name, the version and the bits of the CPU variant, so
/// identities, keys and caches are equal. An operation whose bits would differ is an operation of another name.
pub trait Accelerated: Send + Sync {
    /// Returns the declared gain: seconds on a core / seconds on the accelerator, transfers included. Positive. Measured
    /// seconds replace it.
    fn gain(&self) -> f64;

    /// Returns the estimated bytes on the device for an image of `pixels` pixels: inputs, outputs and scratch.
    fn device_bytes(&self, pixels: u64) -> u64;

    /// Runs the operation once on `device`. Inputs, arguments and outputs are those of [`Operation::run`](super::Operation::run).
    /// Outputs are in host memory, or on the device with their kernels ended: they are downloaded while the device runs the next
    /// task.
    ///
    /// # Errors
    /// Returns an [`AcceleratedError`]. After an error of the device the CPU variant can run instead.
    fn run_on(
        &self,
        device: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError>;

    /// Runs the operation once on `device`, and downloads its outputs.
    ///
    /// # Errors
    /// Returns an [`AcceleratedError`].
    fn run_to_host(
        &self,
        device: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DataRegion>, AcceleratedError> {
        Ok(DeviceOutput::download_all(self.run_on(device, inputs, arguments)?)?)
    }
}

/// Error of a device variant.
#[derive(Debug, Error)]
pub enum AcceleratedError {
    /// The device failed. The CPU variant can run instead.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The operation failed, as its CPU variant would.
    #[error(transparent)]
    Operation(#[from] OperationError),
}
