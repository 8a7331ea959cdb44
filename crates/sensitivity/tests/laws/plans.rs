//! Laws of Morris plans: base points of sequences, spread trajectories and groups, and an independent slow
//! selection.

use crate::spaces::{space, varying, width};
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::Design;
use pleach_sensitivity::sampling::latin_hypercube::Placement;
use pleach_sensitivity::sampling::morris::{
    BasePointSource, Morris, SpreadSearch, TrajectoryPlan, TrajectorySelection, sample, sample_plan,
};
use pleach_sensitivity::sampling::points::Sequence;
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_sensitivity::trajectory::Trajectories;
use pleach_workflow::{Distribution, Domain, Parameter, Value, ValueType};
use proptest::prelude::*;

fn base() -> impl Strategy<Value = BasePointSource> {
    let named = |name| match Sampler::named(name, 40, 4) {
        Some(Sampler::Points(sequence)) => BasePointSource::Points(sequence),
        _ => BasePointSource::Random,
    };
    prop::sample::select(Sampler::NAMES.to_vec()).prop_map(named)
}

fn alone(parameters: &[Parameter], plan: &TrajectoryPlan) -> Design {
    sample_plan(parameters, &Groups::alone(parameters), plan).expect("a design")
}

/// Real parameters of [0, 1], whose values are positions in the unit cube.
fn units(count: usize) -> Vec<Parameter> {
    let parameter = |number: usize| Parameter {
        name: format!("x{number}"),
        value_type: ValueType::Real,
        default: Value::from_f64(0.0, ValueType::Real).expect("finite"),
        domain: Domain::Continuous { low: 0.0, high: 1.0 },
    };
    (0..count).map(parameter).collect()
}

fn trajectories(design: &Design, length: usize) -> Vec<Vec<Vec<f64>>> {
    let row = |row: &Vec<Value>| row.iter().map(|value| value.as_f64()).collect();
    design.evaluations.chunks(length).map(|rows| rows.iter().map(row).collect()).collect()
}

/// Computes Campolongo's spread by definition.
fn spread(trajectories: &[&Vec<Vec<f64>>]) -> f64 {
    let mut sum = 0.0;
    for (place, one) in trajectories.iter().enumerate() {
        for other in &trajectories[..place] {
            let mut distance = 0.0;
            for a in one.iter() {
                for b in other.iter() {
                    distance += a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
                }
            }
            // Equal trajectories have distance 0.
            sum += if one == other { 0.0 } else { distance * distance };
        }
    }
    sum.sqrt()
}

/// Returns the largest spread of `few` trajectories, by trying every subset as the bits of a number.
fn widest(all: &[Vec<Vec<f64>>], few: u32) -> f64 {
    (0_u32..1 << all.len())
        .filter(|subset| subset.count_ones() == few)
        .map(|subset| {
            spread(
                &all.iter()
                    .enumerate()
                    .filter(|(at, _)| subset >> at & 1 == 1)
                    .map(|(_, t)| t)
                    .collect::<Vec<_>>(),
            )
        })
        .fold(0.0, f64::max)
}

proptest! {
    /// With any base points, each parameter steps once per trajectory, by the stated fraction of its range.
    #[test]
    fn steps_are_the_stated_fractions(parameters in space(), base in base(), seed: u64, levels in 2_u32..30) {
        let plan = TrajectoryPlan { morris: Morris { trajectories: 5, levels, seed }, base, choice: TrajectorySelection::All };
        let design = alone(&parameters, &plan);
        let columns = varying(&parameters);
        let stated = design.trajectories().unwrap();
        prop_assert_eq!(stated.complete().len(), 5);
        for trajectory in stated.complete() {
            let mut stepped: Vec<usize> = trajectory.steps.iter().map(|step| step.parameter).collect();
            for (step, row) in trajectory.steps.iter().zip(trajectory.first_row..) {
                let (before, after) = (&design.evaluations[row], &design.evaluations[row + 1]);
                let column = columns[step.parameter];
                let changed: Vec<usize> = (0..parameters.len()).filter(|&at| before[at] != after[at]).collect();
                prop_assert_eq!(changed, vec![column]);
                let fraction = (after[column].as_f64() - before[column].as_f64()) / width(&parameters[column]);
                prop_assert!((fraction - step.fraction).abs() < 1e-9);
                if let Domain::Continuous { .. } = parameters[column].domain {
                    prop_assert!((fraction.abs() - f64::from(levels) / (2.0 * f64::from(levels - 1))).abs() < 1e-9);
                }
            }
            stepped.sort_unstable();
            prop_assert_eq!(stepped, (0..columns.len()).collect::<Vec<_>>());
        }
        prop_assert_eq!(&design, &alone(&parameters, &plan));
    }

    /// A trajectory starts at its base point: in the level whose share of the unit interval contains the
    /// point's coordinate.
    #[test]
    fn trajectories_start_at_their_base_points(half in 1_u32..8, seed: u64, scrambled: bool) {
        let (sequence, levels) = (Sequence::Halton { scrambled }, 2 * half);
        let morris = Morris { trajectories: 12, levels, seed };
        let design = alone(&units(3), &TrajectoryPlan { morris, base: BasePointSource::Points(sequence), choice: TrajectorySelection::All });
        let points = sequence.points(12, 3, seed).unwrap();
        for (start, point) in design.evaluations.iter().step_by(4).zip(points.iter()) {
            for (value, place) in start.iter().zip(point) {
                let level = (place * f64::from(levels)).floor();
                prop_assert!((value.as_f64() - level / f64::from(levels - 1)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn more_trajectories_of_extensible_plans_keep_the_first(
        parameters in space(), base in base(), seed: u64, few in 1_u32..4, more in 0_u32..4, batches: bool,
    ) {
        let choice = if batches { TrajectorySelection::Spread { search: SpreadSearch::Ruano, candidates: 6, batch: 2 } } else { TrajectorySelection::All };
        let plan = |trajectories| TrajectoryPlan { morris: Morris { trajectories: 2 * trajectories, levels: 6, seed }, base, choice };
        let longer = plan(few + more + 1);
        prop_assume!(longer.extensible().is_ok());
        let (short, long) = (alone(&parameters, &plan(few)), alone(&parameters, &longer));
        prop_assert_eq!(&long.evaluations[..short.evaluations.len()], &short.evaluations[..]);
    }

    /// On small cases Campolongo's selection has the largest possible spread and Ruano's no larger one.
    /// Neither is less spread than without selection.
    #[test]
    fn spread_trajectories_are_as_wide_as_can_be(
        columns in 1_usize..4, candidates in 3_u32..9, few in 2_u32..4, levels in prop::sample::select(vec![4_u32, 6]), seed: u64,
    ) {
        let parameters = units(columns);
        let morris = |trajectories| Morris { trajectories, levels, seed };
        let all = trajectories(&sample(&parameters, &morris(candidates)).unwrap(), columns + 1);
        let chosen = |search| {
            let plan = TrajectoryPlan {
                morris: morris(few), base: BasePointSource::Random, choice: TrajectorySelection::Spread { search, candidates, batch: few },
            };
            let found = trajectories(&alone(&parameters, &plan), columns + 1);
            assert!(found.iter().all(|one| all.contains(one)), "chosen among the candidates");
            spread(&found.iter().collect::<Vec<_>>())
        };
        let (exhaustive, sequential) = (chosen(SpreadSearch::Campolongo), chosen(SpreadSearch::Ruano));
        let unchosen = spread(&all[..few as usize].iter().collect::<Vec<_>>());
        let best = widest(&all, few);
        prop_assert!((exhaustive - best).abs() < 1e-9 * best.max(1.0), "{} {}", exhaustive, best);
        prop_assert!(sequential <= exhaustive + 1e-9 && unchosen <= sequential + 1e-9);
    }

    /// Parameters of a group step together, each by its own step, while all other parameters keep their
    /// values.
    #[test]
    fn groups_step_together(parameters in space(), labels in prop::collection::vec(0_usize..3, 6), base in base(), seed: u64) {
        let names: Vec<String> = parameters.iter().zip(&labels).map(|(_, label)| format!("g{label}")).collect();
        let groups = Groups::labeled(&parameters, &names).unwrap();
        let plan = TrajectoryPlan { morris: Morris { trajectories: 4, levels: 6, seed }, base, choice: TrajectorySelection::All };
        let design = sample_plan(&parameters, &groups, &plan).unwrap();
        let columns = varying(&parameters);
        let stated = design.trajectories().unwrap();
        let with_varying: Vec<&String> =
            groups.names().iter().filter(|name| columns.iter().any(|&column| names[column] == **name)).collect();
        prop_assert_eq!(stated.names().iter().collect::<Vec<_>>(), with_varying);
        prop_assert_eq!(design.evaluations.len(), 4 * (stated.names().len() + 1));
        for trajectory in stated.complete() {
            for (step, row) in trajectory.steps.iter().zip(trajectory.first_row..) {
                let (before, after) = (&design.evaluations[row], &design.evaluations[row + 1]);
                let members: Vec<usize> =
                    columns.iter().copied().filter(|&column| names[column] == stated.names()[step.parameter]).collect();
                let changed: Vec<usize> = (0..parameters.len()).filter(|&at| before[at] != after[at]).collect();
                prop_assert_eq!(&changed, &members);
                let fraction = |at: &usize| (after[*at].as_f64() - before[*at].as_f64()) / width(&parameters[*at]);
                let mean = members.iter().map(|at| fraction(at).abs()).sum::<f64>() / members.len() as f64;
                prop_assert!((mean - step.fraction.abs()).abs() < 1e-9);
                prop_assert!(members.len() == 1 || step.fraction > 0.0);
            }
        }
        let found = Trajectories::recover_groups(&parameters, &groups, &design.evaluations, Some(6)).unwrap();
        prop_assert_eq!(&found, stated);
    }

    /// If each parameter is alone in its group, groups change only names.
    #[test]
    fn groups_of_one_are_parameters(parameters in space(), seed: u64) {
        let morris = Morris { trajectories: 3, levels: 6, seed };
        let names: Vec<String> = (0..parameters.len()).map(|at| format!("g{at}")).collect();
        let groups = Groups::labeled(&parameters, &names).unwrap();
        let grouped = sample_plan(&parameters, &groups, &TrajectoryPlan::from(morris)).unwrap();
        prop_assert_eq!(grouped.evaluations, sample(&parameters, &morris).unwrap().evaluations);
    }
}

/// Over base points of a Halton sequence, levels are nearly equally likely. Random ones differ by √n.
#[test]
fn base_points_of_a_sequence_cover_the_levels() {
    let morris = Morris { trajectories: 64, levels: 8, seed: 500 };
    let spread = |base| {
        let design = alone(&units(1), &TrajectoryPlan { morris, base, choice: TrajectorySelection::All });
        let mut counts = [0_i32; 8];
        let starts = design.evaluations.iter().step_by(2);
        starts.for_each(|row| counts[(row[0].as_f64() * 7.0).round() as usize] += 1);
        counts.iter().map(|count| (count - 8).abs()).max()
    };
    for sequence in [
        Sequence::Halton { scrambled: false },
        Sequence::Sobol,
        Sequence::LatinHypercube(Placement::Random),
        Sequence::Hammersley { scrambled: true },
    ] {
        assert!(spread(BasePointSource::Points(sequence)) <= Some(1), "{sequence:?}");
    }
    assert!(spread(BasePointSource::Random) > Some(1));
}

#[test]
fn invalid_plans_are_refused_with_the_cause() {
    let said = |parameters: &[Parameter], trajectories, choice| {
        let morris = Morris { trajectories, levels: 4, seed: 1 };
        let plan = TrajectoryPlan { morris, base: BasePointSource::Random, choice };
        sample_plan(parameters, &Groups::alone(parameters), &plan).unwrap_err().to_string()
    };
    let of = |search, candidates, batch| TrajectorySelection::Spread { search, candidates, batch };
    let three = units(3);
    let bad = "a batch of 2 or more trajectories and at least as many candidates, up to 2000, are allowed";
    for (candidates, batch) in [(10, 1), (3, 4), (2_001, 4)] {
        assert!(said(&three, 4, of(SpreadSearch::Ruano, candidates, batch)).ends_with(bad));
    }
    assert_eq!(
        said(&three, 10, of(SpreadSearch::Ruano, 20, 4)),
        "trajectories = 10 is not a multiple of batch = 4; complete batches are needed"
    );
    assert!(
        said(&three, 10, of(SpreadSearch::Campolongo, 100, 10))
            .starts_with("10 of 100 candidates have more than")
    );
    assert!(
        said(&three, 1_000_000, of(SpreadSearch::Ruano, 2_000, 2))
            .contains("need 1000000000 candidates; at most")
    );
    let mut normal = units(1);
    normal[0].domain =
        Domain::Distributed { distribution: Distribution::Normal { mean: 0.0, deviation: 1.0 } };
    assert!(
        said(&normal, 2, TrajectorySelection::All)
            .starts_with("parameter x0 cannot be stepped over [-inf, inf]")
    );
}

/// Rows recovered with other groups than drawn give an error that names the mismatch.
#[test]
fn rows_of_other_groups_are_refused_with_the_cause() {
    let parameters = units(3);
    let groups = |labels: [&str; 3]| Groups::labeled(&parameters, &labels.map(str::to_owned)).unwrap();
    let rows = |rows: &[[f64; 3]]| -> Vec<Vec<Value>> {
        let value = |x: f64| Value::from_f64(x, ValueType::Real).unwrap();
        rows.iter().map(|row| row.map(value).to_vec()).collect()
    };
    let said = |labels, table: &[[f64; 3]]| {
        Trajectories::recover_groups(&parameters, &groups(labels), &rows(table), None)
            .unwrap_err()
            .to_string()
    };
    let together = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.5]];
    assert!(
        Trajectories::recover_groups(&parameters, &groups(["a", "a", "b"]), &rows(&together), None).is_ok()
    );
    assert!(
        said(["a", "b", "c"], &together).starts_with("evaluation 2 changes a, b of the evaluation before")
    );
    assert_eq!(
        said(["a", "a", "a"], &together),
        "evaluation 2 changes group a without its parameter x2; parameters of a group change together"
    );
}

/// A parameter with a distribution steps in probability, and the steps are recovered from bare rows.
#[test]
fn distributions_are_stepped_over_by_probability() {
    let mut parameters = units(2);
    let distribution = Distribution::LogUniform { low: 1.0, high: 1000.0 };
    parameters[0].domain = Domain::Distributed { distribution };
    let design = sample(&parameters, &Morris { trajectories: 20, levels: 4, seed: 500 }).unwrap();
    let stated = design.trajectories().unwrap();
    for trajectory in stated.complete() {
        for (step, row) in trajectory.steps.iter().zip(trajectory.first_row..) {
            assert!((step.fraction.abs() - 2.0 / 3.0).abs() < 1e-12);
            if step.parameter == 0 {
                let ratio = design.evaluations[row + 1][0].as_f64() / design.evaluations[row][0].as_f64();
                assert!(
                    (ratio.ln().abs() - 100.0_f64.ln()).abs() < 1e-9,
                    "two thirds of three decades: {ratio}"
                );
            }
        }
    }
    let found =
        pleach_sensitivity::trajectory::Trajectories::recover(&parameters, &design.evaluations, Some(4));
    assert_eq!(&found.unwrap(), stated);
}
