//! Work saved and makespan of workers that share task results, beside the targets of a prototype.
//!
//! Run with `cargo bench -p pleach-simulation --bench directory`. Arguments: numbers of workers (8, 64, 256 and 1024 without),
//! and options `loss`, `eviction`, `tiles` and `papers` for further tables.
//!
//! The study is MOAT with 992 evaluations on one tile. The files beside this one have the classes of equal task outputs,
//! measured on a glioma tile of 512² px with three seeds of the sample (`cargo bench -p pleach-pathology --bench
//! value_classes -- gbm40_03.png SAMPLE.csv`, samples by `pleach sample` with 62 trajectories of the nuclei study). Task
//! times are those of the thesis' Table 4.3. The plan has one contiguous range of instances for each worker, in the order of
//! tasks t2 t3 t4 t1 t5 t6 t7.

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

mod papers;

use pleach_dispatch::plan::ReuseScope;
use pleach_simulation::sharing::{SharedStudy, SharingCluster, SharingOptions, SharingStats, StudyCost};
use std::time::Instant;

/// Thesis Table 4.3: seconds of t1 to t7 on a tile.
const SECONDS: [f64; 7] = [1.14, 1.99, 0.65, 0.33, 0.76, 3.76, 0.86];

/// Bytes of an output on a tile of 4096² px.
const PLANE_BYTES: u64 = 4096 * 4096;

/// Measured classes of equal outputs, by seed of the sample.
const SAMPLES: [&str; 3] = [
    include_str!("moat_992_seed500.txt"),
    include_str!("moat_992_seed501.txt"),
    include_str!("moat_992_seed502.txt"),
];

/// Targets of the prototype: workers, then work saved in percent and makespan / bound without sharing, with sharing, for
/// dataflow and value.
type Target = (usize, [(f64, f64); 2], [(f64, f64); 2]);

const TARGETS: [Target; 4] = [
    (8, [(41.9, 1.05), (44.1, 1.00)], [(59.0, 1.11), (62.6, 1.00)]),
    (64, [(36.8, 1.16), (44.1, 1.01)], [(52.0, 1.31), (62.6, 1.01)]),
    (256, [(23.7, 1.62), (44.1, 1.08)], [(30.4, 2.01), (62.6, 1.17)]),
    (1024, [(0.0, 1.14), (44.1, 1.04)], [(0.0, 1.14), (62.6, 1.03)]),
];

fn study(sample: &str, scope: ReuseScope) -> SharedStudy {
    SharedStudy::nuclei(sample, scope, SECONDS, PLANE_BYTES).expect("a table of numbers")
}

/// Way of sharing.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Without the directory.
    Off,
    /// One look-up at a time, depth-first, fetched outputs announced after the run.
    First,
    /// Without instances of other workers before last tasks.
    NoPaths,
    /// With the options of [`SharingOptions::new`].
    Present,
    /// The same, with transfers that take no time.
    Fast,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::First => "on, one look-up at a time, depth-first",
            Self::NoPaths => "on, without other workers' longer paths",
            Self::Present => "on",
            Self::Fast => "on, transfers take no time",
        }
    }

    fn options(self, workers: usize, seed: u64) -> SharingOptions {
        let new = SharingOptions::new(workers, seed);
        match self {
            // Depth-first: a stolen instance repeats all of its tasks.
            Self::Off => SharingOptions { shared: false, tail_tasks: 0, ..new },
            Self::First => SharingOptions {
                takes_others: false,
                tail_tasks: 0,
                announces_early: false,
                broadcasts: false,
                waiting_buckets: usize::MAX,
                ..new
            },
            Self::NoPaths => SharingOptions { steals_paths: false, broadcasts: false, ..new },
            Self::Present => new,
            Self::Fast => SharingOptions { bytes_per_second: 1e15, ..new },
        }
    }
}

/// Result of a simulation, relative to the study's cost.
struct Cell {
    saved: f64,
    of_bound: f64,
    stats: SharingStats,
}

fn simulate(study: &SharedStudy, cost: StudyCost, options: SharingOptions) -> Cell {
    let stats = SharingCluster::new(study.clone(), options).run(10_000.0).expect("the study ends");
    let bound = cost.critical_seconds.max(cost.unique_seconds / options.workers as f64);
    let saved = 100.0 * (1.0 - stats.run_seconds / cost.stage_seconds);
    Cell { saved, of_bound: stats.makespan_seconds / bound, stats }
}

/// Returns the cells of several seeds: each sample with a seed of the latencies of its own.
fn cells(scope: ReuseScope, options: impl Fn(u64, StudyCost) -> SharingOptions) -> Vec<Cell> {
    let cell = |(seed, sample): (u64, &&str)| {
        let study = study(sample, scope);
        let cost = study.cost();
        simulate(&study, cost, options(seed, cost))
    };
    (500..).zip(&SAMPLES).map(cell).collect()
}

fn mean(cells: &[Cell], of: impl Fn(&Cell) -> f64) -> f64 {
    cells.iter().map(of).sum::<f64>() / cells.len() as f64
}

fn range(cells: &[Cell], of: impl Fn(&Cell) -> f64, digits: usize) -> String {
    let values = || cells.iter().map(&of);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let (low, high) = (format!("{least:.digits$}"), format!("{most:.digits$}"));
    if low == high { low } else { format!("{low}–{high}") }
}

fn heading(columns: &[&str]) {
    println!("\n| {} |\n| {} |", columns.join(" | "), vec!["---"; columns.len()].join(" | "));
}

fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

fn targets(asked: &[usize]) {
    heading(&[
        "workers",
        "scope",
        "directory",
        "work saved: target",
        "ours",
        "makespan / bound: target",
        "ours",
        "tasks",
        "repeated",
        "GB",
        "look-ups",
        "waits",
        "steals",
        "slot-seconds idle: fetch, look-up, wait, no work",
        "least / most work of a worker, s",
        "s to simulate",
    ]);
    for (workers, dataflow, value) in TARGETS.iter().filter(|target| asked.contains(&target.0)) {
        for (scope, target) in [(ReuseScope::Dataflow, dataflow), (ReuseScope::Value, value)] {
            let [without, with] = *target;
            for (kind, target) in [
                (Kind::Off, without),
                (Kind::First, with),
                (Kind::NoPaths, with),
                (Kind::Present, with),
                (Kind::Fast, with),
            ] {
                let begun = Instant::now();
                let cells = cells(scope, |seed, _| kind.options(*workers, seed));
                row(&line(*workers, scope, kind, target, &cells, begun));
            }
        }
    }
}

fn line(
    workers: usize,
    scope: ReuseScope,
    kind: Kind,
    (saved, of_bound): (f64, f64),
    cells: &[Cell],
    begun: Instant,
) -> Vec<String> {
    let idle = |index: usize| format!("{:.0}", mean(cells, |cell| cell.stats.idle_seconds[index]));
    let count = |of: fn(&SharingStats) -> u64| format!("{:.0}", mean(cells, |cell| of(&cell.stats) as f64));
    vec![
        workers.to_string(),
        scope.as_str().to_owned(),
        kind.name().to_owned(),
        format!("{saved:.1} %"),
        format!("{} %", range(cells, |cell| cell.saved, 1)),
        format!("{of_bound:.2}"),
        range(cells, |cell| cell.of_bound, 2),
        count(|stats| stats.runs),
        count(|stats| stats.repeated),
        format!("{:.1}", mean(cells, |cell| cell.stats.bytes_moved as f64 / 1e9)),
        count(|stats| stats.look_ups),
        count(|stats| stats.waited),
        count(|stats| stats.steals),
        (0..4).map(idle).collect::<Vec<_>>().join(", "),
        format!(
            "{:.1} / {:.1}",
            mean(cells, |cell| cell.stats.share_seconds.0),
            mean(cells, |cell| cell.stats.share_seconds.1)
        ),
        format!("{:.1}", begun.elapsed().as_secs_f64() / cells.len() as f64),
    ]
}

fn main() {
    // `cargo test` builds and starts benches to check that they run. Only `--bench` requests figures.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let asked: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_other = asked.is_empty() && (has("tiles") || has("papers"));
    let asked = if asked.is_empty() { vec![8, 64, 256, 1024] } else { asked };
    if !is_other {
        targets(&asked);
    }
    if has("loss") {
        losses(&asked);
    }
    if has("tiles") {
        papers::tiles();
    }
    if has("papers") {
        papers::one_tile();
        papers::large();
    }
    if has("eviction") {
        evictions(&asked);
    }
}

/// Loss of an eighth of the workers at half time, with their results and their shards.
fn losses(asked: &[usize]) {
    heading(&[
        "workers",
        "lost",
        "work, of no loss",
        "tasks repeated",
        "look-ups unanswered",
        "makespan, of no loss",
    ]);
    for workers in asked {
        let calm = cells(ReuseScope::Value, |seed, _| SharingOptions::new(*workers, seed));
        let half = |seed: u64| (calm[seed as usize - 500].stats.makespan_seconds * 5e5) as u64;
        let lost = |seed, _| SharingOptions {
            lost: Some((workers / 8, half(seed))),
            ..SharingOptions::new(*workers, seed)
        };
        let lost = cells(ReuseScope::Value, lost);
        let ratio = |of: fn(&SharingStats) -> f64| {
            mean(&lost, |cell| of(&cell.stats)) / mean(&calm, |cell| of(&cell.stats))
        };
        row(&[
            workers.to_string(),
            (workers / 8).to_string(),
            format!("{:.3}", ratio(|stats| stats.run_seconds)),
            format!("{:.0}", mean(&lost, |cell| cell.stats.repeated as f64)),
            format!("{:.0}", mean(&lost, |cell| cell.stats.unanswered as f64)),
            format!("{:.2}", ratio(|stats| stats.makespan_seconds)),
        ]);
    }
}

/// Eviction of results under memory budgets. Outputs in use are not evicted.
fn evictions(asked: &[usize]) {
    heading(&[
        "workers",
        "GB of results",
        "work saved",
        "tasks repeated",
        "makespan / bound",
        "peak of a worker, GB",
        "GB moved",
    ]);
    for workers in asked {
        for gigabytes in [0.25, 0.5, 1.0, 2.0, 1e9] {
            let result_bytes = (gigabytes * 1e9) as u64;
            let cells = cells(ReuseScope::Value, |seed, _| SharingOptions {
                result_bytes,
                ..SharingOptions::new(*workers, seed)
            });
            row(&[
                workers.to_string(),
                if gigabytes > 1e6 { "all".to_owned() } else { gigabytes.to_string() },
                format!("{} %", range(&cells, |cell| cell.saved, 1)),
                format!("{:.0}", mean(&cells, |cell| cell.stats.repeated as f64)),
                range(&cells, |cell| cell.of_bound, 2),
                format!("{:.2}", mean(&cells, |cell| cell.stats.max_result_bytes as f64 / 1e9)),
                format!("{:.1}", mean(&cells, |cell| cell.stats.bytes_moved as f64 / 1e9)),
            ]);
        }
    }
}
