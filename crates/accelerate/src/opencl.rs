//! OpenCL devices: in-order queues for tasks, prefetches and downloads, compiled programs, buffers and resident regions.
//!
//! The loader `libOpenCL` is opened at run time, so the program starts without it. All unsafe calls of the driver are in this
//! module. Their arguments come from the kernels of this crate only.

mod candidates;
mod device;
mod download;
mod errors;
mod memory;
mod prefetcher;
pub(crate) mod probe;
mod program;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use candidates::{is_library_present, open};
pub use device::OpenClDevice;
pub use memory::Buffer;
pub use task::Task;
