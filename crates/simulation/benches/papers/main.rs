//! What the papers publish about scaling, beside what the manager does with as many simulated workers: makespans of MOAT
//! and VBD on one tile, of a large study on 128 nodes, and parallel efficiency up to 10,000 workers.
//!
//! `benches/papers/run`, or `cargo bench -p pleach-simulation --bench papers`, with the letters of some tables to have
//! only those. Tasks take what Table 4.3 of the thesis says, times a factor for the tile and one for the task, both
//! log-normal with [`VARIATION`]. Files, memory and the network's limits are not simulated, planning takes no time, and
//! transfers do not slow each other down: what is published includes all of that.

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

#[path = "../../../reuse/tests/support/application.rs"]
#[expect(dead_code, reason = "the graph of the tasks is for other reuse than in trees")]
mod application;
#[path = "../../../reuse/benches/papers/designs.rs"]
#[expect(dead_code, reason = "other samplers are for tables of planning")]
mod designs;
mod one_tile;
mod scaling;
mod uneven;

use application::TASKS;
use designs::{PARAMETERS, Set};
use pleach_dispatch::PlanId;
use pleach_reuse::Interner;
use pleach_simulation::cluster::{Cluster, ClusterStats};
use pleach_simulation::scenario::{NetworkModel, NodeSpec, Scenario};
use pleach_simulation::workload::{Bucketing, SyntheticWorkload, Workload, WorkloadDesign};
use std::num::NonZeroUsize;
use std::time::Instant;

/// Thesis Table 4.3: seconds of each task of the segmentation on a tile.
const SECONDS: [f64; 7] = [1.14, 1.99, 0.65, 0.33, 0.76, 3.76, 0.86];

/// Of the normalization, which the papers do not publish. The authors' code takes 3,320 ms for it where it takes 4,290 ms for
/// the segmentation (reference data, one core, 4096 × 4096 pixels); with this, stage-level merging is worth 1.77, and
/// published are up to 1.85 (thesis §4.2.1).
const FIRST_SECONDS: f64 = 9.49 * 2.46 / 3.18;

/// Coefficient of variation of what tasks take, which the papers call the cause of lost efficiency and do not publish.
const VARIATION: f64 = 0.2;

/// Bytes of a normalized tile: three bytes a pixel.
const TILE_BYTES: u64 = 3 * 4096 * 4096;

/// A limit of buckets or instances, 1 at least.
fn limit(limit: usize) -> NonZeroUsize {
    NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN)
}

/// The keys of the seven tasks for each set of parameters; equal sets once where they are merged.
fn keys(sets: &[Set], merged: bool) -> Vec<u32> {
    let mut stage = Interner::default();
    let mut interners: [Interner<Vec<u64>>; TASKS.len()] = Default::default();
    let mut keys = Vec::new();
    for set in sets {
        let known = stage.len();
        if stage.intern(*set) as usize != known && merged {
            continue;
        }
        for (task, interner) in TASKS.iter().zip(&mut interners) {
            let of = |name: &&str| PARAMETERS.iter().position(|parameter| parameter.0 == *name);
            keys.push(interner.intern(task.iter().filter_map(of).map(|parameter| set[parameter]).collect()));
        }
    }
    keys
}

/// A study of these parameter sets on so many tiles, equal instances merged.
fn design(sets: &[Set], tiles: u32, first: bool, cut: Bucketing, seed: u64) -> WorkloadDesign {
    WorkloadDesign {
        tiles,
        levels: TASKS.len(),
        keys: keys(sets, true),
        seconds: SECONDS.to_vec(),
        first_seconds: first.then_some(FIRST_SECONDS),
        variation: VARIATION,
        region_bytes: TILE_BYTES,
        cut,
        seed,
    }
}

/// What came of one simulation, and the wall seconds it took.
struct Simulated {
    figures: ClusterStats,
    wall_seconds: f64,
    /// Slots of all workers.
    slots: usize,
}

impl Simulated {
    /// The part of all slots' time in which they were at work.
    fn busy(&self) -> f64 {
        self.figures.work_seconds / (self.figures.makespan_seconds * self.slots as f64)
    }

    fn manager_us(&self) -> f64 {
        1e6 * self.figures.manager_seconds / self.figures.events as f64
    }

    /// The part of a second that the manager is busy in a second of the study.
    fn load(&self) -> f64 {
        self.figures.manager_seconds / self.figures.makespan_seconds
    }
}

/// Runs a study on nodes that are all alike. `help`: workers that are idle get a part of what others have not begun, and what
/// is far behind is tried twice.
fn simulate(design: WorkloadDesign, nodes: usize, slots: u32, help: bool) -> Simulated {
    let begun = Instant::now();
    let schedule = Scenario {
        seed: 500,
        nodes: vec![NodeSpec { slots, speed: 1.0 }; nodes],
        // Workers are there when the study comes.
        studies: vec![(1000, SyntheticWorkload::UNUSED)],
        incidents: Vec::new(),
        network: NetworkModel::default(),
        tick_ms: if help { 500 } else { u64::from(u32::MAX) },
        replan: false,
        limit_seconds: 1e7,
    };
    let workload = Workload::new(PlanId::whole(0), design);
    let mut cluster = Cluster::with_workloads(schedule, vec![workload], false, false);
    let figures = cluster.run().expect("nothing goes wrong");
    Simulated { figures, wall_seconds: begun.elapsed().as_secs_f64(), slots: nodes * slots as usize }
}

fn heading(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |\n| {} |", columns.join(" | "), vec!["---"; columns.len()].join(" | "));
}

fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

fn main() {
    // Cargo adds an option of its own.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let tables: [(&str, fn()); 6] = [
        ("a", one_tile::moat),
        ("b", one_tile::vbd),
        ("c", scaling::large),
        ("d", scaling::strong),
        ("e", scaling::weak),
        ("f", uneven::speeds),
    ];
    for (letter, table) in tables {
        if asked.is_empty() || asked.iter().any(|asked| asked == letter) {
            table();
        }
    }
}
