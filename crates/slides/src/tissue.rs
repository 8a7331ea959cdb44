//! Tissue detection on the overview of a slide.
//!
//! Stain has color and glass has none: a pixel is tissue if its saturation (HSV, 0–255) exceeds a threshold. The
//! default is Otsu's threshold, N. Otsu, "A threshold selection method from gray-level histograms", IEEE Trans.
//! Systems, Man and Cybernetics 9 (1979) 62–66, but at most [`MAX_SATURATION`]: on a slide without background,
//! Otsu's threshold would separate two kinds of tissue. Intended for stained sections in bright light. Fluorescence
//! on black, with colored noise, and pen marks all count as tissue: a false positive costs time, a false negative a
//! result.

use pleach_regions::Raster;

/// Maximum automatic threshold, of 255. Scanned glass stays below 15, and the palest stroma of an H&E section is above
/// 25.
pub const MAX_SATURATION: u8 = 20;

/// Relative rounding error of a variance.
const ROUNDING: f64 = 1e-9;

/// Tissue pixels of an overview.
#[derive(Clone, Debug)]
pub struct Tissue {
    width_px: u32,
    height_px: u32,
    saturation: u8,
    is_tissue: Vec<bool>,
}

impl Tissue {
    /// Detects tissue on an overview (B, G, R). `saturation` is the threshold. `None` selects it automatically.
    #[must_use]
    pub fn of(overview: &Raster, saturation: Option<u8>) -> Self {
        let channels = usize::from(overview.channels());
        let saturations: Vec<u8> = overview.data().chunks_exact(channels).map(saturation_of).collect();
        let saturation = saturation.unwrap_or_else(|| otsu(&saturations).min(MAX_SATURATION));
        Self {
            width_px: overview.width_px(),
            height_px: overview.height_px(),
            saturation,
            is_tissue: saturations.iter().map(|found| *found > saturation).collect(),
        }
    }

    /// Returns the threshold, of 255. Tissue pixels exceed it.
    #[must_use]
    pub fn saturation(&self) -> u8 {
        self.saturation
    }

    /// Returns the tissue fraction of a part of the slide, 0–1: that of all overview pixels that overlap the part.
    /// `left..right` and `top..bottom` are fractions of the slide's sides.
    #[must_use]
    pub fn share(&self, [left, right]: [f64; 2], [top, bottom]: [f64; 2]) -> f64 {
        let range = |from: f64, to: f64, length: u32| {
            let length = length as usize;
            let first = ((from * length as f64).floor() as usize).min(length - 1);
            // At least one pixel: a part may be smaller than a pixel of the overview.
            first..((to * length as f64).ceil() as usize).clamp(first + 1, length)
        };
        let (columns, rows) = (range(left, right, self.width_px), range(top, bottom, self.height_px));
        let all = columns.len() * rows.len();
        let row = |y: usize| &self.is_tissue[y * self.width_px as usize..][columns.clone()];
        let tissue: usize = rows.map(|y| row(y).iter().filter(|pixel| **pixel).count()).sum();
        tissue as f64 / all as f64
    }
}

/// Returns 255 × (largest − smallest) / largest, rounded down. 0 for black.
fn saturation_of(pixel: &[u8]) -> u8 {
    let (low, high) = pixel.iter().fold((255, 0), |(low, high), value| (low.min(*value), high.max(*value)));
    let (low, high) = (u32::from(low), u32::from(high));
    (255 * (high - low)).checked_div(high).unwrap_or_default() as u8
}

/// Returns the threshold with the greatest variance between the values up to it and those above, on ties the
/// smallest, and 0 if all values are equal. Variances that differ by less than rounding are ties.
fn otsu(values: &[u8]) -> u8 {
    let mut histogram = [0_u64; 256];
    values.iter().for_each(|value| histogram[usize::from(*value)] += 1);
    let all = values.len() as f64;
    let total: f64 =
        (0..).zip(histogram).map(|(value, count): (u32, u64)| f64::from(value) * count as f64).sum();
    let (mut below, mut sum_below, mut best) = (0.0, 0.0, (0.0, 0));
    for (value, count) in (0_u8..=255).zip(histogram) {
        below += count as f64;
        sum_below += f64::from(value) * count as f64;
        let above = all - below;
        // A class without pixels has no mean.
        if below > 0.0 && above > 0.0 {
            let difference = sum_below / below - (total - sum_below) / above;
            let between = below * above * difference * difference;
            if between > best.0 * (1.0 + ROUNDING) {
                best = (between, value);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies the definition: computes each class's mean for every threshold.
    fn otsu_slowly(values: &[u8]) -> u8 {
        let mean = |class: &[f64]| class.iter().sum::<f64>() / class.len() as f64;
        let mut best = (0.0, 0);
        for threshold in 0..=254 {
            let class = |is_in: &dyn Fn(u8) -> bool| -> Vec<f64> {
                values.iter().filter(|value| is_in(**value)).map(|value| f64::from(*value)).collect()
            };
            let (low, high) = (class(&|value| value <= threshold), class(&|value| value > threshold));
            if !low.is_empty() && !high.is_empty() {
                let between = (low.len() * high.len()) as f64 * (mean(&low) - mean(&high)).powi(2);
                if between > best.0 * (1.0 + ROUNDING) {
                    best = (between, threshold);
                }
            }
        }
        best.1
    }

    proptest! {
        #[test]
        fn otsus_threshold_is_that_of_the_definition(values in prop::collection::vec(any::<u8>(), 1..40)) {
            prop_assert_eq!(otsu(&values), otsu_slowly(&values));
        }
    }

    #[test]
    fn saturation_is_that_of_a_cone() {
        for (pixel, expected) in [
            ([0, 0, 0], 0),
            ([255, 255, 255], 0),
            ([0, 0, 9], 255),
            ([243, 243, 246], 3),
            ([182, 100, 180], 114),
        ] {
            assert_eq!(saturation_of(&pixel), expected, "{pixel:?}");
        }
    }

    /// Returns an overview whose left half is glass with the noise of a scanner, and whose right half is stained.
    fn halves(right: [u8; 3]) -> Raster {
        let glass = |x: usize, y: usize| [240 + ((x + y) % 3) as u8, 242, 243];
        let pixel = |n: usize| if n % 20 < 10 { glass(n % 20, n / 20) } else { right };
        Raster::new(20, 10, 3, (0..200).flat_map(pixel).collect()).unwrap()
    }

    #[test]
    fn stain_is_distinguished_from_glass() {
        for stained in [[200, 150, 210], [180, 60, 120], [235, 212, 236]] {
            let tissue = Tissue::of(&halves(stained), None);
            assert!((3..=MAX_SATURATION).contains(&tissue.saturation()));
            assert_eq!(tissue.share([0.0, 0.5], [0.0, 1.0]), 0.0);
            assert_eq!(tissue.share([0.5, 1.0], [0.0, 1.0]), 1.0);
            assert_eq!(tissue.share([0.25, 0.75], [0.3, 0.35]), 0.5);
        }
    }

    #[test]
    fn a_slide_that_is_all_tissue_is_not_made_two_kinds() {
        let both = [[200, 150, 210], [120, 40, 130]];
        let all = Raster::new(20, 10, 3, (0..200).flat_map(|n| both[n % 2]).collect()).unwrap();
        let tissue = Tissue::of(&all, None);
        assert_eq!((tissue.saturation(), tissue.share([0.0, 1.0], [0.0, 1.0])), (MAX_SATURATION, 1.0));
    }

    #[test]
    fn a_threshold_that_is_given_is_kept() {
        let stained = halves([200, 150, 210]);
        assert_eq!(Tissue::of(&stained, Some(0)).share([0.0, 1.0], [0.0, 1.0]), 1.0);
        assert_eq!(Tissue::of(&stained, Some(255)).share([0.0, 1.0], [0.0, 1.0]), 0.0);
        let blank = Raster::filled(3, 3, 3, 255).unwrap();
        assert_eq!(Tissue::of(&blank, None).share([0.0, 1.0], [0.0, 1.0]), 0.0);
    }

    /// A part of the slide smaller than an overview pixel is within one.
    #[test]
    fn every_part_of_a_slide_has_a_share() {
        let tissue = Tissue::of(&halves([200, 150, 210]), None);
        for at in [0.0, 0.5, 0.999_999, 1.0] {
            assert!((0.0..=1.0).contains(&tissue.share([at, at + 1e-9], [at, at + 1e-9])));
        }
    }
}
