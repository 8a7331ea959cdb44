//! Factorial designs: every combination of the parameters' levels, or a balanced fraction of two-level
//! combinations.
//!
//! Full grids are those of Dakota's `multidim_parameter_study`: equally spaced levels that include the
//! bounds. Fractions are columns of Sylvester's Hadamard matrices, as SALib's `ff`: Saltelli et al., "Global
//! Sensitivity Analysis: The Primer" (2008), §2.6. Resolutions follow Box and Hunter, "The 2^(k−p) fractional
//! factorial designs", Technometrics 3 (1961). Designs are deterministic.

use super::{BadRange, Design, MAX_EVALUATIONS, bad_range, resting_value, varying};
use crate::design::marginal::quantile;
use crate::design::marginal::real_range;
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use thiserror::Error;

/// Settings of a full grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factorial {
    /// Levels of parameters without a list of values. A single level is the middle of the range. Parameters
    /// with a list use all its values.
    pub levels: u32,
    /// Levels of some parameters, by name. A list of values may get fewer levels than values, which are then
    /// spread evenly.
    pub of: Vec<(String, u32)>,
}

/// Resolution of a fraction of a two-level design: the effects that it does not confound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignResolution {
    /// Main effects are not confounded with each other: 2^⌈log₂(k+1)⌉ rows.
    Three,
    /// Main effects are also not confounded with interactions of two parameters: 2·2^⌈log₂ k⌉ rows, those of
    /// resolution III and their mirror images.
    Four,
}

/// Cause of a failed design.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FactorialError {
    /// Every parameter is fixed or has one value.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// A name that belongs to no varying parameter.
    #[error("levels: {name} is not a varying parameter; allowed are {known}")]
    UnknownParameter {
        /// The name.
        name: String,
        /// Parameters that vary.
        known: String,
    },
    /// No levels, or more than the list of values has.
    #[error("parameter {name}: levels = {levels} is not allowed; allowed: 1 to {most}")]
    BadLevels {
        /// The parameter.
        name: String,
        /// Requested levels.
        levels: u32,
        /// Maximum number of levels.
        most: u64,
    },
    /// A domain without levels.
    #[error(transparent)]
    BadRange(#[from] BadRange),
    /// More parameter sets than are held in memory.
    #[error("the grid has {}{evaluations} evaluations; at most {MAX_EVALUATIONS} are allowed", if *evaluations == u64::MAX { "more than " } else { "" })]
    TooManyEvaluations {
        /// Number of evaluations of the grid, or the largest `u64`.
        evaluations: u64,
    },
}

/// Returns the full grid. The last parameter changes fastest.
///
/// # Errors
/// [`FactorialError`] if nothing varies, levels are invalid, or the grid is too large.
pub fn sample(parameters: &[Parameter], factorial: &Factorial) -> Result<Design, FactorialError> {
    let varying = varying(parameters);
    if varying.is_empty() {
        return Err(FactorialError::NothingVaries);
    }
    if let Some((name, _)) =
        factorial.of.iter().find(|(name, _)| !varying.iter().any(|&column| parameters[column].name == *name))
    {
        let known: Vec<_> = varying.iter().map(|&column| parameters[column].name.as_str()).collect();
        return Err(FactorialError::UnknownParameter { name: name.clone(), known: known.join(", ") });
    }
    let mut counts = Vec::with_capacity(varying.len());
    for &column in &varying {
        counts.push(levels_of(&parameters[column], factorial)?);
    }
    let evaluations =
        counts.iter().try_fold(1_u64, |all, &count| all.checked_mul(u64::from(count))).unwrap_or(u64::MAX);
    if evaluations > MAX_EVALUATIONS {
        return Err(FactorialError::TooManyEvaluations { evaluations });
    }
    let levels: Vec<Vec<Value>> = varying
        .iter()
        .zip(&counts)
        .map(|(&column, &count)| (0..count).map(|level| value(&parameters[column], level, count)).collect())
        .collect::<Result<_, _>>()?;

    let mut row: Vec<Value> = parameters.iter().map(resting_value).collect();
    let mut places = vec![0; varying.len()];
    let mut rows = Vec::new();
    for _ in 0..evaluations {
        for ((&column, levels), &place) in varying.iter().zip(&levels).zip(&places) {
            row[column] = levels[place];
        }
        rows.push(row.clone());
        // Advances the combination like a counter: the last digit that does not wrap increases, and all later
        // ones restart.
        for (place, levels) in places.iter_mut().zip(&levels).rev() {
            *place = (*place + 1) % levels.len();
            if *place > 0 {
                break;
            }
        }
    }
    Ok(Design::of_rows(parameters, rows))
}

fn levels_of(parameter: &Parameter, factorial: &Factorial) -> Result<u32, FactorialError> {
    let asked = factorial.of.iter().find(|(name, _)| *name == parameter.name).map(|&(_, levels)| levels);
    let (levels, most) = match &parameter.domain {
        // `Domain::MAX_LEVELS` fits in a `u32`.
        Domain::Levels { values } => (asked.unwrap_or(values.len() as u32), values.len() as u64),
        _ => (asked.unwrap_or(factorial.levels), MAX_EVALUATIONS),
    };
    if levels == 0 || u64::from(levels) > most {
        return Err(FactorialError::BadLevels { name: parameter.name.clone(), levels, most });
    }
    Ok(levels)
}

/// Returns a level of `count` evenly spread ones. A single level is the middle.
fn value(parameter: &Parameter, level: u32, count: u32) -> Result<Value, BadRange> {
    let place = if count == 1 { 0.5 } else { f64::from(level) / f64::from(count - 1) };
    let number = match &parameter.domain {
        Domain::Levels { values } => {
            let place = (place * (values.len() - 1) as f64).round() as usize;
            return values.get(place).copied().ok_or_else(|| bad_range(parameter));
        }
        Domain::Distributed { distribution } => {
            let (low, high) = distribution.bounds();
            // The bounds are levels, so they must be finite.
            let usable = parameter.value_type == ValueType::Real && (high - low).is_finite();
            (usable && distribution.check().is_ok()).then(|| quantile(distribution, place))
        }
        _ => real_range(parameter).map(|(low, high)| (low + place * (high - low)).clamp(low, high)),
    };
    number.and_then(|number| Value::from_f64(number, ValueType::Real)).ok_or_else(|| bad_range(parameter))
}

/// Returns a fraction of the design that sets each parameter to its first or its last level: the bounds of a
/// range, or the ends of a list.
///
/// Every parameter is at both levels equally often, and equally often with each level of any other parameter.
///
/// # Errors
/// [`FactorialError`] if nothing varies, or a domain has no bounds.
pub fn sample_fraction(
    parameters: &[Parameter],
    resolution: DesignResolution,
) -> Result<Design, FactorialError> {
    let varying = varying(parameters);
    if varying.is_empty() {
        return Err(FactorialError::NothingVaries);
    }
    let (order, mirrored) = match resolution {
        DesignResolution::Three => ((varying.len() + 1).next_power_of_two(), false),
        DesignResolution::Four => (varying.len().next_power_of_two(), true),
    };
    let ends: Vec<[Value; 2]> = varying
        .iter()
        .map(|&column| Ok([value(&parameters[column], 0, 2)?, value(&parameters[column], 1, 2)?]))
        .collect::<Result<_, BadRange>>()?;
    // The first column of the matrix is constant. It varies only together with its mirror image.
    let first = usize::from(!mirrored);
    let mut row: Vec<Value> = parameters.iter().map(resting_value).collect();
    let mut rows = Vec::new();
    for mirror in 0..=usize::from(mirrored) {
        for index in 0..order {
            for (place, (&column, ends)) in varying.iter().zip(&ends).enumerate() {
                row[column] = ends[(sylvester(index, place + first) + 1 + mirror) % 2];
            }
            rows.push(row.clone());
        }
    }
    Ok(Design::of_rows(parameters, rows))
}

/// Returns 1 if an entry of Sylvester's Hadamard matrix is −1, otherwise 0: the parity of the common binary
/// digits of row and column.
fn sylvester(row: usize, column: usize) -> usize {
    (row & column).count_ones() as usize % 2
}

#[cfg(test)]
mod tests {
    use super::super::examples::{integers, parameter, reals};
    use super::*;
    use pleach_workflow::Distribution;

    fn shown(design: &Design) -> Vec<String> {
        let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        design.evaluations.iter().map(row).collect()
    }

    fn grid(levels: u32, of: &[(&str, u32)]) -> Factorial {
        Factorial { levels, of: of.iter().map(|&(name, levels)| (name.to_owned(), levels)).collect() }
    }

    /// Two and one partitions, as in Dakota's reference manual, give one more level each.
    #[test]
    fn grids_have_every_combination() {
        let parameters = [reals("x", -2.0, 2.0), integers("n", &[4.0, 8.0]), integers("w", &[8.0])];
        let design = sample(&parameters, &grid(3, &[])).unwrap();
        assert_eq!(shown(&design), ["-2 4 8", "-2 8 8", "0 4 8", "0 8 8", "2 4 8", "2 8 8"]);
        let design = sample(&parameters, &grid(1, &[("n", 1)])).unwrap();
        assert_eq!(shown(&design), ["0 8 8"]);
        let many = [integers("n", &[1.0, 2.0, 3.0, 4.0, 5.0])];
        assert_eq!(shown(&sample(&many, &grid(9, &[("n", 3)])).unwrap()), ["1", "3", "5"]);
        let tilted = Distribution::Triangular { low: 0.0, mode: 0.0, high: 4.0 };
        let tilted = [parameter("t", ValueType::Real, Domain::Distributed { distribution: tilted })];
        let found = sample(&tilted, &grid(3, &[])).unwrap();
        let found: Vec<f64> = found.evaluations.iter().map(|row| row[0].as_f64()).collect();
        assert!(found[0] == 0.0 && (found[1] - (4.0 - 8.0_f64.sqrt())).abs() < 1e-12 && found[2] == 4.0);
    }

    /// Fractions equal those of SALib 1.6, `SALib.sample.ff.sample`, for three parameters, without its dummy
    /// column.
    #[test]
    fn fractions_are_those_of_salib() {
        let parameters = ["a", "b", "c"].map(|name| reals(name, 0.0, 1.0));
        let design = sample_fraction(&parameters, DesignResolution::Four).unwrap();
        assert_eq!(shown(&design), ["1 1 1", "1 0 1", "1 1 0", "1 0 0", "0 0 0", "0 1 0", "0 0 1", "0 1 1"]);
        let design = sample_fraction(&parameters, DesignResolution::Three).unwrap();
        assert_eq!(shown(&design), ["1 1 1", "0 1 0", "1 0 0", "0 0 1"]);
    }

    #[test]
    fn invalid_grids_are_refused_with_the_cause() {
        let free = [reals("x", 0.0, 1.0), integers("n", &[4.0, 8.0])];
        let said =
            |parameters: &[Parameter], factorial| sample(parameters, &factorial).unwrap_err().to_string();
        assert_eq!(
            said(&free, grid(2, &[("y", 2)])),
            "levels: y is not a varying parameter; allowed are x, n"
        );
        assert_eq!(
            said(&free, grid(0, &[])),
            "parameter x: levels = 0 is not allowed; allowed: 1 to 10000000"
        );
        assert!(said(&free, grid(2, &[("n", 3)])).ends_with("levels = 3 is not allowed; allowed: 1 to 2"));
        assert!(said(&[], grid(2, &[])).starts_with("no parameter varies"));
        let many: Vec<Parameter> = (0..30).map(|index| reals(&format!("x{index}"), 0.0, 1.0)).collect();
        assert_eq!(
            said(&many, grid(2, &[])),
            "the grid has 1073741824 evaluations; at most 10000000 are \
                                               allowed"
        );
        let more: Vec<Parameter> = (0..70).map(|index| reals(&format!("x{index}"), 0.0, 1.0)).collect();
        assert!(said(&more, grid(2, &[])).starts_with("the grid has more than 18446744073709551615"));
        let normal = Distribution::Normal { mean: 0.0, deviation: 1.0 };
        let normal = [parameter("z", ValueType::Real, Domain::Distributed { distribution: normal })];
        assert!(said(&normal, grid(3, &[])).starts_with("parameter z cannot be drawn from [-inf, inf]"));
        assert!(sample_fraction(&[], DesignResolution::Three).is_err());
    }
}
