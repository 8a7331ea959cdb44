//! Operations on masks, on random images: candidates, areas, nuclei, comparisons by pixels. Distances against those on a core.

use crate::found::{devices, difference};
use crate::images::{Image, image_of};
use crate::random::{CASES, any_image, compare, side};
use pleach_accelerate::OpenClDevice;
use pleach_accelerate::kernels::{distance, image_size};
use pleach_pathology::kernels::distance::distance_to_background;
use pleach_regions::{DataRegion, Raster, Table};
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
