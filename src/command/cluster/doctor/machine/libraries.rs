//! Shared libraries: those that this process has loaded, and the loader of OpenCL, which it opens when it needs a device.
//!
//! Without OpenCV or OpenSlide the system does not start the program, so this check only states which files it has loaded.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;
use pleach_accelerate::{DeviceSpec, find};
use pleach_actors::transport::hello::Version;
use std::collections::BTreeSet;
use std::fs;

/// Libraries of images: the name for users, and the start of the file's name.
const LOADED: [(&str, &str); 2] = [("OpenCV", "libopencv_imgproc.so"), ("OpenSlide", "libopenslide.so")];

pub(super) fn check(_: &DoctorArgs, items: &mut Items) {
    items.ok("pleach", format!("version {}, {}", env!("CARGO_PKG_VERSION"), protocol()));
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (subject, start) in LOADED {
        match loaded(&maps, start) {
            Some(path) => items.ok(subject, resolved(path)),
            None => items.ok(subject, "part of the program"),
        }
    }
    opencl(items);
}

fn protocol() -> String {
    format!("protocol {}", Version::current().protocol)
}

/// Returns the path of the mapped file whose name starts with `start`.
fn loaded<'m>(maps: &'m str, start: &str) -> Option<&'m str> {
    let paths: BTreeSet<&str> =
        maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
    paths.into_iter().find(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with(start)))
}

/// Returns the path without links, whose name has the whole version.
fn resolved(path: &str) -> String {
    fs::canonicalize(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

/// Opens the accelerators of `--accelerators auto`. Drivers of processors are not loaded.
fn opencl(items: &mut Items) {
    let found = match find(&DeviceSpec::Auto, None) {
        Ok(found) => found,
        Err(error) => return items.warning("OpenCL", error.to_string(), "see the guide on accelerators"),
    };
    for device in &found.devices {
        items.ok("OpenCL", device.name());
    }
    for remark in &found.remarks {
        let remedy = "for accelerators, install the loader (Debian: ocl-icd-libopencl1) and the driver of the device; without \
                      them, tasks run on cores";
        items.note("OpenCL", remark.as_str(), remedy);
    }
    if found.devices.is_empty() && found.remarks.is_empty() {
        items.note(
            "OpenCL",
            "no graphics card",
            "nothing, or --accelerators all for processors with a driver",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_library_is_found_by_its_name_alone() {
        let maps = "7f00-7f01 r--p 00000000 08:01 1 /usr/lib/libopencv_imgproc.so.4.6.0\n\
                    7f01-7f02 r--p 00000000 00:00 0 \n\
                    7f02-7f03 r--p 00000000 08:01 2 /opt/libopenslide.so/other\n";
        assert_eq!(loaded(maps, "libopencv_imgproc.so"), Some("/usr/lib/libopencv_imgproc.so.4.6.0"));
        assert_eq!(loaded(maps, "libopenslide.so"), None);
    }
}
