//! Laws of the rows of a Morris design.

use crate::spaces::{space, varying, width};
use pleach_sensitivity::sampling::morris::{Morris, sample};
use pleach_sensitivity::trajectory::Trajectories;
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use proptest::prelude::*;
use std::collections::HashSet;

fn settings() -> impl Strategy<Value = Morris> {
    (1u32..8, 2u32..30, any::<u64>()).prop_map(|(trajectories, levels, seed)| Morris {
        trajectories,
        levels,
        seed,
    })
}

/// Returns whether the values show the step that the documentation states.
fn is_documented_step(parameter: &Parameter, levels: u32, before: Value, after: Value) -> bool {
    match &parameter.domain {
        Domain::Continuous { .. } => {
            let step = (after.as_f64() - before.as_f64()).abs() / width(parameter);
            let documented = f64::from(levels) / (2.0 * f64::from(levels - 1));
            (step - documented).abs() < 1e-9
        }
        Domain::Levels { values } => {
            let place = |value| values.iter().position(|&level| level == value);
            match (place(before), place(after)) {
                (Some(before), Some(after)) => before.abs_diff(after) == values.len() / 2,
                _ => false,
            }
        }
        Domain::Fixed { .. } | Domain::Distributed { .. } => false,
    }
}

/// Returns whether the lower end of a continuous step is a grid point, and both ends are in the domain.
fn lies_in_domain(parameter: &Parameter, levels: u32, ends: [Value; 2]) -> bool {
    match &parameter.domain {
        Domain::Levels { values } => ends.iter().all(|end| values.contains(end)),
        Domain::Fixed { value } => ends == [*value; 2],
        Domain::Distributed { .. } => false,
        Domain::Continuous { low, high } => {
            let base = ends[0].as_f64().min(ends[1].as_f64());
            let place = (base - low) / (high - low) * f64::from(levels - 1);
            ends.iter().all(|end| (*low..=*high).contains(&end.as_f64()))
                && (place - place.round()).abs() < 1e-6
        }
    }
}

proptest! {
    #[test]
    fn each_varying_parameter_takes_one_documented_step(parameters in space(), morris in settings()) {
        let design = sample(&parameters, &morris).unwrap();
        let varying = varying(&parameters);
        let length = varying.len() + 1;
        prop_assert_eq!(design.evaluations.len(), morris.trajectories as usize * length);
        for trajectory in design.evaluations.chunks(length) {
            let mut changed = Vec::new();
            for pair in trajectory.windows(2) {
                let columns: Vec<usize> =
                    (0..parameters.len()).filter(|&column| pair[0][column] != pair[1][column]).collect();
                prop_assert_eq!(columns.len(), 1);
                let (column, parameter) = (columns[0], &parameters[columns[0]]);
                prop_assert!(is_documented_step(parameter, morris.levels, pair[0][column], pair[1][column]));
                changed.push(column);
            }
            changed.sort_unstable();
            prop_assert_eq!(&changed, &varying);
            for (column, parameter) in parameters.iter().enumerate() {
                let ends = [trajectory[0][column], trajectory[length - 1][column]];
                prop_assert!(lies_in_domain(parameter, morris.levels, ends), "{:?} in {:?}", ends, parameter);
                prop_assert!(trajectory.iter().all(|row| row[column].value_type() == parameter.value_type));
            }
        }
    }

    #[test]
    fn more_trajectories_keep_the_first(parameters in space(), morris in settings(), more in 0u32..5) {
        let design = sample(&parameters, &morris).unwrap();
        let longer = Morris { trajectories: morris.trajectories + more, ..morris };
        let longer = sample(&parameters, &longer).unwrap();
        prop_assert_eq!(&longer.evaluations[..design.evaluations.len()], &design.evaluations[..]);
        let (all, first) = (longer.trajectories().unwrap().complete(), design.trajectories().unwrap().complete());
        prop_assert_eq!(&all[..first.len()], first);
    }

    #[test]
    fn equal_seeds_make_equal_designs(parameters in space(), morris in settings()) {
        prop_assert_eq!(sample(&parameters, &morris), sample(&parameters, &morris));
    }

    #[test]
    fn trajectories_are_recovered_from_the_rows(parameters in space(), morris in settings(), lost in 0usize..3) {
        let design = sample(&parameters, &morris).unwrap();
        let stated = design.trajectories().unwrap();
        let found = Trajectories::recover(&parameters, &design.evaluations, Some(morris.levels)).unwrap();
        prop_assert_eq!(&found, stated);

        // An interrupted study: the last rows are missing, and at least one trajectory is complete.
        let length = stated.names().len() + 1;
        let rows = design.evaluations.len().saturating_sub(lost).max(length);
        let found = Trajectories::recover(&parameters, &design.evaluations[..rows], Some(morris.levels)).unwrap();
        prop_assert_eq!(found.complete(), &stated.complete()[..rows / length]);
        prop_assert_eq!(found.has_unfinished(), rows % length != 0);
    }
}

/// Different seeds, and different trajectories of one seed, give different points in a large enough space.
#[test]
fn seeds_and_trajectories_differ() {
    let parameters: Vec<Parameter> = (0..10)
        .map(|index| Parameter {
            name: format!("p{index}"),
            value_type: ValueType::Real,
            default: Value::from_f64(0.0, ValueType::Real).unwrap(),
            domain: Domain::Continuous { low: 0.0, high: 1.0 },
        })
        .collect();
    let design = |seed| sample(&parameters, &Morris { trajectories: 20, levels: 20, seed }).unwrap();
    let (one, two) = (design(1), design(2));
    let starts: HashSet<&Vec<Value>> =
        one.evaluations.iter().step_by(11).chain(two.evaluations.iter().step_by(11)).collect();
    assert_eq!(starts.len(), 40);
}
