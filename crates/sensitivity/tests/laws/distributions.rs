//! Laws of PAWN, delta, RBD-FAST and eFAST, and an independent slow computation of distances of
//! distributions.

use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::fast::{self, Curves};
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::pawn::PawnIndices;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::warnings::Warning;
use pleach_sensitivity::{delta, pawn, rbd_fast};
use proptest::collection::vec;
use proptest::prelude::*;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 20, seed: 3 };
const SLICES: usize = 4;
const HARMONICS: usize = 3;

fn columns(columns: Vec<Vec<f64>>) -> Columns {
    let names = (1..=columns.len()).map(|place| format!("x{place}")).collect();
    Columns::new(names, columns).expect("columns")
}

/// Two or three parameters without equal values, and noise as response, over 30 to 60 evaluations.
fn given() -> impl Strategy<Value = (Columns, Vec<Option<f64>>)> {
    (2usize..4, 30usize..60).prop_flat_map(|(width, rows)| {
        let places: Vec<f64> = (0..rows).map(|row| row as f64).collect();
        let column = Just(places).prop_shuffle();
        // The second kind has few distinct values, so some responses are equal.
        let response = prop_oneof![vec(-3.0..3.0f64, rows), vec((0u8..9).prop_map(f64::from), rows)];
        let varies = |y: &Vec<f64>| y.iter().any(|value| *value != y[0]);
        let response = response.prop_filter("the response varies", varies);
        (vec(column, width).prop_map(columns), response.prop_map(|y| y.into_iter().map(Some).collect()))
    })
}

fn pawn(columns: &Columns, values: &[Option<f64>]) -> PawnIndices {
    pawn::indices(columns, &[Response { name: "dice", values }], SLICES, None, BOOTSTRAP)
        .expect("indices")
        .remove(0)
}

/// Returns the statistics of PAWN, delta and RBD-FAST, by parameter.
fn all(columns: &Columns, values: &[Option<f64>]) -> Vec<Vec<f64>> {
    let response = [Response { name: "dice", values }];
    let delta = delta::indices(columns, &response, BOOTSTRAP).expect("indices").remove(0);
    let rbd = rbd_fast::indices(columns, &response, HARMONICS, BOOTSTRAP).expect("indices").remove(0);
    let of = |estimate: &Estimate| estimate.value.expect("defined");
    let pawn = pawn(columns, values).parameters;
    (0..pawn.len())
        .map(|place| {
            let (pawn, delta) = (&pawn[place], &delta.parameters[place]);
            vec![
                of(&pawn.median),
                of(&pawn.mean),
                of(&pawn.minimum),
                of(&pawn.maximum),
                of(&pawn.deviation),
                delta.plain.expect("defined"),
                of(&delta.first),
                of(&rbd.parameters[place].coefficient),
            ]
        })
        .collect()
}

fn close(left: &[Vec<f64>], right: &[Vec<f64>]) -> bool {
    let pairs = left.iter().flatten().zip(right.iter().flatten());
    left.len() == right.len() && pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-8)
}

/// Returns the largest difference of the two cumulative distributions at any response.
fn distance(some: &[f64], all: &[f64]) -> f64 {
    let share = |of: &[f64], up_to: f64| of.iter().filter(|y| **y <= up_to).count() as f64 / of.len() as f64;
    all.iter().map(|&y| (share(some, y) - share(all, y)).abs()).fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn pawn_distances_equal_a_slow_computation((columns, values) in given()) {
        let y: Vec<f64> = values.iter().copied().flatten().collect();
        let last = y.len() as f64 - 1.0;
        for (parameter, column) in pawn(&columns, &values).parameters.iter().zip(columns.iter()) {
            // Values are 0, 1, 2 …, so a quantile is its position. The largest value is in no slice.
            let mut distances: Vec<f64> = (0..SLICES)
                .map(|slice| {
                    let edge = |at: usize| at as f64 * 0.25 * last;
                    let within = |x: f64| edge(slice) <= x && x < edge(slice + 1);
                    let some: Vec<f64> = y.iter().zip(column).filter(|(_, x)| within(**x)).map(|(y, _)| *y).collect();
                    distance(&some, &y)
                })
                .collect();
            distances.sort_by(f64::total_cmp);
            let found = [&parameter.minimum, &parameter.median, &parameter.maximum].map(|found| found.value.unwrap());
            let expected = [distances[0], (distances[1] + distances[2]) / 2.0, distances[3]];
            prop_assert!(close(&[found.to_vec()], &[expected.to_vec()]), "{found:?} {expected:?}");
        }
    }

    /// A parameter with few levels has one slice per level.
    #[test]
    fn pawn_slices_of_a_discrete_parameter_are_its_levels((columns_of, values) in given(), levels in 2usize..=SLICES) {
        let y: Vec<f64> = values.iter().copied().flatten().collect();
        let column: Vec<f64> = columns_of.column(0).iter().map(|x| x % levels as f64 * 2.5).collect();
        let found = pawn(&columns(vec![column.clone()]), &values).parameters.remove(0);
        let at = |level: usize| {
            let some: Vec<f64> =
                y.iter().zip(&column).filter(|(_, x)| **x == level as f64 * 2.5).map(|(y, _)| *y).collect();
            distance(&some, &y)
        };
        let mean = (0..levels).map(at).sum::<f64>() / levels as f64;
        prop_assert!((found.mean.value.unwrap() - mean).abs() < 1e-9);
    }

    #[test]
    fn orders_and_affine_changes_do_not_matter((given, values) in given(), by: usize, factor in 0.1..50.0f64) {
        let before = all(&given, &values);
        let by = by % values.len();
        let turned = given.iter().map(|column| [&column[by..], &column[..by]].concat()).collect();
        let turned_values = [&values[by..], &values[..by]].concat();
        prop_assert!(close(&before, &all(&columns(turned), &turned_values)));

        let reversed = (0..given.names().len()).rev().map(|place| given.column(place).to_vec()).collect();
        let mut after = all(&columns(reversed), &values);
        after.reverse();
        prop_assert!(close(&before, &after));

        for factor in [factor, -factor] {
            let changed: Vec<_> = values.iter().map(|y| y.map(|y| factor * y + 7.0)).collect();
            prop_assert!(close(&before, &all(&given, &changed)));
        }
    }

    /// PAWN does not depend on the scale of the response.
    #[test]
    fn a_monotonic_change_of_the_response_keeps_pawn((given, values) in given()) {
        let changed: Vec<_> = values.iter().map(|y| y.map(f64::exp)).collect();
        prop_assert_eq!(pawn(&given, &values).parameters, pawn(&given, &changed).parameters);
    }

    #[test]
    fn a_doubled_parameter_has_the_same_indices((given, values) in given()) {
        let doubled = columns(vec![given.column(0).to_vec(), given.column(1).to_vec(), given.column(0).to_vec()]);
        let found = all(&doubled, &values);
        prop_assert_eq!(&found[0], &found[2]);
    }

    #[test]
    fn failures_drop_their_rows_and_no_more((given, mut values) in given(), failed: prop::sample::Index) {
        let row = failed.index(values.len());
        let whole = values.clone();
        values[row] = None;
        prop_assume!(values.iter().flatten().any(|y| Some(*y) != values.iter().flatten().next().copied()));
        let mut left: Vec<Vec<f64>> = given.iter().map(<[f64]>::to_vec).collect();
        left.iter_mut().for_each(|column| _ = column.remove(row));
        let mut left_values = values.clone();
        left_values.remove(row);
        prop_assert!(close(&all(&given, &values), &all(&columns(left), &left_values)));
        // The same holds together with a response without failures.
        let both = [("broken", &values), ("whole", &whole)].map(|(name, values)| Response { name, values });
        let found = delta::indices(&given, &both, BOOTSTRAP).unwrap();
        prop_assert_eq!((found[0].evaluations_dropped, found[1].evaluations_dropped), (1, 0));
        let found = pawn::indices(&given, &both, SLICES, None, BOOTSTRAP).unwrap();
        prop_assert_eq!(&found[1].parameters, &pawn(&given, &whole).parameters);
    }

    #[test]
    fn indices_stay_within_their_scales((given, values) in given()) {
        for statistics in all(&given, &values) {
            prop_assert!(statistics[..5].iter().all(|distance| (0.0..=1.0).contains(distance)), "{statistics:?}");
            prop_assert!((0.0..=1.0).contains(&statistics[5]) && (0.0..=1.0 + 1e-9).contains(&statistics[6]));
            prop_assert!(statistics[7] <= 1.0 + 1e-9);
        }
    }

    #[test]
    fn groups_have_the_means_of_their_members((given, values) in given()) {
        let groups: Vec<String> = given.names().iter().enumerate().map(|(at, _)| format!("g{}", at % 2)).collect();
        let response = [Response { name: "dice", values: &values }];
        let grouped = pawn::indices(&given, &response, SLICES, Some(&groups), BOOTSTRAP).unwrap().remove(0);
        let alone = pawn(&given, &values).parameters;
        prop_assert_eq!(grouped.parameters.len(), 2);
        for (at, group) in grouped.parameters.iter().enumerate() {
            let members: Vec<f64> = alone.iter().skip(at).step_by(2).map(|one| one.median.value.unwrap()).collect();
            let mean = members.iter().sum::<f64>() / members.len() as f64;
            prop_assert!((group.median.value.unwrap() - mean).abs() < 1e-12);
        }
    }
}

fn hundred() -> Columns {
    columns(vec![(0..100).map(f64::from).collect(), (0..100).map(|x| f64::from(x * 37 % 100)).collect()])
}

#[test]
fn constant_response_is_reported() {
    let values = vec![Some(0.7); 100];
    let response = [Response { name: "dice", values: &values }];
    let found = [
        Indices::Pawn(pawn(&hundred(), &values)),
        Indices::Delta(delta::indices(&hundred(), &response, BOOTSTRAP).unwrap().remove(0)),
        Indices::RbdFast(rbd_fast::indices(&hundred(), &response, HARMONICS, BOOTSTRAP).unwrap().remove(0)),
    ];
    let curves = Curves::new(vec!["x1".into()], 100, 2).unwrap();
    let efast = Indices::Efast(fast::indices(&curves, &response, BOOTSTRAP).unwrap().remove(0));
    for found in found.into_iter().chain([efast]) {
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["no_variation"], true);
        assert_eq!(found.warnings(), [Warning::NoVariation { response: "dice".into() }]);
        assert_eq!(serde_json::from_value::<Indices>(json).unwrap(), found);
    }
}

#[test]
fn invalid_method_settings_are_refused() {
    let given = hundred();
    let mut values: Vec<Option<f64>> = (0..100).map(|row| Some(f64::from(row * row % 17))).collect();
    let error = |error: AnalysisError| error.to_string();
    let response = [Response { name: "dice", values: &values }];
    let slices = pawn::indices(&given, &response, 1, None, BOOTSTRAP).map_err(error).unwrap_err();
    assert_eq!(slices, "slices = 1 does not suit pawn; allowed are 2 to the number of evaluations, 100");
    let groups =
        pawn::indices(&given, &response, 2, Some(&["g".into()]), BOOTSTRAP).map_err(error).unwrap_err();
    assert!(groups.starts_with("groups = 1 does not suit pawn"), "{groups}");
    let harmonics = rbd_fast::indices(&given, &response, 0, BOOTSTRAP).map_err(error).unwrap_err();
    assert!(harmonics.starts_with("harmonics = 0 does not suit rbd-fast"), "{harmonics}");
    let harmonics = rbd_fast::indices(&given, &response, 25, BOOTSTRAP).map_err(error).unwrap_err();
    assert!(harmonics.ends_with("rbd-fast needs at least 102"), "{harmonics}");

    values[15..].fill(None);
    let response = [Response { name: "dice", values: &values }];
    let few = delta::indices(&given, &response, BOOTSTRAP).map_err(error).unwrap_err();
    assert_eq!(few, "15 evaluations of response dice are complete (85 are not); delta needs at least 20");
}

#[test]
fn a_failure_drops_the_curve_of_its_parameter() {
    let curves = Curves::new(vec!["a".into(), "b".into()], 70, 4).unwrap();
    let values: Vec<Option<f64>> =
        (0..140).map(|row| (row != 100).then(|| f64::from(row % 70 * 13 % 70))).collect();
    let response = [Response { name: "dice", values: &values }];
    let found = fast::indices(&curves, &response, BOOTSTRAP).unwrap().remove(0);
    assert_eq!((found.evaluations_used, found.evaluations_dropped), (70, 70));
    assert_eq!(found.parameters.iter().map(|entry| entry.failed).collect::<Vec<_>>(), [0, 1]);
    assert!(found.parameters[0].first.conf.is_some() && found.parameters[1].first == Estimate::ABSENT);
    let warnings = Indices::Efast(found).warnings();
    assert_eq!(warnings[0], Warning::IndicativeIntervals);
    assert!(warnings.contains(&Warning::Undefined { index: "first".into(), parameters: vec!["b".into()] }));
    let all_failed = vec![None; 140];
    let response = [Response { name: "dice", values: &all_failed }];
    assert!(fast::indices(&curves, &response, BOOTSTRAP).is_err());
}
