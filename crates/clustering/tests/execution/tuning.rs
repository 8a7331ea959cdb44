//! DFJS* and AFJS* on real traces.

use super::support::{data_bytes, fair, five, hrb};
use pleach_clustering::simulate::{Platform, gain, simulate};
use pleach_clustering::tune::{Tuned, TunedMethod, tune, tune_seconds, tune_seconds_and_bytes};
use pleach_clustering::{Family, Method, Options, Vertical, Workflow, cluster, generate};

#[test]
fn montage_is_tuned_to_the_limit_of_the_prototype() {
    let Some(workflows) = five("montage_is_tuned_to_the_limit_of_the_prototype") else { return };
    let montage = &workflows[1];
    let platform = Platform::default();
    let makespan = |limit: f64| simulate(montage, &fair(montage, limit, u64::MAX), &platform, 0).makespan;
    let tuned = tune_seconds(montage.total_seconds(), makespan);
    // The first midpoint is near the 180 s that the paper prints for its own workflow.
    assert!((tuned.trials[0].max_seconds - 170.0).abs() < 1.0);
    assert!((tuned.best.max_seconds - 53.0).abs() < 1.0, "{:?}", tuned.best);
    assert_eq!(tuned.simulations(), 40);
    assert!(tuned.trials.iter().all(|trial| trial.makespan >= tuned.best.makespan));
    assert_eq!(tuned.best.makespan, makespan(tuned.best.max_seconds));
}

#[test]
fn tuned_limits_never_lose_to_the_first_chunks() {
    let Some(workflows) = five("tuned_limits_never_lose_to_the_first_chunks") else { return };
    let platform = Platform::default();
    for workflow in workflows {
        let makespan = |seconds: f64, bytes: u64| {
            simulate(&workflow, &fair(&workflow, seconds, bytes), &platform, 0).makespan
        };
        let total_bytes = workflow.tasks().iter().map(|task| data_bytes(&workflow, task)).sum();
        let dfjs = tune_seconds(workflow.total_seconds(), |seconds| makespan(seconds, u64::MAX));
        let balanced = gain(&workflow, &hrb(&workflow, 20), &platform, 0);
        let of = |seconds: f64| 1.0 - seconds / balanced.baseline;
        println!(
            "{}: HRB {:.3}, DFJS* {:.3} at {:.1} s after {} simulations",
            workflow.name(),
            balanced.gain(),
            of(dfjs.best.makespan),
            dfjs.best.max_seconds,
            dfjs.simulations(),
        );
        assert!(dfjs.trials[..10].iter().all(|trial| trial.makespan >= dfjs.best.makespan));
        // One workflow suffices for the grid of AFJS, which takes ten times as many simulations.
        if workflow.name() == "Montage_300" {
            let afjs = tune_seconds_and_bytes(workflow.total_seconds(), total_bytes, makespan);
            println!("AFJS* {:.3} {:?} {}", of(afjs.best.makespan), afjs.best, afjs.simulations());
            // Among its limits are some that do not bind, so it gains as much as DFJS* here.
            assert!(afjs.best.makespan <= dfjs.best.makespan, "{:?}", afjs.best);
            assert!(afjs.trials[..100].iter().all(|trial| trial.makespan >= afjs.best.makespan));
        }
    }
}

/// Clusters and simulates for each trial.
fn tuned_by_all_simulations(
    workflow: &Workflow,
    method: TunedMethod,
    options: &Options,
    platform: &Platform,
) -> Tuned {
    let makespan = |method| {
        let clustering = cluster(workflow, &Options { method, ..*options });
        simulate(workflow, &clustering, platform, 3).makespan
    };
    let total_bytes = workflow.tasks().iter().map(|task| data_bytes(workflow, task)).sum();
    match method {
        TunedMethod::Dfjs => {
            tune_seconds(workflow.total_seconds(), |max_seconds| makespan(Method::Dfjs { max_seconds }))
        }
        TunedMethod::Afjs => {
            tune_seconds_and_bytes(workflow.total_seconds(), total_bytes, |max_seconds, max_bytes| {
                makespan(Method::Afjs { max_seconds, max_bytes: max_bytes as f64 })
            })
        }
    }
}

#[test]
fn equal_clusterings_are_simulated_once_with_the_same_results() {
    let drawn = Platform::default();
    let drawn = drawn.with_overheads(drawn.overheads().weibull(1.5)).unwrap();
    for (family, platform) in Family::ALL.into_iter().zip([Platform::default(), drawn].into_iter().cycle()) {
        let workflow = generate(family, 60, 1).unwrap();
        for (vertical, bounded_chains) in [
            (Vertical::None, false),
            (Vertical::Prior, false),
            (Vertical::Prior, true),
            (Vertical::Posterior, false),
            (Vertical::Posterior, true),
            (Vertical::Only, false),
        ] {
            let options = Options { vertical, bounded_chains, ..Options::default() };
            for method in [TunedMethod::Dfjs, TunedMethod::Afjs] {
                // The grid of AFJS takes long: workflows with chains of jobs show it.
                if method == TunedMethod::Afjs && !matches!(family, Family::Montage | Family::Sipht) {
                    continue;
                }
                let found = tune(&workflow, method, &options, &platform, 3);
                let expected = tuned_by_all_simulations(&workflow, method, &options, &platform);
                assert_eq!(found.trials, expected.trials, "{family:?}, {vertical:?}, {method:?}");
                assert_eq!((found.best, found.simulations()), (expected.best, expected.simulations()));
                assert_eq!(expected.clusterings, expected.simulations());
                let is_less = found.clusterings < found.simulations();
                assert!(is_less || method == TunedMethod::Dfjs, "{family:?}: {}", found.clusterings);
            }
        }
    }
}
