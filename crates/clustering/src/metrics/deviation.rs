//! Means and deviations.

/// Mean and sum of squared differences of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    count: f64,
    squares: f64,
}

impl Moments {
    pub(crate) fn new(values: &[f64]) -> Self {
        Self::from_counts(values.iter().map(|value| (*value, 1)))
    }

    /// Creates the moments of values that occur several times.
    pub(crate) fn from_counts(values: impl Iterator<Item = (f64, u64)> + Clone) -> Self {
        let total =
            |of: &dyn Fn(f64) -> f64| values.clone().map(|(value, count)| of(value) * count as f64).sum();
        let count: f64 = total(&|_| 1.0);
        let sum: f64 = total(&|value| value);
        let mean = if count > 0.0 { sum / count } else { 0.0 };
        Self { mean, count, squares: total(&|value| (value - mean).powi(2)) }
    }

    /// Returns the population deviation. 0 without values.
    pub(crate) fn population(&self) -> f64 {
        if self.count > 0.0 { (self.squares / self.count).sqrt() } else { 0.0 }
    }

    /// Returns the sample deviation. 0 for fewer than two values.
    pub(crate) fn sample(&self) -> f64 {
        if self.count > 1.0 { (self.squares / (self.count - 1.0)).sqrt() } else { 0.0 }
    }

    /// Returns the population deviation as a part of its maximum for values of 0 and more with this mean, where one value has
    /// the whole sum: mean × √(n − 1).
    pub(crate) fn normalized(&self) -> f64 {
        let max = self.mean * (self.count - 1.0).max(0.0).sqrt();
        if max > 0.0 { (self.population() / max).min(1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_with_the_whole_sum_deviates_most() {
        assert_eq!(Moments::new(&[0.0, 0.0, 0.0, 8.0]).normalized(), 1.0);
        assert_eq!(Moments::new(&[2.0, 2.0]).normalized(), 0.0);
    }

    #[test]
    fn few_values_do_not_deviate() {
        for values in [&[][..], &[3.0]] {
            let moments = Moments::new(values);
            assert_eq!((moments.population(), moments.sample(), moments.normalized()), (0.0, 0.0, 0.0));
        }
        assert_eq!(Moments::new(&[1.0, 3.0]).sample(), 2.0_f64.sqrt());
    }
}
