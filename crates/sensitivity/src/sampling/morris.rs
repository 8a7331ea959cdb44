//! Morris trajectories: from a base point, each varying parameter takes one large step, in random order.
//!
//! Source: Morris, "Factorial sampling plans for preliminary computational experiments", Technometrics 33
//! (1991), with the step p/(2(p−1)) the papers use.
//!
//! | domain | base, before a step up | step |
//! | --- | --- | --- |
//! | continuous, `p` levels | one of ⌊p/2⌋ grid points {0, 1/(p−1), …} up to 1 − step | p/(2(p−1)) of the range |
//! | distribution with bounds, `p` levels | the same of its probability | p/(2(p−1)) of its probability |
//! | `L` values | one of the first L − ⌊L/2⌋ of them | ⌊L/2⌋ places further in the list |
//! | fixed, or one value | that value | none: no effect is computed |
//!
//! Half of the steps run from base to base + step, the other half back. Parameters of a group step simultaneously,
//! each in its own direction, and count as one ([`crate::design::trajectory::Step::fraction`]).
//!
//! Base points are drawn at random or from a sequence ([`BasePointSource`]), as papers 000 and 001 sample MOAT from
//! Halton's. Many candidates can be reduced to distant ones ([`TrajectorySelection`]): Campolongo's selection tries
//! all choices, Ruano's adds one after the other.

mod build;
mod spread;
mod steps;

use super::points::{PointsError, Sequence};
use super::{Design, MAX_EVALUATIONS};
use crate::design::groups::Groups;
use build::{DesignBuilder, TrajectoryDraft};
use pleach_workflow::Parameter;
use spread::Distances;
use steps::StepChoices;
use thiserror::Error;

/// Settings of a Morris design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Morris {
    /// Number of trajectories r, at least 1. Each has one more evaluation than varying parameters.
    pub trajectories: u32,
    /// Levels p of continuous parameters, at least 2. Even numbers make all levels equally likely.
    pub levels: u32,
    /// Seed of the study. The same seed gives the same trajectories, and a larger r extends them.
    pub seed: u64,
}

/// Source of the base points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BasePointSource {
    /// At random, with the directions.
    #[default]
    Random,
    /// Points of a sequence, which determine the start and thus the step direction of each parameter.
    Points(Sequence),
}

/// Selection among the drawn trajectories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrajectorySelection {
    /// All drawn trajectories.
    #[default]
    All,
    /// The most distant trajectories of each batch of candidates.
    Spread {
        /// Search method.
        search: SpreadSearch,
        /// Trajectories drawn for each batch.
        candidates: u32,
        /// Trajectories selected of each batch, at least 2: the number of all trajectories, or a divisor of
        /// it, which allows further batches.
        batch: u32,
    },
}

/// Search for trajectories of large spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpreadSearch {
    /// Tries all choices, up to [`MAX_CHOICES`].
    Campolongo,
    /// Adds one trajectory after the other.
    Ruano,
}

/// Maximum number of choices times the trajectories of each. They take seconds.
pub const MAX_CHOICES: u64 = 100_000_000;

/// Maximum number of candidates of a batch. Comparing all pairs takes 32 MB and seconds.
pub const MAX_CANDIDATES: u32 = 2_000;

/// Number, base points and selection of trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrajectoryPlan {
    /// Number of trajectories kept, levels, and seed.
    pub morris: Morris,
    /// Source of the base points.
    pub base: BasePointSource,
    /// Selection among the drawn trajectories.
    pub choice: TrajectorySelection,
}

impl From<Morris> for TrajectoryPlan {
    fn from(morris: Morris) -> Self {
        Self { morris, base: BasePointSource::Random, choice: TrajectorySelection::All }
    }
}

/// Cause of a failed Morris design.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MorrisError {
    /// The base points are invalid.
    #[error(transparent)]
    Points(#[from] PointsError),
    /// Batches that leave no choice, or select more than they contain.
    #[error(
        "candidates = {candidates} and batch = {batch} are not allowed; a batch of 2 or more trajectories \
         and at least as many candidates, up to {MAX_CANDIDATES}, are allowed"
    )]
    BadBatch {
        /// Requested candidates.
        candidates: u32,
        /// Trajectories kept of them.
        batch: u32,
    },
    /// The number of trajectories is not a multiple of the batch size.
    #[error(
        "trajectories = {trajectories} is not a multiple of batch = {batch}; complete batches are needed"
    )]
    BrokenBatch {
        /// Requested trajectories.
        trajectories: u32,
        /// Trajectories of a batch.
        batch: u32,
    },
    /// The candidates of all batches exceed the maximum number of evaluations.
    #[error(
        "trajectories = {trajectories} with {candidates} candidates per batch of {batch} need {drawn} \
         candidates; at most {MAX_EVALUATIONS} evaluations of candidates are allowed"
    )]
    TooManyCandidates {
        /// Requested trajectories.
        trajectories: u32,
        /// Candidates of a batch.
        candidates: u32,
        /// Trajectories of a batch.
        batch: u32,
        /// Candidates of all batches.
        drawn: u64,
    },
    /// The number of choices exceeds [`MAX_CHOICES`].
    #[error(
        "{batch} of {candidates} candidates have more than {} combinations; fewer candidates, smaller \
         batches, or Ruano's search are needed",
        MAX_CHOICES / u64::from(*batch)
    )]
    TooManyChoices {
        /// Requested candidates.
        candidates: u32,
        /// Trajectories kept of them.
        batch: u32,
    },
    /// No trajectories are requested.
    #[error("trajectories = 0 gives no evaluations; at least 1 is needed")]
    NoTrajectories,
    /// At most one level, which allows no step.
    #[error("levels = {levels} allows no step; at least 2 levels are needed")]
    TooFewLevels {
        /// Requested levels.
        levels: u32,
    },
    /// Every parameter is fixed or has one value.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// A range that `f64` numbers cannot divide into levels, or a range of reals for whole numbers.
    #[error(
        "parameter {name} cannot be stepped over [{low}, {high}]; allowed are reals within a finite range, or two values and more"
    )]
    BadRange {
        /// The parameter.
        name: String,
        /// Its smallest value.
        low: f64,
        /// Its largest value.
        high: f64,
    },
    /// More parameter sets than are held in memory.
    #[error(
        "{trajectories} trajectories need {evaluations} evaluations; at most {} are allowed",
        MAX_EVALUATIONS
    )]
    TooManyEvaluations {
        /// Requested trajectories.
        trajectories: u32,
        /// Evaluations they need.
        evaluations: u64,
    },
}

/// Draws the trajectories: r(k+1) rows for k varying parameters, trajectory after trajectory.
///
/// A larger number of trajectories with the same parameters, levels and seed keeps the first ones.
///
/// # Errors
/// [`MorrisError`] if no trajectory is requested, no parameter varies, or a range allows no step.
pub fn sample(parameters: &[Parameter], morris: &Morris) -> Result<Design, MorrisError> {
    sample_plan(parameters, &Groups::alone(parameters), &TrajectoryPlan::from(*morris))
}

/// Draws the trajectories of a plan that steps in groups: r(g+1) rows for g varying groups.
///
/// A larger number of trajectories keeps the first ones if base points are random or of an extensible sequence, and
/// batches are the same.
///
/// # Errors
/// [`MorrisError`] as [`sample`], and for invalid batches and base points.
pub fn sample_plan(
    parameters: &[Parameter],
    groups: &Groups,
    plan: &TrajectoryPlan,
) -> Result<Design, MorrisError> {
    let Morris { trajectories, levels, seed } = plan.morris;
    if trajectories == 0 {
        return Err(MorrisError::NoTrajectories);
    }
    if levels < 2 {
        return Err(MorrisError::TooFewLevels { levels });
    }
    let groups = groups.varying(parameters);
    if groups.is_empty() {
        return Err(MorrisError::NothingVaries);
    }
    let evaluations = u64::from(trajectories) * (groups.len() as u64 + 1);
    if evaluations > MAX_EVALUATIONS {
        return Err(MorrisError::TooManyEvaluations { trajectories, evaluations });
    }
    let (batch, candidates) = batches(trajectories, plan.choice)?;
    let varying = super::varying(parameters);
    let steps: Vec<StepChoices<'_>> = varying
        .iter()
        .map(|&column| StepChoices::of(&parameters[column], levels))
        .collect::<Result<_, _>>()?;
    // Candidates are drawn before the selection, so they have the limit of evaluations.
    let drawn = u64::from(trajectories / batch) * u64::from(candidates);
    if drawn * (groups.len() as u64 + 1) > MAX_EVALUATIONS {
        return Err(MorrisError::TooManyCandidates { trajectories, candidates, batch, drawn });
    }
    // Fits in a `u32`: MAX_EVALUATIONS limits the product above.
    let drawn = drawn as u32;
    let base = match plan.base {
        BasePointSource::Random => None,
        BasePointSource::Points(sequence) => Some(sequence.points(drawn as usize, varying.len(), seed)?),
    };
    let walk = |index| build::walk(&steps, groups.len(), base.as_ref(), seed, index);

    let mut design = DesignBuilder::new(parameters, &varying, &groups);
    // Each batch is selected from its own candidates: a later batch cannot change the choice of an earlier one.
    for first in (0..drawn).step_by(candidates as usize) {
        let walks =
            (first..first + candidates).map(walk).collect::<Result<Vec<TrajectoryDraft>, MorrisError>>()?;
        let TrajectorySelection::Spread { search, .. } = plan.choice else {
            walks.iter().for_each(|walk| design.add(walk));
            continue;
        };
        let places: Vec<Vec<f64>> = walks.iter().map(|walk| design.places(walk)).collect();
        let distances = Distances::of(&places, varying.len());
        let kept = match search {
            SpreadSearch::Campolongo => spread::exhaustive(&distances, batch as usize),
            SpreadSearch::Ruano => spread::sequential(&distances, batch as usize),
        };
        kept.into_iter().for_each(|place| design.add(&walks[place]));
    }
    let names = groups.iter().map(|group| group.name.clone()).collect();
    Ok(design.finish(names))
}

/// Returns the trajectories selected and drawn per batch.
fn batches(trajectories: u32, choice: TrajectorySelection) -> Result<(u32, u32), MorrisError> {
    let TrajectorySelection::Spread { search, candidates, batch } = choice else { return Ok((1, 1)) };
    if batch < 2 || candidates < batch || candidates > MAX_CANDIDATES {
        return Err(MorrisError::BadBatch { candidates, batch });
    }
    if !trajectories.is_multiple_of(batch) {
        return Err(MorrisError::BrokenBatch { trajectories, batch });
    }
    let ways = spread::choices(u64::from(candidates), u64::from(batch));
    if search == SpreadSearch::Campolongo
        && ways.is_none_or(|ways| ways.saturating_mul(u64::from(batch)) > MAX_CHOICES)
    {
        return Err(MorrisError::TooManyChoices { candidates, batch });
    }
    Ok((batch, candidates))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{integers, parameter, reals};
    use super::*;
    use pleach_workflow::{Domain, Value, ValueType};
    use std::collections::BTreeSet;

    #[test]
    fn invalid_trajectories_are_refused_with_the_cause() {
        let ask = |parameters: &[Parameter], trajectories, levels| {
            sample(parameters, &Morris { trajectories, levels, seed: 1 }).unwrap_err().to_string()
        };
        let free = [reals("T1", 2.5, 7.5)];
        assert_eq!(ask(&free, 0, 20), "trajectories = 0 gives no evaluations; at least 1 is needed");
        assert_eq!(ask(&free, 5, 1), "levels = 1 allows no step; at least 2 levels are needed");
        assert_eq!(ask(&free, 5, 0), "levels = 0 allows no step; at least 2 levels are needed");
        let pinned = parameter("G1", ValueType::Integer, Domain::fixed(ValueType::Integer, 80.0).unwrap());
        assert!(ask(&[pinned, integers("Watershed", &[8.0])], 5, 20).starts_with("no parameter varies"));
        assert!(ask(&[], 5, 20).starts_with("no parameter varies"));
        assert!(ask(&free, u32::MAX, 20).contains("8589934590 evaluations; at most 10000000 are allowed"));
        for (low, high) in [(2.0, 1.0), (f64::MIN, f64::MAX), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(ask(&[reals("T1", low, high)], 5, 20).contains("T1 cannot be stepped over"));
        }
        let whole = parameter("B", ValueType::Integer, Domain::Continuous { low: 0.0, high: 9.0 });
        assert!(ask(&[whole], 5, 20).contains("B cannot be stepped over [0, 9]"));
    }

    #[test]
    fn every_base_and_direction_is_drawn() {
        let parameters =
            [reals("T1", 0.0, 19.0), integers("FillHoles", &[4.0, 8.0]), integers("n", &[1.0, 2.0, 3.0])];
        let design = sample(&parameters, &Morris { trajectories: 400, levels: 20, seed: 3 }).unwrap();
        let mut seen: [BTreeSet<String>; 3] = Default::default();
        for trajectory in design.evaluations.chunks(4) {
            for (column, seen) in seen.iter_mut().enumerate() {
                seen.insert(format!("{}→{}", trajectory[0][column], trajectory[3][column]));
            }
        }
        assert_eq!(seen.each_ref().map(BTreeSet::len), [20, 2, 4]);
        assert!(seen[0].contains("9→19") && seen[0].contains("10→0"), "{:?}", seen[0]);
        assert!(seen[2].iter().eq(["1→2", "2→1", "2→3", "3→2"]), "{:?}", seen[2]);
    }

    /// A change of these numbers changes every user's study with the same seed and needs a changelog entry.
    #[test]
    fn design_of_a_seed_is_stable() {
        let parameters =
            [reals("T1", 2.5, 7.5), integers("G1", &[5.0, 30.0, 55.0, 80.0]), integers("W", &[4.0, 8.0])];
        let design = sample(&parameters, &Morris { trajectories: 2, levels: 6, seed: 500 }).unwrap();
        let rows: Vec<String> = design
            .evaluations
            .iter()
            .map(|row| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" "))
            .collect();
        let expected = [
            ["6.5 80 4", "6.5 30 4", "3.5 30 4", "3.5 30 8"],
            ["4.5 30 4", "4.5 80 4", "7.5 80 4", "7.5 80 8"],
        ];
        assert_eq!(rows, expected.concat());
    }
}
