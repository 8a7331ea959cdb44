//! Laws of the reduction and of the metrics, against slow references.

use crate::reference;
use crate::support::workflow;
use pleach_clustering::{LevelMetrics, Reading, Workflow, metrics, reduced};
use proptest::prelude::*;

/// Acyclic graphs of up to 23 tasks, whose numbers are in no topological order.
pub(crate) fn graphs() -> impl Strategy<Value = Workflow> {
    (1..24_u32).prop_flat_map(|tasks| {
        let edges = prop::collection::vec((0..tasks, 0..tasks), 0..60);
        // Few distinct run times: ties decide the order.
        let seconds =
            prop::collection::vec((0..12_u32).prop_map(|tenths| f64::from(tenths) / 4.0), tasks as usize);
        (seconds, edges).prop_map(|(seconds, edges)| {
            let rank = |task: u32| task * 5 % 23;
            let ordered = edges.into_iter().filter(|(a, b)| a != b);
            let edges: Vec<_> =
                ordered.map(|(a, b)| if rank(a) < rank(b) { (a, b) } else { (b, a) }).collect();
            workflow(&seconds, &edges)
        })
    })
}

/// Graphs of levels of up to seven tasks with edges to the next level only.
fn layers() -> impl Strategy<Value = Workflow> {
    prop::collection::vec(prop::collection::vec((0..7_u32, 0..7_u32), 0..12), 1..6).prop_map(|levels| {
        let edges = |(level, pairs): (u32, &Vec<(u32, u32)>)| {
            pairs.iter().map(|(a, b)| (level * 7 + a, (level + 1) * 7 + b)).collect::<Vec<_>>()
        };
        let edges: Vec<_> = (0..).zip(&levels).flat_map(edges).collect();
        let seconds: Vec<f64> = (0..7 * (levels.len() + 1)).map(|task| (task * task % 11) as f64).collect();
        workflow(&seconds, &edges)
    })
}

fn check_metrics(workflow: &Workflow) -> Result<(), TestCaseError> {
    let graph = workflow.with_edges(&reference::reduced_edges(workflow)).expect("edges");
    for reading in [Reading::Definition, Reading::Table] {
        for (level, LevelMetrics { variance, normalized, .. }) in
            metrics(workflow, reading).iter().enumerate()
        {
            let found = [variance.hrv, variance.hifv, variance.hdv, variance.prv];
            for (found, expected) in found.iter().zip(reference::metrics(&graph, level, reading)) {
                prop_assert!(
                    (found - expected).abs() < 1e-9,
                    "{reading:?}, level {level}: {found}, {expected}"
                );
            }
            for value in [normalized.hrv, normalized.hifv, normalized.hdv, normalized.prv] {
                prop_assert!((0.0..=1.0).contains(&value));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn reduction_is_that_of_all_paths(workflow in graphs()) {
        let found = reduced(&workflow);
        prop_assert_eq!(found.edges().collect::<Vec<_>>(), reference::reduced_edges(&workflow));
        prop_assert_eq!(found.levels(), workflow.levels());
        prop_assert_eq!(found.tasks(), workflow.tasks());
    }

    #[test]
    fn metrics_are_those_of_all_pairs(workflow in graphs()) {
        check_metrics(&workflow)?;
    }

    #[test]
    fn metrics_of_layers_are_those_of_all_pairs(workflow in layers()) {
        check_metrics(&workflow)?;
    }

    #[test]
    fn normalized_metrics_do_not_depend_on_units(workflow in graphs()) {
        let scaled = workflow.clone().with_scaled_seconds(60.0).expect("seconds");
        for (a, b) in metrics(&workflow, Reading::Definition).iter().zip(metrics(&scaled, Reading::Definition)) {
            prop_assert!((a.normalized.hrv - b.normalized.hrv).abs() < 1e-9);
            prop_assert!((a.normalized.prv - b.normalized.prv).abs() < 1e-9);
            prop_assert!((a.variance.hrv - b.variance.hrv).abs() < 1e-9);
        }
    }
}

#[test]
fn redundant_edges_of_more_than_one_block_are_dropped() {
    // 1,100 tasks behind a chain, with an edge from each of its tasks: only those of the last one stay.
    let edges: Vec<_> = (0..1100)
        .flat_map(|task| [(0, task + 3), (1, task + 3), (2, task + 3)])
        .chain([(0, 1), (1, 2)])
        .collect();
    let kept = reduced(&workflow(&vec![1.0; 1103], &edges));
    assert_eq!(kept.edges().count(), 1102);
    assert!(kept.edges().all(|(parent, child)| parent == 2 || child == parent + 1));
}

#[test]
fn a_level_without_run_time_has_no_variance() {
    let found = metrics(&workflow(&[0.0; 4], &[]), Reading::Definition)[0];
    assert_eq!((found.variance.hrv, found.variance.prv, found.normalized.hrv), (0.0, 0.0, 0.0));
    assert!(metrics(&workflow(&[], &[]), Reading::Wfs).is_empty());
}

#[test]
fn normalized_metrics_reach_their_limits() {
    // One task has all run time. Two pairs of exits and of tasks with a common child: distances 2 and 4, half of each.
    let workflow = workflow(&[8.0, 0.0, 1.0], &[(0, 2)]);
    let found = metrics(&workflow, Reading::Definition)[0].normalized;
    assert_eq!(found.hrv, 1.0);
    let found = metrics(&workflow, Reading::Table)[0].normalized;
    assert_eq!(found.hifv, 1.0);
}
