//! Granularity on the simulated cluster: a workflow whose stages are fused as proposed takes the predicted time on one slot, and is
//! never slower than the separate stages there or on a cluster with a slot for each instance.
//!
//! The overhead of a stage instance is the one of the simulation: its request and its grant. With more than one slot and fewer than
//! instances, fused stages can end later, because larger steps pack worse. The model of granularity counts work, not that.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use pleach_dispatch::InstanceId;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan};
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{FusionSavings, Granularity, GranularityProblem, TaskGraph, TaskReads};
use pleach_simulation::cluster::{Cluster, ClusterStats};
use pleach_simulation::scenario::{NetworkModel, NodeSpec, Scenario};
use pleach_simulation::workload::{StageWorkload, SyntheticWorkload, Workload};
use pleach_workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Largest difference by rounding, seconds: the simulated clock counts whole microseconds, down for each instance.
const ROUNDING_SECONDS: f64 = 1e-4;

/// A workflow of stages with one task each, and its evaluations.
#[derive(Clone, Debug)]
struct Case {
    /// Earlier stages that each stage reads.
    reads: Vec<Vec<usize>>,
    /// By evaluation and stage: the key of the stage's own parameters.
    keys: Vec<Vec<u32>>,
    /// Milliseconds of an instance of each stage.
    milliseconds: Vec<u32>,
    /// Latency of a message.
    latency_ms: u32,
}

/// Identity of a stage instance: the keys of its stage and of all stages that it depends on.
type History = BTreeSet<(usize, u32)>;

impl Case {
    fn stages(&self) -> usize {
        self.reads.len()
    }

    fn seconds(&self, stage: usize) -> f64 {
        f64::from(self.milliseconds[stage]) / 1e3
    }

    fn latency_seconds(&self) -> f64 {
        f64::from(self.latency_ms) / 1e3
    }

    fn history(&self, evaluation: usize, stage: usize) -> History {
        let mut all = History::from([(stage, self.keys[evaluation][stage])]);
        self.reads[stage].iter().for_each(|read| all.extend(self.history(evaluation, *read)));
        all
    }

    /// Returns the groups of stages that take the least time.
    fn solve(&self) -> Granularity {
        let reads =
            self.reads.iter().map(|reads| TaskReads { tasks: reads.clone(), inputs: reads.is_empty() });
        let graph = TaskGraph::new(reads.collect()).unwrap();
        let distinct = |stage: usize| {
            let all: BTreeSet<History> = (0..self.keys.len()).map(|of| self.history(of, stage)).collect();
            all.len() as u64
        };
        let means: Vec<f64> = (0..self.stages()).map(|stage| self.seconds(stage)).collect();
        let (instances, outside) = ((0..self.stages()).map(distinct).collect(), vec![false; self.stages()]);
        let problem = GranularityProblem::of_means(&graph, instances, &means, &outside);
        problem.solve(FusionSavings {
            overhead_seconds: 2.0 * self.latency_seconds(),
            transfer_seconds: &vec![0.0; self.stages()],
        })
    }

    fn separate(&self) -> Vec<Vec<usize>> {
        (0..self.stages()).map(|stage| vec![stage]).collect()
    }

    /// Creates the workload of a workflow whose stages are these groups, with a bucket for each distinct instance.
    fn workload(&self, groups: &[Vec<usize>]) -> Workload {
        let group_of = |stage: usize| groups.iter().position(|group| group.contains(&stage)).unwrap();
        let mut plan = ExecutionPlan::default();
        let mut works = Vec::new();
        let mut ids: BTreeMap<(usize, History), InstanceId> = BTreeMap::new();
        for (number, group) in groups.iter().enumerate() {
            let (first, last) = (group[0], group[group.len() - 1]);
            let sources: Vec<usize> = self.reads[first].iter().map(|read| group_of(*read)).collect();
            let is_read = self.reads.iter().any(|reads| reads.contains(&last));
            plan.stages.push(stage(&sources, group.len()));
            let mut work = StageWorkload { levels: group.len(), ..StageWorkload::default() };
            for evaluation in 0..self.keys.len() {
                let own = (number, self.history(evaluation, last));
                if ids.contains_key(&own) {
                    continue;
                }
                let id = InstanceId(plan.instances.len() as u32);
                let parent = |read: &usize| ids[&(group_of(*read), self.history(evaluation, *read))];
                let parents: Vec<InstanceId> = self.reads[first].iter().map(parent).collect();
                plan.instances.push(InstancePlan {
                    stage: number,
                    parameters: Vec::new(),
                    inputs: parents.iter().copied().map(key).collect(),
                    outputs: vec![OutputPlan { key: key(id), stored: is_read, reported: !is_read }],
                    parents,
                });
                plan.buckets.push(BucketPlan { instances: vec![id], pixels: 1 });
                work.instances.push(id);
                work.inputs.push(0);
                work.keys.extend(group.iter().map(|_| id.0));
                work.seconds.extend(group.iter().map(|stage| self.seconds(*stage)));
                ids.insert(own, id);
            }
            works.push(work);
        }
        Workload::traced(plan, works, (HashMap::new(), 0), 0.0, 1).unwrap()
    }

    /// Simulates a workflow whose stages are these groups on workers of one slot, under audit.
    fn simulate(&self, groups: &[Vec<usize>], workers: usize) -> ClusterStats {
        let scenario = Scenario {
            seed: 1,
            nodes: vec![NodeSpec { slots: 1, speed: 1.0 }; workers],
            studies: vec![(0, SyntheticWorkload::UNUSED)],
            incidents: Vec::new(),
            network: NetworkModel {
                latency_us: 1000 * u64::from(self.latency_ms),
                jitter_us: 0,
                ..NetworkModel::default()
            },
            tick_ms: 500,
            replan: false,
            limit_seconds: 1000.0,
        };
        Cluster::with_workloads(scenario, vec![self.workload(groups)], true, false).run().unwrap()
    }
}

fn key(instance: InstanceId) -> RegionKey {
    RegionKey(u128::from(instance.0).to_be_bytes())
}

/// A stage that reads these stages, with a chain of tasks.
fn stage(sources: &[usize], tasks: usize) -> Stage {
    let region = || RegionDecl { region: "out".to_owned(), element: ElementType::Gray8 };
    let inputs = sources
        .iter()
        .map(|source| StageInput::new(region(), InputOrigin::Stage { stage: *source, output: 0 }));
    let task = |number: usize| Task {
        name: format!("task {number}"),
        description: String::new(),
        operation: "simulated.task".to_owned(),
        version: 1,
        arguments: Vec::new(),
        reads: match number.checked_sub(1) {
            Some(task) => vec![TaskInput::Task { task, output: 0 }],
            None => (0..sources.len()).map(TaskInput::StageInput).collect(),
        },
        writes: vec![region()],
        guard: None,
    };
    Stage {
        name: "stage".to_owned(),
        description: String::new(),
        inputs: inputs.collect(),
        outputs: vec![StageOutput::new(region(), tasks - 1, 0)],
        parameters: Vec::new(),
        tasks: (0..tasks).map(task).collect(),
        switch: None,
    }
}

fn cases() -> impl Strategy<Value = Case> {
    (1..=5_usize).prop_flat_map(|stages| {
        let read = |stage: usize| {
            // Mostly chains: few stages of other graphs may be fused.
            (vec(any::<bool>(), stage), 0..4_u32).prop_map(move |(chosen, shape)| -> Vec<usize> {
                let earlier = (0..stage).filter(|earlier| chosen[*earlier]);
                if shape > 0 { (stage.max(1) - 1..stage).collect() } else { earlier.collect() }
            })
        };
        let reads = (0..stages).map(read).collect::<Vec<_>>();
        let keys = vec(vec(0..3_u32, stages), 1..7);
        // No bucket is short: several of those would share a request and a grant.
        let milliseconds = vec((1e3 * Manager::SHORT_SECONDS) as u32..40, stages);
        (reads, keys, milliseconds, 1..30_u32).prop_map(|(reads, keys, milliseconds, latency_ms)| Case {
            reads,
            keys,
            milliseconds,
            latency_ms,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn fused_workflows_are_never_slower(case in cases()) {
        let found = case.solve();
        let [fused, separate] = [&found.groups, &case.separate()].map(|groups| case.simulate(groups, 1));
        // The last report follows.
        let expected = |seconds: f64| seconds + case.latency_seconds();
        for (stats, seconds) in [(fused, found.seconds), (separate, found.separate_seconds)] {
            let difference = (stats.makespan_seconds - expected(seconds)).abs();
            prop_assert!(difference < ROUNDING_SECONDS, "{stats:?}, {seconds} s predicted");
        }
        prop_assert!(fused.makespan_seconds <= separate.makespan_seconds + ROUNDING_SECONDS);
        // Idle workers may run an instance a second time. Others remain for each that is ready.
        let workers = 2 * separate.executed as usize;
        let [fused, separate] = [&found.groups, &case.separate()].map(|groups| case.simulate(groups, workers));
        prop_assert!(
            fused.makespan_seconds <= separate.makespan_seconds + ROUNDING_SECONDS,
            "{fused:?} {separate:?}"
        );
    }
}

/// Three stages in a chain. The first has one instance, the others four, which differ from the second on.
fn chain(milliseconds: [u32; 3], latency_ms: u32) -> Case {
    Case {
        reads: vec![vec![], vec![0], vec![1]],
        keys: (0..4).map(|key| vec![0, key, 0]).collect(),
        milliseconds: milliseconds.to_vec(),
        latency_ms,
    }
}

#[test]
fn fused_stages_save_the_overhead_of_their_instances() {
    let case = chain([50, 10, 10], 5);
    let found = case.solve();
    assert_eq!(found.groups, [vec![0], vec![1, 2]]);
    let [fused, separate] = [&found.groups, &case.separate()].map(|groups| case.simulate(groups, 1));
    assert_eq!((fused.executed, separate.executed), (5, 9));
    // Four instances less, each with a request and a grant of 5 ms.
    assert_eq!((separate.makespan_seconds, fused.makespan_seconds), (0.225, 0.185));
    // With a slot for each, the path is shorter by one overhead.
    let wide = [&found.groups, &case.separate()].map(|groups| case.simulate(groups, 18).makespan_seconds);
    assert!(wide[0] < wide[1], "{wide:?}");
    // A first stage of 2 ms runs four times rather than alone.
    let short = chain([2, 10, 10], 5);
    let found = short.solve();
    assert_eq!(found.groups, [vec![0, 1, 2]]);
    let [fused, separate] = [&found.groups, &short.separate()].map(|groups| short.simulate(groups, 1));
    let work_ms = |stats: ClusterStats| (1e3 * stats.work_seconds).round();
    assert_eq!((fused.executed, work_ms(fused), work_ms(separate)), (4, 88.0, 82.0));
    assert!(fused.makespan_seconds < separate.makespan_seconds, "{fused:?} {separate:?}");
}
