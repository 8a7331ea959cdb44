//! Accelerators: devices that run the kernels of operations, their memory, and the emulated device.
//!
//! A [`Device`] belongs to one slot and to one thread. [`find`] opens those that a [`DeviceSpec`] asks for. Results of a
//! device have the bits of the CPU variant, so no key, cache or provenance knows it.

#[cfg(not(feature = "opencl"))]
mod absent;
mod device;
mod emulated;
mod find;
mod kernel;
pub mod kernels;
#[cfg(feature = "opencl")]
mod opencl;
mod output;
mod spec;

#[cfg(not(feature = "opencl"))]
pub use absent::{Buffer, OpenClDevice, Task, serve_probe};
pub use device::{Device, DeviceError, Prefetcher, Transfers};
pub use emulated::EmulatedDevice;
pub use find::{FindError, FoundDevices, find};
#[cfg(feature = "opencl")]
pub use opencl::{Buffer, OpenClDevice, Task, probe::serve_probe};
pub use output::{DeviceOutput, OnDevice, RasterForm};
pub use spec::{DeviceSpec, ParseSpecError};
