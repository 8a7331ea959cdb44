//! Dry run: finds a study's minimum memory by a simulated execution on sizes, with one worker and one slot.
//!
//! The state machines are those of a real run. The shell around them has no delays. Tasks run one at a time, and after each
//! finished instance, ready instances of later stages run before its bucket continues.
//!
//! With that much memory, a worker with any number of slots never has to exceed its budget, in whatever order messages
//! arrive, if tasks use at most their estimates and if instances that one reader waits for together read the same
//! regions, as a mask and its reference do. Otherwise regions may wait in another order than in the dry run, for readers
//! that wait for further parents. A worker with only this memory may then exceed its budget, and reports that.
//! With any budget, it never waits forever.

use crate::manager::{Effect as ManagerEffect, Manager, WorkerInfo};
use crate::memory_model::{MemoryBudget, MinimumMemory, OutputConsumption, TaskMemory};
use crate::message::BucketWork;
use crate::plan::{ExecutionPlan, PlanError};
use crate::stage::{self, BucketExecution, NodeId, OutputId, TaskRequest};
use crate::study;
use crate::worker::{Effect, Worker};
use crate::{InstanceId, LeaseId, PlanId, SlotId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeSet, HashMap};

/// The only study of the dry run.
const STUDY: PlanId = PlanId::first_round(0);

/// Result of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// Minimum memory of the study.
    pub needs: MinimumMemory,
    /// An instance of the bucket that ran at the memory peak. `None` if nothing was held.
    pub dearest: Option<InstanceId>,
}

/// Executes a plan on sizes. `bytes` returns the sizes of a stage's tasks for a number of pixels. Outputs have
/// the size given by the task that writes them, inputs of the study that of their element type. Linear in
/// tasks.
///
/// # Errors
/// [`PlanError`] when the plan breaks one of its rules.
pub fn rehearse(
    plan: &ExecutionPlan,
    bytes: impl Fn(usize, u64) -> Vec<TaskMemory>,
) -> Result<DryRun, PlanError> {
    let mut manager = Manager::new(0);
    manager.handle_submit(STUDY, plan.clone(), &BTreeSet::new())?;
    let id = manager.handle_join(WorkerInfo::ANY);
    let mut worker = Worker::new(1, MemoryBudget::UNLIMITED);
    worker.handle_study(STUDY, plan.stages.len() as u32, 0);
    let drains = vec![OutputConsumption::default(); plan.stages.len()];
    let needs = MinimumMemory { min_bytes: 0, busy_bytes: 0, drains };
    let memory = Memory {
        stored: HashMap::new(),
        stored_bytes: 0,
        read: HashMap::new(),
        read_bytes: 0,
        held_bytes: 0,
        before: vec![None; plan.stages.len()],
        rehearsal: DryRun { needs, dearest: None },
    };
    let mut shell = Shell { plan, bytes, manager, id, worker, buckets: HashMap::new(), memory };
    // One slot allows one grant. Requests are answered before the granted task runs.
    let mut granted = None;
    loop {
        match shell.worker.poll_effect() {
            Some(Effect::Request { buckets, after }) => {
                shell.manager.handle_request(id, buckets, after);
                shell.follow_manager();
            }
            Some(Effect::Grant { lease, slot, node }) => granted = Some((lease, slot, node)),
            // Without a memory limit, a time limit, a stop and accelerators, these effects need no answer.
            Some(
                Effect::Call { .. }
                | Effect::MakeRoom { .. }
                | Effect::HandBack { .. }
                | Effect::Prefetch { .. }
                | Effect::Leave
                | Effect::Query { .. }
                | Effect::ShareHalf { .. }
                | Effect::ShareSpare { .. },
            ) => {}
            None => {
                let Some((lease, slot, node)) = granted.take() else { break };
                shell.run_task(lease, slot, node);
            }
        }
    }
    Ok(shell.memory.rehearsal)
}

/// A bucket on the worker.
struct Bucket {
    run: BucketExecution,
    work: BucketWork,
    /// Index in `work` of each instance.
    index: HashMap<InstanceId, usize>,
    bytes: Vec<TaskMemory>,
    /// Bytes of each held output.
    written: HashMap<OutputId, u64>,
    /// Its inputs, once it has started.
    reads: Vec<RegionKey>,
}

struct Shell<'a, F> {
    plan: &'a ExecutionPlan,
    bytes: F,
    manager: Manager,
    id: WorkerId,
    worker: Worker,
    buckets: HashMap<LeaseId, Bucket>,
    memory: Memory,
}

impl<F: Fn(usize, u64) -> Vec<TaskMemory>> Shell<'_, F> {
    fn follow_manager(&mut self) {
        while let Some(effect) = self.manager.poll_effect() {
            match effect {
                ManagerEffect::Assign { lease, work, reason, .. } => {
                    let bytes = (self.bytes)(work.stage as usize, work.pixels);
                    self.worker.handle_assigned(lease, work.stage, work.bucket, reason);
                    let stage = &self.plan.stages[work.stage as usize];
                    // A validated plan matches its stages. A bucket with invalid sizes is skipped.
                    let Ok(run) = BucketExecution::new(stage, &work, bytes.clone(), None) else { continue };
                    self.worker.handle_demand(lease, run.demand_without_bytes());
                    let index = work.instances.iter().map(|instance| instance.id).zip(0..).collect();
                    let (written, reads) = (HashMap::new(), Vec::new());
                    self.buckets.insert(lease, Bucket { run, work, index, bytes, written, reads });
                }
                ManagerEffect::Study(_, study::Effect::Release(keys)) => {
                    keys.into_iter().for_each(|key| self.memory.release(key))
                }
                _ => {}
            }
        }
    }

    fn run_task(&mut self, lease: LeaseId, slot: SlotId, node: NodeId) {
        let Some(bucket) = self.buckets.get_mut(&lease) else { return };
        let number = bucket.work.stage as usize;
        let stage = &self.plan.stages[number];
        let Some(call) = bucket.run.start_task(stage, node, 0) else { return };
        let first = bucket.work.instances[0].id;
        self.memory.go_on(number);
        if call.brings_inputs {
            // All instances of a bucket have the same inputs.
            for (key, input) in bucket.work.instances[0].inputs.iter().zip(&stage.inputs) {
                self.memory.store(*key, input.bytes(bucket.work.pixels));
                self.memory.read(*key);
                bucket.reads.push(*key);
            }
        }
        self.memory.note(first, bucket.bytes[call.task].running(), 0);
        let done = bucket.end(&call, &mut self.memory);
        let leaves = done.iter().flat_map(|(_, outputs)| outputs);
        let left = leaves.map(|(key, bytes)| self.memory.store(*key, *bytes)).sum();
        self.memory.note(first, 0, left);
        // Before the slot is free, so that ready instances of later stages are on the worker and run first.
        for (instance, _) in &done {
            self.manager.handle_done(self.id, STUDY, lease, *instance);
        }
        self.follow_manager();
        if !done.is_empty() {
            self.memory.leave(number, first, left);
        }
        // The bucket exists: only this function removes buckets, and the lookup above found it.
        if let Some(bucket) = self.buckets.get(&lease) {
            self.worker.handle_slot_free(slot, lease, bucket.run.demand_without_bytes());
            if bucket.run.is_over() {
                self.worker.handle_bucket_finished(lease);
                bucket.reads.iter().for_each(|key| self.memory.read_no_more(*key));
                self.buckets.remove(&lease);
            }
        }
    }
}

impl Bucket {
    /// Ends a task. Returns the finished instances, with the keys and bytes of their stored outputs.
    fn end(&mut self, call: &TaskRequest, memory: &mut Memory) -> Vec<(InstanceId, Vec<(RegionKey, u64)>)> {
        for (output, bytes) in
            self.bytes[call.task].outputs.iter().enumerate().filter(|(o, _)| call.requested[*o])
        {
            self.written.insert(OutputId { node: call.node, output }, *bytes);
            memory.held_bytes += bytes;
        }
        self.run.handle_done(call.node);
        let mut done = Vec::new();
        while let Some(effect) = self.run.poll_effect() {
            match effect {
                stage::Effect::Done { instance, outputs } => {
                    let plans = &self.work.instances[self.index[&instance]].outputs;
                    let stored = plans.iter().zip(outputs).filter(|(plan, _)| plan.stored);
                    let stored = stored.map(|(plan, output)| (plan.key, self.written[&output]));
                    done.push((instance, stored.collect()));
                }
                stage::Effect::Drop(output) => {
                    memory.held_bytes -= self.written.remove(&output).unwrap_or(0);
                }
                stage::Effect::Failed { .. } | stage::Effect::Lacking { .. } | stage::Effect::Over => {}
            }
        }
        done
    }
}

/// Bytes in storage and buckets, and the statistics of the dry run.
struct Memory {
    stored: HashMap<RegionKey, u64>,
    stored_bytes: u64,
    /// Number of started buckets that read each stored region.
    read: HashMap<RegionKey, u32>,
    read_bytes: u64,
    held_bytes: u64,
    /// By stage: the held bytes without the outputs of the last finished instance, until its readers are done, and the
    /// part of them that must be in memory.
    before: Vec<Option<(u64, u64)>>,
    rehearsal: DryRun,
}

impl Memory {
    /// Stores a region. Returns its bytes, or 0 if it is already stored.
    fn store(&mut self, key: RegionKey, bytes: u64) -> u64 {
        if self.stored.contains_key(&key) {
            return 0;
        }
        self.stored.insert(key, bytes);
        self.stored_bytes += bytes;
        self.held_bytes += bytes;
        bytes
    }

    fn release(&mut self, key: RegionKey) {
        let bytes = self.stored.remove(&key).unwrap_or(0);
        if self.read.remove(&key).is_some() {
            self.read_bytes -= bytes;
        }
        self.stored_bytes -= bytes;
        self.held_bytes -= bytes;
    }

    /// Counts one more started bucket as reader of a stored region.
    fn read(&mut self, key: RegionKey) {
        let readers = self.read.entry(key).or_insert(0);
        *readers += 1;
        if *readers == 1 {
            self.read_bytes += self.stored.get(&key).copied().unwrap_or(0);
        }
    }

    fn read_no_more(&mut self, key: RegionKey) {
        let Some(readers) = self.read.get_mut(&key) else { return };
        *readers -= 1;
        if *readers == 0 {
            self.read.remove(&key);
            self.read_bytes -= self.stored.get(&key).copied().unwrap_or(0);
        }
    }

    /// Continues a stage: outputs that instances of it, or of later ones, have stored are read as far as possible by now.
    fn go_on(&mut self, stage: usize) {
        for (drain, before) in self.rehearsal.needs.drains.iter_mut().zip(&mut self.before).skip(stage) {
            if let Some((before, _)) = before.take() {
                drain.rest_bytes = drain.rest_bytes.max(self.held_bytes.saturating_sub(before));
            }
        }
    }

    /// Records the stored bytes of a finished instance.
    fn leave(&mut self, stage: usize, instance: InstanceId, bytes: u64) {
        let busy = self.held_bytes - self.stored_bytes + self.read_bytes;
        self.before[stage] = Some((self.held_bytes.saturating_sub(bytes), busy));
        self.note(instance, 0, bytes);
    }

    /// Updates the peaks with `more` bytes beside the held ones. `left` bytes were just stored and have not spilled yet.
    fn note(&mut self, instance: InstanceId, more: u64, left: u64) {
        let now = self.held_bytes + more;
        let unread = self.stored_bytes.saturating_sub(self.read_bytes + left);
        let DryRun { needs, dearest } = &mut self.rehearsal;
        let busy = now - unread;
        needs.busy_bytes = needs.busy_bytes.max(busy);
        if now > needs.min_bytes {
            needs.min_bytes = now;
            *dearest = Some(instance);
        }
        for (drain, before) in needs.drains.iter_mut().zip(&self.before) {
            let Some((before, busy_before)) = *before else { continue };
            drain.bytes = drain.bytes.max(now.saturating_sub(before));
            drain.busy_bytes = drain.busy_bytes.max(busy.saturating_sub(busy_before));
        }
    }
}
