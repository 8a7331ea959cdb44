//! Laws of the features on generated objects, each number against its slow counterpart.

use crate::{CHANNELS, Features, bgr, label_map, run, slow};
use pleach_pathology::tissue;
use pleach_regions::{DataRegion, Raster};
use pleach_workflow::SlideTile;
use proptest::prelude::*;

const CHANNEL_NAMES: [&str; CHANNELS] = ["blue", "green", "red", "hematoxylin"];
const STATISTICS: [&str; 7] = ["mean", "median", "sd", "entropy", "energy", "skewness", "kurtosis"];

fn close(found: f64, expected: f64, what: &str) -> Result<(), TestCaseError> {
    let allowed = 1e-9 * expected.abs().max(1.0);
    prop_assert!((found - expected).abs() <= allowed, "{}: {} instead of {}", what, found, expected);
    Ok(())
}

/// Compares the statistics of a set of pixels in all planes.
fn check_part(
    features: &Features,
    object: usize,
    part: &str,
    of: &[(i64, i64)],
) -> Result<(), TestCaseError> {
    let at = |plane: &[u8], channel: usize| -> Vec<u8> {
        let index = |(x, y): &(i64, i64)| (*y as usize * features.width + *x as usize) * CHANNELS + channel;
        of.iter().map(|pixel| plane[index(pixel)]).collect()
    };
    for (channel, name) in CHANNEL_NAMES.into_iter().enumerate() {
        for (plane, prefix) in [("channels", ""), ("gradient", "gradient-"), ("sobel", "sobel-")] {
            let expected = slow::statistics(at(features.plane(plane), channel));
            for (statistic, expected) in STATISTICS.into_iter().zip(expected) {
                let column = format!("{part}-{name}-{prefix}{statistic}");
                // Powers of a small deviation lose digits.
                let found = features.number(object, &column);
                if statistic.ends_with("sis") || statistic == "skewness" {
                    prop_assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{}", column);
                } else {
                    close(found, expected, &column)?;
                }
            }
            if prefix.is_empty() {
                close(features.number(object, &format!("{part}-{name}-max")), expected[7], "max")?;
                close(features.number(object, &format!("{part}-{name}-min")), expected[8], "min")?;
            }
        }
        let edges = at(features.plane("edges"), channel).iter().filter(|value| **value != 0).count() as f64;
        close(features.number(object, &format!("{part}-{name}-edge-count")), edges, "edges")?;
        let mean = if of.is_empty() { 0.0 } else { 255.0 * edges / of.len() as f64 };
        close(features.number(object, &format!("{part}-{name}-edge-mean")), mean, "mean of edges")?;
    }
    Ok(())
}

fn check(features: &Features, levels: usize) -> Result<(), TestCaseError> {
    let pixels = slow::pixels(&features.labels, features.width);
    prop_assert_eq!(features.objects().len(), pixels.len());
    prop_assert_eq!(features.plane("gradient"), slow::gradient(features.plane("channels"), features.width));
    let columns = features.objects().columns();
    for (label, of) in &pixels {
        let object = features.of_label(*label);
        for (column, expected) in columns[1..].iter().zip(slow::shape(of)) {
            close(features.number(object, column), expected, column)?;
        }
        let ring = slow::ring(of, &features.labels, features.width);
        check_part(features, object, "nucleus", of)?;
        check_part(features, object, "cytoplasm", &ring)?;
        let level = |(x, y): (i64, i64)| {
            let pixel = (y as usize * features.width + x as usize) * CHANNELS;
            usize::from(features.plane("channels")[pixel + CHANNELS - 1]) * levels / 256
        };
        let texture = slow::texture(of, level, levels);
        for (column, expected) in columns[columns.len() - 13..].iter().zip(texture) {
            // The root of a difference near 0 loses half of the digits.
            let allowed = if column == "texture-information-2" { 1e-6 } else { 1e-9 };
            let found = features.number(object, column);
            prop_assert!(
                (found - expected).abs() <= allowed * expected.abs().max(1.0),
                "{}: {} instead of {}",
                column,
                found,
                expected
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_number_equals_its_definition(
        width in 1..24_usize,
        pixels in prop::collection::vec((0..5_u32, any::<[u8; 3]>()), 1..500),
        levels in prop::sample::select(vec![8, 32, 256]),
        is_smooth in any::<bool>(),
    ) {
        let mut pixels = pixels;
        pixels.resize(pixels.len().next_multiple_of(width), (0, [9; 3]));
        let labels: Vec<u32> = pixels.iter().map(|(label, _)| label.saturating_sub(1) * 7).collect();
        let color = |bgr: [u8; 3]| if is_smooth { bgr.map(|level| 100 + level / 32) } else { bgr };
        let tile = pixels.iter().flat_map(|(_, bgr)| color(*bgr)).collect();
        check(&Features::of(bgr(width, tile), label_map(width, labels), levels), levels)?;
    }

    /// Moving the objects with their tile changes positions only, as long as no ring reaches the border.
    #[test]
    fn features_do_not_depend_on_the_position(
        (dx, dy) in (0..9_usize, 0..9_usize),
        pixels in prop::collection::vec((0..3_u32, any::<[u8; 3]>()), 36),
    ) {
        let placed = |dx: usize, dy: usize| {
            let (mut tile, mut labels) = (vec![200; 40 * 40 * 3], vec![0; 40 * 40]);
            for (index, (label, color)) in pixels.iter().enumerate() {
                let at = (12 + dy + index / 6) * 40 + 12 + dx + index % 6;
                labels[at] = *label;
                tile[at * 3..][..3].copy_from_slice(color);
            }
            Features::of(bgr(40, tile), label_map(40, labels), 32)
        };
        let (one, other) = (placed(0, 0), placed(dx, dy));
        let columns = one.objects().columns().len();
        for (a, b) in one.objects().numbers().chunks(columns).zip(other.objects().numbers().chunks(columns)) {
            prop_assert_eq!(&a[3..], &b[3..]);
            prop_assert!((b[1] - a[1] - dx as f64).abs() < 1e-9 && (b[2] - a[2] - dy as f64).abs() < 1e-9);
        }
        prop_assert_eq!(one.summary(), other.summary());
    }
}

/// The nuclei of a tissue tile, against their definitions.
#[test]
fn numbers_of_tissue_equal_their_definitions() {
    let tile = tissue::generate(5, 0, 96).unwrap();
    let labels = tile.labels.data.iter().map(|label| u32::from(*label)).collect();
    let features = Features::of(DataRegion::Bgr8(tile.image), label_map(96, labels), 32);
    assert!(features.objects().len() > 3);
    check(&features, 32).unwrap();
}

#[test]
fn a_mask_gives_the_components_of_its_label_map() {
    let tile = tissue::generate(6, 0, 128).unwrap();
    let mask: Vec<u8> = tile.labels.data.iter().map(|label| if *label > 0 { 255 } else { 0 }).collect();
    let mask = DataRegion::Mask(Raster::new(128, 128, 1, mask).unwrap());
    let image = DataRegion::Bgr8(tile.image);
    let of_mask = Features::of(image.clone(), mask, 32);
    let of_labels = Features::of(image, label_map(128, of_mask.labels.clone()), 32);
    assert!(of_mask.objects() == of_labels.objects());
    // Labels count from 1, in raster order.
    let labels: Vec<f64> =
        (0..of_mask.objects().len()).map(|object| of_mask.number(object, "label")).collect();
    assert!(labels.iter().zip(1..).all(|(label, number)| *label == f64::from(number)));
}

#[test]
fn edge_cases_have_finite_numbers() {
    for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 2), (20, 17)] {
        for color in [[0; 3], [255; 3], [120, 40, 90]] {
            let tile = || bgr(width, color.repeat(width * height));
            let empty = Features::of(tile(), label_map(width, vec![0; width * height]), 8);
            assert!(empty.objects().is_empty());
            assert!(empty.summary().columns().all(|(_, value)| value == 0.0));
            let whole = Features::of(tile(), label_map(width, vec![3; width * height]), 8);
            assert_eq!(whole.number(0, "area"), (width * height) as f64);
            assert_eq!(whole.number(0, "cytoplasm-blue-mean"), 0.0);
            assert_eq!(whole.number(0, "nucleus-red-gradient-mean"), 0.0);
            assert!(whole.objects().numbers().iter().all(|number| number.is_finite()));
        }
    }
}

/// A nucleus on the border of two cores counts once.
#[test]
fn cores_count_each_nucleus_once() {
    let tile = tissue::generate(7, 0, 160).unwrap();
    let labels = tile.labels.data.iter().map(|label| u32::from(*label)).collect();
    let features = Features::of(DataRegion::Bgr8(tile.image), label_map(160, labels), 32);
    let all = features.summary();
    let of_core = |core: [u32; 4]| {
        let tile = SlideTile { magnification: None, core, window: [0, 0, 160, 160] };
        let core = DataRegion::Table(tile.core_table());
        let table =
            run("features.core-summary", &[&features.regions["nuclei"], &core], &[]).unwrap().remove(0);
        let get = |name: &str| table.table().unwrap().get(name).unwrap();
        (get("nuclei"), get("nuclei") * get("mean-area"))
    };
    let (mut nuclei, mut area) = (0.0, 0.0);
    for core in [[0, 0, 90, 70], [90, 0, 70, 70], [0, 70, 90, 90], [90, 70, 70, 90]] {
        let (of_tile, area_of_tile) = of_core(core);
        assert!(of_tile > 0.0 && of_tile < all.get("nuclei").unwrap());
        nuclei += of_tile;
        area += area_of_tile;
    }
    assert_eq!(Some(nuclei), all.get("nuclei"));
    assert!((area - nuclei * all.get("mean-area").unwrap()).abs() < 1e-6);
    let everything = of_core([0, 0, 160, 160]);
    assert_eq!(Some(everything.0), all.get("nuclei"));
}

#[test]
fn regions_of_other_content_are_refused() {
    let tile = tissue::generate(7, 0, 64).unwrap();
    let labels = tile.labels.data.iter().map(|label| u32::from(*label)).collect();
    let features = Features::of(DataRegion::Bgr8(tile.image), label_map(64, labels), 32);
    let of = |name: &str, inputs: &[&str], arguments: &[f64]| {
        let inputs: Vec<&DataRegion> = inputs.iter().map(|name| &features.regions[name]).collect();
        run(name, &inputs, arguments).unwrap_err().to_string()
    };
    let texture = of("features.texture", &["labels", "channels"], &[33.0]);
    assert_eq!(texture, "levels = 33; one of 8 16 32 64 128 256 is allowed");
    let collected =
        of("features.collect", &["nuclei", "nucleus_statistics", "ring_statistics", "texture"], &[]);
    assert!(collected.contains("are allowed"), "{collected}");
    let swapped = of("features.collect", &["shapes", "texture", "ring_statistics", "texture"], &[]);
    assert!(swapped.contains("of 100 numbers are allowed, one per object"), "{swapped}");
    let summary = of("features.summary", &["shapes"], &[]);
    assert!(summary.contains("objects without the column nucleus-blue-max"), "{summary}");
    let small = bgr(3, vec![0; 27]);
    let sizes = run(
        "features.texture",
        &[&features.regions["labels"], &run("features.channels", &[&small], &[]).unwrap()[0]],
        &[32.0],
    );
    assert!(sizes.unwrap_err().to_string().contains("3"));
}
