//! Faults of devices: an error names the device, later tasks run.

use crate::found::{devices, operation, run_on};
use pleach_accelerate::{DeviceError, EmulatedDevice};
use pleach_regions::{DataRegion, ElementType, Raster};
use pleach_workflow::{AcceleratedError, OperationError};

fn tile(side_px: u32) -> DataRegion {
    DataRegion::Bgr8(Raster::filled(side_px, side_px, 3, 90).unwrap())
}

#[test]
fn tile_beyond_device_memory_fails_and_a_smaller_one_runs() {
    // 4 MiB: enough for 100 x 100 px, not for the 12 MB of pixels of 2,000 x 2,000 px.
    for mut device in devices("tile_beyond_device_memory_fails_and_a_smaller_one_runs", Some(4 << 20)) {
        let device = device.as_mut();
        let error = run_on(device, "nuclei.reconstruct", &[&tile(2_000)], &[8.0]).unwrap_err();
        let AcceleratedError::Device(DeviceError::OutOfMemory { memory_bytes, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(memory_bytes, 4 << 20);
        run_on(device, "nuclei.reconstruct", &[&tile(100)], &[8.0]).unwrap();
        assert!(device.used_bytes() <= 4 << 20);
    }
}

#[test]
fn declared_device_bytes_suffice() {
    let tile = tile(600);
    let pixels = 600 * 600;
    for (name, arguments) in [
        ("nuclei.normalize", &[][..]),
        ("nuclei.background", &[220.0, 220.0, 220.0, 5.0, 4.0]),
        ("nuclei.reconstruct", &[8.0]),
    ] {
        let bytes = operation(name).accelerated().unwrap().device_bytes(pixels);
        for mut device in devices("declared_device_bytes_suffice", Some(bytes)) {
            let result = run_on(device.as_mut(), name, &[&tile], arguments);
            assert!(result.is_ok(), "{name} with {bytes} B: {result:?}");
        }
    }
}

#[test]
fn wrong_inputs_are_errors_of_the_operation() {
    for mut device in devices("wrong_inputs_are_errors_of_the_operation", None) {
        let gray = DataRegion::Gray8(Raster::filled(9, 9, 1, 0).unwrap());
        let error = run_on(device.as_mut(), "nuclei.reconstruct", &[&gray], &[8.0]).unwrap_err();
        let AcceleratedError::Operation(OperationError::WrongElement(wrong)) = error else {
            panic!("{error}")
        };
        assert_eq!((wrong.expected, wrong.found), (ElementType::Bgr8, ElementType::Gray8));
    }
}

#[test]
fn device_without_kernels_is_unsupported() {
    let mut device = EmulatedDevice::new(2.0, None);
    let error = run_on(&mut device, "nuclei.reconstruct", &[&tile(9)], &[8.0]).unwrap_err();
    assert!(matches!(error, AcceleratedError::Device(DeviceError::Unsupported { .. })), "{error}");
    assert!(error.to_string().starts_with("emulated 2x: "), "{error}");
}
