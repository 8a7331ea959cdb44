//! Unequal nodes: half of them are four times slower than the others, with an unchanged mean speed.

use crate::{design, designs, heading, limit, row};
use pleach_dispatch::PlanId;
use pleach_simulation::cluster::Cluster;
use pleach_simulation::scenario::{NetworkModel, NodeSpec, Scenario};
use pleach_simulation::workload::{Bucketing, SyntheticWorkload, Workload};

/// Speeds of alternating nodes, 1 in the mean.
const SPEEDS: [f64; 2] = [0.4, 1.6];

/// Returns the mean makespan over several seeds, and the mean work executed. `help` enables work stealing, `knows` the
/// report of task timings.
fn mean(tiles: u32, cut: Bucketing, nodes: usize, speeds: [f64; 2], help: bool, knows: bool) -> (f64, f64) {
    const SEEDS: [u64; 3] = [500, 501, 502];
    let sets = designs::moat(1000, 500);
    let (mut seconds, mut work) = (0.0, 0.0);
    for seed in SEEDS {
        let schedule = Scenario {
            seed,
            nodes: (0..nodes).map(|node| NodeSpec { slots: 1, speed: speeds[node % 2] }).collect(),
            studies: vec![(1000, SyntheticWorkload::UNUSED)],
            incidents: Vec::new(),
            network: NetworkModel::default(),
            tick_ms: if help { 500 } else { u64::from(u32::MAX) },
            replan: false,
            limit_seconds: 1e7,
        };
        let workload = Workload::new(PlanId::first_round(0), design(&sets, tiles, false, cut, seed));
        let cluster = Cluster::with_workloads(schedule, vec![workload], false, false);
        let mut cluster = if knows { cluster } else { cluster.without_times() };
        let figures = cluster.run().expect("nothing goes wrong");
        seconds += figures.makespan_seconds;
        work += figures.work_seconds;
    }
    (seconds / SEEDS.len() as f64, work / SEEDS.len() as f64)
}

/// Buckets sized by measured speed, compared with buckets of one size.
pub(crate) fn speeds() {
    heading(
        "Half of the nodes four times slower: MOAT 1000, TRTMA with 3 buckets a worker (simulated; mean of three)",
        &[
            "tiles",
            "workers",
            "help for the idle",
            "all alike, s",
            "one size for all, s",
            "by speed, s",
            "one size / by speed",
            "work of by speed / of one size",
        ],
    );
    for (tiles, workers) in [(1, 16), (1, 64), (16, 64), (16, 256)] {
        for help in [false, true] {
            let cut = Bucketing::Trtma(limit(3 * workers));
            let (alike, _) = mean(tiles, cut, workers, [1.0; 2], help, true);
            let (one_size, one_size_work) = mean(tiles, cut, workers, SPEEDS, help, false);
            let (by_speed, by_speed_work) = mean(tiles, cut, workers, SPEEDS, help, true);
            row(&[
                tiles.to_string(),
                workers.to_string(),
                if help { "yes" } else { "no" }.into(),
                format!("{alike:.1}"),
                format!("{one_size:.1}"),
                format!("{by_speed:.1}"),
                format!("{:.2}", one_size / by_speed),
                format!("{:.3}", by_speed_work / one_size_work),
            ]);
        }
    }
}
