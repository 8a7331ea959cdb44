//! Opens the devices of a [`DeviceSpec`].

#[cfg(feature = "opencl")]
use crate::opencl;
#[cfg(feature = "opencl")]
use crate::opencl::probe::Trial;
use crate::{Device, DeviceSpec, EmulatedDevice};
use std::fmt;
use thiserror::Error;

/// Devices that are ready for tasks.
#[derive(Default)]
pub struct FoundDevices {
    /// One for each accelerator slot.
    pub devices: Vec<Box<dyn Device>>,
    /// Devices that cannot be used, each with the reason, for one line of the log.
    pub remarks: Vec<String>,
}

impl fmt::Debug for FoundDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name()).collect();
        f.debug_struct("FoundDevices").field("devices", &names).field("remarks", &self.remarks).finish()
    }
}

/// Fewer devices are present than were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{wanted} accelerators wanted, {} present{}", .present.len(), list(.present, .remarks))]
pub struct FindError {
    /// Devices asked for.
    pub wanted: u32,
    /// Names of the usable devices.
    pub present: Vec<String>,
    /// Devices that cannot be used, with reasons.
    pub remarks: Vec<String>,
}

fn list(present: &[String], remarks: &[String]) -> String {
    let names = present.iter().chain(remarks).map(String::as_str).collect::<Vec<_>>().join("; ");
    if names.is_empty() { String::new() } else { format!(": {names}") }
}

/// Opens the devices of `spec`. `memory_limit` bounds the buffers of each one, bytes. Without it the limit is the memory that the
/// device reports.
///
/// # Errors
/// Returns a [`FindError`] if fewer devices are usable than [`DeviceSpec::Count`] asks for.
pub fn find(spec: &DeviceSpec, memory_limit: Option<u64>) -> Result<FoundDevices, FindError> {
    match spec {
        DeviceSpec::None => Ok(FoundDevices::default()),
        DeviceSpec::Auto => Ok(open(false, usize::MAX, memory_limit)),
        DeviceSpec::All => Ok(open(true, usize::MAX, memory_limit)),
        DeviceSpec::Count(wanted) => {
            let found = open(true, *wanted as usize, memory_limit);
            if found.devices.len() == *wanted as usize {
                return Ok(found);
            }
            let present = found.devices.iter().map(|device| device.name().to_owned()).collect();
            Err(FindError { wanted: *wanted, present, remarks: found.remarks })
        }
        DeviceSpec::Emulated(factors) => {
            let device =
                |factor: &f64| Box::new(EmulatedDevice::new(*factor, memory_limit)) as Box<dyn Device>;
            Ok(FoundDevices { devices: factors.iter().map(device).collect(), remarks: Vec::new() })
        }
    }
}

/// Opens at most `count` OpenCL devices, processors only if `processors`.
#[cfg(feature = "opencl")]
fn open(processors: bool, count: usize, memory_limit: Option<u64>) -> FoundDevices {
    let unusable = |remark: String| FoundDevices { devices: Vec::new(), remarks: vec![remark] };
    if !opencl::is_library_present() {
        return unusable("no OpenCL library (libOpenCL.so.1) is installed".to_owned());
    }
    match opencl::probe::trial() {
        Trial::Failed(remark) => unusable(remark),
        // Drivers of processors stay out of this process: LLVM, in PoCL, takes over signals and memory.
        Trial::Passed { accelerators: 0 } if !processors => FoundDevices::default(),
        Trial::Passed { .. } | Trial::NotServed => opencl::open(processors, count, memory_limit),
    }
}

#[cfg(not(feature = "opencl"))]
fn open(_: bool, _: usize, _: Option<u64>) -> FoundDevices {
    FoundDevices { devices: Vec::new(), remarks: vec!["this program is built without OpenCL".to_owned()] }
}
