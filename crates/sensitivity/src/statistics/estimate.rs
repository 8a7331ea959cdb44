//! An index with its confidence interval, computed from a value and its bootstrap resamples.

use serde::{Deserialize, Serialize};

/// Half-width of a 95 % interval in standard deviations: the 0.975 quantile of the normal distribution.
pub const CONFIDENCE_Z: f64 = 1.959_963_984_540_054;

/// An index and its 95 % confidence intervals. Every number is finite or absent.
///
/// `value ± conf` is the normal interval: `conf` is [`CONFIDENCE_Z`] standard deviations (n − 1) of the resamples,
/// as SALib's `conf`. `low` and `high` are the percentile interval: the 2.5 % and 97.5 % quantiles of the
/// resamples, which may be asymmetric about the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The index. Absent if undefined.
    pub value: Option<f64>,
    /// Half-width of the normal interval. Absent with too few resamples, or if too few of them define the index.
    pub conf: Option<f64>,
    /// Lower end of the percentile interval.
    pub low: Option<f64>,
    /// Upper end of the percentile interval.
    pub high: Option<f64>,
}

/// Minimum number of resamples with a 2.5 % quantile between two of them.
const MIN_FOR_QUANTILES: usize = 40;

/// Minimum share of resamples that define an index, so that its interval is not biased to those.
const DEFINED: f64 = 0.9;

impl Estimate {
    /// An undefined index.
    pub const ABSENT: Self = Self { value: None, conf: None, low: None, high: None };

    /// Computes the estimate of `value` from its resamples. Resamples that are not finite do not count.
    pub(crate) fn of(value: f64, resamples: impl ExactSizeIterator<Item = f64>) -> Self {
        let drawn = resamples.len();
        let mut defined: Vec<f64> = resamples.filter(|resample| resample.is_finite()).collect();
        if !value.is_finite() {
            return Self::ABSENT;
        }
        let mut estimate = Self { value: Some(value), ..Self::ABSENT };
        if defined.len() < 2 || (defined.len() as f64) < DEFINED * drawn as f64 {
            return estimate;
        }
        let count = defined.len() as f64;
        let mean = defined.iter().sum::<f64>() / count;
        let squares: f64 = defined.iter().map(|resample| (resample - mean).powi(2)).sum();
        // Squares of finite resamples can overflow, and every number of an estimate is finite or absent.
        let finite = |number: f64| number.is_finite().then_some(number);
        estimate.conf = finite(CONFIDENCE_Z * (squares / (count - 1.0)).sqrt());
        if defined.len() >= MIN_FOR_QUANTILES {
            defined.sort_unstable_by(f64::total_cmp);
            estimate.low = finite(quantile(&defined, 0.025));
            estimate.high = finite(quantile(&defined, 0.975));
        }
        estimate
    }

    /// Returns whether the normal interval contains this number. Returns `None` without an interval.
    #[must_use]
    pub fn holds(&self, number: f64) -> Option<bool> {
        Some((number - self.value?).abs() <= self.conf?)
    }
}

/// Returns a quantile of sorted numbers, interpolated between the two nearest (numpy's `linear`, to the last
/// digit).
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor();
    let at = |place: f64| sorted[(place as usize).min(sorted.len() - 1)];
    interpolate(at(below), at(below + 1.0), place - below)
}

/// Interpolates between two numbers at `share`, rounded as numpy does.
pub(crate) fn interpolate(from: f64, to: f64, share: f64) -> f64 {
    let difference = to - from;
    if share >= 0.5 { to - difference * (1.0 - share) } else { from + difference * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_resamples() {
        let resamples: Vec<f64> = (0..=40).map(f64::from).collect();
        let found = Estimate::of(20.0, resamples.into_iter());
        // The numbers 0 … 40 have variance (n² − 1)/12 · n/(n − 1) with n = 41.
        let deviation = (41.0_f64 * 42.0 / 12.0).sqrt();
        assert!((found.conf.unwrap() - CONFIDENCE_Z * deviation).abs() < 1e-12);
        assert_eq!((found.low, found.high), (Some(1.0), Some(39.0)));
        assert_eq!((found.holds(20.0 + 23.0), found.holds(20.0 + 24.0)), (Some(true), Some(false)));
    }

    #[test]
    fn undefined_estimate_is_absent() {
        let of = |value: f64, resamples: &[f64]| Estimate::of(value, resamples.iter().copied());
        assert_eq!(of(f64::NAN, &[1.0; 50]), Estimate::ABSENT);
        assert_eq!(of(1.0, &[]), Estimate { value: Some(1.0), ..Estimate::ABSENT });
        assert_eq!(of(1.0, &[0.5, 0.5, f64::NAN]).conf, None);
        assert_eq!(of(1.0, &[0.5, 0.5]), Estimate { value: Some(1.0), conf: Some(0.0), ..Estimate::ABSENT });
        assert_eq!(Estimate::ABSENT.holds(0.0), None);
    }
}
