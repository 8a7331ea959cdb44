//! The context on every device found: residency, memory limits, faults.

use super::{OpenClDevice, Task};
use crate::kernel::{Argument, Program};
use crate::{Device, DeviceError, DeviceOutput, DeviceSpec, RasterForm, find};
use pleach_regions::{DataRegion, ElementType, Raster};
use std::time::Duration;

/// Calls `test` with each device, or says that there is none.
fn for_devices(name: &str, memory_limit: Option<u64>, test: impl Fn(&mut OpenClDevice)) {
    let found = find(&DeviceSpec::All, memory_limit).unwrap();
    if found.devices.is_empty() {
        eprintln!("SKIPPED {name}: no OpenCL device is present: {:?}", found.remarks);
    }
    for mut device in found.devices {
        test(OpenClDevice::of(device.as_mut()).unwrap());
    }
}

fn region(side_px: u32, value: u8) -> DataRegion {
    DataRegion::Gray8(Raster::filled(side_px, side_px, 1, value).unwrap())
}

const ADD: Program = Program {
    name: "add",
    source: "kernel void add(global uchar *plane, uint amount, uint bytes) {
        uint at = get_global_id(0);
        if (at < bytes) plane[at] += amount;
    }",
    definitions: "",
};

fn add(task: &mut Task<'_>, plane: &super::Buffer, amount: u32) -> Result<(), DeviceError> {
    let bytes = plane.bytes();
    let arguments = [Argument::Buffer(plane), Argument::Uint(amount), Argument::Uint(bytes as u32)];
    task.run(&ADD, "add", &arguments, [bytes, 1], [64, 1])
}

#[test]
fn region_is_uploaded_once_and_freed_with_its_owner() {
    for_devices("region_is_uploaded_once_and_freed_with_its_owner", None, |device| {
        let region = region(100, 7);
        for _ in 0..3 {
            let mut task = device.begin().unwrap();
            let input = task.input(&region).unwrap();
            let output = task.filled(100, 1).unwrap();
            add(&mut task, &output, 4).unwrap();
            assert_eq!(task.download(&output).unwrap(), [5; 100]);
            assert_eq!(task.download(&input).unwrap(), vec![7; 10_000]);
        }
        let transfers = device.transfers();
        assert_eq!((transfers.uploaded_bytes, transfers.downloaded_bytes), (10_000, 30_300));
        assert_eq!((device.resident_regions(), device.used_bytes()), (1, 10_000));
        // A copy is another region.
        device.begin().unwrap().input(&region.clone()).unwrap();
        assert_eq!(device.transfers().uploaded_bytes, 20_000);
        drop(region);
        device.begin().unwrap();
        assert_eq!((device.resident_regions(), device.used_bytes()), (0, 0));
    });
}

const MASK: RasterForm = RasterForm { width_px: 50, height_px: 50, channels: 1, region: DataRegion::Mask };

#[test]
fn downloaded_output_is_an_input_without_upload() {
    for_devices("downloaded_output_is_an_input_without_upload", None, |device| {
        let mut task = device.begin().unwrap();
        let buffer = task.filled(2_500, 3).unwrap();
        let output = task.output(buffer, MASK).unwrap();
        let output = DeviceOutput::download_all(vec![output]).unwrap().remove(0);
        assert_eq!(output.raster(ElementType::Mask).unwrap().data(), [3; 2_500]);
        let mut task = device.begin().unwrap();
        let input = task.input(&output).unwrap();
        assert_eq!(task.download(&input).unwrap(), vec![3; 2_500]);
        drop((task, input));
        let transfers = device.transfers();
        assert_eq!((transfers.uploaded_bytes, transfers.downloaded_bytes), (0, 5_000));
        device.clear();
        assert_eq!((device.resident_regions(), device.used_bytes()), (0, 0));
    });
}

/// The output of the first task comes down after the second has begun, from another thread, and its memory is not evicted.
#[test]
fn output_is_downloaded_while_a_later_task_runs() {
    for_devices("output_is_downloaded_while_a_later_task_runs", Some(25_000), |device| {
        let mut task = device.begin().unwrap();
        let buffer = task.filled(2_500, 3).unwrap();
        let output = task.output(buffer, MASK).unwrap();
        let mut task = device.begin().unwrap();
        let next = task.filled(20_000, 1).unwrap();
        add(&mut task, &next, 4).unwrap();
        // A buffer that fits only after the download waits for it.
        let (found, buffer) = std::thread::scope(|scope| {
            let download = scope.spawn(|| DeviceOutput::download_all(vec![output]).unwrap());
            let buffer = task.buffer(3_000).unwrap();
            (download.join().unwrap(), buffer)
        });
        assert_eq!(found[0].raster(ElementType::Mask).unwrap().data(), [3; 2_500]);
        assert_eq!(task.download(&next).unwrap(), vec![5; 20_000]);
        drop((task, next, buffer));
        assert_eq!((device.used_bytes(), device.resident_regions()), (0, 0), "evicted for the buffer");
        // An output without a download is freed.
        let mut task = device.begin().unwrap();
        let buffer = task.filled(2_500, 3).unwrap();
        drop(task.output(buffer, MASK).unwrap());
        task.buffer(25_000).unwrap();
    });
}

#[test]
fn least_recently_used_region_makes_room() {
    for_devices("least_recently_used_region_makes_room", Some(25_000), |device| {
        let regions = [1, 2, 3].map(|value| region(100, value));
        let upload = |device: &mut OpenClDevice, index: usize| {
            device.begin().unwrap().input(&regions[index]).unwrap();
            device.transfers().uploaded_bytes / 10_000
        };
        let uploads = [0, 1, 0, 2, 0, 1].map(|index| upload(device, index));
        assert_eq!(uploads, [1, 2, 2, 3, 3, 4], "region 1 makes room for 2, and 2 for 1");
        assert!(device.used_bytes() <= 25_000);
    });
}

#[test]
fn buffer_beyond_the_limit_is_an_error_and_the_device_stays_usable() {
    for_devices("buffer_beyond_the_limit_is_an_error", Some(25_000), |device| {
        let regions = [region(100, 1), region(100, 2)];
        let mut task = device.begin().unwrap();
        let held: Vec<_> = regions.iter().map(|region| task.input(region).unwrap()).collect();
        let error = task.buffer(5_001).unwrap_err();
        assert!(
            matches!(&error, DeviceError::OutOfMemory { bytes: 5_001, used_bytes: 20_000, .. }),
            "{error}"
        );
        assert_eq!((error.cause(), error.is_usable_after()), ("memory", true));
        drop(held);
        task.buffer(5_001).unwrap();
    });
}

#[test]
fn source_that_does_not_compile_is_an_error_with_the_log() {
    for_devices("source_that_does_not_compile", None, |device| {
        let broken = Program {
            name: "broken",
            source: "kernel void add(global uchar *plane) { plane[0] = no_such_name; }",
            ..ADD
        };
        let mut task = device.begin().unwrap();
        let plane = task.filled(1, 0).unwrap();
        let error = task.run(&broken, "add", &[Argument::Buffer(&plane)], [1, 1], [1, 1]).unwrap_err();
        assert!(matches!(&error, DeviceError::Compile { program, .. } if program == "broken"), "{error}");
        assert_eq!((error.cause(), error.is_usable_after()), ("compile", true));
        add(&mut task, &plane, 2).unwrap();
        assert_eq!(task.download(&plane).unwrap(), [2]);
    });
}

/// The kernel ends after some seconds: a test that hung for ever could not end its process.
#[test]
fn kernel_beyond_the_time_limit_ends_the_device() {
    for_devices("kernel_beyond_the_time_limit_ends_the_device", None, |device| {
        let slow = Program {
            name: "slow",
            source: "kernel void slow(global uint *to, uint steps) {
                uint x = to[0];
                for (uint i = 0; i < steps; i++) x = x * 1664525u + (x >> 7) + 1013904223u;
                to[0] = x;
            }",
            ..ADD
        };
        device.set_time_limit(Some(Duration::from_millis(1)));
        let mut task = device.begin().unwrap();
        let to = task.filled(4, 0).unwrap();
        task.run(&slow, "slow", &[Argument::Buffer(&to), Argument::Uint(500_000_000)], [1, 1], [1, 1])
            .unwrap();
        let error = task.download(&to).unwrap_err();
        assert!(matches!(error, DeviceError::TimedOut { .. }), "{error}");
        assert_eq!((error.cause(), error.is_usable_after()), ("timeout", false));
        drop((task, to));
        let error = device.begin().unwrap_err();
        assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
    });
}

#[test]
fn more_devices_than_present_is_an_error_that_names_them() {
    let error = find(&DeviceSpec::Count(64), None).unwrap_err();
    assert!(error.present.len() < 64);
    assert!(
        error.to_string().starts_with(&format!("64 accelerators wanted, {} present", error.present.len()))
    );
    for name in &error.present {
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn prefetched_region_is_an_input_without_upload() {
    for_devices("prefetched_region_is_an_input_without_upload", None, |device| {
        let (first, next) = (region(100, 7), region(100, 9));
        let mut prefetcher = device.prefetcher().unwrap();
        let mut task = device.begin().unwrap();
        let input = task.input(&first).unwrap();
        // While the task runs, on another thread, as in a slot.
        let uploaded = std::thread::scope(|scope| {
            let upload = scope.spawn(|| [&first, &next, &next].map(|it| prefetcher.prefetch(it).unwrap()));
            let output = task.filled(100, 1).unwrap();
            add(&mut task, &output, 4).unwrap();
            assert_eq!(task.download(&output).unwrap(), [5; 100]);
            upload.join().unwrap()
        });
        assert_eq!(uploaded, [0, 10_000, 0], "a resident region is touched only");
        drop((task, input));
        let transfers = device.transfers();
        assert_eq!((transfers.prefetched_bytes, transfers.used_prefetched_bytes), (10_000, 0));
        for _ in 0..2 {
            let mut task = device.begin().unwrap();
            let input = task.input(&next).unwrap();
            assert_eq!(task.download(&input).unwrap(), vec![9; 10_000]);
        }
        let transfers = device.transfers();
        assert_eq!(transfers.uploaded_bytes, 10_000, "the first region, by its task");
        assert_eq!((transfers.prefetched_bytes, transfers.used_prefetched_bytes), (10_000, 10_000));
        drop(next);
        device.begin().unwrap();
        assert_eq!(device.used_bytes(), 10_000, "a prefetched region is freed with its owner");
    });
}

#[test]
fn prefetch_keeps_the_limit_and_the_inputs_of_the_running_task() {
    for_devices("prefetch_keeps_the_limit_and_the_inputs", Some(25_000), |device| {
        let regions = [1, 2, 3, 4].map(|value| region(100, value));
        let mut prefetcher = device.prefetcher().unwrap();
        let mut prefetch = |index: usize| prefetcher.prefetch(&regions[index]).unwrap();
        device.begin().unwrap().input(&regions[0]).unwrap();
        let mut task = device.begin().unwrap();
        // Not held any more, but of this task.
        task.input(&regions[1]).unwrap();
        assert_eq!(prefetch(2), 10_000, "region 0 of the last task makes room");
        assert_eq!(prefetch(3), 0, "both regions belong to this task and its successor");
        // The running task needs memory: the prefetched region gives way.
        task.input(&regions[1]).unwrap();
        let held = task.input(&regions[0]).unwrap();
        assert_eq!(prefetch(2), 0);
        drop((held, task));
        assert!(device.used_bytes() <= 25_000);
        assert_eq!(device.transfers().used_prefetched_bytes, 0);
        // Types without kernels, and a region beyond the limit.
        assert_eq!(prefetcher.prefetch(&DataRegion::Scalar(1.0)).unwrap(), 0);
        assert_eq!(prefetcher.prefetch(&region(200, 1)).unwrap(), 0);
    });
}

#[test]
fn prefetches_beside_tasks_leave_the_limit_and_the_results_alone() {
    for_devices("prefetches_beside_tasks", Some(35_000), |device| {
        let regions: Vec<DataRegion> = (0..40).map(|value| region(100, value)).collect();
        let mut prefetcher = device.prefetcher().unwrap();
        let (hint, hints) = std::sync::mpsc::channel::<usize>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in hints {
                    prefetcher.prefetch(&regions[index]).unwrap();
                }
            });
            for index in 0..regions.len() {
                let mut task = device.begin().unwrap();
                hint.send((index + 1) % regions.len()).unwrap();
                let input = task.input(&regions[index]).unwrap();
                let output = task.filled(10_000, index as u8).unwrap();
                add(&mut task, &output, 0).unwrap();
                assert_eq!(task.download(&output).unwrap(), task.download(&input).unwrap(), "{index}");
                drop((task, input, output));
                assert!(device.used_bytes() <= 35_000, "{} B", device.used_bytes());
            }
            drop(hint);
        });
        let transfers = device.transfers();
        let (ahead, by_tasks) = (transfers.prefetched_bytes, transfers.uploaded_bytes);
        assert!(transfers.used_prefetched_bytes <= ahead);
        assert!(by_tasks + transfers.used_prefetched_bytes >= 400_000, "{transfers:?}");
    });
}

#[test]
fn broken_device_prefetches_nothing() {
    for_devices("broken_device_prefetches_nothing", None, |device| {
        let mut prefetcher = device.prefetcher().unwrap();
        device.memory.set_broken("a test".to_owned());
        assert_eq!(prefetcher.prefetch(&region(10, 1)).unwrap(), 0);
        assert_eq!(device.used_bytes(), 0);
    });
}
