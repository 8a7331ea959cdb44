//! Predicted makespan of one study on one tile, on 1 to 256 workers: stage-level merging, the papers'
//! strategies, and results shared between workers at run time.
//!
//! Uses list scheduling with the most expensive bucket first. A worker runs one bucket at a time. Besides
//! tasks, only transfers cost time.

use std::num::NonZeroUsize;

use pleach_reuse::{
    BucketCost, Dataflow, JobGraph, MergeProblem, ReuseTree, SharingSchedule, Strategy, TaskCosts, TaskGraph,
    TransferCost, bucket_costs, lower_bound_seconds, reuse_fraction,
};

use crate::{heading, limit, percent, row, rtma, trtma};

/// Bytes of each task's outputs on a tile of 4096 × 4096 pixels: one or two planes of one byte per pixel.
const OUTPUT_BYTES: [u64; 7] = [PLANE + PLANE, PLANE + PLANE, PLANE + PLANE, PLANE, PLANE, PLANE, PLANE];
const PLANE: u64 = 4096 * 4096;

/// 10 Gbit/s, with a latency of 1 ms.
const LINK: TransferCost = TransferCost { bytes_per_second: 1.25e9, latency_seconds: 1e-3 };

/// Returns the makespan of buckets without dependencies.
fn spread(costs: &[BucketCost], workers: NonZeroUsize) -> f64 {
    let mut seconds: Vec<f64> = costs.iter().map(|bucket| bucket.cost).collect();
    seconds.sort_unstable_by(|a, b| b.total_cmp(a));
    JobGraph::with_edges(seconds, Vec::new()).expect("seconds").makespan_seconds(workers)
}

/// Makespan and reuse of buckets that share results at run time.
struct SharedRun {
    seconds: f64,
    reuse: f64,
    cost_reuse: f64,
}

fn shared(
    problem: &MergeProblem,
    dataflow: &Dataflow,
    strategy: Strategy,
    workers: NonZeroUsize,
) -> SharedRun {
    let tree = ReuseTree::build(problem);
    let buckets = strategy.solve(problem, &tree).expect("few enough to solve");
    let all: f64 = problem.members().map(|member| problem.member_cost(member)).sum();
    let tasks = (problem.len() * problem.levels()) as f64;
    let mut schedule = SharingSchedule::new(dataflow, OUTPUT_BYTES.to_vec(), LINK);
    let jobs = JobGraph::with_edges(vec![0.0; buckets.len()], Vec::new()).expect("independent jobs");
    let seconds = jobs.makespan_by(workers, |job, worker, now| schedule.begin(worker, buckets.get(job), now));
    let forecast = schedule.forecast();
    let run = dataflow.len() + forecast.recomputed_tasks;
    let run_seconds = dataflow.figures(problem).cost + forecast.recompute_seconds;
    SharedRun {
        reuse: reuse_fraction(run as f64, tasks),
        cost_reuse: reuse_fraction(run_seconds, all),
        seconds,
    }
}

/// Prints the table. Costs of the problem are seconds.
pub(crate) fn table(problem: &MergeProblem, graph: &TaskGraph) {
    heading(
        "Predicted makespan in seconds, MOAT 1000 on one tile, costs of Table 4.3",
        &[
            "workers",
            "stage",
            "RTMA, 10",
            "TRTMA by counts",
            "TRTMA by costs",
            "shared",
            "its reuse",
            "by cost",
            "best",
            "bound",
            "best / bound",
        ],
    );
    let tree = ReuseTree::build(problem);
    let keys = problem.members().flat_map(|member| problem.keys(member).to_vec()).collect();
    let inputs = problem.members().map(|member| problem.inputs(member)).collect();
    let counted =
        MergeProblem::new(problem.levels(), inputs, keys, TaskCosts::Count).expect("the same tables");
    let dataflow = Dataflow::build(problem, graph);
    // The longest chain of tasks of one instance.
    let mut until = vec![0.0_f64; dataflow.len()];
    for task in dataflow.tasks() {
        let before = dataflow.reads(task).iter().map(|read| until[read.0 as usize]).fold(0.0, f64::max);
        until[task.0 as usize] = before + dataflow.cost(task);
    }
    let chain = until.into_iter().fold(0.0, f64::max);
    for workers in [1, 2, 4, 8, 16, 32, 64, 128, 256].map(limit) {
        let of = |strategy: Strategy, by: &MergeProblem| {
            let buckets = strategy.solve(by, &ReuseTree::build(by)).expect("few enough to solve");
            spread(&bucket_costs(&tree, &buckets, |_| true), workers)
        };
        let stage = of(Strategy::Stage, problem);
        let shared_run = [Strategy::Stage, trtma(3 * workers.get())]
            .map(|strategy| shared(problem, &dataflow, strategy, workers));
        let [alone, grouped] = shared_run;
        let shared_run = if grouped.seconds < alone.seconds { grouped } else { alone };
        let others = [
            stage,
            of(rtma(10), problem),
            of(trtma(3 * workers.get()), &counted),
            of(trtma(3 * workers.get()), problem),
            shared_run.seconds,
        ];
        let best = others.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(best <= stage);
        let bound = lower_bound_seconds(chain, dataflow.figures(problem).cost, workers);
        let mut cells = vec![workers.to_string()];
        cells.extend(others.map(|seconds| format!("{seconds:.1}")));
        cells.extend([percent(shared_run.reuse), percent(shared_run.cost_reuse)]);
        cells.extend([format!("{best:.1}"), format!("{bound:.1}"), format!("{:.2}", best / bound)]);
        row(&cells);
    }
}
