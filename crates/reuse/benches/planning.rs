//! Planning time at 10,000 and 100,000 runs: compact graph, reuse tree, RTMA.
//!
//! The input resembles a MOAT study of the reference application on ten tiles: trajectories over 15
//! parameters that change one at a time, consumed by 7 tasks. Throughput counts stage instances or runs per
//! second.

use std::num::NonZeroUsize;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach_reuse::{
    CompactGraph, ExternalIndex, Interner, LeftoverRule, MergeProblem, Merging, ReuseSummary, ReuseTree,
    Runs, Source, StageIndex, Strategy, TaskCosts, WorkflowShape,
};

const TILES: usize = 10;
/// Grid values of a parameter, the average of the reference application.
const VALUES: u64 = 12;
/// Parameters of each of the seven tasks. Two tasks consume FillHoles, number 12.
const TASKS: [&[usize]; 7] = [&[0, 1, 2, 3, 4], &[13], &[5, 12], &[7, 8], &[6], &[9, 14], &[10, 11, 12]];

/// Returns parameter sets along trajectories, by a multiplicative congruential generator. The quality of its
/// randomness does not matter here.
fn parameter_sets(evaluations: usize) -> Vec<[u64; 15]> {
    let mut state = 500_u64;
    let mut random = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut point = [0; 15];
    (0..evaluations)
        .map(|evaluation| {
            match evaluation % 16 {
                0 => point.fill_with(|| random(VALUES)),
                step => point[step - 1] = (point[step - 1] + VALUES / 2) % VALUES,
            }
            point
        })
        .collect()
}

fn runs(sets: &[[u64; 15]]) -> Runs {
    let segmentation = StageIndex(1);
    let stages = vec![
        vec![Source::External(ExternalIndex(0))],
        vec![Source::Stage(StageIndex(0))],
        vec![Source::Stage(segmentation), Source::Reference(segmentation)],
    ];
    let shape = WorkflowShape::new(stages, 1).expect("a valid workflow");
    let mut interner = Interner::default();
    let keys = sets.iter().flat_map(|set| [0, interner.intern(*set), 0]).collect();
    let tiles = (0..TILES as u32).collect();
    Runs::new(shape, sets.len(), TILES, keys, tiles, true).expect("valid runs")
}

fn problem(sets: &[[u64; 15]], runs: &Runs, graph: &CompactGraph) -> MergeProblem {
    let mut interners: [Interner<Vec<u64>>; TASKS.len()] = Default::default();
    let (mut inputs, mut keys) = (Vec::new(), Vec::new());
    for id in graph.of_stage(StageIndex(1)) {
        let instance = graph.instance(id);
        let set = &sets[runs.evaluation(instance.first_run)];
        inputs.push(instance.inputs.0);
        for (task, interner) in TASKS.iter().zip(&mut interners) {
            keys.push(interner.intern(task.iter().map(|parameter| set[*parameter]).collect()));
        }
    }
    MergeProblem::new(TASKS.len(), inputs, keys, TaskCosts::Count).expect("a valid problem")
}

fn planning(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("planning");
    group.sample_size(10);
    for count in [10_000, 100_000] {
        let sets = parameter_sets(count / TILES);
        let runs = runs(&sets);
        let graph = CompactGraph::build(&runs, Merging::Merged);
        let problem = problem(&sets, &runs, &graph);
        let tree = ReuseTree::build(&problem);
        let rtma = Strategy::Rtma {
            max_bucket_size: NonZeroUsize::new(8).expect("8 is not 0"),
            ending: LeftoverRule::default(),
        };
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("compact graph", count), |bencher| {
            bencher.iter(|| CompactGraph::build(&runs, Merging::Merged));
        });
        group.bench_function(BenchmarkId::new("reuse tree", count), |bencher| {
            bencher.iter(|| ReuseTree::build(&problem));
        });
        group.bench_function(BenchmarkId::new("rtma", count), |bencher| {
            bencher.iter(|| rtma.solve(&problem, &tree));
        });
        let buckets = rtma.solve(&problem, &tree).expect("solved");
        group.bench_function(BenchmarkId::new("figures", count), |bencher| {
            bencher.iter(|| ReuseSummary::new(&problem, &tree, &buckets, |_| true));
        });
    }
    group.finish();
}

criterion_group!(benches, planning);
criterion_main!(benches);
