//! Operations on masks, on random images: candidates, areas, nuclei, comparisons by pixels. Distances against those on a core.

use crate::found::{devices, difference, operation, run_on};
use crate::images::{Image, image_of};
use crate::random::{CASES, any_image, compare, side};
use pleach_accelerate::kernels::areas::filter_by_area;
use pleach_accelerate::kernels::{distance, image_size};
use pleach_accelerate::{DeviceError, OpenClDevice};
use pleach_pathology::kernels::distance::distance_to_background;
use pleach_regions::{DataRegion, Raster, Table};
use pleach_workflow::AcceleratedError;
use proptest::prelude::*;

/// Planes of one size: each channel of an image.
struct Planes(u32, u32, [Vec<u8>; 3]);

impl Planes {
    fn new(image: &Image) -> Self {
        let (width, height) = (image.width as u32, (image.pixels.len() / image.width) as u32);
        let channel = |c: usize| image.pixels.iter().map(|pixel| pixel[c]).collect();
        Self(width, height, [channel(0), channel(1), channel(2)])
    }

    fn raster(&self, data: Vec<u8>) -> Raster {
        Raster::new(self.0, self.1, 1, data).unwrap()
    }

    fn gray(&self, channel: usize) -> DataRegion {
        DataRegion::Gray8(self.raster(self.2[channel].clone()))
    }

    /// Object pixels of a mask are nonzero, not only 255.
    fn mask_data(&self, channel: usize, level: u8) -> Vec<u8> {
        self.2[channel].iter().map(|value| if *value > level { *value } else { 0 }).collect()
    }

    fn mask(&self, channel: usize, level: u8) -> DataRegion {
        DataRegion::Mask(self.raster(self.mask_data(channel, level)))
    }
}

/// Two lines of the object and of the background, 1 px wide, that wind around each other: the longest paths through many blocks.
fn spiral(width: usize, height: usize) -> Vec<u8> {
    let mut mask = vec![0; width * height];
    let (mut x, mut y, mut direction) = (0_i64, 0_i64, (1_i64, 0_i64));
    let (columns, rows) = (width as i64, height as i64);
    let at = |x: i64, y: i64| (y * columns + x) as usize;
    mask[0] = 255;
    let mut turns = 0;
    while turns < 2 {
        let (dx, dy) = direction;
        let free = |mask: &[u8], x: i64, y: i64| {
            (0..columns).contains(&x) && (0..rows).contains(&y) && mask[at(x, y)] == 0
        };
        let beyond = (x + 2 * dx, y + 2 * dy);
        let outside = !(0..columns).contains(&beyond.0) || !(0..rows).contains(&beyond.1);
        if free(&mask, x + dx, y + dy) && (outside || mask[at(beyond.0, beyond.1)] == 0) {
            (x, y) = (x + dx, y + dy);
            mask[at(x, y)] = 255;
            turns = 0;
        } else {
            direction = (-dy, dx);
            turns += 1;
        }
    }
    mask
}

/// A core within its window: column, row, width, height.
fn core_table(core: [u32; 4]) -> DataRegion {
    let columns = ["left", "top", "width", "height"];
    DataRegion::Table(Table::new(columns.into_iter().zip(core.map(f64::from))))
}

fn connectivity() -> impl Strategy<Value = f64> {
    prop_oneof![Just(4.0), Just(8.0)]
}

/// Bounds of areas, in any order: a maximum below the minimum is legal.
fn areas() -> impl Strategy<Value = [f64; 2]> {
    let area = || prop_oneof![0..4_i32, 0..200_i32, 0..100_000_i32, Just(i32::MAX)].prop_map(f64::from);
    (area(), area()).prop_map(|(least, end)| [least, end])
}

#[test]
fn candidates_have_the_bits_of_the_cpu() {
    let cases = (any_image(), any::<u8>(), connectivity());
    compare("candidates_have_the_bits_of_the_cpu", CASES, cases, |device, (image, level, connectivity)| {
        let planes = Planes::new(image);
        let inputs = [&planes.gray(2), &planes.gray(1)];
        difference(device, "nuclei.candidates", &inputs, &[f64::from(*level), *connectivity])
    });
}

#[test]
fn areas_have_the_bits_of_the_cpu() {
    let cases = (any_image(), any::<u8>(), areas(), connectivity());
    compare("areas_have_the_bits_of_the_cpu", CASES, cases, |device, (image, level, areas, connectivity)| {
        let mask = Planes::new(image).mask(2, *level);
        let [least, end] = *areas;
        difference(device, "nuclei.candidate-area", &[&mask], &[least, end])
            .or_else(|| difference(device, "nuclei.final-area", &[&mask], &[least, end, *connectivity]))
    });
}

#[test]
fn nuclei_have_the_bits_of_the_cpu() {
    let background = prop_oneof![9 => Just(0.0), 1 => Just(1.0)];
    let cases = (any_image(), any::<[u8; 3]>(), background);
    compare("nuclei_have_the_bits_of_the_cpu", CASES, cases, |device, (image, levels, background)| {
        let planes = Planes::new(image);
        let [level, of_candidates, of_red] = *levels;
        // Candidates are few where the level is high. Red blood cells remove what exceeds the other channel's level.
        let (candidates, red) = (planes.mask(1, of_candidates), planes.mask(0, of_red));
        let background = DataRegion::Table(Table::new([("background", *background)]));
        let inputs = [&planes.gray(2), &candidates, &red, &background];
        difference(device, "nuclei.nuclei", &inputs, &[f64::from(level)])
    });
}

#[test]
fn comparisons_have_the_bits_of_the_cpu() {
    let cases = (any_image(), any::<[u8; 3]>(), any::<[u32; 4]>());
    compare("comparisons_have_the_bits_of_the_cpu", CASES, cases, |device, (image, levels, corners)| {
        let planes = Planes::new(image);
        let [mask, reference, counted] = [0, 1, 2].map(|channel| planes.mask(channel, levels[channel]));
        let within = |start: u32, length: u32, all: u32| (start % all, 1 + length % (all - start % all));
        let (x_px, width_px) = within(corners[0], corners[1], planes.0);
        let (y_px, height_px) = within(corners[2], corners[3], planes.1);
        let core = core_table([x_px, y_px, width_px, height_px]);
        difference(device, "compare.masks", &[&mask, &reference], &[])
            .or_else(|| difference(device, "compare.core-masks", &[&mask, &reference, &core], &[]))
            .or_else(|| difference(device, "compare.counted-masks", &[&mask, &reference, &counted], &[]))
    });
}

#[test]
fn empty_full_and_winding_masks_have_the_bits_of_the_cpu() {
    for mut device in devices("empty_full_and_winding_masks_have_the_bits_of_the_cpu", None) {
        for (width, height) in [(1, 1), (1, 200), (200, 1), (64, 64), (65, 63), (193, 130), (131, 257)] {
            let winding = spiral(width, height);
            let inverted: Vec<u8> = winding.iter().map(|value| 255 - value).collect();
            let pixels = width * height;
            for data in [vec![0; pixels], vec![255; pixels], winding, inverted] {
                let raster = Raster::new(width as u32, height as u32, 1, data.clone()).unwrap();
                let (mask, plane) = (DataRegion::Mask(raster.clone()), DataRegion::Gray8(raster));
                let mut seed = vec![0; pixels];
                seed[pixels - 1] = 255;
                seed[0] = 255;
                let seed = DataRegion::Mask(Raster::new(width as u32, height as u32, 1, seed).unwrap());
                let none = DataRegion::Mask(Raster::filled(width as u32, height as u32, 1, 0).unwrap());
                let zero = DataRegion::Gray8(Raster::filled(width as u32, height as u32, 1, 0).unwrap());
                let tissue = DataRegion::Table(Table::new([("background", 0.0)]));
                let area = data.iter().filter(|value| **value != 0).count() as f64;
                let mut check = |name: &str, inputs: &[&DataRegion], numbers: &[f64]| {
                    assert_eq!(
                        difference(device.as_mut(), name, inputs, numbers),
                        None,
                        "{width} x {height}"
                    );
                };
                check("nuclei.nuclei", &[&plane, &seed, &none, &tissue], &[9.0]);
                check("nuclei.candidate-area", &[&mask], &[area, area + 1.0]);
                check("nuclei.candidate-area", &[&mask], &[0.0, area]);
                for connectivity in [4.0, 8.0] {
                    check("nuclei.candidates", &[&plane, &zero], &[9.0, connectivity]);
                    check("nuclei.final-area", &[&mask], &[area, area + 1.0, connectivity]);
                }
                check("compare.masks", &[&mask, &seed], &[]);
            }
        }
    }
}

/// All masks of 3 x 3 px: each pixel of a rim beside each of its neighbors.
#[test]
fn every_mask_of_nine_pixels_has_the_bits_of_the_cpu() {
    for mut device in devices("every_mask_of_nine_pixels_has_the_bits_of_the_cpu", None) {
        for bits in 0..1 << 9 {
            let data = (0..9).map(|pixel| if bits >> pixel & 1 == 1 { 255 } else { 0 }).collect();
            let raster = Raster::new(3, 3, 1, data).unwrap();
            let (mask, plane) = (DataRegion::Mask(raster.clone()), DataRegion::Gray8(raster));
            let zero = DataRegion::Gray8(Raster::filled(3, 3, 1, 0).unwrap());
            let mut check = |name: &str, inputs: &[&DataRegion], numbers: &[f64]| {
                assert_eq!(difference(device.as_mut(), name, inputs, numbers), None, "{bits:09b}");
            };
            check("nuclei.candidate-area", &[&mask], &[2.0, 9.0]);
            for connectivity in [4.0, 8.0] {
                check("nuclei.candidates", &[&plane, &zero], &[0.0, connectivity]);
                check("nuclei.final-area", &[&mask], &[2.0, 9.0, connectivity]);
            }
        }
    }
}

/// 1,001 cells a side: a million unions by groups that run at the same time.
const MAZE_CELLS: usize = 1_001;

/// A maze without a cycle has one component, and each lost union of two pixels would split it.
#[test]
fn maze_is_one_component() {
    let side = 2 * MAZE_CELLS - 1;
    let mut mask = vec![0; side * side];
    let mut state = 2026_u64;
    for y in (0..side).step_by(2) {
        for x in (0..side).step_by(2) {
            // Each cell has a passage to the left or up ("binary tree" maze), by a linear congruential generator (Knuth, MMIX).
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = y * side + x;
            mask[at] = 1;
            if x > 0 && (y == 0 || state >> 63 == 0) {
                mask[at - 1] = 1;
            } else if y > 0 {
                mask[at - side] = 1;
            }
        }
    }
    let area = mask.iter().map(|value| u32::from(*value)).sum();
    for mut device in devices("maze_is_one_component", None) {
        let mut task = OpenClDevice::of(device.as_mut()).unwrap().begin().unwrap();
        let size = image_size(&task, side as u32, side as u32).unwrap();
        let there = task.upload(&mask).unwrap();
        for _ in 0..3 {
            let kept = filter_by_area(&mut task, &there, size, false, area..area + 1).unwrap();
            let kept = task.download(&kept).unwrap();
            assert!(kept.iter().zip(&mask).all(|(kept, of)| *kept == 255 * of), "the maze is in parts");
        }
    }
}

/// The mask of the pixels above a level, or one with few pixels of background, whose distances are long.
fn distance_mask() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let above = (any_image(), any::<u8>()).prop_map(|(image, level)| {
        let planes = Planes::new(&image);
        (image.width, planes.mask_data(2, level))
    });
    let few =
        (image_of((side(), side())), prop::collection::vec(any::<u32>(), 0..4)).prop_map(|(image, at)| {
            let mut mask = vec![7; image.pixels.len()];
            at.iter().for_each(|at| mask[*at as usize % image.pixels.len()] = 0);
            (image.width, mask)
        });
    prop_oneof![above, few]
}

#[test]
fn distances_have_the_bits_of_the_cpu() {
    compare("distances_have_the_bits_of_the_cpu", CASES, distance_mask(), |device, (width, mask)| {
        let (width_px, height_px) = (*width as u32, (mask.len() / width) as u32);
        let wanted = distance_to_background(mask, *width, 0.0);
        let mut task = OpenClDevice::of(device).unwrap().begin().unwrap();
        let size = image_size(&task, width_px, height_px).unwrap();
        let buffer = task.upload(mask).unwrap();
        let squares = distance::squared_distance(&mut task, &buffer, size).unwrap();
        let bits = |bytes: Vec<u8>| -> Vec<u32> {
            bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect()
        };
        let Some(wanted) = wanted else {
            let found = bits(task.download(&squares).unwrap());
            return found
                .iter()
                .any(|square| *square != u32::MAX)
                .then(|| "a distance without background".into());
        };
        distance::roots(&mut task, &squares).unwrap();
        let found = bits(task.download(&squares).unwrap());
        let differs = found.iter().zip(&wanted).position(|(found, wanted)| *found != wanted.to_bits());
        differs.map(|at| format!("pixel {at}: {}, not {}", f32::from_bits(found[at]), wanted[at]))
    });
}

#[test]
fn distances_beyond_32_bits_are_unsupported() {
    for mut device in devices("distances_beyond_32_bits_are_unsupported", None) {
        let mut task = OpenClDevice::of(device.as_mut()).unwrap().begin().unwrap();
        let size = image_size(&task, 1, 1 << 16).unwrap();
        let mask = task.upload(&vec![0; 1 << 16]).unwrap();
        let error = distance::squared_distance(&mut task, &mask, size).unwrap_err().to_string();
        assert!(error.contains("a diagonal of 1 x 65536 px; squares below 2^32 are allowed"), "{error}");
    }
}

#[test]
fn declared_device_bytes_of_masks_suffice() {
    let test = "declared_device_bytes_of_masks_suffice";
    let side = 1_500;
    let raster = |value: u8| Raster::filled(side, side, 1, value).unwrap();
    let (gray, zero) = (DataRegion::Gray8(raster(90)), DataRegion::Gray8(raster(0)));
    let masks = [7, 8, 9].map(|value| DataRegion::Mask(raster(value)));
    let [mask, reference, counted] = &masks;
    let background = DataRegion::Table(Table::new([("background", 0.0)]));
    let core = core_table([1, 2, side - 3, side - 3]);
    let cases: [(&str, &[&DataRegion], &[f64]); 7] = [
        ("nuclei.candidates", &[&gray, &zero], &[80.0, 4.0]),
        ("nuclei.candidate-area", &[mask], &[11.0, 1000.0]),
        ("nuclei.nuclei", &[&gray, mask, reference, &background], &[45.0]),
        ("nuclei.final-area", &[mask], &[21.0, 1000.0, 4.0]),
        ("compare.masks", &[mask, reference], &[]),
        ("compare.core-masks", &[mask, reference, &core], &[]),
        ("compare.counted-masks", &[mask, reference, counted], &[]),
    ];
    for (name, inputs, numbers) in cases {
        let bytes = operation(name).accelerated().unwrap().device_bytes(u64::from(side * side));
        for mut device in devices(test, Some(bytes)) {
            let result = run_on(device.as_mut(), name, inputs, numbers);
            assert!(result.is_ok(), "{name} with {bytes} B: {result:?}");
        }
        // An estimate far beyond the need would keep tasks off small devices.
        for mut device in devices(test, Some(bytes * 4 / 5)) {
            let error = run_on(device.as_mut(), name, inputs, numbers).unwrap_err();
            assert!(
                matches!(error, AcceleratedError::Device(DeviceError::OutOfMemory { .. })),
                "{name}: {error}"
            );
        }
    }
}
