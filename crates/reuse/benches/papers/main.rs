//! Published planning results beside those of this planner: maximum reuse by sampler, reuse by bucket size,
//! TRTMA by workers, planning time, and the predicted makespan of a study on increasing numbers of workers.
//!
//! Run `benches/papers/run --tables`, or `cargo bench -p pleach-reuse --bench papers`. Samples differ from the
//! published ones (fixed seeds), so results agree to about a percentage point. `benches/strategies.py`
//! measures whole studies.

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

#[path = "../../tests/support/application.rs"]
mod application;
mod designs;
mod makespan;

use std::num::NonZeroUsize;
use std::time::Instant;

use application::{TASKS, task_graph};
use designs::{PARAMETERS, Sampler, Set, moat, vbd};
use pleach_reuse::{
    Interner, LeftoverRule, MergeProblem, ReuseSummary, ReuseTree, Strategy, TaskCosts, TrtmaOptions,
};

/// Seconds of each task on a tile (thesis Table 4.3).
const SECONDS: [f64; 7] = [1.14, 1.99, 0.65, 0.33, 0.76, 3.76, 0.86];

/// Returns the segmentation of one tile, after stage-level merging.
fn problem(sets: &[Set], costs: TaskCosts) -> MergeProblem {
    let mut stage = Interner::default();
    let mut interners: [Interner<Vec<u64>>; TASKS.len()] = Default::default();
    let mut keys = Vec::new();
    for set in sets {
        let known = stage.len();
        if stage.intern(*set) as usize != known {
            continue;
        }
        for (task, interner) in TASKS.iter().zip(&mut interners) {
            let of = |name: &&str| PARAMETERS.iter().position(|parameter| parameter.0 == *name);
            keys.push(interner.intern(task.iter().filter_map(of).map(|parameter| set[parameter]).collect()));
        }
    }
    MergeProblem::new(TASKS.len(), vec![0; stage.len()], keys, costs).expect("tables that fit")
}

fn limit(limit: usize) -> NonZeroUsize {
    NonZeroUsize::new(limit).expect("not 0")
}

fn rtma(max_bucket_size: usize) -> Strategy {
    Strategy::Rtma { max_bucket_size: limit(max_bucket_size), ending: LeftoverRule::default() }
}

fn trtma(max_buckets: usize) -> Strategy {
    Strategy::Trtma { max_buckets: limit(max_buckets), options: TrtmaOptions::default() }
}

fn figures(problem: &MergeProblem, strategy: Strategy) -> ReuseSummary {
    let tree = ReuseTree::build(problem);
    let buckets = strategy.solve(problem, &tree).expect("few enough to solve");
    ReuseSummary::new(problem, &tree, &buckets, |_| true)
}

fn percent(fraction: f64) -> String {
    format!("{:.2} %", 100.0 * fraction)
}

fn heading(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |\n| {} |", columns.join(" | "), vec!["---"; columns.len()].join(" | "));
}

fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

fn main() {
    maximum_reuse();
    bucket_sizes();
    smart_cuts();
    monte_carlo();
    workers();
    planning_time();
    makespan::table(&problem(&moat(1000, 500), TaskCosts::PerLevel(SECONDS.to_vec())), &task_graph());
}

/// Thesis Table 4.1, which equals paper 001 Table 5.
fn maximum_reuse() {
    let samplers = [
        ("Monte Carlo", Sampler::MonteCarlo, [36.35, 36.46, 36.40]),
        ("Latin hypercube", Sampler::LatinHypercube, [36.62, 36.44, 36.44]),
        ("Halton", Sampler::Halton, [35.10, 34.44, 33.48]),
    ];
    heading("Thesis Table 4.1: maximum reuse of VBD", &["sampler", "samples", "published", "ours"]);
    for (name, sampler, published) in samplers {
        for (samples, published) in [200, 600, 1000].into_iter().zip(published) {
            let problem = problem(&vbd(sampler, samples, 500), TaskCosts::Count);
            let all = (problem.len() * problem.levels()) as f64;
            let reuse = 1.0 - ReuseTree::build(&problem).len() as f64 / all;
            row(&[name.into(), samples.to_string(), format!("{published:.2} %"), percent(reuse)]);
        }
    }
}

/// Thesis Fig. 4.3 is a drawing. According to its text, times differ by up to 12 % between the ends, and
/// reuse ends at about 33 %.
fn bucket_sizes() {
    let title = "Thesis Fig. 4.3: MaxBucketSize of RTMA, MOAT 640 (published: 12 % between the ends, reuse ends at about 33 %)";
    heading(title, &["MaxBucketSize", "reuse", "seconds of tasks, of size 8"]);
    let problem = problem(&moat(640, 500), TaskCosts::PerLevel(SECONDS.to_vec()));
    let last = figures(&problem, rtma(8)).cost;
    for size in 2..=8 {
        let figures = figures(&problem, rtma(size));
        row(&[size.to_string(), percent(figures.reuse_fraction), format!("{:.3}", figures.cost / last)]);
    }
}

/// Thesis §4.2.1: SCA's solutions are as good as RTMA's, but take far longer.
fn smart_cuts() {
    let title = "Thesis §4.2.1: SCA and RTMA, MaxBucketSize 7, MOAT (published: both reuse about 33 %)";
    heading(title, &["evaluations", "SCA", "RTMA", "SCA, seconds", "RTMA, seconds"]);
    for evaluations in [50, 100, 160, 200] {
        let problem = problem(&moat(evaluations, 500), TaskCosts::Count);
        let timed = |strategy| {
            let start = Instant::now();
            let reuse = figures(&problem, strategy).reuse_fraction;
            (percent(reuse), format!("{:.4}", start.elapsed().as_secs_f64()))
        };
        let (sca, sca_seconds) = timed(Strategy::Sca { max_bucket_size: limit(7) });
        let (rtma, rtma_seconds) = timed(rtma(7));
        row(&[evaluations.to_string(), sca, rtma, sca_seconds, rtma_seconds]);
    }
}

/// Paper 003 Table II.
fn monte_carlo() {
    heading("Paper 003 Table II: RTMA, VBD 8,000 by Monte Carlo", &["MaxBucketSize", "published", "ours"]);
    let problem = problem(&vbd(Sampler::MonteCarlo, 800, 500), TaskCosts::Count);
    let published = [(2, 21.82), (3, 27.73), (4, 31.75), (5, 27.94), (6, 33.57), (8, 36.32), (10, 36.36)];
    for (size, published) in published {
        let reuse = figures(&problem, rtma(size)).reuse_fraction;
        row(&[size.to_string(), format!("{published:.2} %"), percent(reuse)]);
    }
}

/// Thesis Table 4.2.
fn workers() {
    let title = "Thesis Table 4.2: TRTMA with 3 buckets a worker, MOAT 1000";
    heading(title, &["workers", "published", "ours", "dearest / cheapest bucket, tasks"]);
    let problem = problem(&moat(1000, 500), TaskCosts::Count);
    let published = [(8, 32.96), (16, 32.96), (32, 32.11), (64, 30.58), (128, 28.23), (256, 10.73)];
    for (workers, published) in published {
        let figures = figures(&problem, trtma(3 * workers));
        let costs = format!("{} / {}", figures.max_bucket_cost, figures.min_bucket_cost);
        row(&[workers.to_string(), format!("{published:.2} %"), percent(figures.reuse_fraction), costs]);
    }
}

/// Paper 001 Fig. 16 is a drawing. Time grows less than quadratically with n and falls with MaxBuckets.
fn planning_time() {
    let limits = [24, 96, 384, 1536];
    heading(
        "Paper 001 Fig. 16: planning time of TRTMA in milliseconds, VBD (published: subquadratic)",
        &["instances", "24 buckets", "96", "384", "1536"],
    );
    for samples in [100, 300, 1000, 3000, 10_000] {
        let problem = problem(&vbd(Sampler::MonteCarlo, samples, 500), TaskCosts::Count);
        let mut cells = vec![problem.len().to_string()];
        for max_buckets in limits {
            let start = Instant::now();
            let tree = ReuseTree::build(&problem);
            let buckets = trtma(max_buckets).solve(&problem, &tree).expect("TRTMA takes any problem");
            let milliseconds = 1e3 * start.elapsed().as_secs_f64();
            assert!(buckets.len() <= max_buckets);
            cells.push(format!("{milliseconds:.1}"));
        }
        row(&cells);
    }
}
