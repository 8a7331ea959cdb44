//! Probabilities and quantiles of the standard normal distribution.
//!
//! Quantiles use Wichura's algorithm AS 241 (Applied Statistics 37, 1988), which is accurate to 16 digits.
//! Probabilities use the error function of the crate `libm`.

use std::f64::consts::FRAC_1_SQRT_2;

/// Returns Φ(x), the probability of a standard normal value below x.
#[must_use]
pub fn normal_probability(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Returns Φ⁻¹(p) for p within (0, 1), by Wichura's PPND16. Infinite at the ends.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTER);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-tail.ln()).sqrt();
    let value = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &FAR) };
    value.copysign(q)
}

/// Numerator and denominator of a rational function, constant coefficients first.
type Ratio = [[f64; 8]; 2];

fn ratio(r: f64, coefficients: &Ratio) -> f64 {
    let [above, below] = coefficients.map(|of| of.iter().rev().fold(0.0, |sum, c| sum * r + c));
    above / below
}

/// Coefficients of AS 241 for |p − ½| up to 0.425.
const CENTER: Ratio = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_545,
    ],
];

/// Coefficients of AS 241 for tails down to e⁻²⁵.
const MIDDLE: Ratio = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

/// Coefficients of AS 241 for tails below e⁻²⁵.
const FAR: Ratio = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// In the far tails, where the third rational function applies, quantiles equal SciPy 1.17's `norm.ppf`
    /// and invert back.
    #[test]
    fn quantiles_far_out_are_as_good() {
        for (p, expected) in [
            (1e-12, -7.034_483_825_301_131),
            (1e-20, -9.262_340_089_798_409),
            (1e-50, -14.933_337_534_788_487),
            (1e-200, -30.205_594_179_579_64),
        ] {
            let found = normal_quantile(p);
            assert!((found / expected - 1.0).abs() < 1e-14, "{p}: {found}");
            assert!((normal_probability(found) / p - 1.0).abs() < 1e-11, "{p}");
        }
        assert_eq!([0.0, 1.0].map(normal_quantile), [f64::NEG_INFINITY, f64::INFINITY]);
    }
}
