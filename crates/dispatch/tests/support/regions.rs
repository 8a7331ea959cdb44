//! What a plan says of its instances: which are needed, and which regions they use.

use pleach_dispatch::plan::{ExecutionPlan, InstancePlan};
use pleach_dispatch::{InstanceId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// Whether an instance is to be executed: it has something to report that is not known, or something that is to be
/// executed reads from it, or it is the end of its chain and reports nothing.
pub(crate) fn is_needed(plan: &ExecutionPlan, finished: &BTreeSet<InstanceId>, id: InstanceId) -> bool {
    let instance = &plan.instances[id.index()];
    let children =
        (0u32..).map(InstanceId).zip(&plan.instances).filter(|(_, child)| child.parents.contains(&id));
    let mut children = children.map(|(child, _)| child).peekable();
    let wanted = if reports(instance) { !finished.contains(&id) } else { children.peek().is_none() };
    wanted || children.any(|child| is_needed(plan, finished, child))
}

pub(crate) fn reports(instance: &InstancePlan) -> bool {
    instance.outputs.iter().any(|output| output.reported)
}

/// Regions an instance reads, or stores for others.
pub(crate) fn uses(instance: &InstancePlan) -> impl Iterator<Item = RegionKey> {
    instance.inputs.iter().copied().chain(stored(instance))
}

pub(crate) fn stored(instance: &InstancePlan) -> impl Iterator<Item = RegionKey> {
    instance.outputs.iter().filter(|output| output.stored).map(|output| output.key)
}

/// What others hold and the worker does not of what a bucket reads: all of it read the same, as a rule; here the first
/// that is open says what.
pub(crate) fn far_bytes(
    plan: &ExecutionPlan,
    first: InstanceId,
    holders: &BTreeMap<RegionKey, BTreeSet<WorkerId>>,
    worker: WorkerId,
) -> u64 {
    let instance = &plan.instances[first.index()];
    let bucket = plan.buckets.iter().find(|bucket| bucket.instances.contains(&first)).expect("one has it");
    let declared = instance.inputs.iter().zip(&plan.stages[instance.stage].inputs);
    let inputs: BTreeMap<_, _> =
        declared.map(|(key, input)| (key, input.region.element.bytes(bucket.pixels))).collect();
    let is_far = |key: &RegionKey| holders.get(key).is_some_and(|holders| !holders.contains(&worker));
    inputs.into_iter().filter(|(key, _)| is_far(key)).map(|(_, bytes)| bytes).sum()
}
