//! Error codes of OpenCL as errors of a device.

use crate::DeviceError;
use opencl3::error_codes::ClError;

// Codes of the OpenCL specification, section "Error codes".
const DEVICE_NOT_AVAILABLE: i32 = -2;
const MEM_OBJECT_ALLOCATION_FAILURE: i32 = -4;
const OUT_OF_RESOURCES: i32 = -5;
const OUT_OF_HOST_MEMORY: i32 = -6;
const INVALID_CONTEXT: i32 = -34;
const INVALID_COMMAND_QUEUE: i32 = -36;
/// NVIDIA's code for a kernel that accessed memory beyond its buffers. The context cannot be used afterwards.
const ILLEGAL_ACCESS: i32 = -9999;

/// Returns whether a buffer could not be placed: drivers may allocate as late as the first use.
pub(super) fn is_out_of_memory(error: &ClError) -> bool {
    matches!(error.0, MEM_OBJECT_ALLOCATION_FAILURE | OUT_OF_RESOURCES | OUT_OF_HOST_MEMORY)
}

/// Returns the error of a `call` that does not allocate.
pub(super) fn call_error(device: &str, call: &'static str, error: &ClError) -> DeviceError {
    let (device, cause) = (device.to_owned(), error.to_string());
    match error.0 {
        // Drivers report a lost device as exhausted resources of a queue.
        DEVICE_NOT_AVAILABLE
        | OUT_OF_RESOURCES
        | INVALID_CONTEXT
        | INVALID_COMMAND_QUEUE
        | ILLEGAL_ACCESS => DeviceError::Lost { device, cause: format!("{call}: {cause}") },
        _ => DeviceError::Call { device, call, cause },
    }
}
