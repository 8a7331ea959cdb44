//! Accelerators: devices that run the kernels of operations, their memory, and the emulated device.
//!
//! A [`Device`] belongs to one slot and to one thread. [`find`] opens those that a [`DeviceSpec`] asks for. Results of a
//! device have the bits of the CPU variant, so no key, cache or provenance knows it.

mod device;
mod emulated;
mod find;
mod spec;

pub use device::{Device, DeviceError, Transfers};
pub use emulated::EmulatedDevice;
pub use find::{FindError, FoundDevices, find};
pub use spec::{DeviceSpec, ParseSpecError};
