//! Stain normalization against the formula, pixel by pixel in `f64`.

use crate::images::{Image, image};
use pleach_pathology::{ColorCounts, registry};
use pleach_regions::{DataRegion, ElementType, Raster};
use pleach_workflow::{StainFit, StainStatistics};
use proptest::prelude::*;

const TARGET_MEAN: [f64; 3] = [-0.632356, -0.0516004, 0.0376543];
const TARGET_DEVIATION: [f64; 3] = [0.26235, 0.0514831, 0.0114217];

/// In integers, thousandths: some colors are exactly on the border.
fn is_foreground([b, g, r]: [u8; 3]) -> bool {
    let [b, g, r] = [b, g, r].map(i64::from);
    let d1 = -154 * r + 35 * g + 549 * b - 45_718;
    let d2 = -57 * r - 817 * g + 1170 * b - 49_887;
    d1 < d2
}

fn lab([b, g, r]: [u8; 3]) -> [f64; 3] {
    let [b, g, r] = [b, g, r].map(|channel| f64::from(channel) / 255.0);
    let l = (0.3811 * r + 0.5783 * g + 0.0402 * b).log10();
    let m = (0.1967 * r + 0.7244 * g + 0.0782 * b).log10();
    let s = (0.0241 * r + 0.1288 * g + 0.8444 * b).log10();
    [(l + m + s) / 3_f64.sqrt(), (l + m - 2.0 * s) / 6_f64.sqrt(), (l - m) / 2_f64.sqrt()]
}

/// Returns B, G, R before rounding.
fn color([l, alpha, beta]: [f64; 3]) -> [f64; 3] {
    let (l, alpha, beta) = (l * 3_f64.sqrt() / 3.0, alpha * 6_f64.sqrt() / 6.0, beta * 2_f64.sqrt() / 2.0);
    let long = 10_f64.powf(l + alpha + beta);
    let medium = 10_f64.powf(l + alpha - beta);
    let short = 10_f64.powf(l - 2.0 * alpha);
    let r = 4.4687 * long - 3.5887 * medium + 0.1196 * short;
    let g = -1.2197 * long + 2.3831 * medium - 0.1626 * short;
    let b = 0.0585 * long - 0.2611 * medium + 1.2057 * short;
    [b, g, r].map(|channel| (channel * 255.0).clamp(0.0, 255.0))
}

/// Returns the unrounded result of each pixel, or `None` for black, whose logarithm is not a number.
fn slow_normalize(pixels: &[[u8; 3]]) -> Vec<Option<[f64; 3]>> {
    let fitted: Vec<[f64; 3]> = pixels
        .iter()
        .filter(|pixel| is_foreground(**pixel))
        .map(|pixel| lab(*pixel))
        .filter(|[l, alpha, beta]| l * alpha * beta > 0.0)
        .collect();
    let n = fitted.len() as f64;
    let mean: [f64; 3] = std::array::from_fn(|axis| fitted.iter().map(|lab| lab[axis]).sum::<f64>() / n);
    let deviation: [f64; 3] = std::array::from_fn(|axis| {
        (fitted.iter().map(|lab| (lab[axis] - mean[axis]).powi(2)).sum::<f64>() / n).sqrt()
    });
    let transferred = |pixel: [u8; 3]| {
        let lab = lab(pixel);
        if !is_foreground(pixel) || fitted.is_empty() {
            return lab;
        }
        std::array::from_fn(|axis| {
            // A single color has deviation 0, so only the target mean remains.
            let scale = if deviation[axis] > 1e-12 { TARGET_DEVIATION[axis] / deviation[axis] } else { 0.0 };
            (lab[axis] - mean[axis]) * scale + TARGET_MEAN[axis]
        })
    };
    pixels.iter().map(|&pixel| (pixel != [0; 3]).then(|| color(transferred(pixel)))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    /// Results differ from the unrounded value by half a level, plus the rounding errors of both, so never by more than
    /// 1 level.
    #[test]
    fn normalization_is_the_formula(image in image()) {
        let rows = image.pixels.len() / image.width;
        let data = image.pixels.as_flattened().to_vec();
        let tile = DataRegion::Bgr8(Raster::new(image.width as u32, rows as u32, 3, data).unwrap());
        let found = registry().get("nuclei.normalize", 1).unwrap().run(&[&tile], &[]).unwrap();
        let found = found[0].raster(ElementType::Bgr8).unwrap().data();
        let wanted = slow_normalize(&image.pixels);
        for ((found, wanted), pixel) in found.chunks(3).zip(wanted).zip(&image.pixels) {
            match wanted {
                None => prop_assert_eq!(found, [0; 3]),
                Some(wanted) => {
                    let near = found.iter().zip(wanted).all(|(a, b)| (f64::from(*a) - b).abs() <= 0.5 + 1e-6);
                    prop_assert!(near, "{:?} became {:?}, should be {:?}", pixel, found, wanted);
                }
            }
        }
    }
}

/// Returns rows of an image as a region.
fn rows(image: &Image, rows: std::ops::Range<usize>) -> DataRegion {
    let data = image.pixels[rows.start * image.width..rows.end * image.width].as_flattened().to_vec();
    DataRegion::Bgr8(Raster::new(image.width as u32, rows.len() as u32, 3, data).unwrap())
}

fn pixels(region: &DataRegion) -> &[u8] {
    region.raster(ElementType::Bgr8).unwrap().data()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// The statistics of an image do not depend on the pieces that it is counted in, and each piece gets the mapping of
    /// the whole.
    #[test]
    fn pieces_with_the_fit_of_the_whole_are_normalized_as_the_whole(image in image()) {
        let height = image.pixels.len() / image.width;
        let halves = [0..height / 2, height / 2..height].into_iter().filter(|of| !of.is_empty());
        let pieces: Vec<DataRegion> = halves.map(|of| rows(&image, of)).collect();
        let whole = rows(&image, 0..height);
        let mut counts = ColorCounts::default();
        pieces.iter().rev().for_each(|piece| counts.add(pixels(piece)));
        let fit = StainFit { target: None, source: counts.statistics() };
        let table = DataRegion::Table(fit.table());
        let registry = registry();
        let expected = registry.get("nuclei.normalize", 1).unwrap().run(&[&whole], &[]).unwrap();
        // Without tissue the pieces are fitted to themselves: colors stay unchanged as well.
        let run = |piece| registry.get("nuclei.normalize-fitted", 1).unwrap().run(&[piece, &table], &[]).unwrap();
        let found: Vec<u8> = pieces.iter().flat_map(|piece| pixels(&run(piece)[0]).to_vec()).collect();
        prop_assert_eq!(&found, pixels(&expected[0]));
    }
}

#[test]
fn normalized_tissue_has_the_statistics_of_the_target() {
    let tile = |index| pleach_pathology::tissue::generate(3, index, 256).unwrap().image;
    let statistics = |image: &[u8]| {
        let mut counts = ColorCounts::default();
        counts.add(image);
        counts.statistics().unwrap()
    };
    let (image, target) = (tile(0), statistics(tile(1).data()));
    let fit = StainFit { target: Some(target), source: None };
    let (image, table) = (DataRegion::Bgr8(image), DataRegion::Table(fit.table()));
    let operation = registry().get("nuclei.normalize-fitted", 1).unwrap().clone();
    let found = statistics(pixels(&operation.run(&[&image, &table], &[]).unwrap()[0]));
    let built_in =
        statistics(pixels(&registry().get("nuclei.normalize", 1).unwrap().run(&[&image], &[]).unwrap()[0]));
    let distance = |of: &StainStatistics| -> f64 {
        (0..3).map(|axis| (of.mean[axis].get() - target.mean[axis].get()).abs()).sum()
    };
    // Rounding to bytes, colors outside the cube, and pixels that change their class: not exact.
    assert!(distance(&found) < 0.02, "{found:?} {target:?}");
    assert!(distance(&built_in) > 5.0 * distance(&found), "{built_in:?} {target:?}");
}
