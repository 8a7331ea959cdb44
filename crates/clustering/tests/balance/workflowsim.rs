//! Comparison with the output of WorkflowSim 1.1.0 on all traces.

use crate::support::{read_trace, traces};
use pleach_clustering::{Imbalance, Reading, metrics};
use std::collections::BTreeMap;

/// Levels whose metrics differ, each with the reason: trace, level, metric, reason. None do.
const DIFFERENT: [(&str, usize, &str, &str); 0] = [];

#[test]
fn all_traces_have_the_metrics_of_workflowsim() {
    let Some(data) = traces("all_traces_have_the_metrics_of_workflowsim") else { return };
    let table = std::fs::read_to_string(data.join("workflowsim_metrics.csv")).expect("the table");
    let mut traces: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let (trace, numbers) = line.split_once(',').expect("columns");
        let numbers = numbers.split(',').map(|number| number.parse().expect("a number"));
        traces.entry(trace).or_default().push(numbers.collect());
    }
    assert_eq!((traces.len(), traces.values().map(Vec::len).sum::<usize>()), (19, 125));
    for (trace, rows) in traces {
        let found = metrics(&read_trace(&data.join("dax").join(trace)), Reading::Wfs);
        assert_eq!(found.len(), rows.len(), "{trace}");
        for (metrics, row) in found.iter().zip(rows) {
            assert_eq!((metrics.level, metrics.tasks), (row[0] as usize, row[1] as usize), "{trace}");
            let Imbalance { hrv, hifv, hdv, prv } = metrics.variance;
            for ((name, found), expected) in
                [("HRV", hrv), ("IFV", hifv), ("PRV", prv), ("DV", hdv)].iter().zip(&row[2..])
            {
                let differs = DIFFERENT.iter().any(|of| (of.0, of.1, of.2) == (trace, metrics.level, *name));
                // Sums have another order there: the relative error of the largest distances is below 1e-12.
                let is_equal = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                assert_eq!(
                    is_equal, !differs,
                    "{trace}, level {}: {name} {found}, {expected}",
                    metrics.level
                );
            }
        }
    }
}
