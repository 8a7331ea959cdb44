//! What a plan says of its instances: which are needed, and which regions they use.

use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::{ExecutionPlan, InstancePlan};
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

/// What an instance reads, and the bytes of each.
pub(crate) fn input_bytes(plan: &ExecutionPlan, id: InstanceId) -> BTreeMap<RegionKey, u64> {
    let instance = &plan.instances[id.index()];
    let bucket = plan.buckets.iter().find(|bucket| bucket.instances.contains(&id)).expect("one has it");
    let declared = instance.inputs.iter().zip(&plan.stages[instance.stage].inputs);
    declared.map(|(key, input)| (*key, input.region.element.bytes(bucket.pixels))).collect()
}
