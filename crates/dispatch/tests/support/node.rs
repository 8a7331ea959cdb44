//! A manager and a worker with its stages, joined by message queues that advance in random order. Regions are
//! sizes, so the true bytes are known at any time.

#[path = "node_devices.rs"]
mod devices;

use crate::solo::{STUDY, manager_of};
use crate::studies::Study;
use pleach_dispatch::manager::{Effect as ManagerEffect, Manager, WorkerInfo};
use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget, TaskMemory};
use pleach_dispatch::message::{BucketWork, Report, ReportedEnd, ToManager, ToWorker};
use pleach_dispatch::stage::{self, BucketExecution, NodeId, Offer, OutputId, TaskRequest};
use pleach_dispatch::study::Effect as Event;
use pleach_dispatch::worker::{Effect, Worker, WorkerSlots};
use pleach_dispatch::{InstanceId, LeaseId, SlotId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;

/// A bucket on the worker.
struct Bucket {
    work: BucketWork,
    run: BucketExecution,
    /// True memory of the tasks.
    bytes: Vec<TaskMemory>,
    inputs: Vec<(RegionKey, u64)>,
    written: BTreeMap<OutputId, u64>,
}

impl Bucket {
    /// Returns the demand of [`BucketExecution`], with the bytes that are truly held.
    fn demand(&self, storage: &Storage) -> (BucketDemand, Vec<Offer>) {
        let (local_bytes, missing_bytes) = storage.inputs(self);
        let demand = self.run.demand(missing_bytes);
        let held_bytes = self.written.values().sum();
        (BucketDemand { held_bytes, local_bytes, ..demand }, self.run.offers())
    }
}

/// Sizes of the regions in memory and in the spill tier.
#[derive(Default)]
struct Storage {
    ram: BTreeMap<RegionKey, u64>,
    below: BTreeMap<RegionKey, u64>,
}

impl Storage {
    /// Returns the bytes of a bucket's inputs that are in memory, and those that are not.
    fn inputs(&self, bucket: &Bucket) -> (u64, u64) {
        let here = bucket.inputs.iter().filter_map(|(key, _)| self.ram.get(key)).sum();
        let missing = bucket.inputs.iter().filter(|(key, _)| !self.ram.contains_key(key));
        (here, missing.map(|(key, bytes)| self.below.get(key).unwrap_or(bytes)).sum())
    }

    fn spill_bytes(&self) -> u64 {
        self.below.values().sum()
    }

    fn release(&mut self, key: &RegionKey) {
        self.ram.remove(key);
        self.below.remove(key);
    }
}

/// Message between a stage and its worker.
enum Local {
    Granted(LeaseId, SlotId, NodeId),
    Demand(LeaseId, (BucketDemand, Vec<Offer>)),
    SlotFree(SlotId, LeaseId, (BucketDemand, Vec<Offer>)),
    Over(LeaseId),
    /// Regions to spill, except those released meanwhile.
    Moved(Vec<RegionKey>),
}

struct Running {
    slot: SlotId,
    lease: LeaseId,
    call: TaskRequest,
    bytes: u64,
}

/// Configuration of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) slots: WorkerSlots,
    pub(crate) budget: u64,
    pub(crate) active_paths: Option<NonZeroU32>,
    /// Estimated memory of tasks, in quarters of their true memory.
    pub(crate) believed: u64,
    pub(crate) seed: u64,
    /// Size of the spill tier in bytes.
    pub(crate) below: u64,
}

pub(crate) struct Node<'a> {
    study: &'a Study,
    setup: Setup,
    chance: u64,
    manager: Manager,
    id: WorkerId,
    pub(crate) worker: Worker,
    to_manager: VecDeque<ToManager>,
    to_worker: VecDeque<ToWorker>,
    local: VecDeque<Local>,
    buckets: BTreeMap<LeaseId, Bucket>,
    running: Vec<Running>,
    storage: Storage,
    pub(crate) moved_bytes: u64,
    pub(crate) done: BTreeSet<InstanceId>,
    pub(crate) complete: bool,
    pub(crate) stopped: bool,
    pub(crate) left: bool,
    pub(crate) calls: usize,
    /// Tasks that ended on accelerators.
    pub(crate) on_accelerators: usize,
    /// Events in order, printed by failed tests.
    pub(crate) log: Vec<String>,
    noted: Option<(u64, usize, usize, usize)>,
    /// Maximum of the true bytes.
    pub(crate) most_bytes: u64,
}

impl<'a> Node<'a> {
    pub(crate) fn new(study: &'a Study, setup: Setup, finished: &BTreeSet<InstanceId>) -> Self {
        let mut manager = manager_of(study.plan.clone(), finished).expect("a plan that keeps the rules");
        let id = manager.handle_join(WorkerInfo::ANY);
        let needs = &study.plan.needs;
        let mut worker =
            Worker::new(setup.slots, MemoryBudget { bytes: setup.budget, ..MemoryBudget::UNLIMITED });
        worker.handle_study(STUDY, study.plan.stages.len() as u32, needs.with_spill(setup.below));
        let mut node = Self {
            study,
            setup,
            chance: setup.seed | 1,
            manager,
            id,
            worker,
            to_manager: VecDeque::new(),
            to_worker: VecDeque::new(),
            local: VecDeque::new(),
            buckets: BTreeMap::new(),
            running: Vec::new(),
            storage: Storage::default(),
            moved_bytes: 0,
            done: BTreeSet::new(),
            complete: false,
            stopped: false,
            left: false,
            calls: 0,
            on_accelerators: 0,
            log: Vec::new(),
            noted: None,
            most_bytes: 0,
        };
        node.follow_manager();
        node.follow_worker();
        node
    }

    /// Returns a random number below `among`. Xorshift suffices to shuffle messages.
    fn chance(&mut self, among: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 20) as usize % among
    }

    /// Performs one random event. Returns false if none is possible.
    pub(crate) fn step(&mut self) -> bool {
        let mut possible = Vec::new();
        if !self.to_manager.is_empty() {
            possible.extend([0; 3]);
        }
        if !self.to_worker.is_empty() {
            possible.extend([1; 3]);
        }
        if !self.local.is_empty() {
            possible.extend([2; 6]);
        }
        if !self.running.is_empty() {
            possible.push(3);
        }
        if possible.is_empty() {
            return false;
        }
        match possible[self.chance(possible.len())] {
            0 => self.reach_manager(),
            1 => self.reach_worker(),
            2 => self.reach_local(),
            _ => {
                let which = self.chance(self.running.len());
                self.end(which);
            }
        }
        self.follow_manager();
        self.follow_worker();
        self.manager.sanity_check().expect("sane");
        self.note();
        self.most_bytes =
            self.most_bytes.max(self.held_bytes() + self.running.iter().map(|r| r.bytes).sum::<u64>());
        for lease in self.buckets.keys() {
            let paths = self.running.iter().filter(|running| running.lease == *lease).count();
            assert!(self.setup.active_paths.is_none_or(|active| paths <= active.get() as usize));
        }
        true
    }

    /// Logs the held bytes if the state has changed.
    fn note(&mut self) {
        let now = (self.held_bytes(), self.storage.ram.len(), self.running.len(), self.done.len());
        if self.noted.replace(now) != Some(now) {
            let running = self.running.iter().map(|r| format!("{}/t{} {}", r.lease, r.call.task, r.bytes));
            let running = running.collect::<Vec<_>>().join(", ");
            let stored: Vec<u64> = self.storage.ram.values().copied().collect();
            self.log.push(format!("{} held, {stored:?} of it stored; running {running}", now.0));
        }
    }

    pub(crate) fn stop(&mut self) {
        self.manager.handle_stop();
        self.follow_manager();
    }

    /// Returns the bytes of regions in memory and of held task outputs.
    pub(crate) fn held_bytes(&self) -> u64 {
        let written = self.buckets.values().flat_map(|bucket| bucket.written.values());
        self.storage.ram.values().chain(written).sum()
    }

    fn reach_manager(&mut self) {
        match self.to_manager.pop_front().expect("a message") {
            ToManager::Request { buckets, after } => {
                self.log.push(format!("manager hears of {buckets} after {after:?}"));
                self.manager.handle_request(self.id, buckets, after);
            }
            ToManager::Sync { call } => {
                self.log.push(format!("manager hears call {call}"));
                self.follow_manager();
                self.to_worker.push_back(ToWorker::SyncAck { call });
            }
            ToManager::Reports { reports, .. } => {
                let counted = self.manager.handle_reports(self.id, STUDY, &reports);
                assert_eq!(counted, [true], "{reports:?} did not count");
            }
            ToManager::Leave => self.manager.handle_leave(self.id, false),
            message => panic!("{message:?} is not said here"),
        }
    }

    fn follow_manager(&mut self) {
        while let Some(effect) = self.manager.poll_effect() {
            assert!(
                !self.complete || matches!(effect, ManagerEffect::Over { .. }),
                "{effect:?} after the end"
            );
            match effect {
                ManagerEffect::Assign { lease, work, reason, .. } => {
                    self.log.push(format!("manager gives {lease} of stage {}", work.stage));
                    self.to_worker.push_back(ToWorker::Assign {
                        study: STUDY,
                        lease,
                        work,
                        reason,
                        inputs: Vec::new(),
                        peers: Vec::new(),
                    });
                }
                ManagerEffect::Study(_, Event::Release(keys)) => {
                    self.to_worker.push_back(ToWorker::Release { keys })
                }
                ManagerEffect::Study(_, Event::Finished(instance)) => {
                    assert!(self.done.insert(instance), "{instance} ran twice");
                }
                ManagerEffect::Study(_, Event::Complete) => self.complete = true,
                ManagerEffect::Stop => self.to_worker.push_back(ToWorker::Stop),
                ManagerEffect::Stopped => self.stopped = true,
                ManagerEffect::Introduce { .. } | ManagerEffect::Over { .. } | ManagerEffect::Replan(_) => {}
                ManagerEffect::TileShared { .. } => {}
                // The only worker of a stopped study leaves, and its regions with it.
                ManagerEffect::Study(_, Event::Reopened(_)) => {}
                effect => panic!("{effect:?}"),
            }
        }
    }

    /// Updates the worker's numbers about storage. The shell does so before every event.
    fn look(&mut self) {
        let free = self.setup.below - self.storage.spill_bytes();
        let movable: u64 = self.movable(None).iter().map(|key| self.storage.ram[key]).sum();
        self.worker.handle_spillable(movable.min(free), free);
        for (lease, bucket) in &self.buckets {
            let (here, missing) = self.storage.inputs(bucket);
            self.worker.handle_inputs(*lease, here, missing);
        }
        self.worker.handle_stored(self.storage.ram.values().sum());
    }

    /// Updates the input bytes of a demand: inputs may have been loaded or spilled since the stage sent it.
    fn as_it_is(&self, lease: LeaseId, demand: BucketDemand) -> BucketDemand {
        let Some(bucket) = self.buckets.get(&lease).filter(|_| !demand.started) else { return demand };
        let (local_bytes, load_bytes) = self.storage.inputs(bucket);
        BucketDemand { local_bytes, load_bytes, ..demand }
    }

    /// Returns the regions in memory that no started bucket reads, nor the bucket under the lease `but`.
    fn movable(&self, but: Option<LeaseId>) -> Vec<RegionKey> {
        let is_read = |lease: &LeaseId| self.worker.is_started(*lease) || but == Some(*lease);
        let read = self.buckets.iter().filter(|(lease, _)| is_read(lease));
        let read: BTreeSet<RegionKey> =
            read.flat_map(|(_, bucket)| bucket.inputs.iter().map(|(key, _)| *key)).collect();
        self.storage.ram.keys().filter(|key| !read.contains(key)).copied().collect()
    }

    fn reach_worker(&mut self) {
        let message = self.to_worker.pop_front().expect("a message");
        if self.left {
            return;
        }
        match message {
            ToWorker::Assign { lease, work, reason, .. } => {
                self.log.push(format!("worker gets {lease} of stage {}: {reason:?}", work.stage));
                self.look();
                self.worker.handle_assigned(lease, work.stage, work.bucket, reason);
                let has_room = self.setup.below >= self.study.plan.needs.min_bytes;
                let work = if has_room { work.with_spill() } else { work };
                let stage = &self.study.plan.stages[work.stage as usize];
                let bytes = self.study.bytes(work.stage as usize, work.pixels);
                let believed = |bytes: u64| bytes * self.setup.believed / 4;
                let guess = bytes.iter().map(|task| TaskMemory {
                    scratch: believed(task.scratch),
                    outputs: task.outputs.iter().map(|bytes| believed(*bytes)).collect(),
                });
                let mut run = BucketExecution::new(stage, &work, guess.collect(), self.setup.active_paths)
                    .expect("fits");
                self.setup.set_devices(stage, &mut run);
                let mut inputs: Vec<(RegionKey, u64)> = Vec::new();
                for (key, input) in work.instances[0].inputs.iter().zip(&stage.inputs) {
                    if inputs.iter().all(|(other, _)| other != key) {
                        inputs.push((*key, input.region.element.bytes(work.pixels)));
                    }
                }
                let bucket = Bucket { work, run, bytes, inputs, written: BTreeMap::new() };
                let demand = bucket.demand(&self.storage);
                self.buckets.insert(lease, bucket);
                self.local.push_back(Local::Demand(lease, demand));
            }
            ToWorker::Release { keys } => {
                for key in keys {
                    self.storage.release(&key);
                }
                self.look();
            }
            ToWorker::SyncAck { call } => {
                self.log.push(format!("worker hears echo {call}"));
                self.look();
                self.worker.handle_sync_ack(call);
            }
            ToWorker::Stop => self.worker.handle_stop(),
            message => panic!("{message:?} is not said here"),
        }
    }

    fn reach_local(&mut self) {
        match self.local.pop_front().expect("a message") {
            Local::Granted(lease, slot, node) => self.start(lease, slot, node),
            Local::Demand(lease, (demand, offers)) => {
                self.look();
                self.worker.handle_offers(lease, offers);
                self.worker.handle_demand(lease, self.as_it_is(lease, demand));
            }
            Local::SlotFree(slot, lease, (demand, offers)) => {
                self.look();
                self.worker.handle_offers(lease, offers);
                self.worker.handle_slot_free(slot, lease, self.as_it_is(lease, demand));
            }
            Local::Over(lease) => {
                self.look();
                self.buckets.remove(&lease);
                self.worker.handle_bucket_finished(lease);
            }
            Local::Moved(keys) => {
                let mut left = 0;
                for key in keys {
                    let free = self.setup.below - self.storage.spill_bytes();
                    if let Entry::Occupied(stored) = self.storage.ram.entry(key)
                        && *stored.get() <= free
                    {
                        let bytes = stored.remove();
                        self.log.push(format!("{bytes} moved"));
                        self.storage.below.insert(key, bytes);
                        left += bytes;
                    }
                }
                self.look();
                self.moved_bytes += left;
                self.worker.handle_memory_freed(left);
            }
        }
    }

    fn follow_worker(&mut self) {
        while let Some(effect) = self.worker.poll_effect() {
            match effect {
                Effect::Grant { lease, slot, node } => {
                    self.local.push_back(Local::Granted(lease, slot, node))
                }
                Effect::Request { buckets, after } => {
                    self.log.push(format!("worker asks for {buckets} after {after:?}"));
                    self.to_manager.push_back(ToManager::Request { buckets, after });
                }
                Effect::Call { call } => {
                    self.calls += 1;
                    self.to_manager.push_back(ToManager::Sync { call });
                }
                Effect::MakeRoom { bytes, lease } => {
                    self.log.push(format!("worker wants {bytes} for {lease}"));
                    let mut movable = self.movable(Some(lease));
                    let mut goes = Vec::new();
                    let mut left = bytes;
                    while left > 0 && !movable.is_empty() {
                        let key = movable.swap_remove(self.chance(movable.len()));
                        left = left.saturating_sub(self.storage.ram[&key]);
                        goes.push(key);
                    }
                    self.local.push_back(Local::Moved(goes));
                }
                Effect::Leave => {
                    assert!(self.running.is_empty() && !self.left);
                    self.left = true;
                    self.to_manager.push_back(ToManager::Leave);
                }
                effect => panic!("{effect:?}"),
            }
        }
    }

    fn start(&mut self, lease: LeaseId, slot: SlotId, node: NodeId) {
        let Some(bucket) = self.buckets.get_mut(&lease) else {
            self.local.push_back(Local::SlotFree(slot, lease, (BucketDemand::default(), Vec::new())));
            return;
        };
        let stage = &self.study.plan.stages[bucket.work.stage as usize];
        let (_, missing) = self.storage.inputs(bucket);
        let Some(call) = bucket.run.start_task(stage, node, missing) else {
            let demand = bucket.demand(&self.storage);
            self.local.push_back(Local::SlotFree(slot, lease, demand));
            return;
        };
        if call.brings_inputs {
            for (key, bytes) in &bucket.inputs {
                let below = self.storage.below.remove(key);
                self.storage.ram.entry(*key).or_insert(below.unwrap_or(*bytes));
            }
        }
        assert_eq!(self.storage.inputs(bucket).1, 0, "what a bucket under way reads is in memory");
        self.setup.assert_fits(slot, call.task);
        let bytes = bucket.bytes[call.task].running();
        self.running.push(Running { slot, lease, call, bytes });
        let demand = bucket.demand(&self.storage);
        self.local.push_back(Local::Demand(lease, demand));
    }

    fn end(&mut self, which: usize) {
        let Running { slot, lease, call, .. } = self.running.swap_remove(which);
        if self.fails(slot) {
            return self.end_with_device_error(slot, lease, call.node);
        }
        let bucket = self.buckets.get_mut(&lease).expect("a bucket");
        let wanted =
            bucket.bytes[call.task].outputs.iter().enumerate().filter(|(output, _)| call.requested[*output]);
        let written = wanted.map(|(output, bytes)| (OutputId { node: call.node, output }, *bytes));
        bucket.written.extend(written.collect::<Vec<_>>());
        bucket.run.handle_done(call.node);
        let mut puts = Vec::new();
        while let Some(effect) = bucket.run.poll_effect() {
            match effect {
                stage::Effect::Done { instance, outputs } => {
                    let work = bucket.work.instances.iter().find(|work| work.id == instance).expect("known");
                    for (plan, output) in work.outputs.iter().zip(outputs).filter(|(plan, _)| plan.stored) {
                        puts.push((plan.key, bucket.written[&output]));
                    }
                    let end = ReportedEnd::Done { results: Vec::new(), shared: Vec::new() };
                    let report = Report { lease, instance, end, tasks: Vec::new() };
                    self.to_manager.push_back(ToManager::Reports { study: STUDY, reports: vec![report] });
                }
                stage::Effect::Drop(output) => drop(bucket.written.remove(&output).expect("held")),
                stage::Effect::Over => self.local.push_back(Local::Over(lease)),
                stage::Effect::Failed { .. } | stage::Effect::Lacking { .. } => panic!("nothing fails here"),
            }
        }
        self.storage.ram.extend(puts);
        let demand = bucket.demand(&self.storage);
        self.local.push_back(Local::SlotFree(slot, lease, demand));
    }
}
