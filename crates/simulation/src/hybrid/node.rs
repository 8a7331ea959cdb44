//! A simulated node: the shells of its worker and of the stages on it, by the rules of `actors/src/worker.rs` and
//! `actors/src/stage.rs`.

use super::{Due, HybridCluster, HybridOptions, KindRuns, ManagerMessage, STUDY, WorkerMessage};
use crate::event::ran;
use crate::random::Random;
use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget, TaskMemory};
use pleach_dispatch::message::{BucketWork, GrantReason, TaskProvenance, TaskReport};
use pleach_dispatch::stage::{BucketExecution, Effect, NodeId};
use pleach_dispatch::worker::{Worker, WorkerSlots};
use pleach_dispatch::{LeaseId, SlotId, SlotKind, WorkerId, worker};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Share of its transfers that a task saves whose inputs are on its accelerator: it reads about as many bytes as it writes.
const SAVED_TRANSFER: f64 = 0.5;

#[derive(Debug)]
struct Bucket {
    run: BucketExecution,
    stage: usize,
    /// Factor of the task times of its tile.
    factor: f64,
    /// Starts of tasks without time, which the worker has not granted.
    ungranted: u64,
    /// For each offered task that became ready when a task ended: the ended task.
    after: BTreeMap<NodeId, NodeId>,
    reports: Vec<TaskReport>,
}

impl Bucket {
    fn demand(&self) -> BucketDemand {
        let demand = self.run.demand_without_bytes();
        BucketDemand { heard: demand.heard - self.ungranted, ..demand }
    }
}

/// A message between the worker and a stage on it.
#[derive(Debug)]
enum Local {
    Begin(LeaseId),
    Granted(LeaseId, SlotId, NodeId),
}

#[derive(Clone, Copy, Debug)]
struct Running {
    lease: LeaseId,
    node: NodeId,
    task: usize,
    seconds: f64,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) member: Option<WorkerId>,
    worker: Worker,
    slots: WorkerSlots,
    buckets: BTreeMap<LeaseId, Bucket>,
    running: BTreeMap<SlotId, Running>,
    /// By accelerator: its last task.
    last: BTreeMap<SlotId, (LeaseId, NodeId)>,
    local: VecDeque<Local>,
}

impl Node {
    pub(super) fn new(slots: WorkerSlots, options: &HybridOptions) -> Self {
        let worker = Worker::new(slots, MemoryBudget::UNLIMITED);
        let worker = match options.max_buckets {
            Some(buckets) => worker.with_max_buckets(buckets),
            None => worker,
        };
        Self {
            member: None,
            worker,
            slots,
            buckets: BTreeMap::new(),
            running: BTreeMap::new(),
            last: BTreeMap::new(),
            local: VecDeque::new(),
        }
    }

    /// Sends the offers of a bucket to the worker, and returns its demand.
    fn offer(&mut self, lease: LeaseId) -> Option<BucketDemand> {
        let bucket = self.buckets.get_mut(&lease)?;
        if self.slots.accelerators > 0 {
            let offers = bucket.run.offers_without_bytes();
            bucket.after.extend(offers.iter().filter_map(|offer| Some((offer.node, offer.after?))));
            self.worker.handle_offers(lease, offers);
        }
        Some(bucket.demand())
    }

    fn end_bucket(&mut self, lease: LeaseId) {
        self.buckets.remove(&lease);
        self.worker.handle_bucket_finished(lease);
    }
}

impl HybridCluster {
    pub(super) fn worker_receives(&mut self, number: usize, message: ManagerMessage) -> Result<(), String> {
        let now = Duration::from_micros(self.now_us);
        let stages = self.study.plan().stages.len() as u32;
        let node = &mut self.nodes[number];
        node.worker.handle_time(now);
        match message {
            ManagerMessage::Introduce => node.worker.handle_study(STUDY, stages, 0),
            ManagerMessage::Over => node.worker.handle_study_finished(STUDY),
            ManagerMessage::SyncAck(call) => node.worker.handle_sync_ack(call),
            ManagerMessage::Assign(lease, work, reason) => self.assign(number, lease, &work, reason)?,
        }
        Ok(())
    }

    fn assign(
        &mut self,
        number: usize,
        lease: LeaseId,
        work: &BucketWork,
        reason: GrantReason,
    ) -> Result<(), String> {
        let stage = work.stage as usize;
        let plan = &self.study.plan().stages[stage];
        let bytes =
            |task: &pleach_workflow::Task| TaskMemory { scratch: 0, outputs: vec![0; task.writes.len()] };
        let bytes = plan.tasks.iter().map(bytes).collect();
        let mut run = BucketExecution::new(plan, work, bytes, None).map_err(|why| why.to_string())?;
        self.assigned += run.tasks() as u64;
        let slots = self.nodes[number].slots;
        if slots.accelerators > 0 {
            let estimates = self.study.estimates(stage, self.options.transfer_seconds);
            run.set_device_tasks(plan, estimates, slots.cores, slots.accelerators);
        }
        let first = work.instances.first().map(|instance| instance.id);
        let (seed, variation) = (self.options.seed, self.options.variation);
        let factor = first.map_or(1.0, |first| self.study.tile_factor(first, seed, variation));
        let (ungranted, after, reports) = (0, BTreeMap::new(), Vec::new());
        let node = &mut self.nodes[number];
        node.buckets.insert(lease, Bucket { run, stage, factor, ungranted, after, reports });
        node.worker.handle_assigned(lease, work.stage, work.bucket, reason);
        node.local.push_back(Local::Begin(lease));
        Ok(())
    }

    /// Performs the effects of a worker until there are none.
    pub(super) fn follow(&mut self, number: usize) -> Result<(), String> {
        loop {
            let node = &mut self.nodes[number];
            if let Some(effect) = node.worker.poll_effect() {
                self.perform_worker(number, effect)?;
                continue;
            }
            match node.local.pop_front() {
                Some(Local::Begin(lease)) => self.begin(number, lease)?,
                Some(Local::Granted(lease, slot, task)) => self.start(number, lease, slot, task)?,
                None => return Ok(()),
            }
        }
    }

    fn perform_worker(&mut self, number: usize, effect: worker::Effect) -> Result<(), String> {
        match effect {
            worker::Effect::Grant { lease, slot, node } => {
                self.nodes[number].local.push_back(Local::Granted(lease, slot, node));
            }
            worker::Effect::Request { buckets, after } => {
                self.send_to_manager(number, WorkerMessage::Request(buckets, after));
            }
            worker::Effect::Call { call } => self.send_to_manager(number, WorkerMessage::Call(call)),
            // Memory is not limited, no worker leaves, and the manager asks for no instances.
            effect => return Err(format!("the worker of node {number} has the effect {effect:?}")),
        }
        Ok(())
    }

    fn begin(&mut self, number: usize, lease: LeaseId) -> Result<(), String> {
        self.end_without_time(number, lease)?;
        let is_over = self.report(number, lease);
        let node = &mut self.nodes[number];
        if let Some(demand) = node.offer(lease) {
            node.worker.handle_demand(lease, demand);
        }
        if is_over {
            node.end_bucket(lease);
        }
        Ok(())
    }

    /// Starts a granted task. Its seconds pass.
    fn start(&mut self, number: usize, lease: LeaseId, slot: SlotId, granted: NodeId) -> Result<(), String> {
        let node = &mut self.nodes[number];
        let Some(bucket) = node.buckets.get_mut(&lease) else {
            return Err(format!("{granted} of {lease} is granted to {slot}, and the bucket has ended"));
        };
        let stage = bucket.stage;
        let request = bucket.run.start_task(&self.study.plan().stages[stage], granted, 0);
        let Some(task) = request.map(|request| request.task) else {
            return Err(format!("{granted} of {lease} is granted to {slot}, and is not ready"));
        };
        let kind = node.slots.kind(slot);
        let Some(mean) = self.study.task_seconds(stage, task).on(kind) else {
            return Err(format!(
                "task {task} of stage {stage} has no variant for {slot} of kind {}",
                kind.as_str()
            ));
        };
        let instance = bucket.run.first_instance(granted);
        let own = [2, instance.index() as u64, task as u64];
        let own = Random::of(self.options.seed, &own).factor(self.options.variation);
        let mut seconds = mean * bucket.factor * own;
        if kind == SlotKind::Accelerator && self.options.transfer_seconds > 0.0 {
            let after = bucket.after.get(&granted).map(|after| (lease, *after));
            let is_local = after.is_some() && node.last.get(&slot).copied() == after;
            self.stats.local += u64::from(is_local);
            let share = if is_local { 1.0 - SAVED_TRANSFER } else { 1.0 };
            seconds += self.options.transfer_seconds * share;
            node.last.insert(slot, (lease, granted));
        }
        let before = node.running.insert(slot, Running { lease, node: granted, task, seconds });
        if let Some(Running { node, .. }) = before {
            return Err(format!("{slot} of node {number} runs {node} and {granted}"));
        }
        if let Some(demand) = node.offer(lease) {
            node.worker.handle_demand(lease, demand);
        }
        self.at(self.now_us + (seconds * 1e6).round() as u64, Due::Ended(number, slot));
        Ok(())
    }

    /// Ends the task in a slot.
    pub(super) fn end_task(&mut self, number: usize, slot: SlotId) -> Result<(), String> {
        let node = &mut self.nodes[number];
        node.worker.handle_time(Duration::from_micros(self.now_us));
        let Some(Running { lease, node: task_node, task, seconds }) = node.running.remove(&slot) else {
            return Err(format!("{slot} of node {number} ends a task, and runs none"));
        };
        let kind = node.slots.kind(slot);
        let Some(bucket) = node.buckets.get_mut(&lease) else {
            return Err(format!("{slot} of node {number} ends a task of {lease}, which has ended"));
        };
        let stage = bucket.stage;
        let own = &mut self.stats.tasks[stage][task];
        for total in [own, &mut self.stats.total] {
            let KindRuns { runs, seconds: sum } = match kind {
                SlotKind::Core => &mut total.cores,
                SlotKind::Accelerator => &mut total.accelerators,
            };
            (*runs, *sum) = (*runs + 1, *sum + seconds);
        }
        let instance = bucket.run.first_instance(task_node);
        let provenance = TaskProvenance { instance: instance.0, device: kind, ..TaskProvenance::default() };
        bucket.reports.push(TaskReport { provenance, ..ran(stage as u32, task as u32, seconds) });
        self.finish(number, lease, task_node, task)?;
        self.end_without_time(number, lease)?;
        let is_over = self.report(number, lease);
        let node = &mut self.nodes[number];
        let demand = node.offer(lease).unwrap_or_default();
        node.worker.handle_slot_free(slot, lease, demand);
        if is_over {
            node.end_bucket(lease);
        }
        Ok(())
    }

    /// Ends a started task, and counts its run.
    fn finish(&mut self, number: usize, lease: LeaseId, node: NodeId, task: usize) -> Result<(), String> {
        let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) else { return Ok(()) };
        let instance = bucket.run.first_instance(node);
        bucket.run.handle_done(node);
        let runs = &mut self.runs[instance.index() * self.study.max_tasks() + task];
        *runs += 1;
        if *runs > 1 {
            return Err(format!("task {task} of {instance} ran twice"));
        }
        Ok(())
    }

    /// Ends the tasks without time that are next in a bucket.
    fn end_without_time(&mut self, number: usize, lease: LeaseId) -> Result<(), String> {
        while let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
            let plan = &self.study.plan().stages[bucket.stage];
            let Some(next) = bucket.run.demand_without_bytes().next else { break };
            let task = bucket.run.request(plan, next).task;
            if self.study.task_seconds(bucket.stage, task) != super::TaskSeconds::NONE {
                break;
            }
            bucket.run.start_task(plan, next, 0);
            bucket.ungranted += 1;
            self.stats.ends += 1;
            self.finish(number, lease, next, task)?;
        }
        Ok(())
    }

    /// Reports finished instances to the manager. Returns whether the bucket has ended.
    fn report(&mut self, number: usize, lease: LeaseId) -> bool {
        let mut is_over = false;
        while let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
            match bucket.run.poll_effect() {
                Some(Effect::Done { instance, .. }) => {
                    let reports = std::mem::take(&mut bucket.reports);
                    self.send_to_manager(number, WorkerMessage::Done(lease, instance, reports));
                }
                Some(Effect::Over) => is_over = true,
                Some(Effect::Drop(_) | Effect::Failed { .. } | Effect::Lacking { .. }) => {}
                None => break,
            }
        }
        is_over
    }
}
