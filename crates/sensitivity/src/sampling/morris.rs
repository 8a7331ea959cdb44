//! Morris trajectories: from a random base point, each varying parameter takes one large step, in random order.
//!
//! Source: Morris, "Factorial sampling plans for preliminary computational experiments", Technometrics 33
//! (1991), with the step p/(2(p−1)) the papers use. Trajectories are drawn independently of each other;
//! none are discarded to spread them out.
//!
//! | domain | base, before a step up | step |
//! | --- | --- | --- |
//! | continuous, `p` levels | uniform over the grid points {0, 1/(p−1), …} up to 1 − step, ⌊p/2⌋ of them | p/(2(p−1)) of the range |
//! | `L` values | uniform over the first L − ⌊L/2⌋ of them | ⌊L/2⌋ places further in the list |
//! | fixed, or one value | that value | none: no effect is computed |
//!
//! Half of the steps run from base to base + step, the other half back.

use super::{Design, MOST_EVALUATIONS, Structure, names, real_range, resting_value};
use crate::random::{self, Purpose};
use crate::trajectory::{Step, Trajectories, Trajectory, signed_fraction};
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use thiserror::Error;

/// What to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Morris {
    /// Number of trajectories r, at least 1. Each has one more evaluation than there are varying parameters.
    pub trajectories: u32,
    /// Levels p of continuous parameters, at least 2. Even numbers make all levels equally likely.
    pub levels: u32,
    /// Seed of the study. The same seed gives the same trajectories, of which more may be asked for later.
    pub seed: u64,
}

/// Why there is no design.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MorrisError {
    /// No trajectories are asked for.
    #[error("trajectories = 0 gives no evaluations; at least 1 is needed")]
    NoTrajectories,
    /// One level or none leaves no room for a step.
    #[error("levels = {levels} leaves no room for a step; at least 2 are needed")]
    TooFewLevels {
        /// Levels asked for.
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
    #[error("{trajectories} trajectories need {evaluations} evaluations; {} are allowed", MOST_EVALUATIONS)]
    TooManyEvaluations {
        /// Trajectories asked for.
        trajectories: u32,
        /// Evaluations they need.
        evaluations: u64,
    },
}

/// Draws the trajectories: r(k+1) rows for k varying parameters, trajectory after trajectory.
///
/// Asking for more trajectories with the same parameters, levels and seed keeps the first ones.
///
/// # Errors
/// [`MorrisError`] when nothing is asked for, nothing varies, or a range cannot be stepped over.
pub fn sample(parameters: &[Parameter], morris: &Morris) -> Result<Design, MorrisError> {
    if morris.trajectories == 0 {
        return Err(MorrisError::NoTrajectories);
    }
    if morris.levels < 2 {
        return Err(MorrisError::TooFewLevels { levels: morris.levels });
    }
    let varying = super::varying(parameters);
    if varying.is_empty() {
        return Err(MorrisError::NothingVaries);
    }
    let evaluations_needed = u64::from(morris.trajectories) * (varying.len() as u64 + 1);
    if evaluations_needed > MOST_EVALUATIONS {
        return Err(MorrisError::TooManyEvaluations {
            trajectories: morris.trajectories,
            evaluations: evaluations_needed,
        });
    }

    let mut evaluations = Vec::new();
    let mut trajectories = Vec::new();
    for index in 0..morris.trajectories {
        let mut generator = random::generator(morris.seed, Purpose::Trajectory(index));
        let moves = varying
            .iter()
            .map(|&column| draw_move(&parameters[column], morris.levels, &mut generator))
            .collect::<Result<Vec<Move>, MorrisError>>()?;
        let mut order: Vec<usize> = (0..varying.len()).collect();
        order.shuffle(&mut generator);

        let mut point: Vec<Value> = parameters.iter().map(resting_value).collect();
        for (&column, step) in varying.iter().zip(&moves) {
            point[column] = step.from;
        }
        let first_row = evaluations.len();
        evaluations.push(point.clone());
        for &parameter in &order {
            point[varying[parameter]] = moves[parameter].to;
            evaluations.push(point.clone());
        }
        let steps =
            order.iter().map(|&parameter| Step { parameter, fraction: moves[parameter].fraction }).collect();
        trajectories.push(Trajectory { first_row, steps });
    }
    let varying_names = varying.iter().map(|&column| parameters[column].name.clone()).collect();
    let structure = Trajectories::new(varying_names, trajectories, evaluations.len(), false);
    Ok(Design { names: names(parameters), evaluations, structure: Structure::Trajectories(structure) })
}

/// The one step of a parameter in a trajectory.
struct Move {
    from: Value,
    to: Value,
    fraction: f64,
}

fn draw_move(parameter: &Parameter, levels: u32, generator: &mut impl Rng) -> Result<Move, MorrisError> {
    let (low, high) = parameter.domain.bounds();
    let bad_range = || MorrisError::BadRange { name: parameter.name.clone(), low, high };
    let (base, top) = match &parameter.domain {
        Domain::Continuous { .. } => {
            let (low, high) = real_range(parameter).ok_or_else(bad_range)?;
            let base = u64::from(generator.random_range(0..levels / 2));
            // Numerators over 2(p−1), in whole numbers so that only one rounding follows.
            let (base, top) = (2 * base, 2 * base + u64::from(levels));
            let value = |numerator| continuous_value(low, high, numerator, levels);
            (value(base).ok_or_else(bad_range)?, value(top).ok_or_else(bad_range)?)
        }
        Domain::Levels { values } => {
            let jump = values.len() / 2;
            // `Domain::MOST_LEVELS` fits a u32, whose sampling is the same on every platform.
            let bases = u32::try_from(values.len() - jump).map_err(|_| bad_range())?;
            let base = generator.random_range(0..bases) as usize;
            (values[base], values[base + jump])
        }
        Domain::Fixed { value } => (*value, *value),
    };
    let (from, to) = if generator.random::<bool>() { (base, top) } else { (top, base) };
    let fraction = signed_fraction(parameter, Some(levels), from, to).ok_or_else(bad_range)?;
    Ok(Move { from, to, fraction })
}

fn continuous_value(low: f64, high: f64, numerator: u64, levels: u32) -> Option<Value> {
    let fraction = numerator as f64 / (2.0 * (f64::from(levels) - 1.0));
    // Rounding may overshoot the range by a last digit.
    Value::from_f64((low + fraction * (high - low)).clamp(low, high), ValueType::Real)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{integers, parameter, reals};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_cannot_be_sampled_says_why() {
        let ask = |parameters: &[Parameter], trajectories, levels| {
            sample(parameters, &Morris { trajectories, levels, seed: 1 }).unwrap_err().to_string()
        };
        let free = [reals("T1", 2.5, 7.5)];
        assert_eq!(ask(&free, 0, 20), "trajectories = 0 gives no evaluations; at least 1 is needed");
        assert_eq!(ask(&free, 5, 1), "levels = 1 leaves no room for a step; at least 2 are needed");
        assert_eq!(ask(&free, 5, 0), "levels = 0 leaves no room for a step; at least 2 are needed");
        let pinned = parameter("G1", ValueType::Integer, Domain::fixed(ValueType::Integer, 80.0).unwrap());
        assert!(ask(&[pinned, integers("Watershed", &[8.0])], 5, 20).starts_with("no parameter varies"));
        assert!(ask(&[], 5, 20).starts_with("no parameter varies"));
        assert!(ask(&free, u32::MAX, 20).contains("8589934590 evaluations; 10000000 are allowed"));
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

    /// A change of these numbers changes every user's study of the same seed: say so in the changelog.
    #[test]
    fn the_numbers_of_a_seed_stay() {
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
