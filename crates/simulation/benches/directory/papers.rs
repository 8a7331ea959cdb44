//! The papers' scaling studies with the result directory.

use super::{Kind, SAMPLES, SECONDS, heading, row, simulate, study};
use pleach_dispatch::plan::ReuseScope;
use pleach_simulation::sharing::{SharingCluster, SharingOptions, SharingStats};
use std::time::Instant;

/// Coefficient of variation of task times, as in the tables of bench `papers`.
const VARIATION: f64 = 0.2;

/// Seconds of the normalization of a tile, as in bench `papers`.
const FIRST_SECONDS: f64 = 9.49 * 2.46 / 3.18;

/// Simulates the first evaluations of a sample on several tiles. Returns the bound and the statistics.
fn on_tiles(
    scope: ReuseScope,
    evaluations: usize,
    tiles: u32,
    options: SharingOptions,
) -> (f64, SharingStats) {
    let rows: Vec<&str> = SAMPLES[0].lines().take(evaluations).collect();
    let study = study(&rows.join("\n"), scope).on_tiles(tiles, VARIATION);
    let critical_seconds = study.critical_seconds();
    let stats = SharingCluster::new(study, options).run(100_000.0).expect("the study ends");
    let unique_seconds = stats.run_seconds - stats.repeated_seconds;
    ((unique_seconds / options.workers as f64).max(critical_seconds), stats)
}

/// Thesis Table 4.2 and Fig. 4.4, paper 001 Fig. 14: MOAT on one tile. At stage level, each worker runs whole instances.
pub(crate) fn one_tile() {
    heading(&["workers", "stage, s", "stage / TRTMA, published", "stage / dataflow", "stage / value"]);
    for (workers, published) in
        [(8, "1.33"), (16, "1.34"), (32, "1.27"), (64, "1.12"), (128, "1.04"), (256, "1.01")]
    {
        let instances = SAMPLES[0].lines().count();
        let stage = instances.div_ceil(workers) as f64 * SECONDS.iter().sum::<f64>();
        let ratio = |scope| {
            let study = study(SAMPLES[0], scope);
            let cell = simulate(&study, study.cost(), SharingOptions::new(workers, 500));
            format!("{:.2}", stage / cell.stats.makespan_seconds)
        };
        let ratios = [ratio(ReuseScope::Dataflow), ratio(ReuseScope::Value)];
        row(&[vec![workers.to_string(), format!("{stage:.1}"), published.to_owned()], ratios.to_vec()]
            .concat());
    }
}

/// Thesis §4.4: 240 evaluations of 4,276 tiles on 128 nodes of 16 cores, on fewer tiles and workers in the same ratio. The
/// normalization is that of each tile once, and without reuse that of each run, at full efficiency in both.
pub(crate) fn large() {
    const TILES: f64 = 4276.0;
    const SLOTS: f64 = 128.0 * 16.0;
    const WORKERS: usize = 112;
    heading(&["scope", "no reuse, s", "ours, s", "no reuse / ours (published 2.54)", "efficiency"]);
    let each: f64 = SECONDS.iter().sum::<f64>() + FIRST_SECONDS;
    let alone = 240.0 * TILES * each / SLOTS;
    for scope in [ReuseScope::Dataflow, ReuseScope::Value] {
        let tiles = (TILES / SLOTS * WORKERS as f64).round() as u32;
        let options = SharingOptions { ranges: 3, ..SharingOptions::new(WORKERS, 500) };
        let (bound, stats) = on_tiles(scope, 240, tiles, options);
        let ours = stats.makespan_seconds + TILES * FIRST_SECONDS / SLOTS;
        row(&[
            scope.as_str().to_owned(),
            format!("{alone:.0}"),
            format!("{ours:.0}"),
            format!("{:.2}", alone / ours),
            format!("{:.3}", bound / stats.makespan_seconds),
        ]);
    }
}

/// Many tiles, each with the same number of slots as 6,113 tiles on nodes of 28 cores (003 §IV.D): fewer tiles and fewer
/// workers, since tiles are independent. MOAT with 160 evaluations, task times that vary by 0.2 from tile to tile and from
/// task to task, as in the tables of the papers.
pub(crate) fn tiles() {
    const WORKERS: usize = 896;
    heading(&[
        "nodes of 28 cores",
        "tiles a slot",
        "scope",
        "directory",
        "ranges a slot",
        "makespan, s",
        "bound, s",
        "efficiency",
        "tasks repeated",
        "look-ups a task",
        "GB moved",
        "s to simulate",
    ]);
    for nodes in [256, 1024, 4096] {
        let tiles_per_slot = 6113.0 / (nodes as f64 * 28.0);
        let tiles = (tiles_per_slot * WORKERS as f64).round() as u32;
        for scope in [ReuseScope::Dataflow, ReuseScope::Value] {
            for (kind, ranges) in [
                (Kind::Off, 3),
                (Kind::NoPaths, 3),
                (Kind::Present, 1),
                (Kind::Present, 3),
                (Kind::Present, 6),
            ] {
                let begun = Instant::now();
                let options = SharingOptions { ranges, ..kind.options(WORKERS, 500) };
                let (bound, stats) = on_tiles(scope, 160, tiles, options);
                row(&[
                    nodes.to_string(),
                    format!("{tiles_per_slot:.3}"),
                    scope.as_str().to_owned(),
                    kind.name().to_owned(),
                    ranges.to_string(),
                    format!("{:.1}", stats.makespan_seconds),
                    format!("{bound:.1}"),
                    format!("{:.3}", bound / stats.makespan_seconds),
                    stats.repeated.to_string(),
                    format!("{:.2}", stats.look_ups as f64 / stats.runs as f64),
                    format!("{:.0}", stats.bytes_moved as f64 / 1e9),
                    format!("{:.1}", begun.elapsed().as_secs_f64()),
                ]);
            }
        }
    }
}
