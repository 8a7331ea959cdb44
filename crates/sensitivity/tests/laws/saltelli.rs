//! Laws of the rows of a Saltelli design, and an independent slow computation of its Sobol' points.

use crate::spaces::{space, varying};
use pleach_sensitivity::saltelli_blocks::Role;
use pleach_sensitivity::sampling::saltelli::{Saltelli, sample};
use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn settings() -> impl Strategy<Value = Saltelli> {
    let base = prop_oneof![Just(BasePoints::Sobol), Just(BasePoints::MonteCarlo)];
    (1u32..20, any::<bool>(), base, any::<u64>()).prop_map(|(samples, second_order, base, seed)| Saltelli {
        samples,
        second_order,
        base,
        seed,
    })
}

/// Returns whether the domain contains the value. Reals must be strictly inside.
fn holds(domain: &Domain, value: Value) -> bool {
    match domain {
        Domain::Levels { values } => values.contains(&value),
        Domain::Fixed { value: only } => *only == value,
        Domain::Continuous { low, high } => *low < value.as_f64() && value.as_f64() < *high,
        Domain::Distributed { .. } => false,
    }
}

proptest! {
    /// The rows A and B of each block determine all others, by the definition of the design.
    #[test]
    fn every_row_is_a_or_b_or_one_with_a_column_of_the_other(parameters in space(), saltelli in settings()) {
        let design = sample(&parameters, &saltelli).unwrap();
        let columns = varying(&parameters);
        let mixed = if saltelli.second_order { 2 * columns.len() } else { columns.len() };
        prop_assert_eq!(design.evaluations.len(), saltelli.samples as usize * (mixed + 2));
        let mut expected: Vec<Vec<Value>> = Vec::new();
        for block in design.evaluations.chunks(mixed + 2) {
            let (a, b) = (&block[0], &block[mixed + 1]);
            expected.push(a.clone());
            let both = if saltelli.second_order { vec![(a, b), (b, a)] } else { vec![(a, b)] };
            for (most, one) in both {
                for &column in &columns {
                    let value = |at: usize| if at == column { one[at] } else { most[at] };
                    expected.push((0..parameters.len()).map(value).collect());
                }
            }
            expected.push(b.clone());
        }
        prop_assert_eq!(&design.evaluations, &expected);
        for (column, parameter) in parameters.iter().enumerate() {
            prop_assert!(design.evaluations.iter().all(|row| holds(&parameter.domain, row[column])));
            prop_assert!(design.evaluations.iter().all(|row| row[column].value_type() == parameter.value_type));
        }
    }

    /// Estimators find rows by their role: the structure names the role of each row.
    #[test]
    fn the_structure_names_the_rows(parameters in space(), saltelli in settings()) {
        let design = sample(&parameters, &saltelli).unwrap();
        let blocks = design.row_blocks().unwrap();
        let columns = varying(&parameters);
        let names: Vec<&String> = columns.iter().map(|&column| &parameters[column].name).collect();
        prop_assert_eq!(blocks.names().iter().collect::<Vec<_>>(), names);
        prop_assert_eq!((blocks.samples(), blocks.rows()), (saltelli.samples as usize, design.evaluations.len()));
        prop_assert_eq!(blocks.has_second_order(), saltelli.second_order);
        prop_assert!(design.trajectories().is_none());
        for number in 0..blocks.samples() {
            let row = |role| blocks.row(number, role).map(|row| &design.evaluations[row]);
            let (a, b) = (row(Role::A).unwrap(), row(Role::B).unwrap());
            for (place, &column) in columns.iter().enumerate() {
                let differs = |one: &Vec<Value>, other: &Vec<Value>| {
                    (0..parameters.len()).filter(|&at| one[at] != other[at]).collect::<Vec<_>>()
                };
                let a_with_b = row(Role::AWithB(place)).unwrap();
                prop_assert!(differs(a_with_b, a).iter().all(|&at| at == column));
                prop_assert_eq!(a_with_b[column], b[column]);
                match row(Role::BWithA(place)) {
                    Some(b_with_a) => {
                        prop_assert!(saltelli.second_order);
                        prop_assert!(differs(b_with_a, b).iter().all(|&at| at == column));
                        prop_assert_eq!(b_with_a[column], a[column]);
                    }
                    None => prop_assert!(!saltelli.second_order),
                }
            }
        }
    }

    #[test]
    fn more_samples_keep_the_first(parameters in space(), saltelli in settings(), more in 0u32..20) {
        let design = sample(&parameters, &saltelli).unwrap();
        let wider = sample(&parameters, &Saltelli { samples: saltelli.samples + more, ..saltelli }).unwrap();
        prop_assert_eq!(&wider.evaluations[..design.evaluations.len()], &design.evaluations[..]);
    }

    #[test]
    fn second_order_keeps_the_base_samples(parameters in space(), saltelli in settings()) {
        let [without, with] = [false, true]
            .map(|second_order| sample(&parameters, &Saltelli { second_order, ..saltelli }).unwrap());
        for number in 0..saltelli.samples as usize {
            let kept = (0..varying(&parameters).len()).map(Role::AWithB).chain([Role::A, Role::B]);
            for role in kept {
                let row = |design: &pleach_sensitivity::sampling::Design| {
                    design.evaluations[design.row_blocks().unwrap().row(number, role).unwrap()].clone()
                };
                prop_assert_eq!(row(&with), row(&without));
            }
        }
    }

    #[test]
    fn equal_seeds_make_equal_designs(parameters in space(), saltelli in settings()) {
        prop_assert_eq!(sample(&parameters, &saltelli), sample(&parameters, &saltelli));
    }

    /// Neither a fixed parameter nor the domain of another parameter changes a parameter's values.
    #[test]
    fn parameters_do_not_disturb_each_other(parameters in space(), saltelli in settings(), place: prop::sample::Index) {
        let design = sample(&parameters, &saltelli).unwrap();
        let mut more = parameters.clone();
        let place = place.index(parameters.len() + 1);
        more.insert(place, parameter("fixed", Domain::fixed(ValueType::Real, 2.5).unwrap()));
        let (wider, extra) = (sample(&more, &saltelli).unwrap(), place);
        for (row, wider) in design.evaluations.iter().zip(&wider.evaluations) {
            let mut wider = wider.clone();
            prop_assert_eq!(wider.remove(extra).as_f64(), 2.5);
            prop_assert_eq!(&wider, row);
        }
        let changed = varying(&parameters)[0];
        let mut other = parameters.clone();
        other[changed].value_type = ValueType::Real;
        other[changed].domain = Domain::Continuous { low: 0.0, high: 1.0 };
        let other = sample(&other, &saltelli).unwrap();
        for (row, other) in design.evaluations.iter().zip(&other.evaluations) {
            prop_assert!((0..row.len()).all(|column| column == changed || row[column] == other[column]));
        }
    }

    /// Each stratum of 1/2^m holds one of 2^m points, so a level's count differs from its share by less than
    /// 2.
    #[test]
    fn sobol_points_share_levels_out(levels in 2u32..40, power in 0u32..9, seed: u64) {
        let numbers: Vec<f64> = (0..levels).map(f64::from).collect();
        let domain = || Domain::set(ValueType::Integer, &numbers).unwrap();
        let parameters = ["p", "q", "r"].map(|name| parameter(name, domain()));
        let saltelli = Saltelli { samples: 1 << power, second_order: false, base: BasePoints::Sobol, seed };
        let rows = sample(&parameters, &saltelli).unwrap().evaluations;
        let share = f64::from(1 << power) / f64::from(levels);
        for base in [0, 4] {
            for column in 0..3 {
                let mut counts: HashMap<Value, u32> = HashMap::new();
                rows.iter().skip(base).step_by(5).for_each(|row| *counts.entry(row[column]).or_default() += 1);
                for level in &numbers {
                    let value = Value::from_f64(*level, ValueType::Integer).unwrap();
                    let count = counts.get(&value).copied().unwrap_or(0);
                    prop_assert!((f64::from(count) - share).abs() < 2.0, "{} of {} levels: {}", level, levels, count);
                    // Levels that consist of whole strata have exactly their share.
                    prop_assert!(!levels.is_power_of_two() || share < 1.0 || f64::from(count) == share);
                }
            }
        }
    }
}

fn parameter(name: &str, domain: Domain) -> Parameter {
    let value_type = match &domain {
        Domain::Levels { values } => values[0].value_type(),
        _ => ValueType::Real,
    };
    let default = Value::from_f64(1.0, value_type).expect("1 is of either type");
    Parameter { name: name.into(), value_type, default, domain }
}

/// Returns the base points of `count` parameters as whole numbers of 2⁻³²: those of A, then those of B, one
/// row per sample.
fn places(count: usize, base: BasePoints, samples: u32, seed: u64) -> Vec<Vec<u32>> {
    let cells = 4_294_967_296.0;
    let parameters: Vec<Parameter> = (0..count)
        .map(|index| parameter(&format!("p{index}"), Domain::Continuous { low: 0.0, high: cells }))
        .collect();
    let design =
        sample(&parameters, &Saltelli { samples, second_order: false, base, seed }).expect("a design");
    let place = |value: &Value| {
        assert_eq!(value.as_f64().fract(), 0.5, "the middle of a cell");
        value.as_f64() as u32
    };
    let block = |rows: &[Vec<Value>]| rows[0].iter().chain(&rows[count + 1]).map(place).collect();
    design.evaluations.chunks(count + 2).map(block).collect()
}

/// Asserts that each of the `2^power` equal strata of every dimension holds the same number of points.
fn assert_even(points: &[Vec<u32>], power: u32) {
    for dimension in 0..points[0].len() {
        let mut counts = vec![0_usize; 1 << power];
        points.iter().for_each(|point| counts[(u64::from(point[dimension]) >> (32 - power)) as usize] += 1);
        let share = points.len() >> power;
        assert!(counts.iter().all(|&count| count == share), "dimension {dimension}, 2^{power} stretches");
    }
}

#[test]
fn sobol_points_fill_every_stretch_of_every_dimension_once() {
    let points = places(128, BasePoints::Sobol, 1024, 500);
    for power in 0..=10 {
        assert_even(&points[..1 << power], power);
        // Every later part of that length, beginning at a multiple of it, is even as well.
        assert_even(&points[1024 - (1 << power)..], power);
    }
    // Random points are not even.
    let random = places(2, BasePoints::MonteCarlo, 1024, 500);
    let stretches: HashSet<u32> = random.iter().map(|point| point[0] >> 22).collect();
    assert!((550..750).contains(&stretches.len()), "{} of 1024, 647 are expected", stretches.len());
}

/// The first two dimensions are a (0, m, 2)-net: boxes of all shapes hold one point each.
#[test]
fn sobol_points_fill_every_box_of_the_first_two_dimensions_once() {
    let points = places(2, BasePoints::Sobol, 256, 7);
    for power in 0..=8 {
        for wide in 0..=power {
            let cell = |coordinate: u32, bits: u32| u64::from(coordinate) >> (32 - bits);
            let boxes: HashSet<(u64, u64)> = points[..1 << power]
                .iter()
                .map(|point| (cell(point[0], wide), cell(point[1], power - wide)))
                .collect();
            assert_eq!(boxes.len(), 1 << power, "2^{wide} by 2^{}", power - wide);
        }
    }
}

/// Beyond the 65,536 points that have directions, the sequence restarts with other scrambles.
#[test]
fn long_sequences_are_scrambled_again_per_part() {
    let points = places(1, BasePoints::Sobol, (1 << 17) + 8, 3);
    let (first, rest) = points.split_at(1 << 16);
    let (second, third) = rest.split_at(1 << 16);
    assert_even(first, 16);
    assert_even(second, 16);
    assert_even(third, 3);
    assert_ne!(first, second);
    assert_ne!(first[..8], third[..]);
}

/// Joe and Kuo's numbers for the second and later dimensions: the degree s, the coefficients a, and m₁ … m_s.
/// From their file new-joe-kuo-6.
const JOE_KUO: [(usize, u32, &[u32]); 9] = [
    (1, 0, &[1]),
    (2, 1, &[1, 3]),
    (3, 1, &[1, 3, 1]),
    (3, 2, &[1, 1, 1]),
    (4, 1, &[1, 1, 3, 3]),
    (4, 4, &[1, 3, 5, 13]),
    (5, 2, &[1, 1, 5, 5, 17]),
    (5, 4, &[1, 1, 5, 5, 5]),
    (5, 7, &[1, 1, 7, 11, 19]),
];

/// Returns the coordinate of a point without scrambling, by the recurrence that defines it: m_i from the s
/// numbers before, then the sum of the binary fractions m_i/2^i over the digits of the index.
fn unscrambled(dimension: usize, index: u32) -> u32 {
    let digits = 16;
    let mut m = vec![1_u64; digits];
    if dimension > 0 {
        let (s, a, first) = JOE_KUO[dimension - 1];
        for at in 0..digits {
            m[at] = if at < s {
                u64::from(first[at])
            } else {
                let inner = (1..s).map(|k| (u64::from(a >> (s - 1 - k)) & 1) * (m[at - k] << k));
                inner.fold((m[at - s] << s) ^ m[at - s], |sum, term| sum ^ term)
            };
        }
    }
    let place = |at: usize| (m[at] << (31 - at)) as u32;
    (0..digits).filter(|at| index >> at & 1 == 1).fold(0, |sum, at| sum ^ place(at))
}

/// Owen's scrambling flips digits depending on the digits before them. Two points therefore agree in as many
/// leading digits as without scrambling. Together with the spread of first digits over seeds, this
/// characterizes it.
#[test]
fn scrambled_points_agree_as_far_as_unscrambled_ones_do() {
    let points = places(5, BasePoints::Sobol, 300, 11);
    for dimension in 0..10 {
        for (index, point) in points.iter().enumerate() {
            for (other, earlier) in points[..index].iter().enumerate() {
                let plain = unscrambled(dimension, index as u32) ^ unscrambled(dimension, other as u32);
                let scrambled = point[dimension] ^ earlier[dimension];
                assert_eq!(plain.leading_zeros(), scrambled.leading_zeros(), "{dimension}: {index}, {other}");
            }
        }
    }
}

/// Over seeds, scrambled points are uniform, and dimensions are independent.
#[test]
fn seeds_spread_the_points() {
    for base in [BasePoints::Sobol, BasePoints::MonteCarlo] {
        let points: Vec<Vec<u32>> = (0..4000).map(|seed| places(2, base, 1, seed).remove(0)).collect();
        for one in 0..4 {
            for other in 0..one {
                let mut counts = [0; 16];
                points
                    .iter()
                    .for_each(|point| counts[(point[one] >> 30 << 2 | point[other] >> 30) as usize] += 1);
                // The expected count is 250. χ² with 15 degrees of freedom is above 44.3 once in 10,000
                // cases.
                let chi: f64 = counts.iter().map(|&count: &i32| f64::from(count - 250).powi(2) / 250.0).sum();
                assert!(chi < 44.3, "{base:?}, dimensions {one} and {other}: χ² = {chi}");
            }
        }
    }
}

/// For the integral of a product over many dimensions, the mean error over several seeds is smaller with
/// scrambled points than with random ones.
#[test]
fn sobol_points_integrate_better_than_random_ones() {
    let error = |base| {
        let squared = |seed| {
            let points = places(4, base, 512, seed);
            let unit = |place: u32| (f64::from(place) + 0.5) / 4_294_967_296.0;
            let product = |point: &Vec<u32>| point.iter().map(|&x| 1.0 + (unit(x) - 0.5)).product::<f64>();
            (points.iter().map(product).sum::<f64>() / points.len() as f64 - 1.0).powi(2)
        };
        ((0..30).map(squared).sum::<f64>() / 30.0).sqrt()
    };
    let (sobol, random) = (error(BasePoints::Sobol), error(BasePoints::MonteCarlo));
    assert!(sobol < random / 5.0, "{sobol} {random}");
}
