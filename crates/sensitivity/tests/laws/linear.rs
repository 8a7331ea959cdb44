//! Laws of correlations and regressions, and an independent slow computation by explicit regressions.

use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::convergence;
use pleach_sensitivity::correlation::{Coefficient, Correlations, pcc, pearson, prcc, spearman};
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::regression::{Regression, src, srrc};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::warnings::Warning;
use proptest::collection::vec;
use proptest::prelude::*;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 45, seed: 3 };

fn columns(columns: Vec<Vec<f64>>) -> Columns {
    let names = (1..=columns.len()).map(|place| format!("x{place}")).collect();
    Columns::new(names, columns).expect("columns")
}

/// One to four parameters, some with few levels, and a response that depends on them, over 20 to 40
/// evaluations.
fn given() -> impl Strategy<Value = (Columns, Vec<Option<f64>>)> {
    (1usize..5, 20usize..40).prop_flat_map(|(width, rows)| {
        let column = prop_oneof![vec(-5.0..5.0f64, rows), vec((0u8..5).prop_map(f64::from), rows)];
        let varies =
            |columns: &Vec<Vec<f64>>| columns.iter().all(|column| column.iter().any(|x| *x != column[0]));
        let all = vec(column, width).prop_filter("every parameter varies", varies).prop_map(columns);
        (all, vec(-3.0..3.0f64, rows)).prop_map(|(columns, mut y)| {
            for (place, column) in columns.iter().enumerate() {
                y.iter_mut().zip(column).for_each(|(y, x)| *y += x * (place as f64 - 1.5));
            }
            (columns, y.into_iter().map(Some).collect())
        })
    })
}

type Method = fn(&Columns, &[Response<'_>], Bootstrap) -> Result<Vec<Correlations>, AnalysisError>;
const CORRELATIONS: [Method; 4] = [pearson, spearman, pcc, prcc];

fn of(method: Method, columns: &Columns, values: &[Option<f64>]) -> Vec<f64> {
    let found =
        method(columns, &[Response { name: "dice", values }], BOOTSTRAP).expect("coefficients").remove(0);
    numbers(&found.parameters)
}

fn model(columns: &Columns, values: &[Option<f64>]) -> Regression {
    src(columns, &[Response { name: "dice", values }], BOOTSTRAP).expect("a model").remove(0)
}

fn numbers(parameters: &[Coefficient]) -> Vec<f64> {
    parameters.iter().map(|entry| entry.coefficient.value.expect("defined")).collect()
}

fn close(left: &[f64], right: &[f64]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(a, b)| (a - b).abs() <= 1e-8)
}

/// Returns regression coefficients by elimination with pivots. The first column may be constant.
fn regress(columns: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rows: Vec<Vec<f64>> = columns
        .iter()
        .map(|one| columns.iter().map(|other| dot(one, other)).chain([dot(one, y)]).collect())
        .collect();
    let size = columns.len();
    for at in 0..size {
        let pivot =
            (at..size).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs())).expect("a row");
        rows.swap(at, pivot);
        let row = rows[at].clone();
        for (other, target) in rows.iter_mut().enumerate() {
            if other != at {
                let factor = target[at] / row[at];
                target.iter_mut().zip(&row).for_each(|(entry, pivot)| *entry -= factor * pivot);
            }
        }
    }
    (0..size).map(|at| rows[at][size] / rows[at][at]).collect()
}

/// Returns the residuals of y after regression on a constant and these columns.
fn rest(columns: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let mut all = vec![vec![1.0; y.len()]];
    all.extend_from_slice(columns);
    let coefficients = regress(&all, y);
    let predicted =
        |row: usize| all.iter().zip(&coefficients).map(|(column, b)| column[row] * b).sum::<f64>();
    (0..y.len()).map(|row| y[row] - predicted(row)).collect()
}

fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let (x, y) = (rest(&[], x), rest(&[], y));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&x, &y) / (dot(&x, &x) * dot(&y, &y)).sqrt()
}

/// Computes ranks by counting smaller numbers and half of the equal ones.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let count =
        |x: f64, of: fn(&f64, &f64) -> bool| numbers.iter().filter(|other| of(other, &x)).count() as f64;
    numbers.iter().map(|&x| count(x, |a, b| a < b) + (count(x, |a, b| a == b) + 1.0) / 2.0).collect()
}

fn partial(columns: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let of = |place: usize| {
        let mut others = columns.to_vec();
        let one = others.remove(place);
        correlation(&rest(&others, &one), &rest(&others, y))
    };
    (0..columns.len()).map(of).collect()
}

proptest! {
    #[test]
    fn coefficients_equal_explicit_regressions((columns, values) in given()) {
        let x: Vec<Vec<f64>> = columns.iter().map(<[f64]>::to_vec).collect();
        let y: Vec<f64> = values.iter().copied().flatten().collect();
        let (x_ranks, y_ranks) = (x.iter().map(|column| ranks(column)).collect::<Vec<_>>(), ranks(&y));
        let singly = |x: &[Vec<f64>], y: &[f64]| x.iter().map(|x| correlation(x, y)).collect::<Vec<f64>>();
        prop_assert!(close(&of(pearson, &columns, &values), &singly(&x, &y)));
        prop_assert!(close(&of(spearman, &columns, &values), &singly(&x_ranks, &y_ranks)));
        prop_assert!(close(&of(pcc, &columns, &values), &partial(&x, &y)));
        prop_assert!(close(&of(prcc, &columns, &values), &partial(&x_ranks, &y_ranks)));

        let found = model(&columns, &values);
        let squares = |numbers: &[f64]| rest(&[], numbers).iter().map(|number| number * number).sum::<f64>();
        let mut all = vec![vec![1.0; y.len()]];
        all.extend(x.iter().cloned());
        let slopes = regress(&all, &y);
        let expected: Vec<f64> =
            x.iter().zip(&slopes[1..]).map(|(x, slope)| slope * (squares(x) / squares(&y)).sqrt()).collect();
        prop_assert!(close(&numbers(&found.parameters), &expected));
        let r_squared = 1.0 - squares(&rest(&x, &y)) / squares(&y);
        prop_assert!(close(&[found.r_squared.value.unwrap()], &[r_squared]));
    }

    #[test]
    fn orders_do_not_matter((given, values) in given(), by: usize) {
        let turn = |numbers: &[f64]| {
            let mut numbers = numbers.to_vec();
            let by = by % numbers.len();
            numbers.rotate_left(by);
            numbers
        };
        let mut turned_values = values.clone();
        let by = by % values.len();
        turned_values.rotate_left(by);
        let turned = columns(given.iter().map(turn).collect());
        let mut reversed: Vec<Vec<f64>> = given.iter().map(<[f64]>::to_vec).collect();
        reversed.reverse();
        let reversed = columns(reversed);
        for method in CORRELATIONS {
            let before = of(method, &given, &values);
            prop_assert!(close(&before, &of(method, &turned, &turned_values)));
            let mut after = of(method, &reversed, &values);
            after.reverse();
            prop_assert!(close(&before, &after));
        }
    }

    #[test]
    fn an_affine_change_of_the_response_keeps_all_but_the_sign(
        (columns, values) in given(), factor in prop_oneof![-50.0..-0.1f64, 0.1..50.0f64],
    ) {
        let changed: Vec<_> = values.iter().map(|y| y.map(|y| factor * y + 7.0)).collect();
        for method in CORRELATIONS {
            let after: Vec<f64> = of(method, &columns, &changed).iter().map(|r| r * factor.signum()).collect();
            prop_assert!(close(&of(method, &columns, &values), &after));
        }
        let (before, after) = (model(&columns, &values), model(&columns, &changed));
        prop_assert!((before.r_squared.value.unwrap() - after.r_squared.value.unwrap()).abs() < 1e-9);
        prop_assert!((before.r_squared.conf.unwrap() - after.r_squared.conf.unwrap()).abs() < 1e-9);
    }

    /// Rank correlations depend on order only.
    #[test]
    fn a_monotonic_change_of_anything_keeps_rank_correlations((given, values) in given()) {
        let changed = columns(given.iter().map(|column| column.iter().map(|x| x.exp()).collect()).collect());
        let cubes: Vec<_> = values.iter().map(|y| y.map(|y| y * y * y)).collect();
        for method in [spearman as Method, prcc] {
            prop_assert!(close(&of(method, &given, &values), &of(method, &changed, &cubes)));
        }
        let model = |columns: &Columns, values: &[Option<f64>]| {
            srrc(columns, &[Response { name: "dice", values }], BOOTSTRAP).unwrap().remove(0)
        };
        prop_assert_eq!(model(&given, &values).r_squared, model(&changed, &cubes).r_squared);
    }

    #[test]
    fn a_doubled_parameter_is_named((given, values) in given()) {
        let mut doubled: Vec<Vec<f64>> = given.iter().map(<[f64]>::to_vec).collect();
        doubled.push(doubled[0].iter().map(|x| 3.0 - 2.0 * x).collect());
        let (last, doubled) = (format!("x{}", doubled.len()), columns(doubled));
        for method in [pcc as Method, prcc] {
            let error = method(&doubled, &[Response { name: "dice", values: &values }], BOOTSTRAP).unwrap_err();
            let named = matches!(&error, AnalysisError::Dependent { name, .. } if *name == last);
            prop_assert!(named, "{}", error);
        }
        for method in [pearson as Method, spearman] {
            let found = of(method, &doubled, &values);
            prop_assert!((found[0] + found[found.len() - 1]).abs() < 1e-9);
        }
    }

    #[test]
    fn failures_drop_their_rows_and_no_more(
        (given, mut values) in given(), failed in vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let whole = values.clone();
        for failed in failed {
            let row = failed.index(values.len());
            values[row] = None;
        }
        let kept: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_some()).collect();
        let left = columns(given.iter().map(|column| kept.iter().map(|&row| column[row]).collect()).collect());
        let left_values: Vec<Option<f64>> = kept.iter().map(|&row| values[row]).collect();
        let both = [("broken", &values), ("whole", &whole)].map(|(name, values)| Response { name, values });
        for method in CORRELATIONS {
            // A parameter may have a single value in the remaining rows.
            let Ok(alone) = method(&left, &[Response { name: "broken", values: &left_values }], BOOTSTRAP) else { continue };
            let Ok(found) = method(&given, &both, BOOTSTRAP) else { continue };
            prop_assert_eq!(&found[0].parameters, &alone[0].parameters);
            prop_assert_eq!((found[0].evaluations_used, found[1].evaluations_used), (kept.len(), whole.len()));
            prop_assert_eq!(found[0].evaluations_dropped, whole.len() - kept.len());
        }
    }
}

#[test]
fn undefined_coefficients_are_refused_or_absent() {
    let given =
        columns(vec![(0..12).map(f64::from).collect(), (0..12).map(|x| f64::from(x * x % 7)).collect()]);
    let mut values: Vec<Option<f64>> = (0..12).map(|row| Some(f64::from(row % 5))).collect();
    let found = |values: &[Option<f64>], method: Method| {
        method(&given, &[Response { name: "dice", values }], BOOTSTRAP)
    };
    let constant = found(&[Some(0.7); 12], prcc).unwrap().remove(0);
    assert!(
        constant.no_variation && constant.parameters.iter().all(|entry| entry.coefficient.value.is_none())
    );
    let model =
        src(&given, &[Response { name: "dice", values: &[Some(0.7); 12] }], BOOTSTRAP).unwrap().remove(0);
    assert!(model.no_variation && model.r_squared.value.is_none());

    values[3..].fill(None);
    assert_eq!(
        found(&values, pcc).unwrap_err().to_string(),
        "3 evaluations of response dice are complete (9 are not); pcc needs at least 4"
    );
    assert!(found(&values, pearson).is_ok());
    // x2 is 0, 1, 4 in the first three rows, and 1 in each of rows 1, 6 and 8.
    values = vec![None; 12];
    for row in [1, 6, 8] {
        values[row] = Some(row as f64);
    }
    let error = found(&values, pearson).unwrap_err().to_string();
    assert!(error.starts_with("parameter x2 has one value in the 3 evaluations"), "{error}");
}

#[test]
fn poor_model_is_warned_of() {
    let x: Vec<f64> = (-50..=50).map(f64::from).collect();
    let values: Vec<Option<f64>> = x.iter().map(|x| Some(x * x)).collect();
    let given = columns(vec![x]);
    let found = src(&given, &[Response { name: "dice", values: &values }], BOOTSTRAP).unwrap().remove(0);
    let warnings = Indices::Src(found).warnings();
    assert!(matches!(warnings[0], Warning::PoorModel { r_squared } if r_squared < 0.01), "{warnings:?}");
    let parameters = vec!["x1".to_owned()];
    let expected = Warning::SpansZero { index: "coefficient".into(), parameters, of: 1 };
    assert_eq!(warnings[1..], [expected]);

    let response = Response { name: "dice", values: &values };
    let steps = convergence::columns(&given, response, &[1, 2, 50, 101], |columns, response| {
        Ok(src(columns, &[response], BOOTSTRAP)?.into_iter().map(Indices::Src).collect())
    });
    // One or two evaluations allow no model. The left half of a parabola is nearly linear.
    let steps = steps.unwrap();
    assert_eq!(steps.iter().map(|step| step.evaluations).collect::<Vec<_>>(), [50, 101]);
    let Indices::Src(half) = &steps[0].indices else { panic!("another method") };
    assert!(half.r_squared.value.unwrap() > 0.9);
}
