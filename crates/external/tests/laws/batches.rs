//! Functions that take several tiles, the GPU that one task has at a time, and the slots of accelerators.

use crate::python::{Package, entry, until};
use pleach_accelerate::EmulatedDevice;
use pleach_regions::{DataRegion, Raster};
use pleach_workflow::Value;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

const PORTS: &str = r#"
inputs = [{ name = "tile", type = "gray8" }]
outputs = [{ name = "next", type = "gray8" }, { name = "sum", type = "scalar" }]
"#;

/// A function of several tiles, which notes their number. It waits for the file `go` first.
const MODULE: &str = r#"
import time
import numpy as np
def one(tile, offset):
    return (tile + np.uint8(offset)), float(tile.sum())
def single(tile, *, offset):
    return one(tile, offset)
def several(tiles, *, offset):
    with open(os.path.join(HERE, "calls"), "a") as stream:
        stream.write(f"{len(tiles)}\n")
    while not os.path.exists(os.path.join(HERE, "go")):
        time.sleep(0.001)
    assert isinstance(tiles, list) and not tiles[0].flags.writeable
    return special(tiles) or [one(tile, offset) for tile in tiles]
"#;

fn tile(value: u8) -> DataRegion {
    DataRegion::Gray8(Raster::filled(5, 3, 1, value).unwrap())
}

fn package(test: &str, lines: &str, special: &str) -> Option<Package> {
    let arguments = r#"arguments = [{ name = "offset", type = "integer", low = 0, high = 9 }]"#;
    let single = entry("single", &format!("{PORTS}{arguments}"));
    let several = entry("several", &format!("{PORTS}{arguments}\n{lines}"));
    Package::new(test, &(single + &several), &format!("{MODULE}\ndef special(tiles):\n    {special}\n"))
}

type Results = Vec<Result<Vec<DataRegion>, String>>;

/// Runs the function on tiles of values 0, 1, … at once, and returns the results.
fn results(package: &Package, count: u8, offset: impl Fn(u8) -> i64 + Sync) -> Results {
    let started = AtomicUsize::new(0);
    let run = |value: u8| {
        let arguments = [Value::Integer(offset(value))];
        started.fetch_add(1, Ordering::Relaxed);
        package.run("several", &[&tile(value)], &arguments).map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|value| scope.spawn(move || run(value))).collect();
        until(|| started.load(Ordering::Relaxed) == usize::from(count) && !calls(package).is_empty());
        package.write("go", "");
        let found = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        fs::remove_file(package.path("go")).unwrap();
        found
    })
}

/// Returns the number of tiles of each call.
fn calls(package: &Package) -> Vec<u32> {
    package.marks("calls")
}

/// Repeats tasks until a call has had several tiles. The threads of all tasks have started before the first call ends, but may
/// not wait for it yet.
fn until_together(package: &Package, count: u8, offset: impl Fn(u8) -> i64 + Sync, most: u32) -> Results {
    for _ in 0..50 {
        let _ = fs::remove_file(package.path("calls"));
        let found = results(package, count, &offset);
        if calls(package).contains(&most) {
            return found;
        }
    }
    panic!("no call has {most} tiles: {:?}", calls(package));
}

#[test]
fn waiting_tasks_share_calls_with_results_of_single_calls() {
    let Some(package) = package("waiting_tasks_share_calls", "batch = 4", "return None") else { return };
    let offset = |value| i64::from(value % 2);
    let found = until_together(&package, 9, offset, 4);
    for (value, regions) in (0..).zip(found) {
        let single = package.run("single", &[&tile(value)], &[Value::Integer(offset(value))]).unwrap();
        assert_eq!(regions.unwrap(), single, "tile {value}");
    }
    let calls = calls(&package);
    assert_eq!(calls.iter().sum::<u32>(), 9, "each tile once: {calls:?}");
    assert!(calls.iter().all(|tiles| *tiles <= 4), "{calls:?}");
}

#[test]
fn failure_costs_the_task_of_one_tile() {
    let special = r#"
    if any(tile[0, 0] == 3 for tile in tiles):
        raise ValueError("tile 3")
    if any(tile[0, 0] == 4 for tile in tiles):
        os._exit(7)
    return [one(tile, 1) for tile in tiles] + ([1] if any(tile[0, 0] == 5 for tile in tiles) else [])"#;
    let Some(package) = package("failure_costs_the_task_of_one_tile", "batch = 8", special) else { return };
    let found = until_together(&package, 8, |_| 1, 7);
    for (value, regions) in (0..).zip(found) {
        match (value, regions) {
            (3, Err(error)) => assert!(error.contains("ValueError: tile 3"), "{error}"),
            (4, Err(error)) => assert!(error.contains("ended with status 7"), "{error}"),
            (5, Err(error)) => {
                let text = "the function returned 2 results; a list of 1, one for each tile, is allowed";
                assert!(error.contains(text), "{error}");
            }
            (_, Ok(regions)) => {
                let single = package.run("single", &[&tile(value)], &[Value::Integer(1)]).unwrap();
                assert_eq!(regions, single);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn time_limit_of_a_call_is_that_of_its_tiles() {
    // Two tiles take longer than the limit of one.
    let special = "time.sleep(3 if len(tiles) > 1 else 0)";
    let lines = "batch = 4\ntimeout_seconds = 2";
    let Some(package) = package("time_limit_of_a_call_is_that_of_its_tiles", lines, special) else { return };
    let found = until_together(&package, 3, |_| 1, 2);
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    assert_eq!(calls(&package).iter().sum::<u32>(), 3, "no call was repeated");
}

#[test]
fn batches_outside_the_limits_are_refused() {
    let refused = |lines: &str, error: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pleach.toml");
        fs::write(&file, entry("several", lines)).unwrap();
        let found = pleach_external::Manifest::load(&file).unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    };
    for (batch, error) in [
        (
            "1",
            "operation[0].batch: 1 is not allowed; 2 to 32 tiles are allowed (64 inputs or outputs a call)",
        ),
        ("33", "operation[0].batch: 33 is not allowed"),
    ] {
        refused(&format!("{PORTS}batch = {batch}"), error);
    }
    refused(
        "batch = 2",
        "operation[0].batch: 2 is not allowed; only functions in Python with inputs take several tiles",
    );
}

#[test]
fn number_of_tiles_is_no_part_of_the_identity() {
    let digest = |lines: &str| {
        let package =
            Package::new("number_of_tiles_is_no_part", &entry("pid", &format!("{PORTS}{lines}")), "")?;
        Some(package.operation("pid").identity.digest())
    };
    let Some(one) = digest("") else { return };
    assert_eq!(digest("batch = 2"), digest("batch = 8"));
    assert_ne!(Some(one), digest("batch = 2"), "the function is called in another way");
}

/// A module whose functions fail if another task runs at the same time: they create a file of a folder, and remove it.
fn exclusive(folder: &std::path::Path) -> String {
    format!(
        r#"
import time
def alone():
    path = os.path.join({folder:?}, "busy")
    # Fails if another task has the file.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    time.sleep(0.02)
    os.remove(path)
    return 1
def first():
    return alone()
def second():
    return alone()
"#
    )
}

#[test]
fn gpu_has_one_task_at_a_time() {
    let shared = tempfile::tempdir().unwrap();
    // Operations of different processes share the device.
    let gpu = "device = \"gpu\"\n";
    let manifest = entry("first", gpu) + &entry("second", &format!("{gpu}env = {{ KIND = \"2\" }}"));
    let package = || Package::new("gpu_has_one_task_at_a_time", &manifest, &exclusive(shared.path()));
    // Each has a pool of its own, as two workers on a machine.
    let (Some(worker), Some(other)) = (package(), package()) else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let package = if thread < 3 { &worker } else { &other };
            let function = if thread % 2 == 0 { "first" } else { "second" };
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(package.number(function), Ok(1.0));
                }
            });
        }
    });
}

#[test]
fn gpu_is_part_of_identities_of_inexact_operations() {
    let gpu = "device = \"gpu\"\n";
    let seeded = "determinism = \"seeded\"\n";
    let manifest = entry("first", gpu) + &entry("second", &format!("{gpu}{seeded}"));
    let name = "gpu_is_part_of_identities_of_inexact_operations";
    let Some(package) = Package::new(name, &manifest, "def first():\n    return 1\nsecond = first\n") else {
        return;
    };
    let component = |function: &str| package.operation(function).identity.0.get("GPU").cloned();
    assert_eq!(component("first"), None, "equal bits on every device");
    assert!(component("second").is_some_and(|gpu| gpu == "none" || gpu.contains(", driver ")));
}

/// An operation of an accelerator has a device variant, which runs the same process, and the declared memory there. The memory is
/// an estimate: it changes no identity.
#[test]
fn accelerator_operation_runs_in_an_accelerator_slot_only() {
    let name = "accelerator_operation_runs_in_an_accelerator_slot_only";
    let manifest = |device: &str| entry("first", device);
    let package = |device: &str| Package::new(name, &manifest(device), "def first():\n    return 7\n");
    let accelerator = "device = \"accelerator\"\n";
    let (Some(plain), Some(small), Some(large)) =
        (package(""), package(accelerator), package(&format!("{accelerator}device_memory = \"2GB\"")))
    else {
        return;
    };
    let operation = &plain.operation("first").operation;
    assert!(operation.accelerated().is_none() && !operation.needs_accelerator());
    for (package, bytes) in [(&small, 0), (&large, 2_000_000_000)] {
        let operation = &package.operation("first").operation;
        assert!(operation.needs_accelerator());
        let accelerated = operation.accelerated().unwrap();
        assert_eq!(accelerated.device_bytes(1), bytes);
        assert!(accelerated.gain() > 1.0);
        let mut device = EmulatedDevice::new(2.0, None);
        let outputs = accelerated.run_to_host(&mut device, &[], &[]).unwrap();
        assert_eq!(outputs, operation.run(&[], &[]).unwrap());
    }
    let digest = |package: &Package| package.operation("first").identity.digest();
    assert_eq!(digest(&small), digest(&large));
    assert_ne!(digest(&plain), digest(&small));
}
