//! Real tiles, and the reference masks with every eligible task on a device.

use crate::data::data;
use crate::found::{arguments, devices, difference, operation};
use crate::reference_masks::{by_image, compare, for_images, on_core, rows};
use pleach_accelerate::Device;
use pleach_pathology::image_io;
use pleach_regions::DataRegion;
use pleach_workflow::{Operation, StainFit, Value};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn tile_has_the_bits_of_the_cpu() {
    let test = "tile_has_the_bits_of_the_cpu";
    let Some(data) = data(test) else { return };
    let tile = image_io::read_bgr(&data.join("tiles/CMU-1_x150_y800_2048.png")).unwrap();
    for mut device in devices(test, None) {
        let device = device.as_mut();
        assert_eq!(difference(device, "nuclei.normalize", &[&tile], &[]), None);
        for connectivity in [4.0, 8.0] {
            assert_eq!(difference(device, "nuclei.reconstruct", &[&tile], &[connectivity]), None);
        }
        let thresholds = [220.0, 220.0, 220.0, 5.0, 4.0];
        assert_eq!(difference(device, "nuclei.background", &[&tile], &thresholds), None);
        let fit = DataRegion::Table(StainFit::default().table());
        assert_eq!(difference(device, "nuclei.normalize-fitted", &[&tile, &fit], &[]), None);
        // The tile was uploaded once. Everything else that went up belongs to a task: new colors and thresholds.
        let tile_bytes = tile.bytes();
        let uploaded = device.transfers().uploaded_bytes;
        assert!(
            (tile_bytes..2 * tile_bytes).contains(&uploaded),
            "{uploaded} B for a tile of {tile_bytes} B"
        );
    }
}

#[test]
fn masks_of_a_tile_have_the_bits_of_the_cpu() {
    let test = "masks_of_a_tile_have_the_bits_of_the_cpu";
    let Some(data) = data(test) else { return };
    let tile = image_io::read_bgr(&data.join("tiles/CMU-1_x150_y800_2048.png")).unwrap();
    let run = |name: &str, inputs: &[&DataRegion], numbers: &[f64]| {
        let operation = operation(name);
        operation.run(inputs, &arguments(&*operation, numbers)).unwrap()
    };
    let red = run("nuclei.background", &[&tile], &[220.0, 220.0, 220.0, 5.0, 4.0]);
    let opened = run("nuclei.reconstruct", &[&tile], &[8.0]);
    for mut device in devices(test, None) {
        let mut check = |name: &str, inputs: &[&DataRegion], numbers: &[f64]| {
            assert_eq!(difference(device.as_mut(), name, inputs, numbers), None);
            run(name, inputs, numbers)
        };
        // Thresholds at the ends of their ranges and in between: few and many candidates, with holes.
        for (g1, g2, connectivity) in [(5.0, 2.0, 4.0), (30.0, 20.0, 8.0), (80.0, 40.0, 4.0)] {
            let candidates = check("nuclei.candidates", &[&opened[0], &opened[1]], &[g1, connectivity]);
            let kept = check("nuclei.candidate-area", &[&candidates[1]], &[11.0, 1000.0]);
            let nuclei = check("nuclei.nuclei", &[&candidates[0], &kept[0], &red[0], &red[1]], &[g2]);
            let mask = check("nuclei.final-area", &[&nuclei[0]], &[21.0, 1000.0, connectivity]);
            check("compare.masks", &[&mask[0], &candidates[1]], &[]);
        }
    }
}

/// Device tasks so far. The test fails if the operations lose their variants.
fn forced<'a>(
    device: &'a Mutex<Box<dyn Device>>,
    tasks: &'a AtomicUsize,
) -> impl Fn(&dyn Operation, &[&DataRegion], &[Value]) -> Vec<DataRegion> + 'a {
    move |operation, inputs, arguments| match operation.accelerated() {
        Some(variant) => {
            tasks.fetch_add(1, Ordering::Relaxed);
            variant.run_to_host(device.lock().unwrap().as_mut(), inputs, arguments).unwrap()
        }
        None => on_core(operation, inputs, arguments),
    }
}

#[test]
fn masks_with_tasks_on_a_device_equal_those_of_the_original_program() {
    let test = "masks_with_tasks_on_a_device_equal_those_of_the_original_program";
    let Some(data) = data(test) else { return };
    let index = rows(&data.join("reference/nscale/index.csv"));
    let stages = rows(&data.join("reference/nscale/stages.csv"));
    for device in devices(test, None).into_iter().take(1) {
        let (device, tasks) = (Mutex::new(device), AtomicUsize::new(0));
        let results = for_images(&by_image(index.clone()), |rows| {
            compare(&data, rows, &stages, &forced(&device, &tasks))
        });
        let compared: usize = results.iter().map(|(count, _)| count).sum();
        let differences: Vec<String> = results.into_iter().flat_map(|(_, differences)| differences).collect();
        let (tasks, transfers) = (tasks.into_inner(), device.into_inner().unwrap().transfers());
        println!(
            "{} of {compared} masks identical, {tasks} tasks on the device, {transfers:?}",
            compared - differences.len()
        );
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        assert_eq!(compared, 182);
        // Six of the seven tasks of a mask, less those that parameter sets share.
        assert!(tasks > 500, "{tasks} tasks on the device");
    }
}
