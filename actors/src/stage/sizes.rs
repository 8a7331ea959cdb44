//! Sizes of a stage's tasks and of its bucket's inputs.

use parking_lot::Mutex;
use pleach_dispatch::memory_estimates::MemoryEstimates;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::BucketWork;
use pleach_regions::{RamTier, RegionKey};
use pleach_workflow::{Operation, Stage};
use std::collections::HashSet;
use std::sync::Arc;

/// Returns the bytes of inputs in memory, and the bytes of missing inputs.
pub(crate) fn input_bytes(ram: &RamTier, inputs: &[(RegionKey, u64)]) -> (u64, u64) {
    let count = |(here, missing): (u64, u64), (key, bytes): &(RegionKey, u64)| match ram.bytes(*key) {
        Some(bytes) => (here + bytes, missing),
        None => (here, missing + bytes),
    };
    inputs.iter().fold((0, 0), count)
}

/// Returns the bytes of inputs that are not in memory yet.
pub(crate) fn missing_bytes(ram: &RamTier, inputs: &[(RegionKey, u64)]) -> u64 {
    input_bytes(ram, inputs).1
}

/// Returns the memory of a stage's tasks on images of `pixels` pixels: declared sizes, corrected by measurements.
pub(super) fn task_bytes(
    stage: &Stage,
    operations: &[Arc<dyn Operation>],
    declared_bytes: &[u64],
    pixels: u64,
    estimates: &Mutex<MemoryEstimates>,
) -> Vec<TaskMemory> {
    let estimates = estimates.lock();
    let tasks = stage.tasks.iter().zip(operations).zip(declared_bytes);
    let bytes = tasks.map(|((task, operation), &declared)| {
        let outputs: Vec<u64> = operation.outputs().iter().map(|port| port.element.bytes(pixels)).collect();
        let all = estimates.bytes(&task.operation, task.version, declared);
        // Saturates: a learned total may be less than the declared bytes of the outputs.
        TaskMemory { scratch: all.saturating_sub(outputs.iter().sum()), outputs }
    });
    bytes.collect()
}

/// Returns the regions that a bucket's instances read, each once. One instance suffices, because all read the same.
pub(super) fn inputs(stage: &Stage, work: &BucketWork) -> Vec<(RegionKey, u64)> {
    let first = work.instances.first().map_or(&[][..], |instance| &instance.inputs[..]);
    let mut seen = HashSet::new();
    let inputs = first.iter().zip(&stage.inputs).filter(|(key, _)| seen.insert(**key));
    inputs.map(|(key, input)| (*key, input.bytes(work.pixels))).collect()
}
