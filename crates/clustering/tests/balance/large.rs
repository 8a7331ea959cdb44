//! Large workflows.

use crate::method_laws::METHODS;
use crate::reference;
use crate::support::{layered, workflow};
use pleach_clustering::{Candidates, Method, Options, Reading, Size, Vertical, cluster, metrics, reduced};

#[test]
fn all_methods_cluster_ten_thousand_tasks() {
    // As Montage: 2,000 images with three or four overlaps each, a task that joins them, and a task for each image.
    let overlaps =
        (0..2000).flat_map(|image| (0..4).map(move |other| (image, 2000 + (3 * image + other) % 6000)));
    let join = (0..6000).map(|overlap| (2000 + overlap, 8000));
    let images = (0..2000).flat_map(|image| [(8000, 8001 + image), (image, 8001 + image)]);
    let edges: Vec<_> = overlaps.chain(join).chain(images).collect();
    let seconds: Vec<f64> = (0..10_001).map(|task| f64::from(task * 7919 % 1000) / 10.0).collect();
    let workflow = workflow(&seconds, &edges);
    for method in METHODS {
        for candidates in [Candidates::Spread, Candidates::Examples] {
            let options = Options { method, candidates, vertical: Vertical::Prior, ..Options::default() };
            let found = cluster(&workflow, &options);
            assert_eq!(found.jobs().iter().map(Vec::len).sum::<usize>(), 10_001, "{method:?}");
            if matches!(method, Method::Hc | Method::Hrb | Method::Hifb | Method::Hdb) {
                assert!(found.jobs().len() <= 61, "{method:?}");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_tasks_have_metrics() {
    // Half of the tasks have a child of their own. These children share a child: 1.25 · 10⁹ pairs of different children.
    let edges: Vec<_> =
        (0..50_000).flat_map(|task| [(task, task + 50_000), (task + 50_000, 100_000)]).collect();
    let workflow = workflow(&vec![2.0; 100_001], &edges);
    let found = metrics(&workflow, Reading::Definition);
    assert_eq!(found[0].tasks, 50_000);
    assert!(found.iter().all(|level| level.variance.hdv == 0.0 && level.variance.hrv == 0.0));
    let table = metrics(&workflow, Reading::Table)[0].variance.hdv;
    // All distances are 2: m = n − 1, and the sum runs over n (n − 1) / 2 pairs.
    let (pairs, mean) = (50_000.0 * 49_999.0 / 2.0, 49_999.0_f64);
    let expected = (pairs * (2.0 - mean).powi(2) / 50_000.0).sqrt();
    assert!((table / expected - 1.0).abs() < 1e-12, "{table}");
}

/// Graphs whose pairs neither an index nor a walk over groups can count in few steps.
#[test]
fn random_wide_levels_have_the_distances_of_all_pairs() {
    for (levels, children, long) in [(5, 2, None), (5, 3, Some(4))] {
        let workflow = layered(levels, 150, children, long);
        let graph = reduced(&workflow);
        for reading in [Reading::Definition, Reading::Table] {
            let found = metrics(&workflow, reading);
            let [.., expected, _] = reference::metrics(&graph, 0, reading);
            assert!((found[0].variance.hdv - expected).abs() < 1e-6, "{reading:?}: {found:?}, {expected}");
        }
    }
}

#[test]
fn parallel_chains_have_the_distances_of_their_last_level() {
    // Four chains of 15,000 tasks: no successor is common.
    let edges: Vec<_> = (0..59_996).map(|task| (task, task + 4)).collect();
    let workflow = workflow(&vec![1.0; 60_000], &edges);
    let found = metrics(&workflow, Reading::Table);
    // Six pairs at a distance of twice the remaining levels, with a mean over four tasks.
    for (level, remaining) in [(0, 15_000.0_f64), (7_000, 8_000.0), (14_999, 1.0)] {
        let distance = 2.0 * remaining;
        let expected = (6.0 * (distance - 1.5 * distance).powi(2) / 4.0).sqrt();
        assert_eq!((found[level].variance.hdv, found[level].tasks), (expected, 4));
    }
}

#[test]
fn dense_layers_are_reduced() {
    // Each task has 150 children in the next level of 200, so every longer edge but few is redundant.
    let workflow = layered(5, 200, 150, Some(2));
    let graph = reduced(&workflow);
    let is_long = |(parent, child): &(u32, u32)| graph.level_of(*child) > graph.level_of(*parent) + 1;
    assert!(workflow.edges().filter(is_long).count() > 200);
    assert_eq!(graph.edges().filter(is_long).count(), 0);
    let options = Options { method: Method::Hdb, size: Size::Jobs(7), ..Options::default() };
    assert_eq!(cluster(&workflow, &options).jobs().len(), 35);
}
