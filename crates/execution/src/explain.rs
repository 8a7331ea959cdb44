//! Explains the origin of each task of an evaluation's runs: executed for the run, shared with another evaluation at
//! a level of reuse, or cached by an earlier study. For a task that is not cached, names the differing components of
//! the nearest cached task.
//!
//! The first instance in plan order runs a shared task. Equal content is known from traces only, so the level `value`
//! needs a cache. The explanation executes no task and decodes no image.

mod response_key;

use pleach_actors::task_cache::components;
use pleach_cache::{Cache, Difference};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::task_key::{TaskInputId, key};
use pleach_dispatch::{BucketId, InstanceId};
use pleach_external::Identity;
use pleach_planner::PlannedStudy;
use pleach_regions::{RegionIdentity, RegionKey, TaskKey, provenance_id};
use pleach_results::cache_walk::{CacheWalk, CachedStep};
use pleach_study::{Defect, PreparedStudy};
use pleach_workflow::{Operation, Stage, TaskInput, Value, plain_name};
pub use response_key::ResponseKey;
use serde::Serialize;
use std::collections::HashMap;

/// Origin of one task of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskOrigin {
    /// Name of the stage that contains the task.
    pub stage: String,
    /// Name of the task in its stage.
    pub task: String,
    /// Name of the operation that the task executes.
    pub operation: String,
    /// `run`, or the level of reuse: `stage`, `tree`, `dataflow`, `value`. `skipped` for a task of a loop or choice that does not
    /// run, as far as a cache has the values that decide.
    pub source: &'static str,
    /// Evaluation that runs the shared task. 0 is the reference. `None` for `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<usize>,
    /// Whether the cache has the task's results. `None` without a cache, or if the task's inputs are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_cache: Option<bool>,
    /// Differing components of the nearest cached task, if this task is not cached. Empty if the cache has no task of
    /// the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differing_components: Option<Vec<String>>,
}

/// Returns the origins of an evaluation's tasks on a tile, stage by stage.
///
/// # Errors
/// [`Defect`] if the plan does not contain the run.
pub fn explain(
    prepared: &PreparedStudy,
    planned: &PlannedStudy,
    cache: Option<(&Cache, &HashMap<RegionKey, RegionIdentity>)>,
    evaluation: usize,
    tile: usize,
) -> Result<Vec<TaskOrigin>, Defect> {
    let mut traced = cache.map(|(cache, identities)| Traced::of(prepared, planned, cache, identities, tile));
    let origins = Origins::of(prepared, planned, tile);
    let mut tasks = Vec::new();
    for (number, stage) in prepared.study.workflow.stages.iter().enumerate() {
        let instance = planned.instance(evaluation, tile, number);
        let (first, _) = planned.first_run(instance);
        let own = origins.of.get(&instance).ok_or_else(|| Defect::new("a run is in no bucket"))?;
        for (place, task) in stage.tasks.iter().enumerate() {
            let (mut from, mut whose) = origins.level(planned, instance, own, place);
            let step = traced.as_ref().and_then(|traced| traced.step(evaluation, number, place));
            if from == "run"
                && let Some(traced) = &traced
                && let Some(other) = step.and_then(|step| traced.first_with(step))
                && other != evaluation
                && planned.plan.sharing == ReuseScope::Value
            {
                (from, whose) = ("value", Some(other));
            }
            if first != evaluation {
                (from, whose) = ("stage", Some(first));
            }
            if step.is_some_and(|step| step.passes.is_some()) {
                (from, whose) = ("skipped", None);
            }
            let in_cache = step.and_then(|step| step.key.map(|_| step.trace.is_some()));
            let differing_components = match (&mut traced, in_cache) {
                (Some(traced), Some(false)) => traced.differences(evaluation, number, place),
                _ => None,
            };
            tasks.push(TaskOrigin {
                stage: stage.name.clone(),
                task: task.name.clone(),
                operation: plain_name(&task.operation).to_owned(),
                source: from,
                evaluation: whose,
                in_cache,
                differing_components,
            });
        }
    }
    Ok(tasks)
}

/// Provenance of the tasks on a tile, and the first instance in plan order that needs each task.
struct Origins {
    /// Bucket and task keys of each instance.
    of: HashMap<InstanceId, (BucketId, Vec<TaskKey>)>,
    first: HashMap<TaskKey, InstanceId>,
}

impl Origins {
    fn of(prepared: &PreparedStudy, planned: &PlannedStudy, tile: usize) -> Self {
        let mut origins = Self { of: HashMap::new(), first: HashMap::new() };
        for (bucket, plan) in (0u32..).map(BucketId).zip(&planned.plan.buckets) {
            for &id in plan.instances.iter().filter(|id| planned.first_run(**id).1 == tile) {
                let instance = planned.plan.instances.at(id);
                let stage = &prepared.study.workflow.stages[instance.stage];
                let parameters: Vec<Value> = instance.parameters().collect();
                let keys = keys(stage, &parameters, instance.inputs);
                for &key in &keys {
                    origins.first.entry(key).or_insert(id);
                }
                origins.of.insert(id, (bucket, keys));
            }
        }
        origins
    }

    /// Returns the reuse level of an instance's task by provenance, and the evaluation that runs the task.
    fn level(
        &self,
        planned: &PlannedStudy,
        instance: InstanceId,
        (bucket, keys): &(BucketId, Vec<TaskKey>),
        place: usize,
    ) -> (&'static str, Option<usize>) {
        // Tree reuse needs an earlier instance of the bucket with the same tasks up to this one.
        let earlier = planned.plan.buckets[bucket.index()].instances.iter().take_while(|id| **id != instance);
        let shares =
            |id: &&InstanceId| self.of.get(id).is_some_and(|(_, others)| others[..=place] == keys[..=place]);
        let in_tree = earlier.into_iter().find(shares);
        if let Some(other) = in_tree {
            return ("tree", Some(planned.first_run(*other).0));
        }
        let first = self.first.get(&keys[place]).filter(|first| **first != instance);
        match first {
            Some(first) if planned.plan.sharing != ReuseScope::Tree => {
                ("dataflow", Some(planned.first_run(*first).0))
            }
            _ => ("run", None),
        }
    }
}

/// Returns the key of each task of an instance, derived from its provenance.
fn keys(stage: &Stage, parameters: &[Value], inputs: &[RegionKey]) -> Vec<TaskKey> {
    let mut keys: Vec<TaskKey> = Vec::with_capacity(stage.tasks.len());
    for task in &stage.tasks {
        let arguments: Vec<Value> = task.arguments.iter().map(|&a| parameters[a]).collect();
        let reads: Vec<TaskInputId> = task
            .reads
            .iter()
            .map(|read| match *read {
                TaskInput::StageInput(input) => TaskInputId::Stored(inputs[input]),
                TaskInput::Task { task, output } => TaskInputId::Output(provenance_id(&keys[task], output)),
            })
            .collect();
        keys.push(key(task, &arguments, reads.into_iter()));
    }
    keys
}

/// Traces of the runs on a tile.
struct Traced<'a> {
    prepared: &'a PreparedStudy,
    cache: &'a Cache,
    /// Steps of each evaluation.
    steps: HashMap<usize, Vec<CachedStep>>,
    /// First evaluation in plan order that needs a task.
    first: HashMap<TaskKey, usize>,
}

impl<'a> Traced<'a> {
    fn of(
        prepared: &'a PreparedStudy,
        planned: &PlannedStudy,
        cache: &'a Cache,
        identities: &'a HashMap<RegionKey, RegionIdentity>,
        tile: usize,
    ) -> Self {
        let mut walk = CacheWalk::new(prepared, cache, identities);
        let reference = walk.reference(tile);
        let offset = usize::from(!prepared.defaults_run());
        let evaluations = prepared.evaluations.iter().enumerate();
        let steps: HashMap<usize, Vec<CachedStep>> = evaluations
            .map(|(number, values)| (number + offset, walk.steps(tile, values, reference)))
            .collect();
        let mut first = HashMap::new();
        for id in planned.plan.buckets.iter().flat_map(|bucket| &bucket.instances) {
            let (evaluation, on) = planned.first_run(*id);
            let stage = planned.stage(*id);
            if on == tile {
                let of_stage = steps[&evaluation].iter().filter(|step| step.stage == stage);
                of_stage.filter_map(|step| step.key).for_each(|key| {
                    first.entry(key).or_insert(evaluation);
                });
            }
        }
        Self { prepared, cache, steps, first }
    }

    fn step(&self, evaluation: usize, stage: usize, task: usize) -> Option<&CachedStep> {
        self.steps.get(&evaluation)?.iter().find(|step| (step.stage, step.task) == (stage, task))
    }

    fn first_with(&self, step: &CachedStep) -> Option<usize> {
        self.first.get(&step.key?).copied()
    }

    /// Words a difference. That of an external operation's digest is one for each component behind it.
    fn worded(&self, difference: &Difference, operation: &dyn Operation) -> Vec<String> {
        let Difference::Operation { found, .. } = difference else { return vec![difference.to_string()] };
        let Some(earlier) = self.cache.operation_components(found) else {
            return vec![
                "code or environment differs; the cache has no record of the earlier one".to_owned(),
            ];
        };
        let of = |components: &[(String, String)]| components.iter().cloned().collect::<Identity>();
        of(operation.components()).differences(&of(&earlier))
    }

    /// Returns the differing components of the nearest cached task. `None` if the step or its inputs are unknown.
    fn differences(&self, evaluation: usize, stage: usize, task: usize) -> Option<Vec<String>> {
        let step = self.step(evaluation, stage, task)?;
        let of = &self.prepared.study.workflow.stages[stage].tasks[task];
        let operation = self.prepared.registry.get(&of.operation, of.version)?;
        let wanted = components(&**operation, &step.arguments, step.inputs.as_ref()?);
        let nearest = self.cache.nearest(&wanted);
        Some(nearest.map_or_else(Vec::new, |nearest| {
            let worded = |difference| self.worded(difference, &**operation);
            nearest.differences.iter().flat_map(worded).collect()
        }))
    }
}
