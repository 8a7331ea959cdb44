//! Coverage of the truth by 95 % intervals, over many seeds of the sample.
//!
//! The bootstrap assumes random base points. For Sobol' points its intervals are wider than the error, so
//! they contain the truth more often. The test requires no less.

use crate::functions::ishigami;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::saltelli::Saltelli;
use pleach_sensitivity::vbd::{self, Estimator};
use pleach_workflow::BasePoints;

/// Returns for each index the shares of seeds whose normal and percentile intervals contain the truth.
fn coverage(seeds: u64, base: BasePoints, estimator: Estimator) -> Vec<(f64, f64)> {
    let function = ishigami();
    let truth: Vec<f64> = function.first.iter().chain(&function.total).copied().collect();
    let mut held = vec![(0, 0); truth.len()];
    for seed in 0..seeds {
        let (blocks, y) = function.study(&Saltelli { samples: 1024, second_order: false, base, seed });
        let response = [Response { name: "y", values: &y }];
        let bootstrap = Bootstrap { resamples: 200, seed };
        let found = vbd::indices(&blocks, &response, estimator, bootstrap).expect("indices").remove(0);
        let first = found.parameters.iter().map(|parameter| parameter.first);
        let estimates: Vec<Estimate> =
            first.chain(found.parameters.iter().map(|parameter| parameter.total)).collect();
        for ((held, estimate), &truth) in held.iter_mut().zip(&estimates).zip(&truth) {
            held.0 += u32::from(estimate.holds(truth).expect("an interval"));
            let (low, high) = estimate.low.zip(estimate.high).expect("percentiles");
            held.1 += u32::from((low..=high).contains(&truth));
        }
    }
    held.iter().map(|held| (f64::from(held.0) / seeds as f64, f64::from(held.1) / seeds as f64)).collect()
}

/// Number of seeds, for a standard error of 1.5 %.
const SEEDS: u64 = 200;

#[test]
fn intervals_cover_the_truth_at_their_nominal_rate() {
    for estimator in [Estimator::Saltelli, Estimator::Jansen, Estimator::Janon] {
        let found = coverage(SEEDS, BasePoints::MonteCarlo, estimator);
        println!("{estimator:?}, random base points, {SEEDS} seeds: {found:.3?}");
        let shares = found.iter().flat_map(|&(normal, percentile)| [normal, percentile]);
        assert!(shares.into_iter().all(|share| (0.9..=0.99).contains(&share)), "{estimator:?}: {found:?}");
    }
    let found = coverage(SEEDS, BasePoints::Sobol, Estimator::Saltelli);
    println!("Sobol' base points, {SEEDS} seeds: {found:.3?}");
    assert!(found.iter().all(|(normal, _)| *normal >= 0.9), "{found:?}");
}
