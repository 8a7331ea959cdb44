//! Replans for measured costs: the buckets of a running study are evened out by them, against a plain recount of each bucket's
//! distinct tasks. Limits for overheads: the greater the overhead of a bucket, the fewer and larger the buckets.

use parking_lot::Mutex;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, ReuseScope};
use pleach_dispatch::study::{NewBuckets, Replanner, Study};
use pleach_planner::{
    BucketLimitOptions, Plan, PlanOptions, PlanRequest, PlanTile, PlanningInput, StrategyName,
    StudyReplanner, identity, plan,
};
use pleach_workflow::{Domain, Registry, Stage, TaskInput, Value, Workflow};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;

const PIXELS: u64 = 262_144;

const SLOTS: u32 = 4;

/// The segmentation stage of the nuclei workflow.
const STAGE: usize = 1;

fn workflow(registry: &Registry) -> Workflow {
    let workflow = Workflow::embedded(&pleach_pathology::NUCLEI_DESCRIPTORS, registry).expect("descriptors");
    workflow.measuring(0)
}

/// Evaluations that differ from the defaults in one parameter after the other, each with three values.
fn evaluations(workflow: &Workflow) -> Vec<Vec<Value>> {
    let defaults: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
    let mut evaluations = vec![defaults.clone()];
    for round in 1..=3 {
        let mut values = defaults.clone();
        for (number, parameter) in workflow.parameters.iter().enumerate() {
            if let Domain::Levels { values: levels } = &parameter.domain {
                values[number] = levels[round % levels.len()];
                evaluations.push(values.clone());
            }
        }
    }
    evaluations
}

struct Planned {
    registry: Registry,
    workflow: Workflow,
    study: Study,
    replanner: StudyReplanner,
    costs: Arc<Mutex<CostModel>>,
}

/// Plans the study with an overhead of each bucket.
fn plan_for(
    workflow: &Workflow,
    registry: &Registry,
    options: PlanOptions,
    (slots, bucket_overhead_seconds): (u32, f64),
) -> Plan {
    let input = PlanningInput {
        workflow,
        registry,
        evaluations: &Arc::new(evaluations(workflow)),
        defaults_run: true,
        reference_run: true,
        tiles: &[PlanTile { pixels: PIXELS, inputs: vec![identity::of_file("tile", Path::new("a.png"))] }],
        units: None,
        costs: &CostModel::default(),
        link: None,
        bucket_overhead_seconds,
        accelerators: 0,
    };
    let request = PlanRequest {
        options,
        buckets: BucketLimitOptions { max_bucket_size: None, max_buckets: None },
        slots: NonZeroU32::new(slots).expect("not 0"),
        workers: &[],
        tree_fallback: false,
    };
    plan(input, &request).expect("a plan")
}

fn planned(strategy: StrategyName, reuse: ReuseScope) -> Planned {
    let registry = pleach_pathology::registry();
    let workflow = workflow(&registry);
    let mut planned = plan_for(&workflow, &registry, PlanOptions::new(strategy, reuse), (SLOTS, 0.0));
    let most = planned.record.max_buckets.and_then(NonZeroUsize::new).expect("a limit");
    let costs = Arc::default();
    let replanner = planned.study.take_replanner(most, NonZeroUsize::MIN).with_costs(Arc::clone(&costs));
    let study = Study::new(std::mem::take(&mut planned.study.plan)).expect("a plan that keeps the rules");
    Planned { registry, workflow, study, replanner, costs }
}

impl Planned {
    /// Measures ten runs of each task of the segmentation stage, in relation to the declared cost.
    fn measure(&self, ratio: impl Fn(&str) -> f64) {
        for task in &self.workflow.stages[STAGE].tasks {
            let operation = self.registry.get(&task.operation, task.version).expect("registered");
            let values: Vec<Value> = self.workflow.stages[STAGE]
                .task_parameters(task)
                .map(|index| self.workflow.parameters[index].default)
                .collect();
            let seconds = operation.cost_seconds(PIXELS) * ratio(&task.name);
            (0..10).for_each(|_| self.costs.lock().observe(operation.as_ref(), &values, PIXELS, seconds));
        }
    }

    /// Returns the cost of the most expensive bucket of the segmentation: its distinct tasks, at these ratios.
    fn makespan(&self, buckets: &[BucketPlan], reuse: ReuseScope, ratio: impl Fn(&str) -> f64) -> f64 {
        let plan = self.study.plan();
        let of_stage = |bucket: &&BucketPlan| plan.instances.at(bucket.instances[0]).stage == STAGE;
        let cost = |bucket: &BucketPlan| distinct_cost(plan, bucket, reuse, &self.registry, &ratio);
        buckets.iter().filter(of_stage).map(cost).fold(0.0, f64::max)
    }

    /// Returns the present buckets with unstarted instances.
    fn buckets(&self) -> Vec<BucketPlan> {
        let present = self.study.unstarted();
        let bucket = |instances: Vec<_>| BucketPlan { instances, pixels: PIXELS };
        present.map(|(_, open)| bucket(open.iter().copied().collect())).collect()
    }
}

/// Counts each task of a bucket once: one identity for each task with the values and inputs that it reads, or with all
/// tasks before it under the tree scope.
fn distinct_cost(
    plan: &ExecutionPlan,
    bucket: &BucketPlan,
    reuse: ReuseScope,
    registry: &Registry,
    ratio: impl Fn(&str) -> f64,
) -> f64 {
    let stage: &Stage = &plan.stages[STAGE];
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    for id in &bucket.instances {
        let instance = plan.instances.at(*id);
        let parameters: Vec<Value> = instance.parameters().collect();
        let mut identities: Vec<String> = Vec::new();
        for task in &stage.tasks {
            let values: Vec<Value> = task.arguments.iter().map(|index| parameters[*index]).collect();
            let reads = task.reads.iter().map(|read| match *read {
                TaskInput::Task { task, .. } => identities[task].clone(),
                TaskInput::StageInput(input) => format!("{:?}", instance.inputs[input]),
            });
            let reads: Vec<String> =
                if reuse == ReuseScope::Tree { identities.clone() } else { reads.collect() };
            let identity = format!("{}{values:?}{reads:?}", task.name);
            let operation = registry.get(&task.operation, task.version).expect("registered");
            costs.insert(identity.clone(), operation.cost_seconds(PIXELS) * ratio(&task.name));
            identities.push(identity);
        }
    }
    costs.values().sum()
}

/// The last task turns out to take 40 times as long as declared.
fn last_is_slow(task: &str) -> f64 {
    if task == "t7" { 40.0 } else { 1.0 }
}

#[test]
fn slower_machine_changes_no_bucket() {
    let mut planned = planned(StrategyName::Ranges, ReuseScope::Dataflow);
    assert!(!planned.replanner.has_new_costs(), "nothing is measured");
    planned.measure(|_| 3.0);
    assert!(!planned.replanner.has_new_costs(), "all tasks take three times as long");
    assert_eq!(planned.replanner.replan(&planned.study.snapshot(), SLOTS), None);
}

#[test]
fn buckets_are_evened_out_by_measured_costs() {
    for (strategy, reuse) in
        [(StrategyName::Ranges, ReuseScope::Dataflow), (StrategyName::Trtma, ReuseScope::Tree)]
    {
        let mut planned = planned(strategy, reuse);
        planned.measure(last_is_slow);
        assert!(planned.replanner.has_new_costs());
        let before = planned.makespan(&planned.buckets(), reuse, last_is_slow);
        let ranks = planned.study.plan().ranks.clone();
        let buckets = planned.replanner.replan(&planned.study.snapshot(), SLOTS).expect("other costs");
        let new = NewBuckets::new(buckets).expect("each instance once");
        let new_ranks = planned.replanner.take_ranks().expect("other ranks");
        planned.study.handle_replanned(new.with_ranks(Some(new_ranks))).expect("buckets of the study");
        let after = planned.makespan(&planned.buckets(), reuse, last_is_slow);
        assert!(after < 0.95 * before, "{strategy:?}: {after} of {before}");
        // A segmentation and its comparison: the slow task is on each path.
        let longer = planned.study.plan().ranks.iter().zip(&ranks).filter(|(new, old)| new > old).count();
        let segmentations =
            planned.study.plan().instances.iter().filter(|instance| instance.stage <= STAGE).count();
        assert_eq!(longer, segmentations, "{strategy:?}");
        assert!(!planned.replanner.has_new_costs(), "the buckets have the measured costs");
        assert_eq!(planned.replanner.replan(&planned.study.snapshot(), SLOTS), None);
    }
}

#[test]
fn unmeasured_tasks_are_as_far_off_as_the_others() {
    let planned = planned(StrategyName::Ranges, ReuseScope::Dataflow);
    // One task is measured: the machine is slower, and no other task has a measurement.
    let task = &planned.workflow.stages[STAGE].tasks[0];
    let operation = planned.registry.get(&task.operation, task.version).expect("registered");
    let seconds = operation.cost_seconds(PIXELS) * 20.0;
    (0..10).for_each(|_| planned.costs.lock().observe(operation.as_ref(), &[], PIXELS, seconds));
    assert!(!planned.replanner.has_new_costs());
}

#[test]
fn greater_overhead_makes_fewer_and_larger_buckets() {
    const OVERHEADS: [f64; 6] = [0.0, 1e-4, 1e-3, 1e-2, 1.0, 600.0];
    let registry = pleach_pathology::registry();
    let workflow = workflow(&registry);
    for reuse in [ReuseScope::Tree, ReuseScope::Dataflow] {
        let plans = |strategy| {
            let options = PlanOptions::new(strategy, reuse);
            OVERHEADS.map(|overhead| plan_for(&workflow, &registry, options, (1, overhead)).record)
        };
        for strategy in [StrategyName::Trtma, StrategyName::Ranges, StrategyName::Hrb] {
            let found = plans(strategy).map(|record| record.max_buckets.expect("a limit"));
            assert!(found.is_sorted_by(|a, b| a >= b), "{strategy:?}: {found:?}");
            assert_eq!((found[0], found[5]), (3, 1), "{strategy:?}: {found:?}");
        }
        for strategy in [StrategyName::Naive, StrategyName::Rtma] {
            let found = plans(strategy).map(|record| record.max_bucket_size.expect("a limit"));
            assert!(found.is_sorted() && found[0] == 16 && found[5] > 16, "{strategy:?}: {found:?}");
        }
    }
}

/// Replans the study, and returns its unstarted buckets of the segmentation.
fn replanned_buckets(planned: &mut Planned) -> usize {
    if let Some(buckets) = planned.replanner.replan(&planned.study.snapshot(), SLOTS) {
        let new = NewBuckets::new(buckets).expect("each instance once");
        planned.study.handle_replanned(new).expect("buckets of the study");
    }
    let plan = planned.study.plan();
    let of_stage = |bucket: &&BucketPlan| plan.instances.at(bucket.instances[0]).stage == STAGE;
    planned.buckets().iter().filter(of_stage).count()
}

#[test]
fn greater_measured_overhead_makes_fewer_buckets_of_a_running_study() {
    for (strategy, reuse) in
        [(StrategyName::Ranges, ReuseScope::Dataflow), (StrategyName::Trtma, ReuseScope::Tree)]
    {
        let with = |overhead: f64| {
            let mut planned = planned(strategy, reuse);
            (0..10).for_each(|_| planned.costs.lock().observe_bucket_overhead(overhead));
            let is_new = planned.replanner.has_new_costs();
            let buckets = replanned_buckets(&mut planned);
            assert!(!planned.replanner.has_new_costs(), "{strategy:?}: the buckets suit {overhead} s");
            (is_new, buckets)
        };
        // A tenth of a second and less is none.
        let found = [0.0, 0.09, 0.1, 0.3, 1.0, 10.0, 600.0].map(with);
        assert_eq!((found[0], found[1]), ((false, 12), (false, 12)), "{strategy:?}");
        assert_eq!(found[6], (true, 4), "{strategy:?}: a bucket for each slot");
        assert!(found.is_sorted_by(|a, b| a.1 >= b.1), "{strategy:?}: {found:?}");
    }
}

/// Work stealing uses it from then on.
#[test]
fn overhead_is_known_after_several_leases() {
    let planned = planned(StrategyName::Ranges, ReuseScope::Dataflow);
    let overhead = || planned.replanner.bucket_overhead_seconds();
    assert_eq!(overhead(), None, "that of the plan stays");
    (0..7).for_each(|_| planned.costs.lock().observe_bucket_overhead(5.0));
    assert_eq!(overhead(), None);
    planned.costs.lock().observe_bucket_overhead(5.0);
    assert_eq!(overhead(), Some(5.0));
}

#[test]
fn given_overhead_replaces_the_measured_one() {
    let with = |given: f64, measured: f64| {
        let mut planned = planned(StrategyName::Ranges, ReuseScope::Dataflow);
        planned.replanner = planned.replanner.with_overhead(Some(given));
        (0..10).for_each(|_| planned.costs.lock().observe_bucket_overhead(measured));
        assert_eq!(planned.replanner.bucket_overhead_seconds(), Some(given));
        replanned_buckets(&mut planned)
    };
    assert_eq!((with(0.0, 600.0), with(600.0, 0.0)), (12, 4));
}

/// Each bucket adds its overhead, and a chain of stages that of one bucket for each.
#[test]
fn overhead_adds_to_makespan_and_lower_bound() {
    let registry = pleach_pathology::registry();
    let workflow = workflow(&registry);
    let plan = |overhead| {
        let options = PlanOptions::new(StrategyName::Stage, ReuseScope::Tree);
        plan_for(&workflow, &registry, options, (1, overhead)).record.summary
    };
    let (free, slow) = (plan(0.0), plan(10.0));
    assert_eq!((free.buckets, free.bucket_overhead_seconds), (slow.buckets, 0.0));
    // On one slot all buckets follow each other, those of the reference included: at most one for each stage.
    let added = slow.predicted_makespan_seconds - free.predicted_makespan_seconds;
    let buckets = (added / 10.0).round();
    assert!((added - 10.0 * buckets).abs() < 1e-6, "{added} s");
    let stages = workflow.stages.len();
    assert!((slow.buckets..=slow.buckets + stages).contains(&(buckets as usize)), "{buckets} buckets");
    assert!(slow.lower_bound_seconds >= 10.0 * stages as f64);
    assert!(slow.predicted_makespan_seconds >= slow.lower_bound_seconds);
}

/// Instances of different inputs are executed as buckets of their own: those of the comparison, each with a mask of its own.
#[test]
fn makespan_has_the_overhead_of_each_executed_bucket() {
    let registry = pleach_pathology::registry();
    let workflow = workflow(&registry);
    let plan = |overhead| {
        let options = PlanOptions::new(StrategyName::Trtma, ReuseScope::Tree);
        plan_for(&workflow, &registry, options, (1, overhead))
    };
    let (free, slow) = (plan(0.0), plan(600.0));
    let seconds = |plan: &Plan| plan.record.summary.predicted_makespan_seconds;
    // One slot executes one bucket after the other. Fewer buckets repeat fewer tasks, which take less than one overhead.
    let overheads = (seconds(&slow) - seconds(&free)) / 600.0;
    let executed = slow.study.plan.buckets.len();
    assert!(executed > slow.record.summary.buckets, "{executed} {:?}", slow.record.summary);
    assert!((overheads - executed as f64).abs() < 1.0, "{overheads} of {executed}");
}
