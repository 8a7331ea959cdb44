//! Needed instances of a plan, and the regions that they use.

use pleach_dispatch::plan::{ExecutionPlan, PlannedInstance};
use pleach_dispatch::{InstanceId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether an instance must be executed: it has outputs to report and is not finished, a needed
/// instance reads from it, or it reports nothing and has no readers.
pub(crate) fn is_needed(plan: &ExecutionPlan, finished: &BTreeSet<InstanceId>, id: InstanceId) -> bool {
    let instance = plan.instances.at(id);
    let children = plan.instances.enumerate().filter(|(_, child)| child.parents.contains(&id));
    let mut children = children.map(|(child, _)| child).peekable();
    let wanted = if reports(instance) { !finished.contains(&id) } else { children.peek().is_none() };
    wanted || children.any(|child| is_needed(plan, finished, child))
}

pub(crate) fn reports(instance: PlannedInstance<'_>) -> bool {
    instance.outputs.iter().any(|output| output.reported)
}

/// Returns the regions that an instance reads or stores.
pub(crate) fn uses(instance: PlannedInstance<'_>) -> impl Iterator<Item = RegionKey> {
    instance.inputs.iter().copied().chain(stored(instance))
}

pub(crate) fn stored(instance: PlannedInstance<'_>) -> impl Iterator<Item = RegionKey> {
    instance.outputs.iter().filter(|output| output.stored).map(|output| output.key)
}

/// Returns the bytes of a bucket's inputs that other workers hold and this worker does not. Instances of a
/// bucket have the same inputs in real plans. In random plans, the first open one counts.
pub(crate) fn far_bytes(
    plan: &ExecutionPlan,
    first: InstanceId,
    holders: &BTreeMap<RegionKey, BTreeSet<WorkerId>>,
    worker: WorkerId,
) -> u64 {
    let instance = plan.instances.at(first);
    let bucket = plan.buckets.iter().find(|bucket| bucket.instances.contains(&first)).expect("one has it");
    let declared = instance.inputs.iter().zip(&plan.stages[instance.stage].inputs);
    let inputs: BTreeMap<_, _> =
        declared.map(|(key, input)| (key, input.region.element.bytes(bucket.pixels))).collect();
    let is_far = |key: &RegionKey| holders.get(key).is_some_and(|holders| !holders.contains(&worker));
    inputs.into_iter().filter(|(key, _)| is_far(key)).map(|(_, bytes)| bytes).sum()
}
