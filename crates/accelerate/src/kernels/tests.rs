//! Kernels against slow definitions of their results, on random planes.

use super::colors::CountedColor;
use super::reconstruct::reconstruct;
use super::{ImageSize, colors, opening};
use crate::{DeviceSpec, OpenClDevice, Task, find};

/// Numbers from a seed (splitmix64: Steele, Lea & Flood 2014).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// Returns a plane of `levels` levels.
    fn plane(&mut self, size: ImageSize, levels: u64) -> Vec<u8> {
        (0..size.pixels()).map(|_| (self.below(levels) * 255 / (levels - 1)) as u8).collect()
    }
}

/// Sizes with sides below, at and above multiples of 64 px.
const SIZES: [(u32, u32); 10] =
    [(1, 1), (1, 130), (200, 1), (7, 5), (63, 65), (64, 64), (65, 64), (129, 66), (150, 200), (257, 128)];

/// Calls `test` with a task on each device, or reports that no device is present.
fn for_devices(name: &str, test: impl Fn(&mut Task<'_>)) {
    let found = find(&DeviceSpec::All, None).unwrap();
    if found.devices.is_empty() {
        eprintln!("SKIPPED {name}: no OpenCL device is present: {:?}", found.remarks);
    }
    for mut device in found.devices {
        test(&mut OpenClDevice::of(device.as_mut()).unwrap().begin().unwrap());
    }
}

/// Calls `test` on each device for each size.
fn for_sizes(name: &str, test: impl Fn(&mut Task<'_>, ImageSize, &mut Draw)) {
    for_devices(name, |task| {
        let draw = &mut Draw(2026);
        for (width_px, height_px) in SIZES {
            test(task, ImageSize { width_px, height_px }, draw);
        }
    });
}

/// Returns the offsets of the neighbors within `reach`, those with a common edge only unless `eight`.
fn neighbors(eight: bool) -> Vec<(i64, i64)> {
    let all = (-1..=1).flat_map(|dy: i64| (-1..=1).map(move |dx: i64| (dx, dy)));
    all.filter(|(dx, dy)| if eight { (*dx, *dy) != (0, 0) } else { dx.abs() + dy.abs() == 1 }).collect()
}

/// Raises each pixel to its highest neighbor, at most to the mask, until none rises.
fn slow_reconstruct(marker: &mut [u8], mask: &[u8], size: ImageSize, eight: bool) {
    let (width, height) = (i64::from(size.width_px), i64::from(size.height_px));
    loop {
        let mut rises = false;
        for at in 0..marker.len() {
            let (x, y) = (at as i64 % width, at as i64 / width);
            for (dx, dy) in neighbors(eight) {
                let (nx, ny) = (x + dx, y + dy);
                if (0..width).contains(&nx) && (0..height).contains(&ny) {
                    let value = marker[(ny * width + nx) as usize].min(mask[at]);
                    rises |= value > marker[at];
                    marker[at] = marker[at].max(value);
                }
            }
        }
        if !rises {
            return;
        }
    }
}

#[test]
fn reconstruction_is_the_fixed_point() {
    for_sizes("reconstruction_is_the_fixed_point", |task, size, draw| {
        for (eight, levels) in [(false, 2), (true, 2), (false, 6), (true, 6)] {
            // Few seeds under a mask with many holes: paths through several blocks.
            let mask: Vec<u8> = draw.plane(size, levels).iter().map(|value| value.max(&1) | 1).collect();
            let mask: Vec<u8> =
                mask.iter().map(|value| if draw.below(100) < 35 { 0 } else { *value }).collect();
            let seeds = 1 + size.pixels() as u64 / 5_000;
            let mut marker = vec![0; size.pixels()];
            for _ in 0..seeds {
                let at = draw.below(size.pixels() as u64) as usize;
                marker[at] = mask[at];
            }
            let (marker_there, mask_there) = (task.upload(&marker).unwrap(), task.upload(&mask).unwrap());
            reconstruct(task, &marker_there, &mask_there, size, eight).unwrap();
            slow_reconstruct(&mut marker, &mask, size, eight);
            let found = task.download(&marker_there).unwrap();
            assert!(found == marker, "{size:?}, eight: {eight}, {levels} levels");
        }
    });
}

/// The path crosses two corners of blocks, whose other neighbors do not change.
#[test]
fn reconstruction_crosses_the_corners_of_blocks() {
    for_sizes("reconstruction_crosses_the_corners_of_blocks", |task, size, _| {
        let width = size.width_px as usize;
        let line = |at: usize| if at % width == at / width { 200 } else { 0 };
        let mask: Vec<u8> = (0..size.pixels()).map(line).collect();
        let wanted: Vec<u8> = mask.iter().map(|value| value / 4 * 3).collect();
        // From both ends: a device that runs blocks in order reaches the last one in the first round from one of them only.
        for end in [0, size.width_px.min(size.height_px) as usize - 1] {
            let mut marker = vec![0; size.pixels()];
            marker[end * width + end] = 150;
            let (marker_there, mask_there) = (task.upload(&marker).unwrap(), task.upload(&mask).unwrap());
            reconstruct(task, &marker_there, &mask_there, size, true).unwrap();
            assert!(task.download(&marker_there).unwrap() == wanted, "{size:?} from {end}");
        }
    });
}

/// Returns the least or greatest value under the octagon. Pixels outside do not count.
fn slow_octagon(plane: &[u8], size: ImageSize, pick: fn(u8, u8) -> u8) -> Vec<u8> {
    let (width, height) = (i64::from(size.width_px), i64::from(size.height_px));
    let at = |x: i64, y: i64| plane[(y * width + x) as usize];
    let pixel = |index: i64| {
        let (x, y) = (index % width, index / width);
        let rows = (y - 9).max(0)..=(y + 9).min(height - 1);
        rows.flat_map(|ny| {
            let reach = (14 - (ny - y).abs()).min(9);
            ((x - reach).max(0)..=(x + reach).min(width - 1)).map(move |nx| (nx, ny))
        })
        .map(|(nx, ny)| at(nx, ny))
        .reduce(pick)
        .unwrap_or_default()
    };
    (0..width * height).map(pixel).collect()
}

#[test]
fn opening_is_that_of_the_octagon() {
    for_sizes("opening_is_that_of_the_octagon", |task, size, draw| {
        let bgr = draw.plane(ImageSize { width_px: 3 * size.width_px, ..size }, 256);
        let image = task.upload(&bgr).unwrap();
        let opened = opening::open_inverted_red(task, &image, size).unwrap();

        let red: Vec<u8> = bgr.as_chunks::<3>().0.iter().map(|[_, _, r]| 255 - r).collect();
        assert!(task.download(&opened.inverted_red).unwrap() == red, "{size:?}");
        let padded = size.padded(9);
        let at = |plane: &[u8], size: ImageSize, x: u32, y: u32| plane[(y * size.width_px + x) as usize];
        let mut plane = vec![255; padded.pixels()];
        for y in 0..size.height_px {
            for x in 0..size.width_px {
                plane[((y + 9) * padded.width_px + x + 9) as usize] = at(&red, size, x, y);
            }
        }
        let plane = slow_octagon(&slow_octagon(&plane, padded, u8::min), padded, u8::max);
        let (marker, mask) = (task.download(&opened.marker).unwrap(), task.download(&opened.mask).unwrap());
        let ringed = size.padded(1);
        for y in 0..ringed.height_px {
            for x in 0..ringed.width_px {
                let opened = at(&plane, padded, x + 8, y + 8);
                let inner = (1..=size.width_px).contains(&x) && (1..=size.height_px).contains(&y);
                let limit = if inner { at(&red, size, x - 1, y - 1) } else { opened };
                let found = (at(&marker, ringed, x, y), at(&mask, ringed, x, y));
                assert_eq!(found, (opened.min(limit), limit), "{size:?} at {x}, {y}");
            }
        }
    });
}

#[test]
fn colors_are_counted_and_mapped() {
    for_sizes("colors_are_counted_and_mapped", |task, size, draw| {
        let bgr = draw.plane(ImageSize { width_px: 3 * size.width_px, ..size }, 7);
        let image = task.upload(&bgr).unwrap();
        let mut pixels = 0;
        let mapped = colors::map_colors(task, &image, size, |counted| {
            assert!(counted.is_sorted_by(|a, b| a.color < b.color));
            pixels = counted.iter().map(|counted| counted.count as usize).sum();
            counted.iter().map(|counted| counted.color ^ 0x01_02_03).collect()
        });
        let wanted: Vec<u8> =
            bgr.as_chunks::<3>().0.iter().flat_map(|[b, g, r]| [b ^ 3, g ^ 2, r ^ 1]).collect();
        assert!(task.download(&mapped.unwrap()).unwrap() == wanted, "{size:?}");
        assert_eq!(pixels, size.pixels());
    });
}

/// 2^22 px of one color: work items of all groups count in one number at the same time.
#[test]
fn color_of_a_whole_image_is_counted_exactly() {
    let size = ImageSize { width_px: 1 << 11, height_px: 1 << 11 };
    for_devices("color_of_a_whole_image_is_counted_exactly", |task| {
        let image = task.upload(&vec![9; 3 * size.pixels()]).unwrap();
        let mapped = colors::map_colors(task, &image, size, |counted| {
            assert_eq!(counted, [CountedColor { color: 0x09_09_09, count: 1 << 22 }]);
            vec![0]
        });
        mapped.unwrap();
    });
}
