//! Studies whose results wait for reuse in encoded form.

use crate::images::{ENCODED_PIXELS, Study};
use crate::{Ran, execute};
use pleach_dispatch::plan::ReuseScope;
use std::collections::BTreeSet;

/// A study whose paintings with equal first two numbers come in two passes, with these bytes of results in each.
fn two_passes() -> (Study, u64) {
    let firsts = || (0..10).flat_map(|a| (0..10).map(move |b| (20 * a, 20 * b)));
    let sets = [0, 100].into_iter().flat_map(|c| firsts().map(move |(a, b)| [a, b, c, 1])).collect();
    let tiles = vec![ENCODED_PIXELS as u32];
    let study = Study { tiles, sets, bucket: 1, scratch: 0, sharing: ReuseScope::Value };
    (study, 200 * ENCODED_PIXELS)
}

/// A budget of a third of the results keeps all of them, because results that wait for reuse are encoded.
#[test]
fn small_budget_keeps_all_results_encoded() {
    let (study, all_bytes) = two_passes();
    let plenty = execute(&study, &BTreeSet::new(), (1, u64::MAX, None), usize::MAX);
    let budget = all_bytes / 3;
    let ran = execute(&study, &BTreeSet::new(), (1, budget, None), usize::MAX);
    assert_eq!(ran.results, study.expected());
    assert_eq!(plenty.results, ran.results);
    assert!(ran.finished.peak_bytes <= budget, "{} of {budget}", ran.finished.peak_bytes);
    let runs = |ran: &Ran| ran.runs.iter().map(|(_, times)| times).sum::<usize>();
    assert_eq!(
        runs(&ran),
        runs(&plenty),
        "tasks executed, {} of them twice",
        ran.runs.iter().filter(|(_, times)| *times > 1).count()
    );
    assert_eq!((ran.finished.retained_bytes, plenty.finished.retained_bytes), (0, 0));
}

/// Whatever part of the results is encoded, used, evicted or computed again: responses and counts are the same.
#[test]
fn responses_do_not_depend_on_encoded_results() {
    let (mut study, all_bytes) = two_passes();
    study.sets.retain(|set| set[0] < 100);
    for (slots, part) in [(1, 8), (3, 8), (3, 4)] {
        let budget = study.plan().needs.min_bytes.max(all_bytes / part);
        let ran = execute(&study, &BTreeSet::new(), (slots, budget, None), usize::MAX);
        assert_eq!(ran.results, study.expected(), "{slots} slots, 1/{part}");
        assert!(ran.finished.peak_bytes <= budget, "{} of {budget}", ran.finished.peak_bytes);
        assert_eq!(ran.finished.retained_bytes, 0);
        let totals = ran.finished.outcome.tasks.values();
        let done: u64 =
            totals.map(|total| total.runs + total.reused_by_dataflow + total.reused_by_value).sum();
        // One task prepares the tile, and each set has three tasks and a measurement.
        assert_eq!(done as usize, 1 + 4 * study.sets.len());
    }
}
