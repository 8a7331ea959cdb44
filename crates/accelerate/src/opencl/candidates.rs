//! Devices of all drivers, and the reasons why some cannot run the kernels.

use super::OpenClDevice;
use crate::FoundDevices;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_DEFAULT, Device as ClDevice};
use opencl3::error_codes::ClError;
use opencl3::platform::get_platforms;
use std::sync::Mutex;

/// Returns whether the loader of the drivers can be opened. It loads no driver yet.
pub(crate) fn is_library_present() -> bool {
    cl3::is_opencl_runtime_available()
}

/// 64 work items: the largest groups of the kernels.
const MIN_GROUP: usize = 64;

/// 16 KiB: a block of the reconstruction with its margin takes 9 KB.
const MIN_LOCAL_BYTES: u64 = 16 << 10;

/// Opens devices, graphics cards and other accelerators before processors: at most `count`, processors only if `processors`.
pub(crate) fn open(processors: bool, count: usize, memory_limit: Option<u64>) -> FoundDevices {
    // PoCL 3.1 crashes when two threads list its devices for the first time.
    static LISTING: Mutex<()> = Mutex::new(());
    let _listing = LISTING.lock();
    let mut found = FoundDevices::default();
    let mut listed = match devices() {
        Ok(listed) => listed,
        Err(error) => {
            found.remarks.push(format!("no list of OpenCL devices: {error}"));
            return found;
        }
    };
    listed.retain(|(_, _, is_processor)| processors || !is_processor);
    // Stable: the order of the drivers otherwise.
    listed.sort_by_key(|(_, _, is_processor)| *is_processor);
    for (id, name, _) in listed {
        if found.devices.len() == count {
            break;
        }
        let before = found.devices.iter().filter(|device| device.name().starts_with(&name)).count();
        let name = if before == 0 { name } else { format!("{name} #{}", before + 1) };
        let opened = match missing(&id) {
            Ok(None) => {
                OpenClDevice::open(&id, name.clone(), memory_limit).map_err(|error| error.to_string())
            }
            Ok(Some(missing)) => Err(format!("{name}: {missing}; its tasks run on cores")),
            Err(error) => Err(format!("{name}: {error}; its tasks run on cores")),
        };
        match opened {
            Ok(device) => found.devices.push(Box::new(device)),
            Err(remark) => found.remarks.push(remark),
        }
    }
    found
}

/// Counts the devices that are no processors.
pub(crate) fn count_accelerators() -> Result<usize, ClError> {
    Ok(devices()?.iter().filter(|(_, _, is_processor)| !is_processor).count())
}

/// Returns all devices with their names, and whether each is a processor.
fn devices() -> Result<Vec<(ClDevice, String, bool)>, ClError> {
    let mut listed = Vec::new();
    for platform in get_platforms()? {
        let platform_name = platform.name()?;
        // A driver without devices answers with an error.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = ClDevice::new(id);
            let name = format!("{} ({})", device.name()?.trim(), platform_name.trim());
            let kind = device.dev_type()? & !CL_DEVICE_TYPE_DEFAULT;
            listed.push((device, name, kind == CL_DEVICE_TYPE_CPU));
        }
    }
    Ok(listed)
}

/// Returns the first property that the kernels need and the device lacks.
fn missing(device: &ClDevice) -> Result<Option<String>, ClError> {
    Ok(if !device.available()? {
        Some("is not available".to_owned())
    } else if !device.compiler_available()? {
        Some("has no compiler".to_owned())
    } else if !device.endian_little()? {
        Some("is not little-endian".to_owned())
    } else if device.double_fp_config().unwrap_or(0) == 0 {
        Some("has no double precision (cl_khr_fp64)".to_owned())
    } else if device.max_work_group_size()? < MIN_GROUP {
        Some(format!("has groups of {} work items; {MIN_GROUP} are needed", device.max_work_group_size()?))
    } else if device.local_mem_size()? < MIN_LOCAL_BYTES {
        Some(format!("has {} B of local memory; {MIN_LOCAL_BYTES} B are needed", device.local_mem_size()?))
    } else {
        None
    })
}
