//! Moments of counted numbers, exact up to the last division.

/// Sums Σ n·kᵖ over bins of n occurrences of the number k = 0, 1, …: exact integers, also where sums on the way exceed 64 bits,
/// for fewer than 2³¹ occurrences of up to 256 numbers (2²⁹ of up to 512, without the fourth power).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PowerSums([i64; 5]);

/// Moments about the mean, not divided by the number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CentralSums {
    pub(crate) second: f64,
    pub(crate) third: f64,
    pub(crate) fourth: f64,
}

impl PowerSums {
    /// Computes the sums by additions alone: sums of sums from the last bin to the first are Σ n·C(k + p, p).
    pub(crate) fn of(bins: &[u32]) -> Self {
        let mut sums = [0_i64; 5];
        for bin in bins.iter().rev() {
            sums[0] = sums[0].wrapping_add(i64::from(*bin));
            for power in 1..sums.len() {
                sums[power] = sums[power].wrapping_add(sums[power - 1]);
            }
        }
        let [n, one, two, three, four] = sums;
        let times = i64::wrapping_mul;
        let first = one.wrapping_sub(n);
        let second = times(2, two).wrapping_sub(times(3, first)).wrapping_sub(times(2, n));
        let third = times(6, three)
            .wrapping_sub(times(6, second))
            .wrapping_sub(times(11, first))
            .wrapping_sub(times(6, n));
        let fourth = times(24, four).wrapping_sub(times(10, third)).wrapping_sub(times(35, second));
        let fourth = fourth.wrapping_sub(times(50, first)).wrapping_sub(times(24, n));
        Self([n, first, second, third, fourth])
    }

    /// Returns the number of occurrences.
    pub(crate) fn count(&self) -> i64 {
        self.0[0]
    }

    /// Returns Σ n·k.
    pub(crate) fn first(&self) -> i64 {
        self.0[1]
    }

    /// Returns Σ n·k².
    pub(crate) fn second(&self) -> i64 {
        self.0[2]
    }

    /// Returns the mean. There is one occurrence or more.
    pub(crate) fn mean(&self) -> f64 {
        self.first() as f64 / self.count() as f64
    }

    /// Returns Σ n·(k − mean)ᵖ for p = 2, 3, 4. Sums are moved to the integer next to the mean exactly, and from there by less
    /// than 1, where no digits cancel.
    pub(crate) fn central(&self) -> CentralSums {
        let Self([n, one, two, three, four]) = *self;
        let (total, mean) = (n as f64, self.mean());
        let near = mean.round() as i64;
        let beyond = mean - near as f64;
        let about = |terms: &[i64]| {
            terms.iter().fold(0_i64, |sum, term| near.wrapping_neg().wrapping_mul(sum).wrapping_add(*term))
        };
        let second = about(&[n, one.wrapping_mul(2), two]) as f64;
        let third = about(&[n, one.wrapping_mul(3), two.wrapping_mul(3), three]) as f64;
        let fourth =
            about(&[n, one.wrapping_mul(4), two.wrapping_mul(6), three.wrapping_mul(4), four]) as f64;
        let square = beyond * beyond;
        CentralSums {
            second: second - total * square,
            third: third - 3.0 * beyond * second + 2.0 * total * square * beyond,
            fourth: fourth - 4.0 * beyond * third + 6.0 * square * second - 3.0 * total * square * square,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_equal_their_definition(bins in prop::collection::vec(0..1_000_000_u32, 0..256)) {
            let sum = |power: u32| bins.iter().zip(0_i128..).map(|(bin, k)| i128::from(*bin) * k.pow(power)).sum::<i128>();
            prop_assert_eq!(PowerSums::of(&bins).0.map(i128::from), [0, 1, 2, 3, 4].map(sum));
        }

        #[test]
        fn central_sums_equal_their_definition(bins in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0..5_000_u32], 1..256)) {
            let total: f64 = bins.iter().map(|bin| f64::from(*bin)).sum();
            prop_assume!(total > 0.0);
            let over = |value: &dyn Fn(f64) -> f64| -> f64 { bins.iter().zip(0..).map(|(bin, k)| f64::from(*bin) * value(f64::from(k))).sum() };
            let mean = over(&|k| k) / total;
            let central = PowerSums::of(&bins).central();
            for (found, power) in [(central.second, 2), (central.third, 3), (central.fourth, 4)] {
                let scale = over(&|k| (k - mean).abs().powi(power));
                let expected = over(&|k| (k - mean).powi(power));
                prop_assert!((found - expected).abs() <= 1e-12 * scale, "{} instead of {}", found, expected);
            }
        }
    }

    #[test]
    fn equal_numbers_have_no_spread() {
        let mut bins = [0; 256];
        bins[203] = 12_345_678;
        let zero = CentralSums { second: 0.0, third: 0.0, fourth: 0.0 };
        assert_eq!(PowerSums::of(&bins).central(), zero);
    }
}
