//! Comparison of objects: examples computed by hand, laws against sets of pixels, and outlines drawn by people.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use crate::data::data;
use pleach_pathology::image_io::read_labels;
use pleach_pathology::objects::{Comparison, PixelObjects, Polygon, PolygonObjects, compare, rasterize};
use pleach_pathology::registry;
use pleach_regions::{DataRegion, LabelMap, Raster, Table};
use pleach_workflow::OperationError;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the label map drawn with letters: `.` is background, every other character an object.
fn drawn(rows: &[&str]) -> (Vec<u32>, usize) {
    let label = |letter: char| if letter == '.' { 0 } else { letter as u32 };
    (rows.iter().flat_map(|row| row.chars().map(label)).collect(), rows[0].len())
}

fn compared(found: &[&str], reference: &[&str]) -> Comparison {
    let (found, reference) = (drawn(found), drawn(reference));
    compare(&PixelObjects::of_labels(&found.0, found.1), &PixelObjects::of_labels(&reference.0, reference.1))
}

fn all(compared: &Comparison) -> [f64; 4] {
    [compared.dice(), compared.jaccard(), compared.pair_dice(), compared.recall()]
}

#[test]
fn two_nuclei_worked_out_by_hand() {
    // Areas 4 and 4 against 6 and 4, shared areas 4 and 2.
    let compared = compared(&["AA..BB", "AA..BB", "......"], &["111...", "111.22", "....22"]);
    assert_eq!((compared.area, compared.reference_area, compared.shared_area), (8.0, 10.0, 6.0));
    assert_eq!(compared.dice(), 12.0 / 18.0);
    assert_eq!(compared.jaccard(), 6.0 / 12.0);
    // (8/10 + 4/8) / 2
    assert!((compared.pair_dice() - 0.65).abs() < 1e-15);
    assert_eq!(compared.recall(), 0.6);
    assert_eq!((compared.objects, compared.mean_area()), (2, 4.0));
}

#[test]
fn every_pair_that_overlaps_counts() {
    // A nucleus split in two: areas 2 and 3 against 6.
    let split = compared(&["AA.BBB"], &["111111"]);
    assert_eq!((split.pairs, split.shared_area), (2, 5.0));
    assert_eq!(split.dice(), 10.0 / 11.0);
    assert!((split.pair_dice() - (4.0 / 8.0 + 6.0 / 9.0) / 2.0).abs() < 1e-15);
    // Two nuclei merged into one: the same values from the other side, except recall.
    let merged = compared(&["111111"], &["AA.BBB"]);
    assert_eq!((merged.dice(), merged.pair_dice()), (split.dice(), split.pair_dice()));
    assert_eq!((split.recall(), merged.recall()), (5.0 / 6.0, 1.0));
    // Objects side by side do not overlap, and an object without a partner counts with its area.
    let beside = compared(&["AA.CC"], &["..B.."]);
    assert_eq!((beside.pairs, all(&beside)), (0, [0.0; 4]));
    let lonely = compared(&["AA.CC"], &["AA..."]);
    assert_eq!((lonely.dice(), lonely.pair_dice(), lonely.recall()), (4.0 / 6.0, 1.0, 1.0));
}

#[test]
fn empty_masks_agree_completely() {
    let (nothing, something) = (["...", "..."], ["AA.", "..."]);
    assert_eq!(all(&compared(&nothing, &nothing)), [1.0; 4]);
    assert_eq!(all(&compared(&nothing, &something)), [0.0; 4]);
    assert_eq!(all(&compared(&something, &nothing)), [0.0; 4]);
    assert_eq!(compared(&nothing, &something).mean_area(), 0.0);
}

#[test]
fn an_object_need_not_be_connected_in_a_label_map_but_is_in_a_mask() {
    let (labels, width) = drawn(&["A.A", "...", "A..", ".A."]);
    let mask: Vec<u8> = labels.iter().map(|label| u8::from(*label != 0)).collect();
    assert_eq!(PixelObjects::of_labels(&labels, width).areas_px(), [4]);
    // Eight-connected: the last two pixels touch at a corner.
    assert_eq!(PixelObjects::of_mask(&mask, width).areas_px(), [1, 1, 2]);
}

/// Returns the pixels of each object.
fn pixel_sets(labels: &[u32]) -> BTreeMap<u32, BTreeSet<usize>> {
    let mut sets: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (pixel, label) in labels.iter().enumerate().filter(|(_, label)| **label != 0) {
        sets.entry(*label).or_default().insert(pixel);
    }
    sets
}

/// Compares every two objects as sets.
fn slowly(found: &[u32], reference: &[u32]) -> Comparison {
    let (found, reference) = (pixel_sets(found), pixel_sets(reference));
    let area = |sets: &BTreeMap<u32, BTreeSet<usize>>| sets.values().map(BTreeSet::len).sum::<usize>() as f64;
    let mut slow = Comparison {
        objects: found.len(),
        area: area(&found),
        reference_objects: reference.len(),
        reference_area: area(&reference),
        shared_area: 0.0,
        pairs: 0,
        sum_of_pair_dice: 0.0,
    };
    for a in found.values() {
        for b in reference.values() {
            let shared = a.intersection(b).count() as f64;
            slow.shared_area += shared;
            slow.pairs += usize::from(shared > 0.0);
            slow.sum_of_pair_dice += 2.0 * shared / (a.len() + b.len()) as f64;
        }
    }
    slow
}

/// Two label maps of one size, and their width: overlaid rectangles, so that objects have neighbors, holes and several
/// parts. Some labels are large.
fn label_maps() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, usize)> {
    let rectangles = || vec((0..30_usize, 0..30_usize, 1..12_usize, 1..12_usize, 0..7_u32), 0..14);
    (1..30_usize, 1..30_usize, rectangles(), rectangles()).prop_map(|(width, height, first, second)| {
        let draw = |rectangles: Vec<(usize, usize, usize, usize, u32)>| {
            let mut labels = vec![0; width * height];
            for (left, top, columns, rows, label) in rectangles {
                let label = if label == 6 { u32::MAX } else { label * 1000 };
                for y in top.min(height)..(top + rows).min(height) {
                    for x in left.min(width)..(left + columns).min(width) {
                        labels[y * width + x] = label;
                    }
                }
            }
            labels
        };
        (draw(first), draw(second), width)
    })
}

fn mask_of(labels: &[u32]) -> Vec<u8> {
    labels.iter().map(|label| if *label == 0 { 0 } else { 255 }).collect()
}

fn region_of_mask(mask: &[u8], width: usize) -> DataRegion {
    let (width, height) = (width as u32, (mask.len() / width) as u32);
    DataRegion::Mask(Raster::new(width, height, 1, mask.to_vec()).unwrap())
}

fn region_of_labels(labels: &[u32], width: usize) -> DataRegion {
    let (width, height) = (width as u32, (labels.len() / width) as u32);
    DataRegion::Labels(LabelMap::new(width, height, labels.to_vec()).unwrap())
}

fn operation(name: &str, inputs: &[&DataRegion]) -> Result<Table, OperationError> {
    let outputs = registry().get(name, 1).unwrap().run(inputs, &[])?;
    Ok(outputs[0].table().unwrap().clone())
}

proptest! {
    #[test]
    fn comparison_equals_a_comparison_of_pixel_sets((found, reference, width) in label_maps()) {
        let objects = |labels: &[u32]| PixelObjects::of_labels(labels, width);
        let (one, other) = (objects(&found), objects(&reference));
        let (fast, slow) = (compare(&one, &other), slowly(&found, &reference));
        prop_assert!((fast.sum_of_pair_dice - slow.sum_of_pair_dice).abs() < 1e-12);
        prop_assert_eq!(Comparison { sum_of_pair_dice: slow.sum_of_pair_dice, ..fast }, slow);

        // Swapped sides give the same values to the last bit.
        let swapped = compare(&other, &one);
        prop_assert_eq!(
            (fast.dice(), fast.jaccard(), fast.pair_dice()),
            (swapped.dice(), swapped.jaccard(), swapped.pair_dice())
        );
        prop_assert!(all(&fast).iter().all(|value| (0.0..=1.0).contains(value)));
        prop_assert!(fast.jaccard() <= fast.dice());
        prop_assert_eq!(all(&compare(&one, &one)), [1.0; 4]);

        // Different labels for the same objects give the same values.
        let renamed: Vec<u32> = reference.iter().map(|label| label.wrapping_mul(2_654_435_761)).collect();
        prop_assert_eq!(compare(&one, &objects(&renamed)), fast);
    }

    /// Objects of masks and label maps do not overlap each other, so their shared area is that of the masks.
    #[test]
    fn dice_and_jaccard_are_those_of_pixels((found, reference, width) in label_maps()) {
        let (mask, drawn) = (region_of_mask(&mask_of(&found), width), mask_of(&reference));
        let pixels = operation("compare.masks", &[&mask, &region_of_mask(&drawn, width)]).unwrap();
        for reference in [region_of_labels(&reference, width), region_of_mask(&drawn, width)] {
            let objects = operation("compare.objects", &[&mask, &reference]).unwrap();
            prop_assert_eq!(objects.get("object-dice"), pixels.get("dice"));
            prop_assert_eq!(objects.get("object-jaccard"), pixels.get("jaccard"));
        }
    }

    /// The operation labels a mask that is passed in place of a label map.
    #[test]
    fn a_mask_is_its_connected_components((found, reference, width) in label_maps()) {
        let (mask, drawn) = (region_of_mask(&mask_of(&found), width), mask_of(&reference));
        let mut labels = vec![0; drawn.len()];
        for start in 0..drawn.len() {
            if drawn[start] != 0 && labels[start] == 0 {
                flood(&drawn, width, start, start as u32 + 1, &mut labels);
            }
        }
        let objects = |reference| operation("compare.objects", &[&mask, &reference]).unwrap();
        prop_assert_eq!(objects(region_of_mask(&drawn, width)), objects(region_of_labels(&labels, width)));
        let named = objects(region_of_mask(&mask_of(&found), width));
        let sets = {
            let mut labels = vec![0; found.len()];
            let mask = mask_of(&found);
            for start in 0..mask.len() {
                if mask[start] != 0 && labels[start] == 0 {
                    flood(&mask, width, start, start as u32 + 1, &mut labels);
                }
            }
            pixel_sets(&labels)
        };
        prop_assert_eq!(named.get("nuclei"), Some(sets.len() as f64));
        let pixels: usize = sets.values().map(BTreeSet::len).sum();
        prop_assert_eq!(named.get("mean-area"), Some(if sets.is_empty() { 0.0 } else { pixels as f64 / sets.len() as f64 }));
    }

    /// For rectangles with corners on the corners of pixels, outlines and pixels have the same areas.
    #[test]
    fn rectangles_are_their_pixels(
        first in vec(prop::option::of((0..6_u8, 0..6_u8, 1..=6_u8, 1..=6_u8)), 16),
        second in vec(prop::option::of((0..6_u8, 0..6_u8, 1..=6_u8, 1..=6_u8)), 16),
    ) {
        // One rectangle in each cell of 7 x 7 px of a 4 x 4 grid, so that those of one side do not overlap.
        let polygons = |cells: &[Option<(u8, u8, u8, u8)>]| -> Vec<Polygon> {
            let cells = cells.iter().enumerate().filter_map(|(cell, rectangle)| Some((cell, rectangle.as_ref()?)));
            cells.map(|(cell, &(x, y, columns, rows))| {
                let (left, top) = (f64::from(x) + 7.0 * (cell % 4) as f64, f64::from(y) + 7.0 * (cell / 4) as f64);
                let right = (left + f64::from(columns)).min(7.0 * (cell % 4 + 1) as f64);
                let bottom = (top + f64::from(rows)).min(7.0 * (cell / 4 + 1) as f64);
                Polygon { rings: vec![vec![[left, top], [right, top], [right, bottom], [left, bottom]]] }
            }).collect()
        };
        let (first, second) = (polygons(&first), polygons(&second));
        let pixels = |polygons: &[Polygon]| {
            PixelObjects::of_labels(rasterize(polygons, 28, 28).unwrap().labels(), 28)
        };
        let outlines = compare(&PolygonObjects::new(&first), &PolygonObjects::new(&second));
        let pixels = compare(&pixels(&first), &pixels(&second));
        for (one, other) in [
            (outlines.area, pixels.area),
            (outlines.reference_area, pixels.reference_area),
            (outlines.shared_area, pixels.shared_area),
            (outlines.sum_of_pair_dice, pixels.sum_of_pair_dice),
        ] {
            prop_assert!((one - other).abs() < 1e-6, "{outlines:?} {pixels:?}");
        }
        prop_assert_eq!((outlines.objects, outlines.pairs), (pixels.objects, pixels.pairs));
    }

    /// Any rings, crossing themselves and each other, against the even-odd rule in integers at each pixel.
    #[test]
    fn pixels_inside_are_those_with_an_odd_number_of_crossings(
        rings in vec(vec((-20..100_i64, -20..100_i64), 3..9), 1..4),
    ) {
        let scaled = |&(x, y): &(i64, i64)| [x as f64 / 4.0, y as f64 / 4.0];
        let polygon = Polygon { rings: rings.iter().map(|ring| ring.iter().map(scaled).collect()).collect() };
        let (width, height) = (21, 19);
        let map = rasterize(&[polygon], width, height).unwrap();
        for (pixel, &label) in map.labels().iter().enumerate() {
            // In quarters of a pixel, centers are integers too.
            let (x, y) = (4 * (pixel as i64 % i64::from(width)) + 2, 4 * (pixel as i64 / i64::from(width)) + 2);
            let (mut inside, mut on_an_edge) = (false, false);
            for ring in &rings {
                for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
                    let (top, bottom) = if a.1 <= b.1 { (a, b) } else { (b, a) };
                    if top.1 <= y && y < bottom.1 {
                        // Side of the edge on which the center is.
                        let side = (x - top.0) * (bottom.1 - top.1) - (y - top.1) * (bottom.0 - top.0);
                        inside ^= side > 0;
                        on_an_edge |= side == 0;
                    }
                }
            }
            prop_assert!(on_an_edge || (label == 1) == inside, "{x} {y}");
        }
    }
}

/// Labels the pixels that are eight-connected to `start`.
fn flood(mask: &[u8], width: usize, start: usize, label: u32, labels: &mut [u32]) {
    let mut reached = vec![start];
    labels[start] = label;
    while let Some(pixel) = reached.pop() {
        let (x, y) = ((pixel % width) as i64, (pixel / width) as i64);
        for (dx, dy) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy))) {
            let (x, y) = (x + dx, y + dy);
            if x < 0 || x >= width as i64 || y < 0 || y >= (mask.len() / width) as i64 {
                continue;
            }
            let next = (y * width as i64 + x) as usize;
            if mask[next] != 0 && labels[next] == 0 {
                labels[next] = label;
                reached.push(next);
            }
        }
    }
}

#[test]
fn polygons_may_have_holes_and_parts() {
    let square = |left: f64, top: f64, side: f64| {
        vec![[left, top], [left + side, top], [left + side, top + side], [left, top + side]]
    };
    let mut clockwise = square(2.0, 2.0, 2.0);
    clockwise.reverse();
    // A hole of 4 px and a part of 9 px, in both directions of the hole.
    for hole in [square(2.0, 2.0, 2.0), clockwise] {
        let polygon = Polygon { rings: vec![square(0.0, 0.0, 6.0), hole, square(7.0, 0.0, 3.0)] };
        let map = rasterize(std::slice::from_ref(&polygon), 10, 6).unwrap();
        assert_eq!(map.labels().iter().filter(|label| **label == 1).count(), 36 - 4 + 9);
        let whole = PolygonObjects::new(&[Polygon { rings: vec![square(0.0, 0.0, 10.0)] }]);
        let compared = compare(&PolygonObjects::new(&[polygon]), &whole);
        assert!(
            (compared.area - 41.0).abs() < 1e-9 && (compared.shared_area - 41.0).abs() < 1e-9,
            "{compared:?}"
        );
        assert!((compared.recall() - 0.41).abs() < 1e-9);
    }
    // Rings that enclose no area are no objects.
    let line = Polygon { rings: vec![vec![[0.0, 0.0], [4.0, 4.0], [2.0, 2.0]]] };
    assert_eq!(PolygonObjects::new(&[line, Polygon::default()]).count(), 0);
}

#[test]
fn operation_refuses_other_sizes_and_types() {
    let mask = region_of_mask(&[0, 255], 2);
    let refused = |reference: DataRegion| operation("compare.objects", &[&mask, &reference]).unwrap_err();
    let sizes = refused(region_of_labels(&[0, 1, 1], 3));
    assert_eq!(sizes.to_string(), "inputs are 2 x 1 px and 3 x 1 px; inputs must have equal sizes");
    let gray = refused(DataRegion::Gray8(Raster::filled(2, 1, 1, 0).unwrap()));
    assert_eq!(gray.to_string(), "data region holds gray8; labels is needed");
    let labels = region_of_labels(&[0, 1], 2);
    let swapped = operation("compare.objects", &[&labels, &mask]).unwrap_err();
    assert_eq!(swapped.to_string(), "data region holds labels; mask is needed");
}

#[test]
fn label_maps_of_people_against_themselves() {
    let Some(data) = data("label_maps_of_people_against_themselves") else { return };
    for (name, count) in
        [("gbm40/gbm40_03", 108), ("gbm40/gbm40_11", 145), ("cpm15/cpm15_09", 0), ("cpm15/cpm15_02", 0)]
    {
        let labels = read_labels(&data.join(format!("annotated/{name}_labels.png"))).unwrap();
        let DataRegion::Labels(map) = labels else { panic!("a label map") };
        let objects = PixelObjects::of_labels(map.labels(), map.width_px() as usize);
        let same = compare(&objects, &objects);
        assert_eq!(all(&same), [1.0; 4], "{name}");
        assert_eq!(same.pairs, same.objects);
        assert_eq!(same.objects, pixel_sets(map.labels()).len());
        // The README's count of contours. Later contours may cover an earlier one.
        assert!(count == 0 || (count - 3..=count).contains(&same.objects), "{name}: {}", same.objects);
        // Touching nuclei merge without their labels.
        let mask = PixelObjects::of_mask(&mask_of(map.labels()), map.width_px() as usize);
        let forgotten = compare(&mask, &objects);
        assert_eq!((forgotten.dice(), forgotten.recall()), (1.0, 1.0));
        assert!(mask.count() < objects.count() && forgotten.pair_dice() < 1.0, "{name}");
    }
}

/// Parses Aperio's annotation of MoNuSeg: each outline with the area that ImageScope computed, square pixels.
fn outlines(xml: &str) -> Vec<(Polygon, f64)> {
    let attribute = |text: &str, name: &str| -> f64 {
        let value = text.split_once(&format!(" {name}=\"")).unwrap().1;
        value.split_once('"').unwrap().0.parse().unwrap()
    };
    let regions = xml.split("<Region ").skip(1);
    let outline = |region: &str| {
        let vertices = region.split("<Vertex").skip(1).filter(|vertex| vertex.starts_with(' '));
        let ring = vertices.map(|vertex| [attribute(vertex, "X"), attribute(vertex, "Y")]).collect();
        (Polygon { rings: vec![ring] }, attribute(&format!(" {region}"), "Area"))
    };
    regions.map(outline).collect()
}

#[test]
fn outlines_of_people_agree_with_their_label_map() {
    let Some(data) = data("outlines_of_people_agree_with_their_label_map") else { return };
    let folder = data.join("annotated/monuseg");
    for name in ["TCGA-HT-8564-01Z-00-DX1", "TCGA-HC-7209-01A-01-TS1"] {
        let mut xml = String::new();
        let file = std::fs::File::open(folder.join(format!("{name}.xml.gz"))).unwrap();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut xml).unwrap();
        let (polygons, areas): (Vec<Polygon>, Vec<f64>) = outlines(&xml).into_iter().unzip();
        // ImageScope rounds its areas, and counts outlines that cross themselves differently.
        let objects = PolygonObjects::new(&polygons);
        let same = compare(&objects, &objects);
        let total: f64 = areas.iter().sum();
        assert!((same.area / total - 1.0).abs() < 0.01, "{name}: {} and {total}", same.area);
        assert!(same.dice() >= 1.0 && same.recall() >= 1.0);

        let DataRegion::Labels(map) = read_labels(&folder.join(format!("{name}_labels.png"))).unwrap() else {
            panic!("a label map")
        };
        let drawn = PixelObjects::of_labels(map.labels(), 1000);
        let ours = rasterize(&polygons, 1000, 1000).unwrap();
        let compared = compare(&PixelObjects::of_labels(ours.labels(), 1000), &drawn);
        let near = |pixel: usize| {
            let (x, y) = (pixel % 1000, pixel / 1000);
            let around = |at: usize| at.saturating_sub(1)..(at + 2).min(1000);
            around(y).any(|y| around(x).any(|x| ours.labels()[y * 1000 + x] > 0))
        };
        let outside = (0..1_000_000).filter(|&pixel| map.labels()[pixel] > 0 && !near(pixel)).count();
        // The label map follows a different rule: pixels on an outline are inside, and outlines run from center to
        // center. So it exceeds ours by at most a ring of 1 px.
        assert!((outside as f64) < 0.001 * compared.reference_area, "{name}: {outside}");
        assert!(compared.shared_area > 0.98 * compared.area, "{name}: {compared:?}");
        assert!(compared.dice() > 0.94, "{name}: {}", compared.dice());
        assert!(compared.objects.abs_diff(compared.reference_objects) <= 5, "{name}");
        // Outlines against their own pixels, which count once where outlines overlap each other.
        let ratio = compared.area / same.area;
        assert!((0.995..1.001).contains(&ratio), "{name}: {ratio}");
    }
}
