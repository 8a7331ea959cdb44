//! Random images: sides around the blocks of 64 px, lines 1 px wide, all kinds of content, both connectivities.

use crate::found::{devices, difference};
use crate::images::{Image, image, image_of};
use pleach_accelerate::Device;
use pleach_regions::{DataRegion, Raster};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::RefCell;

/// Sides of 1 px to some 300 px: below, at and above the sides of one to four blocks.
pub(crate) fn side() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(1),
        prop_oneof![
            Just(62),
            Just(63),
            Just(64),
            Just(65),
            Just(66),
            Just(126),
            Just(127),
            Just(128),
            Just(129)
        ],
        1..300_usize,
    ]
}

/// Small images and those of several blocks.
pub(crate) fn any_image() -> impl Strategy<Value = Image> {
    prop_oneof![image(), image_of((side(), side()))]
}

fn region(image: &Image) -> DataRegion {
    let (width, height) = (image.width as u32, (image.pixels.len() / image.width) as u32);
    let data = image.pixels.as_flattened().to_vec();
    DataRegion::Bgr8(Raster::new(width, height, 3, data).unwrap())
}

/// 96 cases: each of the nine sides beside a multiple of 64 px is expected more than three times.
pub(crate) const CASES: u32 = 96;

/// 24 cases of normalization, whose table of 64 MiB takes most of the time.
const COLOR_CASES: u32 = 24;

/// Compares an operation on random values of `strategy` on each device.
pub(crate) fn compare<S: Strategy>(
    test: &str,
    cases: u32,
    strategy: S,
    run: impl Fn(&mut dyn Device, &S::Value) -> Option<String>,
) {
    for device in devices(test, None) {
        let device = RefCell::new(device);
        let check = |value: S::Value| {
            let difference = run(device.borrow_mut().as_mut(), &value);
            difference.map_or(Ok(()), |difference| Err(TestCaseError::fail(difference)))
        };
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        TestRunner::new(config).run(&strategy, check).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn reconstruct_has_the_bits_of_the_cpu() {
    let cases = (any_image(), prop_oneof![Just(4.0), Just(8.0)]);
    compare("reconstruct_has_the_bits_of_the_cpu", CASES, cases, |device, (image, connectivity)| {
        difference(device, "nuclei.reconstruct", &[&region(image)], &[*connectivity])
    });
}

#[test]
fn background_has_the_bits_of_the_cpu() {
    let thresholds = (0..256_i32, 0..256_i32, 0..256_i32, 0.0..6.0_f64, 0.0..6.0_f64);
    compare("background_has_the_bits_of_the_cpu", CASES, (any_image(), thresholds), |device, (image, of)| {
        let numbers = [f64::from(of.0), f64::from(of.1), f64::from(of.2), of.3, of.4];
        difference(device, "nuclei.background", &[&region(image)], &numbers)
    });
}

#[test]
fn normalization_has_the_bits_of_the_cpu() {
    compare("normalization_has_the_bits_of_the_cpu", COLOR_CASES, any_image(), |device, image| {
        difference(device, "nuclei.normalize", &[&region(image)], &[])
    });
}
