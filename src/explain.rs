//! Where each task of an evaluation's runs comes from: run for it, shared at one of the levels of reuse and with whom, or
//! left by an earlier study; and where it is in no cache, in what the nearest that is there differs.
//!
//! In the order of the plan: of those that share a task, the first one runs it. What turns out equal is known from traces
//! only, so without a cache that level is silent. Nothing is executed, and no image is opened.

mod response_key;

use crate::cache_walk::{CacheWalk, CachedStep};
use crate::exit::{CommandError, CommandResult};
use crate::study::PreparedStudy;
use pleach_actors::task_cache::components;
use pleach_actors::task_results::{TaskInputId, key, provenance_id};
use pleach_cache::Cache;
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::{BucketId, InstanceId};
use pleach_planner::PlannedStudy;
use pleach_regions::{RegionIdentity, RegionKey, TaskKey};
use pleach_workflow::{Stage, TaskInput, Value};
pub(crate) use response_key::ResponseKey;
use serde::Serialize;
use std::collections::HashMap;

/// One task of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TaskOrigin {
    pub(crate) stage: String,
    pub(crate) task: String,
    pub(crate) operation: String,
    /// `run`, or the level at which it is reused: `stage`, `tree`, `dataflow`, `value`.
    pub(crate) source: &'static str,
    /// The evaluation whose task it is; 0 is the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evaluation: Option<usize>,
    /// Whether a cache knows what comes of it; none without a cache, or where its inputs are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_cache: Option<bool>,
    /// In what the nearest task in the cache differs, if this one is not there; empty: there is none of its operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) differing_components: Option<Vec<String>>,
}

/// The tasks of an evaluation on a tile, stage by stage.
///
/// # Errors
/// [`CommandError::Internal`] when the plan does not know the run.
pub(crate) fn explain(
    prepared: &PreparedStudy,
    planned: &PlannedStudy,
    cache: Option<(&Cache, &HashMap<RegionKey, RegionIdentity>)>,
    evaluation: usize,
    tile: usize,
) -> CommandResult<Vec<TaskOrigin>> {
    let mut traced = cache.map(|(cache, identities)| Traced::of(prepared, planned, cache, identities, tile));
    let origins = Origins::of(prepared, planned, tile);
    let mut tasks = Vec::new();
    for (number, stage) in prepared.study.workflow.stages.iter().enumerate() {
        let instance = planned.instance(evaluation, tile, number);
        let (first, _) = planned.first_run(instance);
        let own = origins
            .of
            .get(&instance)
            .ok_or_else(|| CommandError::Internal("a run is in no bucket".to_owned()))?;
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
            let in_cache = step.and_then(|step| step.key.map(|_| step.trace.is_some()));
            let differing_components = match (&mut traced, in_cache) {
                (Some(traced), Some(false)) => traced.differences(evaluation, number, place),
                _ => None,
            };
            tasks.push(TaskOrigin {
                stage: stage.name.clone(),
                task: task.name.clone(),
                operation: task.operation.clone(),
                source: from,
                evaluation: whose,
                in_cache,
                differing_components,
            });
        }
    }
    Ok(tasks)
}

/// How tasks of a tile come about, and who is first to need each, in the plan's order.
struct Origins {
    /// By instance: its bucket, and the keys of its tasks.
    of: HashMap<InstanceId, (BucketId, Vec<TaskKey>)>,
    first: HashMap<TaskKey, InstanceId>,
}

impl Origins {
    fn of(prepared: &PreparedStudy, planned: &PlannedStudy, tile: usize) -> Self {
        let mut origins = Self { of: HashMap::new(), first: HashMap::new() };
        for (bucket, plan) in (0u32..).map(BucketId).zip(&planned.plan.buckets) {
            for &id in plan.instances.iter().filter(|id| planned.first_run(**id).1 == tile) {
                let instance = &planned.plan.instances[id.index()];
                let stage = &prepared.study.workflow.stages[instance.stage];
                let keys = keys(stage, &instance.parameters, &instance.inputs);
                for &key in &keys {
                    origins.first.entry(key).or_insert(id);
                }
                origins.of.insert(id, (bucket, keys));
            }
        }
        origins
    }

    /// The level at which a task of an instance is reused by how it comes about, and the evaluation that runs it.
    fn level(
        &self,
        planned: &PlannedStudy,
        instance: InstanceId,
        (bucket, keys): &(BucketId, Vec<TaskKey>),
        place: usize,
    ) -> (&'static str, Option<usize>) {
        // In a tree: with an instance of the bucket that shares all tasks so far.
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

/// What stands for each task of an instance, by how it comes about.
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

/// What traces say of the runs on a tile.
struct Traced<'a> {
    prepared: &'a PreparedStudy,
    cache: &'a Cache,
    /// By evaluation.
    steps: HashMap<usize, Vec<CachedStep>>,
    /// The evaluation that is first to need a task, in the plan's order.
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

    /// In what the nearest task of the cache differs.
    fn differences(&self, evaluation: usize, stage: usize, task: usize) -> Option<Vec<String>> {
        let step = self.step(evaluation, stage, task)?;
        let of = &self.prepared.study.workflow.stages[stage].tasks[task];
        let operation = self.prepared.registry.get(&of.operation, of.version)?;
        let wanted = components(&**operation, &step.arguments, step.inputs.as_ref()?);
        let nearest = self.cache.nearest(&wanted);
        Some(
            nearest.map_or_else(Vec::new, |nearest| {
                nearest.differences.iter().map(ToString::to_string).collect()
            }),
        )
    }
}
