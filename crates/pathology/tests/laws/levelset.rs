//! Kernels of level-set segmentation against the slow ones, and the edges of its operations.

use crate::images::Image;
use crate::slow::flood_fill;
use crate::slow_levelset::{slow_evolve, slow_otsu, slow_parts, slow_perimeter};
use pleach_pathology::kernels::Connectivity::Four;
use pleach_pathology::kernels::label_boundaries::perimeters;
use pleach_pathology::kernels::level_set::evolve;
use pleach_pathology::kernels::mean_shift::parts;
use pleach_pathology::kernels::otsu::otsu;
use pleach_pathology::registry;
use pleach_regions::{DataRegion, Raster};
use pleach_workflow::Value;
use proptest::prelude::*;

/// Disks on a plane: column, row, radius.
type Disks = Vec<(usize, usize, usize)>;

/// A gray image with dark disks and noise, and a mask of other disks with a few pixels flipped.
fn scene() -> impl Strategy<Value = (usize, Vec<u8>, Vec<u8>)> {
    let disks = |most: usize| prop::collection::vec((0..26_usize, 0..26_usize, 1..9_usize), 0..most);
    let size = (1..26_usize, 1..26_usize);
    (size, disks(4), disks(4), prop::collection::vec(any::<u8>(), 26 * 26), 0..80_u8).prop_map(
        |((width, rows), dark, object, noise, depth)| {
            let covers = |disks: &Disks, pixel: usize| {
                let (x, y) = (pixel % width, pixel / width);
                disks.iter().any(|(cx, cy, r)| x.abs_diff(*cx).pow(2) + y.abs_diff(*cy).pow(2) <= r * r)
            };
            let gray = (0..width * rows)
                .map(|p| if covers(&dark, p) { 60 } else { 180 } + noise[p] % (depth / 2 + 1));
            let mask = (0..width * rows).map(|p| if covers(&object, p) != (noise[p] == 7) { 255 } else { 0 });
            (width, gray.collect(), mask.collect())
        },
    )
}

/// An object of any shape, with at least one pixel, in raster order.
fn object() -> impl Strategy<Value = Vec<[u32; 2]>> {
    let disks = prop::collection::vec((0..40_u32, 0..30_u32, 1..9_u32), 1..5);
    disks.prop_map(|disks| {
        let pixels = (0..40_u32).flat_map(|y| (0..50_u32).map(move |x| [x, y]));
        let covers = |[x, y]: &[u32; 2]| {
            disks.iter().any(|(cx, cy, r)| x.abs_diff(*cx).pow(2) + y.abs_diff(*cy).pow(2) <= r * r)
        };
        pixels.filter(covers).collect()
    })
}

proptest! {
    #[test]
    fn level_set_equals_the_dense_one(
        (width, gray, mask) in scene(),
        weight in prop_oneof![Just(0.0), Just(0.8), 0.0..3.0_f64],
        iterations in 0..25_u32,
    ) {
        let expected = slow_evolve(&gray, &mask, width, weight, iterations);
        prop_assert_eq!(evolve(&gray, &mask, width, weight, iterations), expected);
    }

    #[test]
    fn otsu_equals_the_best_of_all_levels(plane in prop::collection::vec(any::<u8>(), 1..60), few in 0..4_u8) {
        let plane: Vec<u8> = plane.iter().map(|value| if few > 0 { value % (few * 3) } else { *value }).collect();
        prop_assert_eq!(otsu(&plane), slow_otsu(&plane));
    }

    #[test]
    fn mean_shift_equals_seeds_on_their_own(pixels in object(), radius in prop_oneof![Just(5.0), 1.0..30.0_f64]) {
        let Some(expected) = slow_parts(&pixels, radius) else { return Ok(()) };
        prop_assert_eq!(parts(&pixels, radius), expected);
    }

    #[test]
    fn perimeters_equal_those_of_single_objects(labels in prop::collection::vec(0..4_u32, 1..8)) {
        let labels: Vec<u32> = labels.iter().flat_map(|label| [*label, label / 2, 3 - label]).collect();
        for (object, found) in (1..4).zip(&perimeters(&labels, 3, 3)[1..]) {
            prop_assert!((found - slow_perimeter(&labels, 3, object)).abs() < 1e-9);
        }
    }
}

fn run(name: &str, inputs: &[&DataRegion], numbers: &[f64]) -> Vec<DataRegion> {
    let registry = registry();
    let operation = registry.get(name, 1).unwrap();
    let typed = operation.arguments().iter().zip(numbers);
    let values: Vec<Value> = typed
        .map(|(argument, number)| Value::from_f64(*number, argument.accepts.value_type()).unwrap())
        .collect();
    operation.run(inputs, &values).unwrap()
}

/// Runs l1 to l6 on an image without normalization.
fn chain(tile: &DataRegion, declump: f64) -> Vec<DataRegion> {
    let mut l1 = run("levelset.hematoxylin", &[tile, tile], &[]);
    let (tissue, gray) = (l1.remove(1), l1.remove(0));
    let l2 = run("levelset.threshold", &[&gray, &tissue], &[1.0]).remove(0);
    let l3 = run("levelset.contour", &[&gray, &l2], &[0.8, 20.0]).remove(0);
    let l4 = run("levelset.min-size", &[&l3], &[3.0, 0.25]).remove(0);
    let l5 = run("levelset.declump", &[&l4, tile], &[declump, 200.0, 20.0, 0.25]).remove(0);
    let l6 = run("levelset.refine", &[&gray, &l5], &[0.8]).remove(0);
    vec![gray, tissue, l2, l3, l4, l5, l6]
}

fn bytes(region: &DataRegion) -> &[u8] {
    region.raster(region.element()).unwrap().data()
}

fn image(width: usize, pixels: &[[u8; 3]]) -> DataRegion {
    let rows = (pixels.len() / width) as u32;
    DataRegion::Bgr8(Raster::new(width as u32, rows, 3, pixels.concat()).unwrap())
}

/// Without tissue, or with hematoxylin of one value, no pixel is a candidate, whatever follows.
#[test]
fn images_without_tissue_or_of_one_color_have_no_nuclei() {
    for (width, rows) in [(1, 1), (1, 40), (40, 1), (33, 31)] {
        for color in [[255; 3], [0; 3], [180, 60, 90], [255, 0, 0], [0, 0, 255]] {
            for declump in [0.0, 1.0, 2.0] {
                let regions = chain(&image(width, &vec![color; width * rows]), declump);
                assert!(
                    regions[2..].iter().all(|mask| bytes(mask).iter().all(|value| *value == 0)),
                    "{color:?}"
                );
            }
        }
        let glass: Vec<[u8; 3]> = (0..width * rows).map(|pixel| [240 + (pixel % 9) as u8; 3]).collect();
        let regions = chain(&image(width, &glass), 1.0);
        assert!(bytes(&regions[6]).iter().all(|value| *value == 0));
    }
}

#[test]
fn empty_and_full_masks_stay_unchanged() {
    let gray: Vec<u8> = (0..600).map(|pixel| (pixel % 251) as u8).collect();
    for value in [0, 255] {
        assert_eq!(evolve(&gray, &[value; 600], 20, 0.8, 50), [value; 600]);
        let mask = DataRegion::Mask(Raster::new(20, 30, 1, vec![value; 600]).unwrap());
        let tile = image(20, &[[120, 40, 90]; 600]);
        for declump in [0.0, 1.0, 2.0] {
            let apart = run("levelset.declump", &[&mask, &tile], &[declump, 1e6, 20.0, 0.25]);
            assert_eq!(apart[0], mask, "{declump}");
        }
    }
}

/// A contour follows a dark disk that its mask overlaps, up to the borders of the image.
#[test]
fn contour_moves_to_the_edge_of_a_disk() {
    let width = 40;
    for (cx, cy) in [(20_usize, 20_usize), (0, 20), (39, 39)] {
        let disk = |pixel: usize, r: usize| {
            (pixel % width).abs_diff(cx).pow(2) + (pixel / width).abs_diff(cy).pow(2) <= r * r
        };
        let gray: Vec<u8> = (0..1600).map(|pixel| if disk(pixel, 10) { 50 } else { 200 }).collect();
        let mask: Vec<u8> = (0..1600).map(|pixel| if disk(pixel, 7) { 255 } else { 0 }).collect();
        let found = evolve(&gray, &mask, width, 0.2, 100);
        let differing = (0..1600).filter(|pixel| (found[*pixel] != 0) != disk(*pixel, 10)).count();
        let area = (0..1600).filter(|pixel| disk(*pixel, 10)).count();
        assert!(differing * 5 <= area, "{differing} of {area} px differ at {cx}, {cy}");
    }
}

#[test]
fn declumping_separates_two_overlapping_disks() {
    let (width, rows) = (70_usize, 40_usize);
    let disk = |p: usize, cx: usize| (p % width).abs_diff(cx).pow(2) + (p / width).abs_diff(20).pow(2) <= 144;
    let values = (0..width * rows).map(|p| if disk(p, 22) || disk(p, 44) { 255 } else { 0 }).collect();
    let mask = DataRegion::Mask(Raster::new(width as u32, rows as u32, 1, values).unwrap());
    let tile = image(width, &vec![[80; 3]; width * rows]);
    let objects = |declump: f64, most_um2: f64| {
        let apart = run("levelset.declump", &[&mask, &tile], &[declump, most_um2, 15.0, 0.25]).remove(0);
        let mut left = bytes(&apart).to_vec();
        let mut count = 0;
        while let Some(start) = left.iter().position(|value| *value != 0) {
            flood_fill(&left, width, Four, start).into_iter().for_each(|pixel| left[pixel] = 0);
            count += 1;
        }
        count
    };
    // The clump has about 850 px, 53 µm².
    assert_eq!(
        (objects(0.0, 50.0), objects(1.0, 50.0), objects(1.0, 60.0), objects(2.0, 50.0)),
        (1, 2, 1, 2)
    );
}

#[test]
fn tasks_stay_within_their_inputs_on_any_image() {
    let strategy = crate::images::image();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(60));
    let result = runner.run(&strategy, |Image { width, pixels, .. }| {
        let tile = image(width, &pixels);
        let regions = chain(&tile, 1.0);
        for mask in &regions[1..] {
            prop_assert!(bytes(mask).iter().all(|value| matches!(value, 0 | 255)));
        }
        let within = |part: usize, whole: usize| {
            bytes(&regions[part]).iter().zip(bytes(&regions[whole])).all(|(a, b)| a <= b)
        };
        prop_assert!(within(2, 1) && within(4, 3) && within(5, 4));
        prop_assert_eq!(chain(&tile, 1.0), regions);
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}
