//! Failed evaluations: the units of the design that they exclude, and the parameters that caused them.

use pleach_sensitivity::moat;
use pleach_sensitivity::saltelli_blocks::Role;
use pleach_sensitivity::sampling::Structure;
use serde::Serialize;

/// Failed evaluations and the units excluded from the indices because of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// Evaluations without a response.
    pub evaluations: usize,
    /// Unit that is excluded as a whole.
    pub unit: Unit,
    /// Number of excluded units.
    pub dropped: usize,
    /// Number of all units.
    pub all: usize,
    /// For each varying parameter, the failed evaluations after a change of this parameter alone, or those of
    /// its search curve. Empty for designs that change all parameters at once.
    pub parameters: Vec<ParameterFailures>,
}

/// Unit excluded from the indices if one of its evaluations fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A trajectory of a screening.
    Trajectory,
    /// The row block of a base sample.
    BaseSample,
    /// The search curve of a parameter.
    Curve,
    /// The evaluation alone.
    Evaluation,
}

/// Failures of one parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParameterFailures {
    /// Name of the parameter.
    pub name: String,
    /// Number of failed evaluations that count for the parameter, see [`Failures::parameters`].
    pub failed: usize,
}

impl Failures {
    /// Summarizes the missing responses of a design, given one response per evaluation. `None` if none is
    /// missing.
    pub(super) fn of(structure: &Structure, responses: &[Option<f64>]) -> Option<Self> {
        let evaluations = responses.iter().filter(|response| response.is_none()).count();
        if evaluations == 0 {
            return None;
        }
        let is_whole = |rows: std::ops::Range<usize>| {
            responses.get(rows).is_some_and(|rows| rows.iter().all(Option::is_some))
        };
        let named = |names: &[String], failed: Vec<usize>| {
            let of = |(name, failed): (&String, usize)| ParameterFailures { name: name.clone(), failed };
            names.iter().zip(failed).map(of).collect()
        };
        let (unit, dropped, all, parameters) = match structure {
            Structure::Trajectories(trajectories) => {
                let complete = trajectories.complete();
                let broken = |first: usize, steps: usize| usize::from(!is_whole(first..first + steps + 1));
                let unfinished = usize::from(trajectories.has_unfinished());
                let dropped: usize =
                    complete.iter().map(|one| broken(one.first_row, one.steps.len())).sum::<usize>()
                        + unfinished;
                let failed = moat::failures(trajectories, responses);
                (Unit::Trajectory, dropped, complete.len() + unfinished, named(trajectories.names(), failed))
            }
            Structure::Saltelli(blocks) => {
                let rows = blocks.rows_per_sample();
                let dropped =
                    (0..blocks.samples()).filter(|sample| !is_whole(sample * rows..(sample + 1) * rows));
                let mut failed = vec![0; blocks.names().len()];
                for (row, _) in responses.iter().enumerate().filter(|(_, response)| response.is_none()) {
                    if let Some((_, Role::AWithB(column) | Role::BWithA(column))) = blocks.role(row) {
                        failed[column] += 1;
                    }
                }
                (Unit::BaseSample, dropped.count(), blocks.samples(), named(blocks.names(), failed))
            }
            Structure::Curves(curves) => {
                let missing = |curve: &[Option<f64>]| curve.iter().filter(|value| value.is_none()).count();
                let failed: Vec<usize> = responses.chunks(curves.samples()).map(missing).collect();
                let dropped = failed.iter().filter(|failed| **failed > 0).count();
                (Unit::Curve, dropped, curves.names().len(), named(curves.names(), failed))
            }
            _ => (Unit::Evaluation, evaluations, responses.len(), Vec::new()),
        };
        Some(Self { evaluations, unit, dropped, all, parameters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_sensitivity::sampling::{Design, fast, morris, saltelli};
    use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};

    fn parameters() -> Vec<Parameter> {
        let parameter = |name: &str, domain: Domain| Parameter {
            name: name.to_owned(),
            value_type: ValueType::Integer,
            default: Value::Integer(0),
            domain,
        };
        let levels = || Domain::range(ValueType::Integer, 0.0, 9.0, None).unwrap();
        let held = Domain::Fixed { value: Value::Integer(0) };
        vec![parameter("a", levels()), parameter("held", held), parameter("b", levels())]
    }

    /// Counts, row by row, the failures for each parameter that is the only difference between a failed row
    /// and one of its `base` rows.
    fn counted(design: &Design, failed: &[usize], base: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
        let of = |column: usize| {
            let alone = |row: &&usize| {
                base(**row).iter().any(|other| {
                    let (row, other) = (&design.evaluations[**row], &design.evaluations[*other]);
                    let differs: Vec<usize> =
                        (0..row.len()).filter(|place| row[*place] != other[*place]).collect();
                    differs == [column]
                })
            };
            failed.iter().filter(alone).count()
        };
        vec![of(0), of(2)]
    }

    fn responses(rows: usize, failed: &[usize]) -> Vec<Option<f64>> {
        (0..rows).map(|row| (!failed.contains(&row)).then_some(row as f64)).collect()
    }

    fn shown(failures: &Failures) -> Vec<usize> {
        assert!(failures.parameters.iter().map(|parameter| parameter.name.as_str()).eq(["a", "b"]));
        failures.parameters.iter().map(|parameter| parameter.failed).collect()
    }

    #[test]
    fn failed_evaluation_drops_its_trajectory() {
        let morris = morris::Morris { trajectories: 6, levels: 4, seed: 1 };
        let design = morris::sample(&parameters(), &morris).unwrap();
        let failed = [0, 4, 5, 7, 10];
        let found = Failures::of(&design.structure, &responses(18, &failed)).unwrap();
        assert_eq!((found.unit, found.evaluations, found.dropped, found.all), (Unit::Trajectory, 5, 4, 6));
        // The base is the row before. The first row of a trajectory has none.
        let before = |row: usize| if row.is_multiple_of(3) { Vec::new() } else { vec![row - 1] };
        assert_eq!(shown(&found), counted(&design, &failed, before));
        assert_eq!(shown(&found).iter().sum::<usize>(), 4);
        assert_eq!(Failures::of(&design.structure, &responses(18, &[])), None);
    }

    #[test]
    fn failed_evaluation_drops_its_base_sample() {
        let base = BasePoints::Sobol;
        let saltelli = saltelli::Saltelli { samples: 5, second_order: true, base, seed: 1 };
        let design = saltelli::sample(&parameters(), &saltelli).unwrap();
        let failed = [0, 1, 2, 8, 10, 29];
        let found = Failures::of(&design.structure, &responses(30, &failed)).unwrap();
        assert_eq!((found.unit, found.evaluations, found.dropped, found.all), (Unit::BaseSample, 6, 3, 5));
        // The base is the first or the last row of the block. These rows themselves change no single
        // parameter.
        let ends = |row: usize| match row % 6 {
            0 | 5 => Vec::new(),
            place @ (1 | 2) => vec![row - place],
            place => vec![row - place + 5],
        };
        assert_eq!(shown(&found), counted(&design, &failed, ends));
    }

    #[test]
    fn failed_evaluation_drops_its_curve() {
        let plan = fast::Fast { samples: 65, harmonics: 4, seed: 1 };
        let (design, _) = fast::sample(&parameters(), &plan).unwrap();
        let found = Failures::of(&design.structure, &responses(130, &[65, 70])).unwrap();
        assert_eq!((found.unit, found.evaluations, found.dropped, found.all), (Unit::Curve, 2, 1, 2));
        assert_eq!(shown(&found), [0, 2]);
    }

    #[test]
    fn failed_evaluation_without_design_drops_itself_only() {
        let design = Design::of_rows(&parameters(), vec![vec![Value::Integer(0); 3]; 4]);
        let found = Failures::of(&design.structure, &responses(4, &[2])).unwrap();
        assert_eq!((found.unit, found.evaluations, found.dropped, found.all), (Unit::Evaluation, 1, 1, 4));
        assert!(found.parameters.is_empty());
    }
}
