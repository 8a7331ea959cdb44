//! Laws of Sobol' indices for any responses, and an independent slow computation.

use crate::spaces::reals;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::convergence::{self, halves};
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::saltelli_blocks::{Role, RowBlocks};
use pleach_sensitivity::sampling::saltelli::{Saltelli, sample};
use pleach_sensitivity::vbd::{Estimator, VbdIndices, indices};
use pleach_sensitivity::warnings::Warning;
use pleach_workflow::BasePoints;
use proptest::collection::vec;
use proptest::prelude::*;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 50, seed: 3 };
const ESTIMATORS: [Estimator; 3] = [Estimator::Saltelli, Estimator::Jansen, Estimator::Janon];

fn blocks(varying: usize, samples: usize, second_order: bool) -> RowBlocks {
    let saltelli = Saltelli { samples: samples as u32, second_order, base: BasePoints::MonteCarlo, seed: 1 };
    sample(&reals(varying), &saltelli).expect("a design").row_blocks().expect("row blocks").clone()
}

fn analyze(blocks: &RowBlocks, values: &[Option<f64>], estimator: Estimator) -> VbdIndices {
    indices(blocks, &[Response { name: "dice", values }], estimator, BOOTSTRAP).expect("indices").remove(0)
}

/// A design of two to four parameters and five to nine samples, and noise as responses.
fn noisy() -> impl Strategy<Value = (RowBlocks, Vec<Option<f64>>)> {
    (2usize..5, 5usize..10, any::<bool>()).prop_flat_map(|(varying, samples, second_order)| {
        let blocks = blocks(varying, samples, second_order);
        let responses = vec((-1e3..1e3f64).prop_map(Some), blocks.rows());
        (Just(blocks), responses)
    })
}

fn values(found: &VbdIndices) -> Vec<f64> {
    let parameters = found.parameters.iter().flat_map(|parameter| [parameter.first, parameter.total]);
    let pairs = found.pairs.iter().flatten().map(|pair| pair.second);
    parameters.chain(pairs).map(|estimate| estimate.value.expect("defined")).collect()
}

fn close(left: &[f64], right: &[f64]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(a, b)| (a - b).abs() <= 1e-7 * a.abs().max(b.abs()).max(1.0))
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let numbers: Vec<f64> = numbers.collect();
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Computes first-order, total and second-order indices by definition, with rows found by role.
fn slowly(blocks: &RowBlocks, responses: &[Option<f64>], estimator: Estimator) -> Vec<f64> {
    let center = mean(responses.iter().map(|value| value.expect("no failures")));
    let at = |sample: usize, role: Role| {
        let row = blocks.row(sample, role).expect("a row of the design");
        responses[row].expect("no failures") - center
    };
    let over = |of: &dyn Fn(usize) -> f64| mean((0..blocks.samples()).map(of));
    let both = over(&|n| (at(n, Role::A) + at(n, Role::B)) / 2.0);
    let variance = over(&|n| ((at(n, Role::A) - both).powi(2) + (at(n, Role::B) - both).powi(2)) / 2.0);
    let janon = |role: Role, column: usize| {
        let m = over(&|n| (at(n, role) + at(n, Role::AWithB(column))) / 2.0);
        let product = over(&|n| at(n, role) * at(n, Role::AWithB(column)));
        let square = over(&|n| (at(n, role).powi(2) + at(n, Role::AWithB(column)).powi(2)) / 2.0);
        (product - m * m) / (square - m * m)
    };
    let first = |column: usize| match estimator {
        Estimator::Jansen => {
            1.0 - over(&|n| (at(n, Role::B) - at(n, Role::AWithB(column))).powi(2)) / (2.0 * variance)
        }
        Estimator::Janon => janon(Role::B, column),
        _ => over(&|n| at(n, Role::B) * (at(n, Role::AWithB(column)) - at(n, Role::A))) / variance,
    };
    let total = |column: usize| match estimator {
        Estimator::Janon => 1.0 - janon(Role::A, column),
        _ => over(&|n| (at(n, Role::A) - at(n, Role::AWithB(column))).powi(2)) / (2.0 * variance),
    };
    let varying = blocks.names().len();
    let mut found: Vec<f64> = (0..varying).flat_map(|column| [first(column), total(column)]).collect();
    if blocks.has_second_order() {
        for one in 0..varying {
            for other in one + 1..varying {
                let product = over(&|n| at(n, Role::BWithA(one)) * at(n, Role::AWithB(other)));
                let plain = over(&|n| at(n, Role::A) * at(n, Role::B));
                found.push((product - plain) / variance - first(one) - first(other));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn indices_equal_a_slow_computation((blocks, responses) in noisy()) {
        for estimator in ESTIMATORS {
            let (found, expected) =
                (values(&analyze(&blocks, &responses, estimator)), slowly(&blocks, &responses, estimator));
            prop_assert!(close(&found, &expected), "{estimator:?}: {found:?} {expected:?}");
        }
    }

    #[test]
    fn the_order_of_base_samples_does_not_matter((blocks, responses) in noisy(), by: usize) {
        let mut turned = responses.clone();
        turned.rotate_left(by % blocks.samples() * blocks.rows_per_sample());
        for estimator in ESTIMATORS {
            let (before, after) =
                (analyze(&blocks, &responses, estimator), analyze(&blocks, &turned, estimator));
            prop_assert!(close(&values(&before), &values(&after)));
        }
    }

    #[test]
    fn reversed_parameters_have_reversed_indices((blocks, responses) in noisy()) {
        let varying = blocks.names().len();
        let reversed: Vec<Option<f64>> = responses
            .chunks(blocks.rows_per_sample())
            .flat_map(|block| {
                let mut block = block.to_vec();
                let last = block.len() - 1;
                block[1..last].chunks_mut(varying).for_each(<[_]>::reverse);
                block
            })
            .collect();
        let before = analyze(&blocks, &responses, Estimator::Saltelli);
        let mut after = analyze(&blocks, &reversed, Estimator::Saltelli);
        after.parameters.reverse();
        let of = |found: &VbdIndices| -> Vec<f64> {
            found.parameters.iter().flat_map(|entry| [entry.first.value.unwrap(), entry.total.value.unwrap()]).collect()
        };
        prop_assert!(close(&of(&before), &of(&after)));
    }

    #[test]
    fn an_affine_change_of_the_response_changes_nothing(
        (blocks, responses) in noisy(), factor in prop_oneof![-50.0..-0.1f64, 0.1..50.0f64], constant in -1e3..1e3f64,
    ) {
        let changed: Vec<_> = responses.iter().map(|y| y.map(|y| factor * y + constant)).collect();
        for estimator in ESTIMATORS {
            let (before, after) =
                (analyze(&blocks, &responses, estimator), analyze(&blocks, &changed, estimator));
            prop_assert!(close(&values(&before), &values(&after)));
            let confs = |found: &VbdIndices| -> Vec<f64> {
                found.parameters.iter().flat_map(|entry| [entry.first.conf, entry.total.conf]).flatten().collect()
            };
            prop_assert!(close(&confs(&before), &confs(&after)));
        }
    }

    /// Two parameters with the same effect on the response have the same indices. A parameter without effect
    /// has a total index of 0.
    #[test]
    fn a_doubled_and_an_idle_parameter_are_seen((blocks, mut responses) in noisy()) {
        let length = blocks.rows_per_sample();
        for block in responses.chunks_mut(length) {
            block[1] = block[0];
            if blocks.names().len() > 2 {
                block[3] = block[2];
            }
        }
        for estimator in ESTIMATORS {
            let found = analyze(&blocks, &responses, estimator);
            let idle = &found.parameters[0].total;
            prop_assert_eq!((idle.value, idle.conf), (Some(0.0), Some(0.0)));
            if blocks.names().len() > 2 {
                let (one, other) = (&found.parameters[1], &found.parameters[2]);
                prop_assert_eq!((one.first, one.total), (other.first, other.total));
            }
        }
    }

    #[test]
    fn a_failure_drops_its_base_sample_and_no_more(
        (blocks, responses) in noisy(), failed in any::<prop::sample::Index>(), noise in vec(-9.0..9.0f64, 90),
    ) {
        let failed = failed.index(responses.len());
        let mut broken = responses.clone();
        broken[failed] = None;
        let found = analyze(&blocks, &broken, Estimator::Saltelli);
        prop_assert_eq!((found.samples_used, found.samples_dropped), (blocks.samples() - 1, 1));
        let counts: Vec<usize> = found.parameters.iter().map(|parameter| parameter.failed).collect();
        let column = match blocks.role(failed) {
            Some((_, Role::AWithB(column) | Role::BWithA(column))) => Some(column),
            _ => None,
        };
        prop_assert!(counts.iter().enumerate().all(|(at, &count)| count == usize::from(Some(at) == column)));

        let length = blocks.rows_per_sample();
        let mut left = responses;
        left.drain(failed / length * length..(failed / length + 1) * length);
        let fewer = self::blocks(blocks.names().len(), blocks.samples() - 1, blocks.has_second_order());
        let without = analyze(&fewer, &left, Estimator::Saltelli);
        prop_assert_eq!(values(&without), values(&found));

        // Several responses at once have the same indices as each alone.
        let other: Vec<Option<f64>> = (0..blocks.rows()).map(|row| Some(noise[row % 90])).collect();
        let all = [("broken", &broken), ("other", &other), ("again", &broken)];
        let all = all.map(|(name, values)| Response { name, values });
        let together = indices(&blocks, &all, Estimator::Saltelli, BOOTSTRAP).unwrap();
        let names: Vec<&str> = together.iter().map(|found| found.response.as_str()).collect();
        prop_assert_eq!(names, ["broken", "other", "again"]);
        prop_assert_eq!(&together[0].parameters, &found.parameters);
        prop_assert_eq!(&together[1].parameters, &analyze(&blocks, &other, Estimator::Saltelli).parameters);
        prop_assert_eq!(&together[2].parameters, &found.parameters);
    }

    #[test]
    fn serialized_indices_are_finite_and_round_trip((blocks, responses) in noisy()) {
        let found = Indices::Vbd(analyze(&blocks, &responses, Estimator::Janon));
        let json = serde_json::to_string(&found).unwrap();
        prop_assert!(json.starts_with(r#"{"method":"vbd","response":"dice","estimator":"janon""#), "{}", json);
        prop_assert_eq!(serde_json::from_str::<Indices>(&json).unwrap(), found);
    }
}

#[test]
fn constant_response_is_reported() {
    let blocks = blocks(2, 8, true);
    for constant in [0.0, 0.9, -1e300] {
        let found = analyze(&blocks, &vec![Some(constant); blocks.rows()], Estimator::Saltelli);
        assert!(found.no_variation);
        assert!(
            found
                .parameters
                .iter()
                .all(|entry| entry.first == Estimate::ABSENT && entry.total == Estimate::ABSENT)
        );
        let found = Indices::Vbd(found);
        assert!(!serde_json::to_string(&found).unwrap().contains("NaN"));
        assert_eq!(found.warnings(), [Warning::NoVariation { response: "dice".into() }]);
    }
}

#[test]
fn responses_that_do_not_fit_are_refused() {
    let blocks = blocks(2, 3, false);
    let error = |values: &[Option<f64>]| {
        let response = [Response { name: "dice", values }];
        indices(&blocks, &response, Estimator::Saltelli, BOOTSTRAP).unwrap_err()
    };
    assert!(error(&[Some(1.0)]).to_string().starts_with("1 values of response dice for 12 evaluations"));
    let mut values = vec![Some(1.0); 12];
    values[4] = Some(f64::NAN);
    assert!(error(&values).to_string().starts_with("response dice of evaluation 5 is NaN"));
    (values[4], values[9]) = (None, None);
    assert_eq!(
        error(&values).to_string(),
        "1 base samples of response dice are complete (2 are not); vbd needs at least 2"
    );
    assert!(matches!(error(&values), AnalysisError::TooFew { used: 1, dropped: 2, .. }));
}

#[test]
fn warnings_name_small_dropped_and_idle_inputs() {
    let blocks = blocks(2, 40, false);
    // The first parameter alone determines the response.
    let y = |row: usize| ((row / 4 * 7 + usize::from(row % 4 == 1 || row % 4 == 3) * 5) % 11) as f64;
    let mut values: Vec<Option<f64>> = (0..blocks.rows()).map(|row| Some(y(row))).collect();
    values[2] = None;
    let warnings = Indices::Vbd(analyze(&blocks, &values, Estimator::Saltelli)).warnings();
    let unit = || "base samples".to_owned();
    assert_eq!(warnings[0], Warning::SmallSample { unit: unit(), used: 39, advised: 100 });
    assert_eq!(warnings[1], Warning::Dropped { unit: unit(), used: 39, dropped: 1 });
    let idle = Warning::NoEffect { index: "total".into(), parameters: vec!["x2".into()] };
    assert!(warnings.contains(&idle), "{warnings:?}");
    assert_eq!(warnings[1].to_string(), "1 of 40 base samples are excluded, because evaluations failed");
}

#[test]
fn convergence_is_over_beginnings() {
    let blocks = blocks(3, 50, true);
    let values: Vec<Option<f64>> = (0..blocks.rows()).map(|row| Some((row * row % 101) as f64)).collect();
    let response = Response { name: "dice", values: &values };
    let steps = convergence::vbd(&blocks, response, Estimator::Jansen, BOOTSTRAP, &halves(50, 6)).unwrap();
    let rows: Vec<usize> = steps.iter().map(|step| step.evaluations).collect();
    // A single base sample has no variance to decompose.
    assert_eq!(rows, [3, 6, 12, 25, 50].map(|samples| samples * 8));
    let of = |samples| {
        let blocks = self::blocks(3, samples, true);
        Indices::Vbd(analyze(&blocks, &values[..blocks.rows()], Estimator::Jansen))
    };
    assert_eq!(steps[2].indices, of(12));
    assert_eq!(steps[4].indices, of(50));
}
