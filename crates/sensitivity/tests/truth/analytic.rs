//! Indices of functions with a closed form, at sizes of real studies.

use crate::functions::{Function, ishigami, reals, sobol_g};
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::correlation::{pcc, prcc};
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::fast::Fast;
use pleach_sensitivity::sampling::saltelli::{Saltelli, sample};
use pleach_sensitivity::vbd::{self, Estimator};
use pleach_sensitivity::{delta, fast, pawn, rbd_fast, regression};
use pleach_workflow::BasePoints;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 100, seed: 2 };

#[track_caller]
fn hold(what: &str, estimates: impl Iterator<Item = Estimate>, truth: &[f64]) {
    let estimates: Vec<Estimate> = estimates.collect();
    assert_eq!(estimates.len(), truth.len());
    for (estimate, &truth) in estimates.iter().zip(truth) {
        assert_eq!(estimate.holds(truth), Some(true), "{what}: {estimate:?}, exactly {truth}");
    }
}

/// With N = 8192 Sobol' base points, indices of each estimator are within their intervals.
#[test]
fn sobol_indices_are_within_their_intervals() {
    for (name, function) in [("ishigami", ishigami()), ("sobol g", sobol_g())] {
        let saltelli = Saltelli { samples: 8192, second_order: true, base: BasePoints::Sobol, seed: 1 };
        let (blocks, y) = function.study(&saltelli);
        let response = [Response { name: "y", values: &y }];
        for estimator in [Estimator::Saltelli, Estimator::Jansen, Estimator::Janon] {
            let found = vbd::indices(&blocks, &response, estimator, BOOTSTRAP).unwrap().remove(0);
            hold(name, found.parameters.iter().map(|parameter| parameter.first), &function.first);
            hold(name, found.parameters.iter().map(|parameter| parameter.total), &function.total);
            hold(name, found.pairs.iter().flatten().map(|pair| pair.second), &function.second);
        }
    }
}

/// Returns the points A of a random design as columns, and their responses.
fn given(function: &Function, samples: u32) -> (Columns, Vec<Option<f64>>) {
    let saltelli = Saltelli { samples, second_order: false, base: BasePoints::MonteCarlo, seed: 1 };
    let mut design = sample(&function.parameters, &saltelli).expect("a design");
    let length = function.parameters.len() + 2;
    design.evaluations = design.evaluations.into_iter().step_by(length).collect();
    let y = function.responses(&design);
    (Columns::of(&function.parameters, &design.evaluations).expect("columns"), y)
}

/// Given-data methods and eFAST estimate first-order indices to a few hundredths, as in their papers.
#[test]
fn other_first_order_indices_are_near() {
    for function in [ishigami(), sobol_g()] {
        let (columns, y) = given(&function, 4096);
        let response = [Response { name: "y", values: &y }];
        let none = Bootstrap { resamples: 0, seed: 0 };
        let rbd = rbd_fast::indices(&columns, &response, rbd_fast::HARMONICS, none).unwrap().remove(0);
        let classes = delta::indices(&columns, &response, none).unwrap().remove(0);
        let (design, curves) = pleach_sensitivity::sampling::fast::sample(
            &function.parameters,
            &Fast { samples: 4097, harmonics: 4, seed: 3 },
        )
        .unwrap();
        let on_curves = function.responses(&design);
        let response = [Response { name: "y", values: &on_curves }];
        let efast = fast::indices(&curves, &response, none).unwrap().remove(0);
        for place in 0..columns.names().len() {
            let near = |estimate: Estimate, truth: f64, by: f64| {
                let value = estimate.value.unwrap();
                assert!((value - truth).abs() < by, "{place}: {value}, exactly {truth}");
            };
            near(rbd.parameters[place].coefficient, function.first[place], 0.04);
            near(classes.parameters[place].first, function.first[place], 0.04);
            near(efast.parameters[place].first, function.first[place], 0.04);
            // The low frequencies of other parameters overlap with those of the total index.
            near(efast.parameters[place].total, function.total[place], 0.06);
        }
    }
}

/// A parameter equal to the response and one without effect are at the ends of every scale.
#[test]
fn full_and_no_influence_reach_the_ends_of_the_scale() {
    let function = Function {
        parameters: reals(2, 0.0, 1.0),
        evaluate: |x| x[0],
        first: vec![1.0, 0.0],
        total: vec![1.0, 0.0],
        second: vec![0.0],
    };
    let (columns, y) = given(&function, 2000);
    let response = [Response { name: "y", values: &y }];
    let value = |estimate: Estimate| estimate.value.unwrap();
    // Within a slice of a tenth, the distribution differs from the whole by at most 0.9.
    let found = pawn::indices(&columns, &response, 10, None, BOOTSTRAP).unwrap().remove(0);
    assert!((value(found.parameters[0].maximum) - 0.9).abs() < 0.01);
    assert!(value(found.parameters[1].maximum) < 0.2);
    let found = delta::indices(&columns, &response, BOOTSTRAP).unwrap().remove(0);
    assert!(value(found.parameters[0].delta) > 0.8 && value(found.parameters[1].delta).abs() < 0.05);
    assert!(value(found.parameters[0].first) > 0.99 && value(found.parameters[1].first) < 0.05);
    let found = regression::src(&columns, &response, BOOTSTRAP).unwrap().remove(0);
    assert!((value(found.r_squared) - 1.0).abs() < 1e-12);
    for found in [pcc(&columns, &response, BOOTSTRAP).unwrap(), prcc(&columns, &response, BOOTSTRAP).unwrap()]
    {
        assert!((value(found[0].parameters[0].coefficient) - 1.0).abs() < 1e-9);
        // No residual is left to correlate with.
        assert_eq!(found[0].parameters[1].coefficient, Estimate::ABSENT);
    }
}
