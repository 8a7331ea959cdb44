//! The structure of a Morris design: the rows of each trajectory, and the step that each row takes.
//!
//! Samplers provide the structure. For a table of bare parameter sets [`Trajectories::recover`] finds it. Responses
//! are not used.

use crate::design::groups::{Group, Groups};
use crate::design::marginal::probability;
use pleach_workflow::{Domain, Parameter, Value};
use thiserror::Error;

/// Step from one row to the next: changes one parameter, or one group of parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the parameter or group in [`Trajectories::names`].
    pub parameter: usize,
    /// The step as a signed fraction of the parameter's range, or of its probability under a distribution. Finite
    /// and never 0. For several parameters that step together, each in its own direction, it is the mean absolute
    /// fraction: the sign of an effect is then meaningless, and μ* is the relevant statistic (Campolongo et al.
    /// 2007).
    pub fraction: f64,
}

/// Consecutive rows over which every varying parameter changes once.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Index of the first row. A trajectory has one row more than steps.
    pub first_row: usize,
    /// Its steps, in the order of its rows.
    pub steps: Vec<Step>,
}

/// All trajectories of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectories {
    names: Vec<String>,
    complete: Vec<Trajectory>,
    rows: usize,
    unfinished: bool,
}

/// Cause of a failed recovery of trajectories.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrajectoryError {
    /// The number of values in a row differs from the number of parameters.
    #[error("evaluation {evaluation} has {found} values; {expected} are needed, one per parameter")]
    RowWidth {
        /// Its number, from 1.
        evaluation: usize,
        /// Values found.
        found: usize,
        /// Values needed.
        expected: usize,
    },
    /// All rows are equal, or the table is empty.
    #[error("no parameter changes in the {rows} evaluations; a trajectory changes each varying one once")]
    NothingVaries {
        /// Rows given.
        rows: usize,
    },
    /// A step changes no parameter, or several.
    #[error("evaluation {evaluation} changes {} of the evaluation before; a trajectory of these {varying} varying parameters \
             has {} evaluations and changes one at a time", list(changed), varying + 1)]
    NotOneChange {
        /// Its number, from 1.
        evaluation: usize,
        /// Names of the changed parameters. Empty without a change.
        changed: Vec<String>,
        /// Parameters that vary over all rows.
        varying: usize,
    },
    /// A parameter changes a second time in one trajectory.
    #[error(
        "evaluation {evaluation} changes {name} a second time in the trajectory that starts at evaluation {start}"
    )]
    ChangedTwice {
        /// Its number, from 1.
        evaluation: usize,
        /// The parameter.
        name: String,
        /// Number of the trajectory's first evaluation.
        start: usize,
    },
    /// Only some parameters of a group change.
    #[error(
        "evaluation {evaluation} changes group {group} without its parameter {name}; parameters of a group \
         change together"
    )]
    PartOfGroup {
        /// Its number, from 1.
        evaluation: usize,
        /// The parameter that does not change.
        name: String,
        /// Its group.
        group: String,
    },
    /// A parameter with a single-valued domain changes, so its step is no fraction of its range.
    #[error(
        "parameter {name} changes from {from} to {to} at evaluation {evaluation}, which is not a fraction \
         of its range [{low}, {high}]; a range or two values are needed"
    )]
    NoRange {
        /// The number of the evaluation after the change, from 1.
        evaluation: usize,
        /// The parameter.
        name: String,
        /// Value before.
        from: Value,
        /// Value after.
        to: Value,
        /// Its smallest value.
        low: f64,
        /// Its largest value.
        high: f64,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

impl Trajectories {
    pub(crate) fn new(names: Vec<String>, complete: Vec<Trajectory>, rows: usize, unfinished: bool) -> Self {
        Self { names, complete, rows, unfinished }
    }

    /// Recovers trajectories from parameter sets with one value per parameter in each row.
    ///
    /// The k varying parameters are those with more than one value in their column. Rows are split into
    /// blocks of k + 1 rows. Within a block, consecutive rows differ in exactly one parameter, and each
    /// varying parameter changes once. A last block that is too short (an interrupted study) is allowed if it
    /// follows the same rule, and counts as an unfinished trajectory. A missing row in any other block is an
    /// error, because the following rows could be misread. A failed evaluation stays in the table and has no
    /// response.
    ///
    /// A step is divided by the parameter's range. Tables are often printed with few digits (SALib's with 9),
    /// so a step carries their rounding. Given the `levels` of the design, a step of a continuous parameter
    /// that agrees with the documented p/(2(p−1)) to [`PRINT_ROUNDING`] is taken as exactly that. All other
    /// steps are taken as printed.
    ///
    /// # Errors
    /// [`TrajectoryError`] with the first evaluation that does not fit.
    pub fn recover(
        parameters: &[Parameter],
        rows: &[Vec<Value>],
        levels: Option<u32>,
    ) -> Result<Self, TrajectoryError> {
        Self::recover_groups(parameters, &Groups::alone(parameters), rows, levels)
    }

    /// Recovers the trajectories of a design whose steps change groups: consecutive rows differ in exactly those
    /// parameters of one group that vary over all rows.
    ///
    /// # Errors
    /// As [`Trajectories::recover`].
    pub fn recover_groups(
        parameters: &[Parameter],
        groups: &Groups,
        rows: &[Vec<Value>],
        levels: Option<u32>,
    ) -> Result<Self, TrajectoryError> {
        for (index, row) in rows.iter().enumerate() {
            if row.len() != parameters.len() {
                let (found, expected) = (row.len(), parameters.len());
                return Err(TrajectoryError::RowWidth { evaluation: index + 1, found, expected });
            }
        }
        Self::recover_rows(parameters, groups, rows.len(), |row, column| rows[row][column], levels)
    }

    /// Recovers trajectories from `rows` parameter sets with values given by row and parameter, independent of
    /// storage.
    ///
    /// # Errors
    /// As [`Trajectories::recover`].
    pub fn recover_rows(
        parameters: &[Parameter],
        groups: &Groups,
        rows: usize,
        value: impl Fn(usize, usize) -> Value,
        levels: Option<u32>,
    ) -> Result<Self, TrajectoryError> {
        // A parameter that no row changes has no effect to compute, and must not lengthen the trajectories.
        let varies = |column| (1..rows).any(|row| value(row, column) != value(0, column));
        let varying = groups.with(parameters.len(), varies);
        if varying.is_empty() {
            return Err(TrajectoryError::NothingVaries { rows });
        }
        let length = varying.len() + 1;
        let mut complete = Vec::with_capacity(rows / length);
        let mut unfinished = false;
        for first in (0..rows).step_by(length) {
            let set = |row| (0..parameters.len()).map(|column| value(row, column)).collect();
            let block: Vec<Vec<Value>> = (first..rows.min(first + length)).map(set).collect();
            let trajectory = follow(parameters, &varying, &block, first, levels)?;
            if block.len() == length {
                complete.push(trajectory);
            } else {
                unfinished = true;
            }
        }
        let names = varying.into_iter().map(|group| group.name).collect();
        Ok(Self { names, complete, rows, unfinished })
    }

    /// Names of the varying parameters, or of their groups, in the order of the parameters.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Complete trajectories, in the order of their rows.
    #[must_use]
    pub fn complete(&self) -> &[Trajectory] {
        &self.complete
    }

    /// Number of rows of the design, those of an unfinished trajectory included.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns whether the last rows begin a trajectory that ends too early.
    #[must_use]
    pub fn has_unfinished(&self) -> bool {
        self.unfinished
    }
}

fn follow(
    parameters: &[Parameter],
    varying: &[Group],
    block: &[Vec<Value>],
    first_row: usize,
    levels: Option<u32>,
) -> Result<Trajectory, TrajectoryError> {
    let mut steps: Vec<Step> = Vec::with_capacity(varying.len());
    for (index, pair) in block.windows(2).enumerate() {
        let evaluation = first_row + index + 2;
        let (before, after) = (&pair[0], &pair[1]);
        let differs = |column: &usize| before[*column] != after[*column];
        let changed: Vec<usize> =
            (0..varying.len()).filter(|&place| varying[place].columns.iter().any(differs)).collect();
        let [place] = changed[..] else {
            let changed = changed.iter().map(|&place| varying[place].name.clone()).collect();
            return Err(TrajectoryError::NotOneChange { evaluation, changed, varying: varying.len() });
        };
        let group = &varying[place];
        if steps.iter().any(|step| step.parameter == place) {
            let name = group.name.clone();
            return Err(TrajectoryError::ChangedTwice { evaluation, name, start: first_row + 1 });
        }
        let mut fractions = Vec::with_capacity(group.columns.len());
        for &column in &group.columns {
            let parameter = &parameters[column];
            let (from, to) = (before[column], after[column]);
            if from == to {
                let (name, group) = (parameter.name.clone(), group.name.clone());
                return Err(TrajectoryError::PartOfGroup { evaluation, name, group });
            }
            fractions.push(signed_fraction(parameter, levels, from, to).ok_or_else(|| {
                let (low, high) = parameter.domain.bounds();
                TrajectoryError::NoRange { evaluation, name: parameter.name.clone(), from, to, low, high }
            })?);
        }
        steps.push(Step { parameter: place, fraction: joint_fraction(&fractions) });
    }
    Ok(Trajectory { first_row, steps })
}

/// Returns the fraction of a step: that of a single parameter, or the mean absolute fraction of several.
pub(crate) fn joint_fraction(fractions: &[f64]) -> f64 {
    match fractions {
        [alone] => *alone,
        several => several.iter().map(|fraction| fraction.abs()).sum::<f64>() / several.len() as f64,
    }
}

/// Returns the step of a continuous parameter with `levels` ≥ 2 levels, as a fraction of its range:
/// p/(2(p−1)).
#[must_use]
pub fn continuous_step(levels: u32) -> f64 {
    f64::from(levels) / (2.0 * (f64::from(levels) - 1.0))
}

/// Maximum relative deviation of a printed step from the documented one.
///
/// Nine digits of a value 10 times the range give a rounding of 1e-7. A real difference of 1e-6 would change only
/// the seventh digit of an effect.
pub const PRINT_ROUNDING: f64 = 1e-6;

/// Returns the step as a fraction of the range, `(to − from) / (high − low)`, or of the probability. Finite and not
/// 0.
pub(crate) fn signed_fraction(
    parameter: &Parameter,
    levels: Option<u32>,
    from: Value,
    to: Value,
) -> Option<f64> {
    let (low, high) = parameter.domain.bounds();
    let (from, to) = (from.as_f64(), to.as_f64());
    let fraction = match &parameter.domain {
        Domain::Distributed { distribution } => {
            probability(distribution, to) - probability(distribution, from)
        }
        _ => (to - from) / (high - low),
    };
    if !fraction.is_finite() || fraction == 0.0 {
        return None;
    }
    let documented = levels.filter(|&levels| levels >= 2).map(continuous_step);
    match (&parameter.domain, documented) {
        (Domain::Continuous { .. } | Domain::Distributed { .. }, Some(step))
            if (fraction.abs() / step - 1.0).abs() < PRINT_ROUNDING =>
        {
            Some(step.copysign(fraction))
        }
        _ => Some(fraction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::ValueType;

    fn parameters() -> Vec<Parameter> {
        let parameter = |name: &str, domain| Parameter {
            name: name.into(),
            value_type: ValueType::Integer,
            default: Value::Integer(0),
            domain,
        };
        let range = || Domain::range(ValueType::Integer, 0.0, 4.0, None).unwrap();
        vec![
            parameter("a", range()),
            parameter("b", Domain::fixed(ValueType::Integer, 0.0).unwrap()),
            parameter("c", range()),
        ]
    }

    fn rows(rows: &[[i64; 3]]) -> Vec<Vec<Value>> {
        rows.iter().map(|row| row.map(Value::Integer).to_vec()).collect()
    }

    fn error(table: &[[i64; 3]]) -> String {
        Trajectories::recover(&parameters(), &rows(table), None).unwrap_err().to_string()
    }

    #[test]
    fn steps_are_signed_fractions_of_the_range() {
        let table = rows(&[[0, 0, 4], [2, 0, 4], [2, 0, 1], [4, 0, 0], [4, 0, 1], [3, 0, 1], [1, 0, 1]]);
        let found = Trajectories::recover(&parameters(), &table, Some(20)).unwrap();
        assert_eq!(found.names(), ["a", "c"]);
        let steps: Vec<(usize, f64)> =
            found.complete().iter().flat_map(|t| &t.steps).map(|s| (s.parameter, s.fraction)).collect();
        assert_eq!(steps, [(0, 0.5), (1, -0.75), (1, 0.25), (0, -0.25)]);
        assert_eq!(found.complete()[1].first_row, 3);
        assert!(found.has_unfinished());
        assert_eq!(found.rows(), 7);
    }

    #[test]
    fn invalid_trajectory_names_the_evaluation() {
        assert!(error(&[]).starts_with("no parameter changes in the 0 evaluations"));
        assert!(error(&[[1, 0, 1]]).starts_with("no parameter changes in the 1 evaluations"));
        assert_eq!(
            error(&[[0, 0, 0], [1, 0, 1]]),
            "evaluation 2 changes a, c of the evaluation before; a trajectory of these 2 varying parameters has 3 \
             evaluations and changes one at a time"
        );
        assert!(
            error(&[[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1]]).starts_with("evaluation 3 changes nothing")
        );
        assert_eq!(
            error(&[[0, 0, 0], [1, 0, 0], [1, 0, 1], [2, 0, 1], [3, 0, 1], [4, 0, 1]]),
            "evaluation 6 changes a a second time in the trajectory that starts at evaluation 4"
        );
        assert!(error(&[[0, 0, 0], [0, 3, 0]]).contains("parameter b changes from 0 to 3 at evaluation 2"));
        let ragged = vec![vec![Value::Integer(1)]];
        let error = Trajectories::recover(&parameters(), &ragged, None).unwrap_err();
        assert_eq!(error.to_string(), "evaluation 1 has 1 values; 3 are needed, one per parameter");
    }

    #[test]
    fn print_rounding_is_undone_with_known_levels() {
        let parameter = Parameter {
            name: "x".into(),
            value_type: ValueType::Real,
            default: Value::from_f64(0.0, ValueType::Real).unwrap(),
            domain: Domain::Continuous { low: -3.0, high: 3.0 },
        };
        let value = |number| Value::from_f64(number, ValueType::Real).unwrap();
        let step = |to, levels| signed_fraction(&parameter, levels, value(-3.0), value(to)).unwrap();
        let printed = 0.333_333_33;
        assert_eq!(step(printed, Some(10)), 5.0 / 9.0);
        assert_eq!(step(printed, None), 3.333_333_33 / 6.0);
        assert_eq!(step(0.3333, Some(10)), 3.3333 / 6.0);
        assert_eq!(step(printed, Some(1)), 3.333_333_33 / 6.0);
    }
}
