//! Comparisons on windows with a halo: sums over all tiles equal the values of the whole image, and no object or pixel
//! counts twice.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use crate::data::data;
use pleach_pathology::image_io::read_labels;
use pleach_pathology::objects::{OwnedComparison, PixelObjects, compare, compare_owned};
use pleach_pathology::registry;
use pleach_regions::{DataRegion, LabelMap, Partition, PixelRectangle, Raster, SpatialBounds, Table};
use pleach_workflow::{OperationError, SlideTile};
use proptest::collection::vec;
use proptest::prelude::*;

/// A label map and its width, pixels.
type Labels = (Vec<u32>, usize);

fn crop((labels, width): &Labels, [x, y, columns, rows]: [u32; 4]) -> Labels {
    let row = |row: u32| &labels[(y + row) as usize * width + x as usize..][..columns as usize];
    ((0..rows).flat_map(row).copied().collect(), columns as usize)
}

/// Returns the tiles of an image, partitioned as studies partition slides.
fn tiles(labels: &Labels, tile_px: u64, halo_px: u64) -> Vec<SlideTile> {
    let (width, height) = (labels.1 as u32, (labels.0.len() / labels.1) as u32);
    let region = SpatialBounds::of_image(width, height, None);
    let partition = Partition::new(region, &[tile_px; 2], &[halo_px; 2]).unwrap();
    let sides = |bounds: &SpatialBounds| {
        let [x, y] = [0, 1].map(|axis| bounds.axes()[axis]);
        [x.start() as u32, y.start() as u32, x.length() as u32, y.length() as u32]
    };
    let tile = |tile: pleach_regions::PartitionTile| SlideTile {
        magnification: None,
        core: sides(&tile.core),
        window: sides(&tile.window),
    };
    partition.tiles().map(tile).collect()
}

fn core(tile: &SlideTile) -> PixelRectangle {
    pleach_workflow::core_of(&tile.core_table()).unwrap()
}

/// Returns the longest side of the objects' bounding boxes, pixels.
fn longest((labels, width): &Labels) -> u64 {
    let mut boxes = std::collections::BTreeMap::<u32, [usize; 4]>::new();
    for (pixel, label) in labels.iter().enumerate().filter(|(_, label)| **label != 0) {
        let (x, y) = (pixel % width, pixel / width);
        let entry = boxes.entry(*label).or_insert([x, x, y, y]);
        *entry = [entry[0].min(x), entry[1].max(x), entry[2].min(y), entry[3].max(y)];
    }
    boxes.values().map(|[l, r, t, b]| (r - l + 1).max(b - t + 1) as u64).max().unwrap_or(1)
}

/// Compares label maps over all tiles of an image.
fn tiled(found: &Labels, reference: &Labels, tile_px: u64, halo_px: u64) -> Vec<OwnedComparison> {
    let compared = |tile: SlideTile| {
        let objects = |labels| {
            let (labels, width) = crop(labels, tile.window);
            PixelObjects::of_labels(&labels, width)
        };
        compare_owned(&objects(found), &objects(reference), core(&tile))
    };
    tiles(found, tile_px, halo_px).into_iter().map(compared).collect()
}

/// Asserts that sums over the tiles equal the values of the whole image.
fn assert_whole(parts: &[OwnedComparison], found: &Labels, reference: &Labels) {
    let objects = |(labels, width): &Labels| PixelObjects::of_labels(labels, *width);
    let whole = compare(&objects(found), &objects(reference));
    let sum = |of: fn(&OwnedComparison) -> f64| parts.iter().map(of).sum::<f64>();
    assert_eq!(parts.iter().map(|part| part.objects).sum::<usize>(), whole.objects);
    assert_eq!(parts.iter().map(|part| part.reference_objects).sum::<usize>(), whole.reference_objects);
    assert_eq!((sum(|part| part.area), sum(|part| part.reference_area)), (whole.area, whole.reference_area));
    assert_eq!(sum(|part| part.covered), whole.shared_area);
    assert_eq!(sum(|part| part.reference_covered), whole.shared_area);
    assert_eq!(sum(|part| part.pairs), whole.pairs as f64);
    assert!((sum(|part| part.sum_of_pair_dice) - whole.sum_of_pair_dice).abs() < 1e-9);
}

/// A nucleus that moved over a border has the same metrics in both tiles as on the whole image.
#[test]
fn a_pair_of_two_tiles_counts_by_half_in_each() {
    let row = |object: std::ops::Range<usize>| -> Labels {
        let labels = (0..8).map(|x| u32::from(object.contains(&x))).collect();
        (labels, 8)
    };
    // Pixels 2, 3 and 4 (centroid 3.5) against 3, 4 and 5 (centroid 4.5). The border is at 4.
    let parts = tiled(&row(2..5), &row(3..6), 4, 8);
    for (part, own) in parts.iter().zip([(1, 0, 3.0, 0.0), (0, 1, 0.0, 3.0)]) {
        assert_eq!((part.objects, part.reference_objects, part.area, part.reference_area), own);
        assert_eq!((part.shared_area(), part.pairs), (1.0, 0.5));
        // 2 · 2 / 6 and 2 / 4 on the whole image.
        assert_eq!((part.dice(), part.jaccard()), (2.0 / 3.0, 0.5));
        assert!((part.pair_dice() - 2.0 / 3.0).abs() < 1e-15);
    }
    assert_eq!((parts[0].recall(), parts[1].recall()), (0.0, 2.0 / 3.0));
    assert_whole(&parts, &row(2..5), &row(3..6));
}

fn label_maps() -> impl Strategy<Value = (Labels, Labels)> {
    let objects = || vec((0..40_usize, 0..40_usize, 1..9_usize, 1..9_usize, 0..9_u32), 0..16);
    (1..40_usize, 1..40_usize, objects(), objects()).prop_map(|(width, height, first, second)| {
        let draw = |objects: Vec<(usize, usize, usize, usize, u32)>| {
            let mut labels = vec![0; width * height];
            for (left, top, columns, rows, label) in objects {
                for y in top.min(height)..(top + rows).min(height) {
                    labels[y * width..][left.min(width)..(left + columns).min(width)].fill(label);
                }
            }
            (labels, width)
        };
        (draw(first), draw(second))
    })
}

proptest! {
    /// Sums over tiles equal the whole for any partition, with a halo as wide as the longest object, less 1 px.
    #[test]
    fn tiles_come_to_the_whole((found, reference) in label_maps(), tile_px in 1..30_u64, more in 0..9_u64) {
        let halo_px = longest(&found).max(longest(&reference)) - 1 + more;
        // Either owner must see a pair completely: from the centroid of one object to the end of the other.
        let parts = tiled(&found, &reference, tile_px, 2 * halo_px + 1);
        assert_whole(&parts, &found, &reference);
        // The halo alone suffices for the number of objects.
        let parts = tiled(&found, &reference, tile_px, halo_px);
        let objects = |(labels, width): &Labels| PixelObjects::of_labels(labels, *width).count();
        prop_assert_eq!(parts.iter().map(|part| part.objects).sum::<usize>(), objects(&found));
        prop_assert_eq!(parts.iter().map(|part| part.reference_objects).sum::<usize>(), objects(&reference));
    }

    #[test]
    fn a_core_that_is_the_window_changes_nothing((found, reference) in label_maps()) {
        let objects = |(labels, width): &Labels| PixelObjects::of_labels(labels, *width);
        let (one, other) = (objects(&found), objects(&reference));
        let (width_px, height_px) = (found.1 as u32, (found.0.len() / found.1) as u32);
        let core = PixelRectangle { x_px: 0, y_px: 0, width_px, height_px };
        let (whole, owned) = (compare(&one, &other), compare_owned(&one, &other, core));
        prop_assert_eq!(owned.objects, whole.objects);
        for (found, expected) in [
            (owned.dice(), whole.dice()),
            (owned.jaccard(), whole.jaccard()),
            (owned.pair_dice(), whole.pair_dice()),
            (owned.recall(), whole.recall()),
            (owned.mean_area(), whole.mean_area()),
        ] {
            prop_assert_eq!(found.to_bits(), expected.to_bits());
        }
    }

    /// The operations measure pixels of the core and owned objects.
    #[test]
    fn operations_measure_within_the_core((found, reference) in label_maps(), tile_px in 1..30_u64, halo_px in 0..9_u64) {
        let registry = registry();
        let mask = |labels: &Labels| {
            let (width, height) = (labels.1 as u32, (labels.0.len() / labels.1) as u32);
            let data = labels.0.iter().map(|label| if *label == 0 { 0 } else { 255 }).collect();
            DataRegion::Mask(Raster::new(width, height, 1, data).unwrap())
        };
        let run = |name: &str, inputs: &[&DataRegion]| {
            registry.get(name, 1).unwrap().run(inputs, &[]).unwrap().remove(0)
        };
        for tile in tiles(&found, tile_px, halo_px) {
            let of = |sides| (mask(&crop(&found, sides)), mask(&crop(&reference, sides)));
            let ((window, of_window), (core, of_core)) = (of(tile.window), of(tile.core));
            let table = DataRegion::Table(tile.core_table());
            prop_assert_eq!(
                run("compare.core-masks", &[&window, &of_window, &table]),
                run("compare.masks", &[&core, &of_core])
            );
            let objects = run("compare.owned-objects", &[&window, &of_window, &table]);
            let expected = {
                let of = |region: &DataRegion| match region {
                    DataRegion::Mask(mask) => PixelObjects::of_mask(mask.data(), mask.width_px() as usize),
                    _ => unreachable!("a mask"),
                };
                compare_owned(&of(&window), &of(&of_window), self::core(&tile))
            };
            let value = |name| objects.table().unwrap().get(name).unwrap();
            prop_assert_eq!(value("nuclei"), expected.objects as f64);
            prop_assert_eq!(value("object-dice"), expected.dice());
        }
    }
}

#[test]
fn invalid_core_is_refused() {
    let registry = registry();
    let mask = DataRegion::Mask(Raster::filled(8, 6, 1, 255).unwrap());
    let labels = DataRegion::Labels(LabelMap::new(8, 6, vec![1; 48]).unwrap());
    let table = |sides: [f64; 4]| {
        DataRegion::Table(Table::new(["left", "top", "width", "height"].into_iter().zip(sides)))
    };
    let run = |core: &DataRegion| {
        let pixels = registry.get("compare.core-masks", 1).unwrap().run(&[&mask, &mask, core], &[]);
        let objects = registry.get("compare.owned-objects", 1).unwrap().run(&[&mask, &labels, core], &[]);
        assert_eq!(pixels.is_err(), objects.is_err());
        pixels
    };
    assert!(run(&table([2.0, 1.0, 6.0, 5.0])).is_ok());
    for sides in [
        [0.0, 0.0, 9.0, 6.0],
        [8.0, 0.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.5, 0.0, 1.0, 1.0],
        [-1.0, 0.0, 1.0, 1.0],
        [f64::NAN, 0.0, 1.0, 1.0],
        [4_294_967_295.0, 0.0, 2.0, 1.0],
        [0.0, 0.0, 1e300, 1.0],
    ] {
        assert!(
            matches!(run(&table(sides)), Err(OperationError::Library { library: "core", .. })),
            "{sides:?}"
        );
    }
    assert!(run(&DataRegion::Table(Table::new([("left", 0.0)]))).is_err());
    assert!(run(&mask).is_err());
}

/// Real nuclei count once with tiles that cut many of them at borders.
#[test]
fn nuclei_of_people_are_counted_once() {
    let Some(data) = data("nuclei_of_people_are_counted_once") else { return };
    let map = read_labels(&data.join("annotated/gbm40/gbm40_03_labels.png")).unwrap();
    let DataRegion::Labels(map) = map else { panic!("a label map") };
    let labels = (map.labels().to_vec(), map.width_px() as usize);
    let halo_px = longest(&labels) - 1;
    for tile_px in [64, 100, 257] {
        let parts = tiled(&labels, &labels, tile_px, halo_px);
        assert!(parts.len() > 1);
        assert_whole(&parts, &labels, &labels);
        for part in &parts {
            assert_eq!((part.dice(), part.jaccard(), part.pair_dice()), (1.0, 1.0, 1.0));
        }
        // Without a halo, nuclei on borders are cut and count on both sides.
        let cut: usize = tiled(&labels, &labels, tile_px, 0).iter().map(|part| part.objects).sum();
        let whole: usize = parts.iter().map(|part| part.objects).sum();
        assert!(cut > whole, "{cut} {whole}");
    }
}
