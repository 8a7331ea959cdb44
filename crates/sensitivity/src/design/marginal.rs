//! Maps positions in the unit interval to parameter values: the inverse of the cumulative distribution.
//!
//! Levels are equally likely.

mod normal;

pub use normal::{normal_probability, normal_quantile};
use pleach_workflow::{Distribution, Domain, Parameter, Value, ValueType};

/// Domain of a parameter, prepared for repeated draws.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Marginal<'a> {
    Uniform { low: f64, high: f64 },
    Levels(&'a [Value]),
    Distributed(Distribution),
    Fixed(Value),
}

impl<'a> Marginal<'a> {
    /// Returns `None` for a domain that cannot be sampled.
    pub(crate) fn of(parameter: &'a Parameter) -> Option<Self> {
        match &parameter.domain {
            Domain::Continuous { .. } => real_range(parameter).map(|(low, high)| Self::Uniform { low, high }),
            Domain::Levels { values } => (!values.is_empty()).then_some(Self::Levels(values)),
            Domain::Fixed { value } => Some(Self::Fixed(*value)),
            Domain::Distributed { distribution } => {
                let usable = parameter.value_type == ValueType::Real && distribution.check().is_ok();
                usable.then_some(Self::Distributed(*distribution))
            }
        }
    }

    /// Returns the value at a position of `[0, 1)`. Never `None` for a domain that [`Marginal::of`] accepts.
    pub(crate) fn value(self, place: f64) -> Option<Value> {
        match self {
            Self::Uniform { low, high } => {
                // Rounding may leave the range by the last digit.
                Value::from_f64((low + place * (high - low)).clamp(low, high), ValueType::Real)
            }
            Self::Levels(values) => {
                // With at most a million levels, the product rounds to the last level at most.
                let level = (place * values.len() as f64) as usize;
                values.get(level.min(values.len() - 1)).copied()
            }
            Self::Distributed(distribution) => {
                Value::from_f64(quantile(&distribution, place), ValueType::Real)
            }
            Self::Fixed(value) => Some(value),
        }
    }
}

/// Minimum distance of a probability from 0 and 1 for distributions without bounds: half a cell of 2⁻³²,
/// which is 6.3 deviations from the mean.
const OUTERMOST: f64 = 1.0 / 8_589_934_592.0;

/// Returns the quantile of a `probability` within `[0, 1]`. It is finite: for distributions without bounds,
/// probabilities are clamped to half a cell of 2⁻³² from the ends.
#[must_use]
pub fn quantile(distribution: &Distribution, probability: f64) -> f64 {
    let p = probability.clamp(0.0, 1.0);
    let (low, high) = distribution.bounds();
    let value = match *distribution {
        Distribution::LogUniform { low, high } => {
            let (from, to) = (low.ln(), high.ln());
            (from + p * (to - from)).exp()
        }
        Distribution::Normal { mean, deviation } => {
            mean + deviation * normal_quantile(p.clamp(OUTERMOST, 1.0 - OUTERMOST))
        }
        Distribution::LogNormal { mean, deviation } => {
            (mean + deviation * normal_quantile(p.clamp(OUTERMOST, 1.0 - OUTERMOST))).exp()
        }
        Distribution::TruncatedNormal { mean, deviation, low, high } => {
            let (from, to) = ((low - mean) / deviation, (high - mean) / deviation);
            // Probabilities near 1 have few digits, so above the mean the mirrored distribution is used.
            let scaled = if from > 0.0 {
                -normal_quantile(between(1.0 - p, normal_probability(-to), normal_probability(-from)))
            } else {
                normal_quantile(between(p, normal_probability(from), normal_probability(to)))
            };
            mean + deviation * scaled
        }
        Distribution::Triangular { low, mode, high } => {
            let width = high - low;
            let rising = (mode - low) / width;
            if p < rising {
                low + (p * width * (mode - low)).sqrt()
            } else {
                high - ((1.0 - p) * width * (high - mode)).sqrt()
            }
        }
    };
    value.clamp(low, high)
}

fn between(p: f64, from: f64, to: f64) -> f64 {
    from + p * (to - from)
}

/// Returns the probability of a value below `value`.
#[must_use]
pub fn probability(distribution: &Distribution, value: f64) -> f64 {
    let (low, high) = distribution.bounds();
    let value = value.clamp(low, high);
    match *distribution {
        Distribution::LogUniform { low, high } => (value.ln() - low.ln()) / (high.ln() - low.ln()),
        Distribution::Normal { mean, deviation } => normal_probability((value - mean) / deviation),
        // For 0, the logarithm is minus infinity and the probability 0.
        Distribution::LogNormal { mean, deviation } => normal_probability((value.ln() - mean) / deviation),
        Distribution::TruncatedNormal { mean, deviation, low, high } => {
            let [from, at, to] = [low, value, high].map(|x| (x - mean) / deviation);
            if from > 0.0 {
                let [from, at, to] = [-from, -at, -to].map(normal_probability);
                (from - at) / (from - to)
            } else {
                let [from, at, to] = [from, at, to].map(normal_probability);
                (at - from) / (to - from)
            }
        }
        Distribution::Triangular { low, mode, high } => {
            let width = high - low;
            if value < mode {
                (value - low).powi(2) / (width * (mode - low))
            } else if high > mode {
                1.0 - (high - value).powi(2) / (width * (high - mode))
            } else {
                1.0
            }
        }
    }
}

/// Returns the bounds of a continuous domain. Returns `None` if `f64` numbers cannot divide it, or for an integer
/// parameter.
pub(crate) fn real_range(parameter: &Parameter) -> Option<(f64, f64)> {
    let (low, high) = parameter.domain.bounds();
    let usable = low < high && (high - low).is_finite() && parameter.value_type == ValueType::Real;
    usable.then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(value_type: ValueType, domain: Domain) -> Parameter {
        let default = Value::from_f64(0.0, value_type).unwrap();
        Parameter { name: "p".into(), value_type, default, domain }
    }

    /// Levels divide the unit interval equally. Bisection finds the first position of each level.
    #[test]
    fn levels_share_the_unit_interval_out() {
        for levels in [1_u32, 2, 3, 5, 7, 16, 76, 601, 1000, 65_537] {
            let numbers: Vec<f64> = (0..levels).map(f64::from).collect();
            let levels_of = Domain::set(ValueType::Integer, &numbers).expect("distinct");
            let parameter = parameter(ValueType::Integer, levels_of);
            let marginal = Marginal::of(&parameter).unwrap();
            let level = |place: f64| marginal.value(place).unwrap().as_f64();
            assert_eq!([level(0.0), level(1.0_f64.next_down())], [0.0, f64::from(levels) - 1.0]);
            for wanted in 1..levels.min(2000) {
                let (mut below, mut at_least) = (0.0_f64, 1.0_f64);
                while at_least - below > 1e-14 {
                    let middle = f64::midpoint(below, at_least);
                    if level(middle) < f64::from(wanted) { below = middle } else { at_least = middle }
                }
                assert!((at_least - f64::from(wanted) / f64::from(levels)).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn reals_are_places_in_their_range() {
        let range = |low, high| parameter(ValueType::Real, Domain::Continuous { low, high });
        let at = |parameter: &Parameter, place| Marginal::of(parameter)?.value(place);
        let number = |parameter: &Parameter, place| at(parameter, place).unwrap().as_f64();
        assert_eq!([0.0, 0.25, 0.5].map(|place| number(&range(-1.0, 3.0), place)), [-1.0, 0.0, 1.0]);
        let narrow = range(0.3, 0.3_f64.next_up());
        assert!((0.3..=0.3_f64.next_up()).contains(&number(&narrow, 1.0_f64.next_down())));
        for (low, high) in [(2.0, 1.0), (f64::MIN, f64::MAX), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert_eq!(at(&range(low, high), 0.5), None);
        }
        let whole = parameter(ValueType::Integer, Domain::Continuous { low: 0.0, high: 9.0 });
        assert_eq!(at(&whole, 0.5), None);
        let fixed = parameter(ValueType::Real, Domain::fixed(ValueType::Real, 2.5).unwrap());
        assert_eq!(number(&fixed, 0.9), 2.5);
        let spread = Distribution::Normal { mean: 0.0, deviation: -1.0 };
        let spread = parameter(ValueType::Real, Domain::Distributed { distribution: spread });
        assert_eq!(at(&spread, 0.5), None);
    }

    const PLACES: [f64; 9] = [1e-9, 1e-3, 0.025, 0.25, 0.5, 0.75, 0.975, 0.999, 1.0 - 1e-9];

    /// Quantiles equal SciPy 1.17's `.ppf` at [`PLACES`] of `stats.norm`, `loguniform(1e-3, 10)`,
    /// `truncnorm(-1, 2, loc=5, scale=2)`, `truncnorm(6, 9)` and `triang(c=0.25, loc=1, scale=4)`.
    #[test]
    fn quantiles_are_those_of_scipy() {
        let expected: [(Distribution, [f64; 9]); 5] = [
            (
                Distribution::Normal { mean: 0.0, deviation: 1.0 },
                [
                    -5.997_807_015_007_686_5,
                    -3.090_232_306_167_813,
                    -1.959_963_984_540_054_5,
                    -0.674_489_750_196_081_7,
                    0.0,
                    0.674_489_750_196_081_7,
                    1.959_963_984_540_054,
                    3.090_232_306_167_813,
                    5.997_807_019_601_637,
                ],
            ),
            (
                Distribution::LogUniform { low: 1e-3, high: 10.0 },
                [
                    0.001_000_000_009_210_340_4,
                    0.001_009_252_886_076_684_9,
                    0.001_258_925_411_794_167_5,
                    0.01,
                    0.1,
                    1.0,
                    7.943_282_347_242_818,
                    9.908_319_448_927_694,
                    9.999_999_907_896_601,
                ],
            ),
            (
                Distribution::TruncatedNormal { mean: 5.0, deviation: 2.0, low: 3.0, high: 9.0 },
                [
                    3.000_000_006_766_064,
                    3.006_754_656_930_32,
                    3.162_553_090_781_331,
                    4.300_717_141_415_069_6,
                    5.342_327_836_035_65,
                    6.494_881_447_928_119,
                    8.429_075_670_142_119,
                    8.970_126_171_888_339,
                    8.999_999_969_676_608,
                ],
            ),
            (
                Distribution::TruncatedNormal { mean: 0.0, deviation: 1.0, low: 6.0, high: 9.0 },
                [
                    6.000_000_000_162_378_6,
                    6.000_162_456_812_522,
                    6.004_109_708_064_141,
                    6.046_541_477_810_143,
                    6.111_565_061_795_188,
                    6.221_223_198_296_109,
                    6.572_945_909_277_134,
                    7.036_366_477_778_472,
                    8.746_593_904_469_027,
                ],
            ),
            (
                Distribution::Triangular { low: 1.0, mode: 2.0, high: 5.0 },
                [
                    1.000_063_245_553_203_5,
                    1.063_245_553_203_367_6,
                    1.316_227_766_016_838,
                    2.0,
                    2.550_510_257_216_822,
                    3.267_949_192_431_123,
                    4.452_277_442_494_834,
                    4.890_455_488_498_967,
                    4.999_890_455_490_048,
                ],
            ),
        ];
        for (distribution, quantiles) in expected {
            for (place, expected) in PLACES.into_iter().zip(quantiles) {
                let found = quantile(&distribution, place);
                // SciPy solves for truncated quantiles to about 1e-12.
                assert!(
                    (found - expected).abs() < 2e-12 * expected.abs().max(1.0),
                    "{distribution}: {found}"
                );
                let back = probability(&distribution, found);
                assert!((back - place).abs() < 1e-12, "{distribution}: {place} {back}");
            }
        }
    }

    #[test]
    fn quantiles_stay_within_bounds_and_are_finite() {
        let normal = Distribution::Normal { mean: 1.0, deviation: 2.0 };
        assert!((quantile(&normal, 0.0) + 11.6).abs() < 0.1 && (quantile(&normal, 1.0) - 13.6).abs() < 0.1);
        for distribution in [
            Distribution::TruncatedNormal { mean: 0.0, deviation: 1.0, low: 29.0, high: 40.0 },
            Distribution::TruncatedNormal { mean: 0.0, deviation: 1.0, low: -40.0, high: -29.0 },
            Distribution::Triangular { low: 0.0, mode: 0.0, high: 1.0 },
            Distribution::Triangular { low: 0.0, mode: 1.0, high: 1.0 },
            Distribution::LogUniform { low: 1e-300, high: 1e300 },
            Distribution::LogNormal { mean: -3.0, deviation: 0.25 },
        ] {
            let (low, high) = distribution.bounds();
            let values: Vec<f64> = (0..=100).map(|p| quantile(&distribution, f64::from(p) / 100.0)).collect();
            assert!(values.iter().all(|value| (low..=high).contains(value)), "{values:?}");
            assert!(values.is_sorted(), "{distribution}: {values:?}");
            assert!((probability(&distribution, values[37]) - 0.37).abs() < 1e-9, "{distribution}");
        }
    }
}
