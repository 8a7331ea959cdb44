//! One tile on 8 to 256 workers: with enough buckets for all workers, and with too few.

use crate::designs::{self, Sampler, Set};
use crate::{Simulated, design, heading, limit, row, simulate};
use pleach_simulation::workload::Bucketing;

const WORKERS: [usize; 6] = [8, 16, 32, 64, 128, 256];

/// Returns the mean makespan over several seeds of the task times, and the first simulation's result.
fn mean(sets: &[Set], cut: Bucketing, workers: usize, help: bool) -> (f64, Simulated) {
    const SEEDS: [u64; 3] = [500, 501, 502];
    let mut all: Vec<Simulated> =
        SEEDS.iter().map(|seed| simulate(design(sets, 1, false, cut, *seed), workers, 1, help)).collect();
    let sum: f64 = all.iter().map(|simulated| simulated.figures.makespan_seconds).sum();
    (sum / SEEDS.len() as f64, all.swap_remove(0))
}

/// Thesis Fig. 4.4, 4.5 and Table 4.2, and paper 001 Fig. 14.
pub(crate) fn moat() {
    heading(
        "Thesis Table 4.2, Fig. 4.4 and 4.5, paper 001 Fig. 14: MOAT 1000 on one tile, TRTMA with 3 buckets a worker (simulated; mean of three)",
        &[
            "workers",
            "stage, s",
            "RTMA 10, s",
            "TRTMA by counts, s",
            "stage / TRTMA, published",
            "ours",
            "RTMA / TRTMA, published",
            "ours",
            "by costs and with help, s",
            "stage / that",
            "work saved",
        ],
    );
    let sets = designs::moat(1000, 500);
    // The text of Fig. 14: better than stage level up to 32 machines, nearly twice as slow as TRTMA at 256.
    let published =
        [("1.33", ""), ("1.34", ""), ("1.27", ""), ("1.12", ""), ("1.04", ""), ("1.01", "close to 2")];
    for (workers, (stage_published, rtma_published)) in WORKERS.into_iter().zip(published) {
        let (stage, first) = mean(&sets, Bucketing::Single, workers, false);
        let (rtma, _) = mean(&sets, Bucketing::Rtma(limit(10)), workers, false);
        let (counts, _) = mean(&sets, Bucketing::TrtmaByCount(limit(3 * workers)), workers, false);
        let (costs, with) = mean(&sets, Bucketing::Trtma(limit(3 * workers)), workers, true);
        row(&[
            workers.to_string(),
            format!("{stage:.1}"),
            format!("{rtma:.1}"),
            format!("{counts:.1}"),
            stage_published.into(),
            format!("{:.2}", stage / counts),
            rtma_published.into(),
            format!("{:.2}", rtma / counts),
            format!("{costs:.1}"),
            format!("{:.2}", stage / costs),
            format!("{:.1} %", 100.0 * (1.0 - with.figures.work_seconds / first.figures.work_seconds)),
        ]);
    }
}

/// Paper 001 Fig. 15.
pub(crate) fn vbd() {
    heading(
        "Paper 001 Fig. 15: VBD 10,000 on one tile (published: stage / RTMA 1.26 to 1.35, TRTMA the same; simulated, mean of three)",
        &[
            "workers",
            "stage, s",
            "RTMA 10, s",
            "TRTMA by counts, s",
            "stage / RTMA",
            "stage / TRTMA",
            "by costs and with help, s",
            "stage / that",
        ],
    );
    let sets = designs::vbd(Sampler::MonteCarlo, 1000, 500);
    for workers in WORKERS {
        let (stage, _) = mean(&sets, Bucketing::Single, workers, false);
        let (rtma, _) = mean(&sets, Bucketing::Rtma(limit(10)), workers, false);
        let (counts, _) = mean(&sets, Bucketing::TrtmaByCount(limit(3 * workers)), workers, false);
        let (costs, _) = mean(&sets, Bucketing::Trtma(limit(3 * workers)), workers, true);
        row(&[
            workers.to_string(),
            format!("{stage:.0}"),
            format!("{rtma:.0}"),
            format!("{counts:.0}"),
            format!("{:.2}", stage / rtma),
            format!("{:.2}", stage / counts),
            format!("{costs:.0}"),
            format!("{:.2}", stage / costs),
        ]);
    }
}
