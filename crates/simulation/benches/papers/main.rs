//! Compares the papers' scaling results with the manager on the same number of simulated workers: makespans of MOAT and
//! VBD on one tile, makespans of a large study on 128 nodes, parallel efficiency up to 10,000 workers, and schedule policies
//! of nodes with accelerators.
//!
//! Run with `benches/papers/run`, or with `cargo bench -p pleach-simulation --bench papers`. Letters as arguments
//! select tables, and a number limits the nodes of tables d and g. Task times are those of the thesis' Table 4.3, in table g
//! those of the example of Region Templates, times a factor for the tile and one for the task, both log-normal with
//! [`VARIATION`]. Files, memory and the network's limits are not simulated, planning takes no time, and transfers do not slow
//! each other down. The published times include all of that.

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

#[path = "../../../reuse/tests/support/application.rs"]
#[expect(dead_code, reason = "the graph of the tasks is for other reuse than in trees")]
mod application;
#[path = "../../../dispatch/tests/support/clock.rs"]
#[expect(dead_code, reason = "the virtual clock is for tests of one worker")]
mod clock;
#[path = "../../../reuse/benches/papers/designs.rs"]
#[expect(dead_code, reason = "other samplers are for tables of planning")]
mod designs;
mod hybrid;
mod one_tile;
mod scaling;
#[path = "../../../dispatch/tests/support/shapes.rs"]
mod shapes;
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

/// Seconds of the normalization, which the papers do not publish. The authors' code takes 3,320 ms for it and 4,290 ms
/// for the segmentation (reference data, one core, 4096 × 4096 pixels). With this value, stage-level merging gives a
/// speedup of 1.77. The published maximum is 1.85 (thesis §4.2.1).
const FIRST_SECONDS: f64 = 9.49 * 2.46 / 3.18;

/// Coefficient of variation of task times, which the papers name as the cause of lost efficiency and do not publish.
const VARIATION: f64 = 0.2;

/// Bytes of a normalized tile: 3 bytes per pixel.
const TILE_BYTES: u64 = 3 * 4096 * 4096;

/// Returns a limit of buckets or instances, at least 1.
fn limit(limit: usize) -> NonZeroUsize {
    NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the keys of the seven tasks for each parameter set. With `merged`, equal sets occur once.
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

/// Returns a study of these parameter sets on `tiles` tiles. Equal instances are merged.
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

/// Result of one simulation, and its wall seconds.
struct Simulated {
    figures: ClusterStats,
    wall_seconds: f64,
    /// Slots of all workers.
    slots: usize,
}

impl Simulated {
    /// Returns the busy share of the time of all slots.
    fn busy(&self) -> f64 {
        self.figures.work_seconds / (self.figures.makespan_seconds * self.slots as f64)
    }

    fn manager_us(&self) -> f64 {
        1e6 * self.figures.manager_seconds / self.figures.events as f64
    }

    /// Returns the manager's busy share of the simulated time.
    fn load(&self) -> f64 {
        self.figures.manager_seconds / self.figures.makespan_seconds
    }
}

/// Runs a study on identical nodes. `help` enables work stealing and speculative execution.
fn simulate(design: WorkloadDesign, nodes: usize, slots: u32, help: bool) -> Simulated {
    let begun = Instant::now();
    let schedule = Scenario {
        seed: 500,
        nodes: vec![NodeSpec { slots, speed: 1.0 }; nodes],
        // Workers join before the submission.
        studies: vec![(1000, SyntheticWorkload::UNUSED)],
        incidents: Vec::new(),
        network: NetworkModel::default(),
        tick_ms: if help { 500 } else { u64::from(u32::MAX) },
        replan: false,
        limit_seconds: 1e7,
    };
    let workload = Workload::new(PlanId::first_round(0), design);
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
    let tables: [(&str, fn()); 7] = [
        ("a", one_tile::moat),
        ("b", one_tile::vbd),
        ("c", scaling::large),
        ("d", scaling::strong),
        ("e", scaling::weak),
        ("f", uneven::speeds),
        ("g", hybrid::weak),
    ];
    for (letter, table) in tables {
        if asked.is_empty() || asked.iter().any(|asked| asked == letter) {
            table();
        }
    }
}
