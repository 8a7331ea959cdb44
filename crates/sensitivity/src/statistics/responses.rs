//! Responses of a design's rows: checks before the analysis, and the rows that failures leave.
//!
//! Methods take several responses of the same runs at once. Responses with failures in the same rows are
//! analyzed together, so that results that depend on parameters alone (ranks, factors, resamples) are
//! computed once.

use crate::statistics::error::AnalysisError;

/// One response of all evaluations of a design.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Name of the response, such as `dice`.
    pub name: &'a str,
    /// One value per row of the design. `None` for a failed evaluation.
    pub values: &'a [Option<f64>],
}

/// Maximum spread of equal responses, as a share of their largest magnitude. Summing in another order changes
/// as much.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

impl Response<'_> {
    /// Checks that each of `rows` rows has one entry, that values are finite, and that their range is finite.
    pub(crate) fn check(&self, rows: usize) -> Result<(), AnalysisError> {
        let response = || self.name.to_owned();
        if self.values.len() != rows {
            let responses = self.values.len();
            return Err(AnalysisError::ResponseCount { response: response(), responses, evaluations: rows });
        }
        let (mut smallest, mut largest) = (0.0_f64, 0.0_f64);
        for (index, value) in self.values.iter().enumerate() {
            let Some(value) = *value else { continue };
            if !value.is_finite() {
                return Err(AnalysisError::NotFinite { response: response(), evaluation: index + 1, value });
            }
            (smallest, largest) = (smallest.min(value), largest.max(value));
        }
        // `standardized` divides by this range, so it must be a number.
        if !(largest - smallest).is_finite() {
            return Err(AnalysisError::Overflow { response: response() });
        }
        Ok(())
    }
}

/// Returns whether numbers are equal but for rounding. Fewer than two numbers are constant.
pub(crate) fn is_constant(numbers: &[f64]) -> bool {
    let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    numbers.len() < 2 || largest - smallest <= ROUNDING * smallest.abs().max(largest.abs())
}

/// Returns the numbers minus their mean, in units of their population standard deviation. All 0 for constant
/// numbers.
pub(crate) fn standardized(numbers: &[f64]) -> Vec<f64> {
    if is_constant(numbers) {
        return vec![0.0; numbers.len()];
    }
    let count = numbers.len() as f64;
    // Scales by the range first, so that no square overflows or vanishes.
    let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let range = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max) - smallest;
    let scaled: Vec<f64> = numbers.iter().map(|number| (number - smallest) / range).collect();
    let mean = scaled.iter().sum::<f64>() / count;
    let deviation = (scaled.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count).sqrt();
    scaled.iter().map(|number| (number - mean) / deviation).collect()
}

/// Responses with values in the same units. A unit is a row or a block of rows.
pub(crate) struct ResponseGroup {
    /// Indices of the responses among the given ones.
    pub(crate) responses: Vec<usize>,
    /// Indices of the complete units, in order.
    pub(crate) kept: Vec<usize>,
}

/// Groups responses by their complete units. A unit is `length` consecutive rows.
pub(crate) fn group_responses(responses: &[Response<'_>], length: usize) -> Vec<ResponseGroup> {
    let mut groups: Vec<ResponseGroup> = Vec::new();
    for (place, response) in responses.iter().enumerate() {
        let whole =
            |unit: &usize| response.values[unit * length..(unit + 1) * length].iter().all(Option::is_some);
        let kept: Vec<usize> = (0..response.values.len() / length).filter(whole).collect();
        // A linear search suffices, because responses are few.
        match groups.iter_mut().find(|group| group.kept == kept) {
            Some(group) => group.responses.push(place),
            None => groups.push(ResponseGroup { responses: vec![place], kept }),
        }
    }
    groups
}

/// Returns the values in these rows. Each row must have a value.
pub(crate) fn values_at(response: &Response<'_>, rows: &[usize]) -> Vec<f64> {
    rows.iter().filter_map(|&row| response.values[row]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_responses_are_refused() {
        let error =
            |values: &[Option<f64>]| Response { name: "dice", values }.check(2).unwrap_err().to_string();
        assert!(error(&[None]).starts_with("1 values of response dice for 2 evaluations"));
        assert!(error(&[Some(1.0), Some(f64::NAN)]).starts_with("response dice of evaluation 2 is NaN"));
        assert!(error(&[Some(f64::INFINITY), None]).starts_with("response dice of evaluation 1 is inf"));
        assert!(error(&[Some(1e308), Some(-1e308)]).contains("exceed the range of floating-point"));
        assert_eq!(Response { name: "dice", values: &[None, Some(1e308)] }.check(2), Ok(()));
    }

    #[test]
    fn rounding_is_no_variation() {
        assert!(is_constant(&[]) && is_constant(&[3.0]) && is_constant(&[0.0, 0.0]));
        assert!(is_constant(&[0.1 + 0.2, 0.3]) && !is_constant(&[0.3, 0.300_000_001]));
        assert!(!is_constant(&[0.0, 1e-300]));
    }

    #[test]
    fn scales_do_not_matter() {
        for scale in [1e-200, 1.0, 1e200] {
            let found = standardized(&[scale, 2.0 * scale, 3.0 * scale, 2.0 * scale]);
            let expected = [-2.0_f64.sqrt(), 0.0, 2.0_f64.sqrt(), 0.0];
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
        }
        assert_eq!(standardized(&[7.0, 7.0]), [0.0, 0.0]);
    }

    #[test]
    fn responses_with_the_same_rows_are_grouped() {
        let (all, some) = ([Some(1.0); 4], [Some(1.0), Some(2.0), None, Some(3.0)]);
        let responses = [&all, &some, &all].map(|values| Response { name: "", values });
        let grouped = |length| {
            let groups = group_responses(&responses, length);
            groups.into_iter().map(|group| (group.responses, group.kept)).collect::<Vec<_>>()
        };
        assert_eq!(grouped(1), [(vec![0, 2], vec![0, 1, 2, 3]), (vec![1], vec![0, 1, 3])]);
        assert_eq!(grouped(2), [(vec![0, 2], vec![0, 1]), (vec![1], vec![0])]);
    }
}
