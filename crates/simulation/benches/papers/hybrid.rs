//! Nodes of 16 cores and an accelerator, by schedule policy.

use crate::clock::PIPELINE;
use crate::{VARIATION, heading, row};
use pleach_dispatch::worker::{SchedulePolicy, WorkerSlots};
use pleach_simulation::hybrid::{
    HybridCluster, HybridOptions, HybridStats, HybridStudy, PipelineTask, TaskSeconds,
};
use std::time::Instant;

/// Nodes of the weak scaling of paper 001 Fig. 11.
const NODES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Tiles for each node: 136,568 tiles on 256 nodes in the paper.
const TILES: usize = 533;

/// Cores of a node of the paper.
const CORES: u32 = 16;

/// A version of Fig. 11.
struct Version {
    name: &'static str,
    slots: WorkerSlots,
}

fn versions() -> [Version; 5] {
    let version = |name, cores, accelerators, policy| {
        let slots = WorkerSlots { cores, accelerators, device_bytes: u64::MAX, policy };
        Version { name, slots }
    };
    [
        version("CPU", CORES, 0, SchedulePolicy::Pats),
        version("accelerator", 0, 1, SchedulePolicy::Pats),
        version("FCFS", CORES, 1, SchedulePolicy::Fcfs),
        version("HEFT", CORES, 1, SchedulePolicy::Heft),
        version("PATS", CORES, 1, SchedulePolicy::Pats),
    ]
}

/// Returns the example of Region Templates.
fn example() -> Vec<PipelineTask> {
    let task = |task: &crate::clock::PipelineTask| PipelineTask {
        name: task.name.to_owned(),
        seconds: TaskSeconds {
            core: Some(task.core_ms / 1000.0),
            accelerator: Some(task.device_ms / 1000.0),
        },
        reads: task.reads.to_vec(),
    };
    PIPELINE.iter().map(task).collect()
}

/// Returns the busy share of the time of all slots of a kind.
fn busy(seconds: f64, slots: u32, nodes: usize, stats: &HybridStats) -> String {
    let all = stats.makespan_seconds * f64::from(slots) * nodes as f64;
    if slots == 0 { String::new() } else { format!("{:.1} %", 100.0 * seconds / all) }
}

/// Paper 001 Fig. 11. The first argument that is a number limits the nodes, the second one is the number of tiles for each.
pub(crate) fn weak() {
    let mut numbers = std::env::args().filter_map(|arg| arg.parse().ok());
    let most = numbers.next().unwrap_or(NODES[NODES.len() - 1]);
    let tiles = numbers.next().unwrap_or(TILES);
    heading(
        &format!(
            "Paper 001 Fig. 11: weak scaling on nodes of {CORES} cores and an accelerator, {tiles} tiles for each (simulated)"
        ),
        &[
            "nodes",
            "version",
            "tiles",
            "seconds",
            "efficiency against one node",
            "seconds / PATS",
            "cores busy",
            "accelerators busy",
            "tasks on accelerators",
            "messages",
            "manager, µs an event",
            "manager's load",
            "simulated in, s",
        ],
    );
    let mut of_one = [0.0; 5];
    for nodes in NODES.into_iter().filter(|nodes| *nodes <= most) {
        let found: Vec<_> =
            versions().iter().map(|version| simulate(version, nodes, nodes * tiles)).collect();
        let pats = found[found.len() - 1].0.makespan_seconds;
        for ((version, (stats, cells)), first) in versions().iter().zip(&found).zip(&mut of_one) {
            let seconds = stats.makespan_seconds;
            *first = if nodes == 1 { seconds } else { *first };
            let begin = [
                nodes.to_string(),
                version.name.to_owned(),
                (nodes * tiles).to_string(),
                format!("{seconds:.1}"),
                format!("{:.3}", *first / seconds),
                format!("{:.2}", seconds / pats),
            ];
            row(&begin.into_iter().chain(cells.iter().cloned()).collect::<Vec<_>>());
        }
    }
}

/// Simulates a version. Returns its statistics, and the cells about slots and the manager.
fn simulate(version: &Version, nodes: usize, tiles: usize) -> (HybridStats, [String; 7]) {
    let begun = Instant::now();
    let study = HybridStudy::pipeline(&example(), tiles as u32).expect("a valid pipeline");
    let options =
        HybridOptions { variation: VARIATION, ..HybridOptions::new(vec![version.slots; nodes], 500) };
    let mut cluster = HybridCluster::new(study, options);
    let stats = cluster.run(1e7).expect("nothing goes wrong");
    let (events, busy_time) = cluster.manager_work();
    let total = stats.total;
    let on_accelerators =
        total.accelerators.runs as f64 / (total.cores.runs + total.accelerators.runs) as f64;
    let cells = [
        busy(total.cores.seconds, version.slots.cores, nodes, &stats),
        busy(total.accelerators.seconds, version.slots.accelerators, nodes, &stats),
        format!("{:.1} %", 100.0 * on_accelerators),
        stats.messages.to_string(),
        format!("{:.2}", 1e6 * busy_time.as_secs_f64() / events as f64),
        format!("{:.3} %", 100.0 * busy_time.as_secs_f64() / stats.makespan_seconds),
        format!("{:.1}", begun.elapsed().as_secs_f64()),
    ];
    (stats, cells)
}
