//! Thousands of tiles on hundreds and thousands of workers.

use crate::{
    FIRST_SECONDS, SECONDS, Simulated, TILE_BYTES, VARIATION, design, designs, heading, keys, limit, row,
    simulate,
};
use pleach_simulation::workload::{Bucketing, WorkloadDesign};

/// Thesis §4.4: 240 evaluations of 4,276 tiles on 128 nodes of 16 cores.
pub(crate) fn large() {
    const TILES: u32 = 4276;
    const NODES: usize = 128;
    const CORES: u32 = 16;
    heading(
        "Thesis §4.4: 240 evaluations of 4,276 tiles on 128 nodes (simulated, 16 cores each)",
        &[
            "version",
            "published, s",
            "ours, s",
            "against no reuse, published",
            "ours",
            "slots busy",
            "events",
            "manager, µs an event",
            "manager's load",
            "simulated in, s",
        ],
    );
    let sets = designs::moat(240, 500);
    // Without reuse the normalization is a task of every run and shared by none.
    let each = keys(&sets, false);
    let alone = each.chunks(SECONDS.len()).zip(0..);
    let all = WorkloadDesign {
        tiles: TILES,
        levels: 1 + SECONDS.len(),
        keys: alone.flat_map(|(keys, run)| [run].into_iter().chain(keys.iter().copied())).collect(),
        seconds: [FIRST_SECONDS].into_iter().chain(SECONDS).collect(),
        first_seconds: None,
        variation: VARIATION,
        region_bytes: TILE_BYTES,
        cut: Bucketing::Single,
        seed: 500,
    };
    let buckets = 3 * NODES * CORES as usize;
    let rows = [
        ("no reuse", "15,681", 1.0, all, false),
        (
            "stage level",
            "12,544",
            15_681.0 / 12_544.0,
            design(&sets, TILES, true, Bucketing::Single, 500),
            false,
        ),
        (
            "task level, RTMA 7",
            "6,173",
            15_681.0 / 6_173.0,
            design(&sets, TILES, true, Bucketing::Rtma(limit(7)), 500),
            false,
        ),
        (
            "TRTMA by costs and with help",
            "",
            0.0,
            design(&sets, TILES, true, Bucketing::Trtma(limit(buckets)), 500),
            true,
        ),
    ];
    let mut first = 0.0;
    for (name, published, ratio, design, help) in rows {
        let simulated = simulate(design, NODES, CORES, help);
        let seconds = simulated.figures.makespan_seconds;
        first = if first == 0.0 { seconds } else { first };
        let mut cells = vec![
            name.to_owned(),
            published.to_owned(),
            format!("{seconds:.0}"),
            if ratio > 0.0 { format!("{ratio:.2}") } else { String::new() },
            format!("{:.2}", first / seconds),
        ];
        cells.extend(work(&simulated));
        row(&cells);
    }
}

/// Formats the busy share of the slots, and the manager's events, time per event, load and wall seconds.
fn work(simulated: &Simulated) -> [String; 5] {
    [
        format!("{:.1} %", 100.0 * simulated.busy()),
        simulated.figures.events.to_string(),
        format!("{:.2}", simulated.manager_us()),
        format!("{:.3} %", 100.0 * simulated.load()),
        format!("{:.1}", simulated.wall_seconds),
    ]
}

/// Paper 003 §IV.D: 6,113 tiles on growing numbers of nodes with 28 cores, compared with the smallest. An argument that is a
/// number limits the nodes.
pub(crate) fn strong() {
    const TILES: u32 = 6113;
    const CORES: u32 = 28;
    heading(
        "Paper 003 §IV.D: 6,113 tiles, parallel efficiency (published: 0.92 at 256 nodes of 28 cores; ours: MOAT 160, simulated)",
        &[
            "nodes",
            "strategy",
            "seconds",
            "efficiency against 8 nodes",
            "slots busy",
            "events",
            "manager, µs an event",
            "manager's load",
            "simulated in, s",
        ],
    );
    let sets = designs::moat(160, 500);
    let most = std::env::args().filter_map(|arg| arg.parse().ok()).max().unwrap_or(4096_usize);
    for (name, help) in [("RTMA 10", false), ("TRTMA, 3 a core, with help", true)] {
        let mut first = 0.0;
        for nodes in [8_usize, 64, 256, 1024, 4096].into_iter().filter(|nodes| *nodes <= most) {
            let cores = nodes * CORES as usize;
            let cut = if help { Bucketing::Trtma(limit(3 * cores)) } else { Bucketing::Rtma(limit(10)) };
            let simulated = simulate(design(&sets, TILES, true, cut, 500), nodes, CORES, help);
            let node_seconds = simulated.figures.makespan_seconds * nodes as f64;
            first = if nodes == 8 { node_seconds } else { first };
            let mut cells = vec![
                nodes.to_string(),
                name.to_owned(),
                format!("{:.1}", simulated.figures.makespan_seconds),
                format!("{:.3}", first / node_seconds),
            ];
            cells.extend(work(&simulated));
            row(&cells);
        }
    }
}

/// Paper 001 §5.1: a constant number of tiles per core, on nodes as in the paper and on 10,000 workers of one core
/// each.
pub(crate) fn weak() {
    heading(
        "Paper 001 §5.1: weak scaling, one run of each tile (published: 136,568 tiles on 256 nodes of 16 cores \"scaled well\"; simulated)",
        &[
            "workers",
            "cores each",
            "tiles",
            "seconds",
            "efficiency against the first",
            "slots busy",
            "events",
            "manager, µs an event",
            "manager's load",
            "simulated in, s",
        ],
    );
    let one = designs::moat(1, 500);
    let cases = [
        [(1, 16, 533), (16, 16, 8_535), (256, 16, 136_568), (1_000, 16, 533_470)],
        [(10, 1, 500), (100, 1, 5_000), (1_000, 1, 50_000), (10_000, 1, 500_000)],
    ];
    for cases in cases {
        let mut first = 0.0;
        for (workers, cores, tiles) in cases {
            let simulated = simulate(design(&one, tiles, true, Bucketing::Single, 500), workers, cores, true);
            // The number of tiles per core is constant except for rounding.
            let a_tile =
                simulated.figures.makespan_seconds * (workers * cores as usize) as f64 / f64::from(tiles);
            first = if first == 0.0 { a_tile } else { first };
            let mut cells = vec![
                workers.to_string(),
                cores.to_string(),
                tiles.to_string(),
                format!("{:.1}", simulated.figures.makespan_seconds),
                format!("{:.3}", first / a_tile),
            ];
            cells.extend(work(&simulated));
            row(&cells);
        }
    }
}
