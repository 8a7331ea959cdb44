//! Laws of sampled values: levels, distributions, equal rows, the order of parameters, grids, and Saltelli's
//! rows over any base points.

use crate::spaces::{space, varying};
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::marginal::{probability, quantile};
use pleach_sensitivity::saltelli_blocks::Role;
use pleach_sensitivity::sampling::factorial::{DesignResolution, Factorial, sample_fraction};
use pleach_sensitivity::sampling::halton::{LowDiscrepancy, sample as sample_halton};
use pleach_sensitivity::sampling::points::{Sequence, UnitPoints};
use pleach_sensitivity::sampling::saltelli::{Saltelli, sample as saltelli, sample_groups};
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_sensitivity::sampling::{Design, factorial};
use pleach_workflow::{BasePoints, Distribution, Domain, Parameter, Value, ValueType};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn parameter(name: &str, value_type: ValueType, domain: Domain) -> Parameter {
    let default = Value::from_f64(1.0, value_type).expect("1 is of either type");
    Parameter { name: name.into(), value_type, default, domain }
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        (1e-3..10.0_f64, 1.1..1e3_f64)
            .prop_map(|(low, factor)| Distribution::LogUniform { low, high: low * factor }),
        (-10.0..10.0_f64, 0.1..10.0_f64)
            .prop_map(|(mean, deviation)| Distribution::Normal { mean, deviation }),
        (-10.0..10.0_f64, 0.1..5.0_f64, -5.0..5.0_f64, 0.1..8.0_f64).prop_map(
            |(mean, deviation, from, wide)| {
                let low = mean + from * deviation;
                Distribution::TruncatedNormal { mean, deviation, low, high: low + wide * deviation }
            }
        ),
        (-10.0..10.0_f64, 0.1..10.0_f64, 0.0..=1.0_f64).prop_map(|(low, wide, peak)| {
            Distribution::Triangular { low, mode: low + peak * wide, high: low + wide }
        }),
    ]
}

proptest! {
    /// The quantile and the probability are inverse functions, and quantiles are monotonic.
    #[test]
    fn quantiles_undo_probabilities(distribution in distribution(), p in 1e-6..=0.999_999_f64, q in 0.0..=1.0_f64) {
        let value = quantile(&distribution, p);
        let (low, high) = distribution.bounds();
        prop_assert!(value.is_finite() && low <= value && value <= high);
        prop_assert!((probability(&distribution, value) - p).abs() < 1e-9, "{:?} {}", distribution, p);
        prop_assert_eq!(p < q, value < quantile(&distribution, q) || (p < q && q - p < 1e-12));
    }

    /// The share of a hypercube's values below each quantile is its probability.
    #[test]
    fn samples_have_their_distribution(distribution in distribution(), seed: u64) {
        let parameters = [parameter("x", ValueType::Real, Domain::Distributed { distribution })];
        let sampler = Sampler::named("lhs", 100, 2).unwrap();
        let rows = sampler.sample(&parameters, 100, seed).unwrap().evaluations;
        for tenth in 1..10 {
            let edge = quantile(&distribution, f64::from(tenth) / 10.0);
            let below = rows.iter().filter(|row| row[0].as_f64() < edge).count() as i32;
            prop_assert!((below - 10 * tenth).abs() <= 1, "{} below the {}th tenth", below, tenth);
        }
    }

    /// For every sampler, values belong to their domains, fixed parameters keep their value, and equal seeds
    /// give equal designs.
    #[test]
    fn values_are_those_of_their_domains(
        parameters in space(), name in prop::sample::select(Sampler::NAMES.to_vec()), samples in 1_u32..40, seed: u64,
    ) {
        let sampler = Sampler::named(name, samples, 2).unwrap();
        // Grids of many levels would hold millions of rows.
        let levels = |parameter: &Parameter| match &parameter.domain {
            Domain::Levels { values } => values.len(),
            _ => 2,
        };
        prop_assume!(name != "factorial" || parameters.iter().map(levels).product::<usize>() < 5_000);
        let design = sampler.sample(&parameters, samples, seed).unwrap();
        for row in &design.evaluations {
            for (value, parameter) in row.iter().zip(&parameters) {
                let held = match &parameter.domain {
                    Domain::Levels { values } => values.contains(value),
                    Domain::Fixed { value: only } => value == only,
                    _ => {
                        let (low, high) = parameter.domain.bounds();
                        (low..=high).contains(&value.as_f64())
                    }
                };
                prop_assert!(held, "{} of {:?}", value, parameter);
            }
        }
        let again = sampler.sample(&parameters, samples, seed).unwrap();
        prop_assert_eq!(design, again);
    }

    /// In a hypercube with a multiple of the number of levels as points, every level has an equal share.
    #[test]
    fn levels_are_equally_likely(levels in 2_u32..20, share in 1_u32..6, seed: u64, centered: bool) {
        let numbers: Vec<f64> = (0..levels).map(f64::from).collect();
        let parameters = [parameter("n", ValueType::Integer, Domain::set(ValueType::Integer, &numbers).unwrap())];
        let name = if centered { "lhs-centered" } else { "lhs" };
        let sampler = Sampler::named(name, levels * share, 2).unwrap();
        let design = sampler.sample(&parameters, levels * share, seed).unwrap();
        let mut counts: HashMap<Value, u32> = HashMap::new();
        design.evaluations.iter().for_each(|row| *counts.entry(row[0]).or_default() += 1);
        prop_assert!(counts.len() == levels as usize && counts.values().all(|&count| count == share), "{:?}", counts);
        prop_assert_eq!(design.distinct_rows(), levels as usize);
    }

    /// Each row refers to the first equal row.
    #[test]
    fn equal_rows_refer_to_the_first(parameters in space(), samples in 1_u32..60, seed: u64) {
        let design = Sampler::named("mc", samples, 2).unwrap().sample(&parameters, samples, seed).unwrap();
        let first = design.first_equal_rows();
        for (row, &equal) in first.iter().enumerate() {
            let slowly = design.evaluations.iter().position(|other| *other == design.evaluations[row]);
            prop_assert_eq!(slowly, Some(equal));
        }
        prop_assert_eq!(design.distinct_rows(), design.evaluations.iter().collect::<HashSet<_>>().len());
    }

    /// Permuting parameters and points together permutes the columns.
    #[test]
    fn parameters_in_another_order_are_columns_in_another_order(parameters in space(), shift in 0_usize..6, seed: u64) {
        let columns = varying(&parameters);
        let points = Sequence::Sobol.points(20, columns.len(), seed).unwrap();
        let design = Design::of_points(&parameters, &points).unwrap();
        let order: Vec<usize> = (0..parameters.len()).map(|at| (at + shift) % parameters.len()).collect();
        let turned: Vec<Parameter> = order.iter().map(|&at| parameters[at].clone()).collect();
        let places: Vec<usize> =
            varying(&turned).iter().map(|&at| columns.iter().position(|&column| column == order[at]).unwrap()).collect();
        let data = points.iter().flat_map(|point| places.iter().map(|&place| point[place])).collect();
        let turned = Design::of_points(&turned, &UnitPoints::from_rows(columns.len(), data).unwrap()).unwrap();
        for (row, turned) in design.evaluations.iter().zip(&turned.evaluations) {
            prop_assert_eq!(&order.iter().map(|&at| row[at]).collect::<Vec<_>>(), turned);
        }
    }

    /// A grid holds every combination of levels once, in order.
    #[test]
    fn grids_hold_every_combination_once(levels in 1_u32..4, counts in prop::collection::vec(1_usize..4, 1..4), reals in 1_usize..3) {
        let mut parameters: Vec<Parameter> = counts.iter().enumerate().map(|(at, &count)| {
            let numbers: Vec<f64> = (0..count).map(|number| number as f64).collect();
            parameter(&format!("n{at}"), ValueType::Integer, Domain::set(ValueType::Integer, &numbers).unwrap())
        }).collect();
        parameters.extend((0..reals).map(|at| parameter(&format!("x{at}"), ValueType::Real, Domain::Continuous { low: 0.0, high: 1.0 })));
        let design = factorial::sample(&parameters, &Factorial { levels, of: Vec::new() }).unwrap();
        let expected = counts.iter().product::<usize>() * (levels as usize).pow(reals as u32);
        prop_assert_eq!((design.evaluations.len(), design.distinct_rows()), (expected, expected));
        for column in counts.len()..parameters.len() {
            let values: HashSet<Value> = design.evaluations.iter().map(|row| row[column]).collect();
            prop_assert_eq!(values.len(), levels as usize);
        }
    }

    /// Fractions are balanced: each parameter with each other one, and in resolution IV each with every two
    /// others.
    #[test]
    fn fractions_are_balanced(count in 1_usize..18) {
        let parameters: Vec<Parameter> = (0..count)
            .map(|at| parameter(&format!("x{at}"), ValueType::Real, Domain::Continuous { low: -1.0, high: 1.0 }))
            .collect();
        for resolution in [DesignResolution::Three, DesignResolution::Four] {
            let rows = sample_fraction(&parameters, resolution).unwrap().evaluations;
            let expected = match resolution {
                DesignResolution::Three => (count + 1).next_power_of_two(),
                DesignResolution::Four => 2 * count.next_power_of_two(),
            };
            prop_assert_eq!(rows.len(), expected);
            let sum = |columns: &[usize]| {
                rows.iter().map(|row| columns.iter().map(|&column| row[column].as_f64()).product::<f64>()).sum::<f64>()
            };
            for one in 0..count {
                prop_assert_eq!(sum(&[one]), 0.0);
                for other in 0..one {
                    prop_assert_eq!(sum(&[one, other]), 0.0);
                    for third in 0..other {
                        prop_assert!(resolution == DesignResolution::Three || sum(&[one, other, third]) == 0.0);
                    }
                }
            }
        }
    }

    /// For any base points, A and B are those points, and each other row takes one group from the other
    /// point.
    #[test]
    fn saltelli_rows_take_one_group_from_the_other(
        parameters in space(), labels in prop::collection::vec(0_usize..3, 6), base in prop::sample::select(BasePoints::ALL.to_vec()),
        samples in 1_u32..20, second_order: bool, seed: u64,
    ) {
        let names: Vec<String> = parameters.iter().zip(&labels).map(|(_, label)| format!("g{label}")).collect();
        let groups = Groups::labeled(&parameters, &names).unwrap();
        let settings = Saltelli { samples, second_order, base, seed };
        let design = sample_groups(&parameters, &groups, &settings).unwrap();
        let blocks = design.row_blocks().unwrap();
        let columns = varying(&parameters);
        let seen: HashSet<&String> = columns.iter().map(|&column| &names[column]).collect();
        prop_assert_eq!(blocks.names().iter().collect::<HashSet<_>>(), seen);
        let ungrouped = saltelli(&parameters, &settings).unwrap();
        for number in 0..samples as usize {
            let row = |role| &design.evaluations[blocks.row(number, role).unwrap()];
            let (a, b) = (row(Role::A), row(Role::B));
            for (role, expected) in [(Role::A, a), (Role::B, b)] {
                let same = ungrouped.row_blocks().unwrap().row(number, role).unwrap();
                prop_assert_eq!(&ungrouped.evaluations[same], expected);
            }
            for (place, name) in blocks.names().iter().enumerate() {
                let mixed = |most: &[Value], one: &[Value]| -> Vec<Value> {
                    let inside = |at: usize| columns.contains(&at) && names[at] == *name;
                    (0..parameters.len()).map(|at| if inside(at) { one[at] } else { most[at] }).collect()
                };
                prop_assert_eq!(row(Role::AWithB(place)), &mixed(a, b));
                if second_order {
                    prop_assert_eq!(row(Role::BWithA(place)), &mixed(b, a));
                }
            }
        }
    }

    /// With base points of a hypercube, each stratum of the 2k columns of A and B holds one point.
    #[test]
    fn base_points_of_a_hypercube_hit_each_stretch_once(samples in 2_u32..50, seed: u64) {
        let parameters = ["x", "y"].map(|name| parameter(name, ValueType::Real, Domain::Continuous { low: 0.0, high: 1.0 }));
        let base = BasePoints::LatinHypercube;
        let rows = saltelli(&parameters, &Saltelli { samples, second_order: false, base, seed }).unwrap().evaluations;
        for (offset, column) in [(0, 0), (0, 1), (3, 0), (3, 1)] {
            let hit: HashSet<u32> = rows
                .iter()
                .skip(offset)
                .step_by(4)
                .map(|row| (row[column].as_f64() * f64::from(samples)) as u32)
                .collect();
            prop_assert_eq!(hit.len(), samples as usize);
        }
    }
}

#[test]
fn points_of_another_dimension_are_refused() {
    let parameters = [parameter("x", ValueType::Real, Domain::Continuous { low: 0.0, high: 1.0 })];
    let points = Sequence::MonteCarlo.points(4, 2, 1).unwrap();
    assert_eq!(
        Design::of_points(&parameters, &points).unwrap_err().to_string(),
        "points have 2 coordinates; 1 are needed, one per varying parameter"
    );
    assert_eq!(UnitPoints::from_rows(2, vec![0.0; 3]), None);
    assert_eq!(UnitPoints::from_rows(0, Vec::new()), None);
    let too_many = LowDiscrepancy { samples: 10_000_001, scrambled: true, seed: 1 };
    assert_eq!(
        sample_halton(&parameters, &too_many).unwrap_err().to_string(),
        "10000001 evaluations; at most 10000000 are allowed"
    );
    let resting = [parameter("w", ValueType::Integer, Domain::fixed(ValueType::Integer, 8.0).unwrap())];
    let none = sample_halton(&resting, &LowDiscrepancy { samples: 4, scrambled: false, seed: 1 });
    assert!(none.unwrap_err().to_string().starts_with("no parameter varies"));
}
