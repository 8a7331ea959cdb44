//! Saltelli's design for variance-based decomposition (VBD): for each base sample two points A and B, and A with each
//! single column of B.
//!
//! Source: Saltelli et al., "Variance based sensitivity analysis of model output", Computer Physics Communications
//! 181 (2010) 259–270: its A, B and A_B^(i), n(k+2) evaluations of n samples for k varying parameters, as in papers
//! 000 (§2.2) and 001 (§3). Second-order indices add the rows B_A^(i), n(2k+2) evaluations in total: Saltelli,
//! "Making best use of model evaluations to compute sensitivity indices", Computer Physics Communications 145
//! (2002).
//!
//! A sample is one point in 2k dimensions: the first k are A, the last k are B. Base points are Sobol' points
//! ([`BasePoints::Sobol`], scrambled by the seed, without skipping, since scrambling leaves no point at 0), best in
//! powers of two, or those of another sampler ([`BasePoints`]). Sobol', Halton and random points depend on their
//! index, the seed and k, but not on the number requested. Parameters of a group are taken from B together.
//!
//! Levels of discrete and stepped parameters are equally likely. A and B often have the same level then, and rows
//! are equal: they stay in the design, where estimators expect them, and the merging of evaluations runs them once.
//! Fixed parameters, and sets of one value, keep it and get no rows. Indices are computed by [`crate::methods::vbd`].

use super::points::{PointsError, Sequence, UnitPoints};
use super::{BadRange, Design, MAX_EVALUATIONS, Structure, marginals, names, resting_value, varying};
use crate::design::groups::{Group, Groups};
use crate::design::saltelli_blocks::RowBlocks;
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::{BasePoints, Parameter, Value};
use rand::Rng;
use thiserror::Error;

/// Settings of a Saltelli design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saltelli {
    /// Number of base samples n, at least 1.
    pub samples: u32,
    /// Whether the design has rows for second-order indices.
    pub second_order: bool,
    /// Sampling of the points A and B.
    pub base: BasePoints,
    /// Seed of the study. The same seed gives the same samples. A larger number of samples keeps them if base
    /// points are extensible.
    pub seed: u64,
}

/// Cause of a failed Saltelli design.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SaltelliError {
    /// No samples are requested.
    #[error("samples = 0 gives no evaluations; at least 1 is needed")]
    NoSamples,
    /// Every parameter is fixed or has one value.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// More dimensions than base points have.
    #[error(
        "base = \"{}\" allows up to {} varying parameters, but {varying} vary; base = \"mc\" allows any \
         number",
        base.name(),
        Sequence::from(*base).max_dimensions() / 2
    )]
    TooManyDimensions {
        /// Requested base points.
        base: BasePoints,
        /// Parameters that vary.
        varying: usize,
    },
    /// The base points are invalid.
    #[error(transparent)]
    Points(#[from] PointsError),
    /// A domain that cannot be drawn from.
    #[error(transparent)]
    BadRange(#[from] BadRange),
    /// More parameter sets than are held in memory.
    #[error(
        "samples = {samples} need {} evaluations, {rows_per_sample} per sample; at most {MAX_EVALUATIONS} \
         are allowed, for {} samples",
        u64::from(*samples) * rows_per_sample,
        MAX_EVALUATIONS / rows_per_sample
    )]
    TooManyEvaluations {
        /// Requested samples.
        samples: u32,
        /// Evaluations of each.
        rows_per_sample: u64,
    },
}

/// Draws the design: the row blocks of all samples, in the order of [`RowBlocks`].
///
/// A larger number of samples with the same parameters and seed keeps the first ones, if base points can be
/// extended ([`Sequence::extensible`]).
///
/// # Errors
/// [`SaltelliError`] if no sample is requested, no parameter varies, a range cannot be sampled, or the design is
/// too large.
pub fn sample(parameters: &[Parameter], saltelli: &Saltelli) -> Result<Design, SaltelliError> {
    sample_groups(parameters, &Groups::alone(parameters), saltelli)
}

/// Draws the design with groups in place of parameters: g varying groups make blocks of g + 2 or 2g + 2 rows.
///
/// # Errors
/// As [`sample`].
pub fn sample_groups(
    parameters: &[Parameter],
    groups: &Groups,
    saltelli: &Saltelli,
) -> Result<Design, SaltelliError> {
    let mut evaluations = Vec::new();
    let blocks = draw_groups(parameters, groups, saltelli, |row| evaluations.push(row))?;
    Ok(Design { names: names(parameters), evaluations, structure: Structure::Saltelli(blocks) })
}

/// Draws the rows and passes them on one by one, in order, without keeping them. Memory holds only the base points,
/// 16 bytes for each parameter and sample.
///
/// # Errors
/// As [`sample`]. No row is passed on then.
pub fn draw_groups(
    parameters: &[Parameter],
    groups: &Groups,
    saltelli: &Saltelli,
    mut row: impl FnMut(Vec<Value>),
) -> Result<RowBlocks, SaltelliError> {
    let &Saltelli { samples, second_order, base, seed } = saltelli;
    if samples == 0 {
        return Err(SaltelliError::NoSamples);
    }
    let varying = varying(parameters);
    if varying.is_empty() {
        return Err(SaltelliError::NothingVaries);
    }
    let groups = groups.varying(parameters);
    let group_names = groups.iter().map(|group| group.name.clone()).collect();
    let blocks = RowBlocks::new(group_names, samples as usize, second_order);
    let rows_per_sample = blocks.rows_per_sample() as u64;
    if u64::from(samples) * rows_per_sample > MAX_EVALUATIONS {
        return Err(SaltelliError::TooManyEvaluations { samples, rows_per_sample });
    }
    let marginals = marginals(parameters, &varying)?;
    if 2 * varying.len() > Sequence::from(base).max_dimensions() {
        return Err(SaltelliError::TooManyDimensions { base, varying: varying.len() });
    }
    let points = base_points(base, samples, 2 * varying.len(), seed)?;

    let resting: Vec<Value> = parameters.iter().map(resting_value).collect();
    let point = |places: &[f64]| {
        let mut point = resting.clone();
        for ((&column, marginal), &place) in varying.iter().zip(&marginals).zip(places) {
            point[column] = marginal.value(place).ok_or_else(|| super::bad_range(&parameters[column]))?;
        }
        Ok::<_, SaltelliError>(point)
    };
    let with = |point: &[Value], other: &[Value], group: &Group| {
        let mut mixed = point.to_vec();
        for &column in &group.columns {
            mixed[column] = other[column];
        }
        mixed
    };
    for places in points.iter() {
        let (of_a, of_b) = places.split_at(varying.len());
        let (a, b) = (point(of_a)?, point(of_b)?);
        // The order of `RowBlocks`: A, A with B, B with A, B.
        row(a.clone());
        groups.iter().for_each(|group| row(with(&a, &b, group)));
        if second_order {
            groups.iter().for_each(|group| row(with(&b, &a, group)));
        }
        row(b);
    }
    Ok(blocks)
}

/// The base points: A's coordinates, then B's.
fn base_points(
    base: BasePoints,
    samples: u32,
    dimensions: usize,
    seed: u64,
) -> Result<UnitPoints, PointsError> {
    let BasePoints::MonteCarlo = base else {
        return Sequence::from(base).points(samples as usize, dimensions, seed);
    };
    // A generator for each, in units of 2⁻³²: so they have been drawn from the first release on.
    let mut points = UnitPoints::zeros(samples as usize, dimensions);
    for (index, point) in (0..samples).zip(points.iter_mut()) {
        let mut generator = rng::generator(seed, RngStream::BaseSample(index));
        point.fill_with(|| (f64::from(generator.next_u32()) + 0.5) / 4_294_967_296.0);
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{integers, parameter, reals};
    use super::*;
    use pleach_workflow::{Domain, ValueType};

    const FOUR: Saltelli = Saltelli { samples: 4, second_order: false, base: BasePoints::Sobol, seed: 500 };

    #[test]
    fn invalid_saltelli_designs_are_refused_with_the_cause() {
        let ask = |parameters: &[Parameter], saltelli: &Saltelli| {
            sample(parameters, saltelli).unwrap_err().to_string()
        };
        let free = [reals("T1", 2.5, 7.5)];
        assert_eq!(
            ask(&free, &Saltelli { samples: 0, ..FOUR }),
            "samples = 0 gives no evaluations; at least 1 is needed"
        );
        let pinned = parameter("G1", ValueType::Integer, Domain::fixed(ValueType::Integer, 80.0).unwrap());
        assert!(ask(&[pinned, integers("Watershed", &[8.0])], &FOUR).starts_with("no parameter varies"));
        assert!(ask(&[], &FOUR).starts_with("no parameter varies"));
        assert_eq!(
            ask(&free, &Saltelli { samples: u32::MAX, second_order: true, ..FOUR }),
            "samples = 4294967295 need 17179869180 evaluations, 4 per sample; at most 10000000 are allowed, \
             for 2500000 samples"
        );
        for (low, high) in [(2.0, 1.0), (f64::MIN, f64::MAX), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(ask(&[reals("T1", low, high)], &FOUR).starts_with("parameter T1 cannot be drawn from ["));
        }
        let whole = parameter("B", ValueType::Integer, Domain::Continuous { low: 0.0, high: 9.0 });
        assert!(ask(&[whole], &FOUR).contains("B cannot be drawn from [0, 9]"));
    }

    #[test]
    fn more_parameters_than_directions_are_drawn_at_random() {
        let parameters: Vec<Parameter> =
            (0..129).map(|index| reals(&format!("p{index}"), 0.0, 1.0)).collect();
        assert!(sample(&parameters[..128], &FOUR).is_ok());
        assert_eq!(
            sample(&parameters, &FOUR).unwrap_err().to_string(),
            "base = \"sobol\" allows up to 128 varying parameters, but 129 vary; base = \"mc\" allows any \
             number"
        );
        let random = Saltelli { base: BasePoints::MonteCarlo, ..FOUR };
        assert_eq!(sample(&parameters, &random).unwrap().evaluations.len(), 4 * 131);
    }

    /// A change of these numbers changes every user's study with the same seed and needs a changelog entry.
    #[test]
    fn design_of_a_seed_is_stable() {
        let parameters =
            [reals("T1", 0.0, 1024.0), integers("G1", &[5.0, 30.0, 55.0, 80.0]), integers("W", &[8.0])];
        let rows = |saltelli: &Saltelli| -> Vec<String> {
            let design = sample(&parameters, saltelli).unwrap();
            let row = |row: &Vec<Value>| format!("{:.3} {} {}", row[0].as_f64(), row[1], row[2]);
            design.evaluations.iter().map(row).collect()
        };
        let expected = [
            ["437.322 55 8", "280.715 55 8", "437.322 55 8", "280.715 55 8"],
            ["688.692 30 8", "789.319 30 8", "688.692 30 8", "789.319 30 8"],
        ];
        assert_eq!(rows(&Saltelli { samples: 2, ..FOUR }), expected.concat());
        let random = Saltelli { samples: 1, second_order: true, base: BasePoints::MonteCarlo, ..FOUR };
        let expected =
            ["246.902 30 8", "167.047 30 8", "246.902 55 8", "246.902 55 8", "167.047 30 8", "167.047 55 8"];
        assert_eq!(rows(&random), expected);
    }
}
