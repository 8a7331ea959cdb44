//! Every kernel against an independent, slow definition of its result, on small random images.

use crate::slow::{
    crop, flood_fill, opencv_watershed, pad, slow_distance, slow_fill_holes, slow_filter, slow_reconstruct,
};
use opencv::core::{Mat, MatTraitConst, MatTraitConstManual};
use opencv::imgproc;
use pleach_pathology::kernels::components::{Components, fill_holes, filter_by_area, select};
use pleach_pathology::kernels::distance::distance_to_background;
use pleach_pathology::kernels::morphology::{self, StructuringElement};
use pleach_pathology::kernels::reconstruct::reconstruct;
use pleach_pathology::kernels::{Connectivity, watershed};
use proptest::collection::vec;
use proptest::prelude::*;

const BOTH: [Connectivity; 2] = [Connectivity::Four, Connectivity::Eight];

/// Pixels and width of a plane of up to 24 × 24 px, sides of 1 px included.
fn plane<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = (Vec<T>, usize)> {
    (1..24_usize, 1..24_usize)
        .prop_flat_map(move |(width, rows)| (vec(value.clone(), width * rows), Just(width)))
}

/// A mask with balanced, dense or sparse objects.
fn mask() -> impl Strategy<Value = (Vec<u8>, usize)> {
    (1..10_u8)
        .prop_flat_map(|tenths| plane((0..10_u8).prop_map(move |draw| if draw < tenths { 255 } else { 0 })))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reconstruction_of_bytes_equals_its_definition((pairs, width) in plane((0..12_u8, 0..12_u8))) {
        let (marker, mask): (Vec<u8>, Vec<u8>) = pairs.into_iter().unzip();
        for connectivity in BOTH {
            let mut found = marker.clone();
            reconstruct(&mut found, &mask, width, connectivity);
            prop_assert_eq!(found, slow_reconstruct(&marker, &mask, width, connectivity));
        }
    }

    /// Few sources and long paths, so that the queue is used.
    #[test]
    fn reconstruction_through_mazes_equals_its_definition((mask, width) in plane(prop_oneof![Just(0_u8), Just(200), Just(201)]), source: prop::sample::Index) {
        let mut marker = vec![0; mask.len()];
        marker[source.index(mask.len())] = 255;
        for connectivity in BOTH {
            let mut found = marker.clone();
            reconstruct(&mut found, &mask, width, connectivity);
            prop_assert_eq!(found, slow_reconstruct(&marker, &mask, width, connectivity));
        }
    }

    #[test]
    fn reconstruction_of_floats_equals_its_definition((mask, width) in mask()) {
        // As in the separation of nuclei: depressions under distances, with an infinite background.
        let Some(limit) = distance_to_background(&mask, width, f32::MAX) else { return Ok(()) };
        let marker: Vec<f32> = limit.iter().map(|value| value - 1.0).collect();
        for connectivity in BOTH {
            let mut found = marker.clone();
            reconstruct(&mut found, &limit, width, connectivity);
            prop_assert_eq!(found, slow_reconstruct(&marker, &limit, width, connectivity));
        }
    }

    #[test]
    fn area_filter_equals_a_flood_fill((mask, width) in mask(), least in 0..30_u64, most in 0..30_u64) {
        for connectivity in BOTH {
            let kept = |pixel: usize| {
                let area = flood_fill(&mask, width, connectivity, pixel).len() as u64;
                mask[pixel] != 0 && least <= area && area < most
            };
            let wanted: Vec<u8> = (0..mask.len()).map(|pixel| if kept(pixel) { 255 } else { 0 }).collect();
            prop_assert_eq!(filter_by_area(&mask, width, connectivity, least..most), wanted);
        }
    }

    #[test]
    fn selection_equals_a_flood_fill((pairs, width) in plane((any::<bool>(), 0..20_u8))) {
        let mask: Vec<u8> = pairs.iter().map(|(object, _)| u8::from(*object)).collect();
        let seeds: Vec<u8> = pairs.iter().map(|(_, draw)| if *draw == 0 { 7 } else { 0 }).collect();
        for connectivity in BOTH {
            let kept = |pixel: usize| {
                mask[pixel] != 0
                    && flood_fill(&mask, width, connectivity, pixel).into_iter().any(|pixel| seeds[pixel] != 0)
            };
            let wanted: Vec<u8> = (0..mask.len()).map(|pixel| if kept(pixel) { 255 } else { 0 }).collect();
            prop_assert_eq!(select(&mask, &seeds, width, connectivity), wanted);
        }
    }

    #[test]
    fn hole_filling_equals_its_definition((mask, width) in mask()) {
        for connectivity in BOTH {
            let wanted = slow_fill_holes(&mask, width, connectivity);
            prop_assert_eq!(fill_holes(&mask, width, connectivity), wanted);
        }
    }

    #[test]
    fn labels_are_components_in_raster_order((mask, width) in mask()) {
        for connectivity in BOTH {
            let components = Components::of_objects(&mask, width, connectivity);
            let mut labels = vec![0; mask.len()];
            components.for_each_run(|run, component| labels[run].fill(component + 1));
            let mut wanted = vec![0; mask.len()];
            let mut count = 0;
            for pixel in 0..mask.len() {
                if mask[pixel] != 0 && wanted[pixel] == 0 {
                    count += 1;
                    flood_fill(&mask, width, connectivity, pixel).into_iter().for_each(|p| wanted[p] = count);
                }
            }
            prop_assert_eq!(labels, wanted);
            prop_assert_eq!(components.count(), count as usize);
        }
    }

    #[test]
    fn distance_equals_its_definition((mask, width) in mask()) {
        let found = distance_to_background(&mask, width, -5.0);
        prop_assert_eq!(found.is_none(), !mask.contains(&0));
        for ((found, wanted), value) in found.iter().flatten().zip(slow_distance(&mask, width)).zip(&mask) {
            prop_assert_eq!(*found, if *value == 0 { -5.0 } else { wanted });
        }
    }

    #[test]
    fn erosion_and_dilation_equal_their_definitions((values, width) in plane(any::<u8>()), outside: u8) {
        for element in [StructuringElement::Cross, StructuringElement::Octagon] {
            let eroded = morphology::erode(&values, width, element, 255).unwrap();
            prop_assert_eq!(eroded, slow_filter(&values, width, element, true, None));
            let dilated = morphology::dilate(&values, width, element).unwrap();
            prop_assert_eq!(dilated, slow_filter(&values, width, element, false, None));
        }
        let eroded = morphology::erode(&values, width, StructuringElement::Cross, outside).unwrap();
        prop_assert_eq!(eroded, slow_filter(&values, width, StructuringElement::Cross, true, Some(outside)));
    }

    #[test]
    fn padded_opening_equals_its_definition((values, width) in plane(any::<u8>())) {
        let padded = pad(&values, width, 9, 255);
        let eroded = slow_filter(&padded, width + 18, StructuringElement::Octagon, true, None);
        let opened = slow_filter(&eroded, width + 18, StructuringElement::Octagon, false, None);
        prop_assert_eq!(morphology::open_octagon(&values, width).unwrap(), crop(&opened, width + 18, 8));
    }

    /// Few gray levels, so that queues are long and ties are common.
    #[test]
    fn flooding_is_that_of_opencv(
        (pixels, width) in plane((0..4_u8, 0..4_u8, 0..4_u8, 0..10_u8, 0..40_i32)),
        stretch in prop_oneof![Just(1_u8), Just(60)],
    ) {
        let bgr: Vec<u8> = pixels.iter().flat_map(|(b, g, r, ..)| [b * stretch, g * stretch, r * stretch]).collect();
        let inside: Vec<u8> = pixels.iter().map(|(.., draw, _)| if *draw < 8 { 255 } else { 0 }).collect();
        let mut labels: Vec<i32> = pixels.iter().map(|(.., draw)| if *draw < 5 { *draw } else { 0 }).collect();
        let wanted = opencv_watershed(&bgr, &inside, &labels, width);
        watershed::watershed(&bgr, &inside, &mut labels, width);
        prop_assert_eq!(labels, wanted);
    }
}

/// Distances equal `cv::distanceTransform` bit for bit, on a tile-sized mask with small and large objects.
#[test]
fn distances_are_those_of_opencv() {
    let (width, rows) = (300, 200);
    let disc = |x: usize, y: usize, cx: usize, cy: usize, r: usize| {
        let (dx, dy) = (x.abs_diff(cx), y.abs_diff(cy));
        dx * dx + dy * dy <= r * r
    };
    let object = |pixel: usize| {
        let (x, y) = (pixel % width, pixel / width);
        disc(x, y, 80, 90, 75)
            || disc(x, y, 170, 40, 30)
            || disc(x, y, 250, 150, 60)
            || disc(x % 37, y % 41, 9, 9, 7)
    };
    let mask: Vec<u8> = (0..width * rows).map(|pixel| if object(pixel) { 255 } else { 0 }).collect();
    let image = Mat::new_rows_cols_with_bytes::<u8>(rows as i32, width as i32, &mask).unwrap();
    let mut wanted = Mat::default();
    imgproc::distance_transform(
        &image,
        &mut wanted,
        imgproc::DIST_L2,
        imgproc::DIST_MASK_PRECISE,
        opencv::core::CV_32F,
    )
    .unwrap();
    assert_eq!(wanted.rows(), rows as i32);
    assert_eq!(distance_to_background(&mask, width, 0.0).unwrap(), wanted.data_typed::<f32>().unwrap());
}

/// A line with a diagonal step is doubled below the step, and nowhere else.
#[test]
fn lines_are_closed_at_diagonal_steps() {
    let (l, o) = (watershed::LINE, 1);
    #[rustfmt::skip]
    let labels = [
        o, l, o, o,
        l, o, o, o,
        o, l, o, o,
        o, o, l, o,
    ];
    #[rustfmt::skip]
    let kept = [
        255, 0, 255, 255,
        0, 0, 255, 255,
        0, 0, 255, 255,
        255, 0, 0, 255,
    ];
    assert_eq!(watershed::keep_off_lines(&labels, &[255; 16], 4), kept);
}
