//! The shells of worker, stage and directory, by the rules of the actors: `actors/src/stage.rs`, `actors/src/stage/look_up.rs`
//! and `actors/src/directory.rs`.

use super::node::{Bucket, Job, Keys, Local, Output, Purpose, RemoteTask, member};
use super::{Due, ManagerMessage, STUDY, SharingCluster, WorkerMessage};
use crate::event::ran;
use pleach_dispatch::directory::{Effect as DirectoryEffect, Member, Resolution, ResultOutput, TaskRecord};
use pleach_dispatch::memory_model::{BucketDemand, TailDemand, TaskMemory};
use pleach_dispatch::message::{BucketWork, GrantReason};
use pleach_dispatch::stage::task_key::{self, TaskInputId};
use pleach_dispatch::stage::{BucketExecution, Effect, InputLocation, NodeId, OutputId, TaskRequest};
use pleach_dispatch::{LeaseId, SlotId, worker};
use pleach_regions::{Digest, RegionIdentity, TaskKey, provenance_id};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// As in `actors/src/stage/look_up.rs`.
const AHEAD_SECONDS: f64 = 0.02;

/// As in `actors/src/stage/look_up.rs`.
const AHEAD_TASKS: usize = 2;

/// As in `actors/src/stage/look_up.rs`.
const MIN_WAIT: Duration = Duration::from_secs(2);

/// As in `actors/src/stage/look_up.rs`.
const WAIT_FACTOR: f64 = 3.0;

impl SharingCluster {
    pub(super) fn worker_receives(&mut self, number: usize, message: ManagerMessage) {
        let now = self.now();
        let node = &mut self.nodes[number];
        match message {
            ManagerMessage::Introduce => node.worker.handle_study(STUDY, 1, 0),
            ManagerMessage::Over => node.worker.handle_study_finished(STUDY),
            ManagerMessage::SyncAck(call) => node.worker.handle_sync_ack(call),
            ManagerMessage::Members(change) => node.directory.handle_members(&change, now),
            ManagerMessage::Assign(lease, work, reason) => self.assign(number, lease, &work, reason),
            ManagerMessage::Share(lease, longer_than) => node.worker.handle_steal_request(lease, longer_than),
            ManagerMessage::QueryAnswer(found) => node.worker.handle_query_answer(found),
            ManagerMessage::Revoke(lease) => {
                node.buckets.get_mut(&lease).map(|bucket| bucket.run.cancel());
                self.follow_bucket(number, lease);
                self.demand(number, lease);
            }
        }
    }

    fn assign(&mut self, number: usize, lease: LeaseId, work: &BucketWork, reason: GrantReason) {
        let bytes = |task: &pleach_workflow::Task| TaskMemory {
            scratch: 0,
            outputs: vec![self.study.region_bytes; task.writes.len()],
        };
        let bytes = self.study.stage.tasks.iter().map(bytes).collect();
        let Ok(run) = BucketExecution::new(&self.study.stage, work, bytes, None) else { return };
        let levels = vec![true; self.study.stage.tasks.len()];
        let run = run.with_gate(levels).with_paths(self.study.paths(), self.options.tail_tasks);
        let (outputs, resolving) = (BTreeMap::new(), BTreeMap::new());
        let (claims, recomputed) = (BTreeMap::new(), BTreeSet::new());
        let bucket = Bucket { run, outputs, resolving, claims, recomputed, reports: Vec::new() };
        let node = &mut self.nodes[number];
        node.buckets.insert(lease, bucket);
        node.worker.handle_assigned(lease, work.stage, work.bucket, reason);
        self.demand(number, lease);
    }

    /// Sends the present demand of a stage to its worker.
    pub(super) fn demand(&mut self, number: usize, lease: LeaseId) {
        let demand = self.present_demand(number, lease);
        self.nodes[number].local.extend(demand.map(|demand| Local::Demand(lease, demand)));
    }

    pub(super) fn slot_free(&mut self, number: usize, slot: SlotId, lease: LeaseId) {
        let demand = self.present_demand(number, lease).unwrap_or_default();
        self.nodes[number].local.push_back(Local::SlotFree(slot, lease, demand));
    }

    fn present_demand(&self, number: usize, lease: LeaseId) -> Option<BucketDemand> {
        let node = &self.nodes[number];
        let bucket = node.buckets.get(&lease)?;
        let demand = bucket.run.demand_without_bytes();
        // A bucket that waits for claimers has its slot reserved, so that the worker does not gather buckets that wait.
        let waits = !bucket.resolving.is_empty() && node.buckets.len() >= self.options.waiting_buckets;
        let tail = TailDemand { waits, ..demand.tail };
        Some(BucketDemand { tail, ..demand })
    }

    /// Performs the effects of a worker until there are none.
    pub(super) fn follow(&mut self, number: usize) {
        loop {
            if let Some(effect) = self.nodes[number].worker.poll_effect() {
                self.perform_worker(number, effect);
            } else if let Some(effect) = self.nodes[number].directory.poll_effect() {
                self.perform_directory(number, effect);
            } else if let Some(key) = self.nodes[number].directory.poll_waiting() {
                self.handle_waiting(number, key);
            } else if let Some(local) = self.nodes[number].local.pop_front() {
                self.perform_local(number, local);
            } else {
                break;
            }
        }
        let dropped = self.nodes[number].results.evict(self.options.result_bytes);
        if !dropped.is_empty() {
            let now = self.now();
            dropped.into_iter().for_each(|key| self.nodes[number].directory.drop_held(key, now));
            return self.follow(number);
        }
        self.note_activity(number);
    }

    fn perform_worker(&mut self, number: usize, effect: worker::Effect) {
        match effect {
            worker::Effect::Grant { lease, slot, node } => {
                self.nodes[number].local.push_back(Local::Granted(lease, slot, node));
            }
            worker::Effect::Request { buckets, after } => {
                self.send_to_manager(number, WorkerMessage::Request(buckets, after));
            }
            worker::Effect::Query { longer_than } => {
                self.send_to_manager(number, WorkerMessage::Query(longer_than));
            }
            worker::Effect::ShareHalf { lease } => self.share_half(number, lease),
            worker::Effect::ShareSpare { lease, longer_than } => self.share_spare(number, lease, longer_than),
            worker::Effect::Call { call } => self.send_to_manager(number, WorkerMessage::Call(call)),
            // Memory is not limited. Workers have no time limit and no accelerators, and are not stopped.
            worker::Effect::MakeRoom { .. }
            | worker::Effect::HandBack { .. }
            | worker::Effect::Prefetch { .. }
            | worker::Effect::Leave => {}
        }
    }

    fn perform_directory(&mut self, number: usize, effect: DirectoryEffect) {
        match effect {
            DirectoryEffect::Send { to, message } => {
                if let Some(to) = member(to).and_then(|id| self.by_member.get(&id).copied()) {
                    let at = self.arrival_us(number, to);
                    self.at(at, Due::Directory(to, message));
                }
            }
            DirectoryEffect::Resolved { key, resolution } => {
                if let Some((lease, node)) = self.nodes[number].looked_up.remove(&key) {
                    self.resolved(number, lease, node, resolution);
                }
            }
            DirectoryEffect::Refused { .. } | DirectoryEffect::Impersonated { .. } => {}
        }
    }

    /// Lets a stage look up another task while it waits for a claimer.
    fn handle_waiting(&mut self, number: usize, key: TaskKey) {
        let node = &mut self.nodes[number];
        let Some((lease, task)) = node.looked_up.get(&key).copied().filter(|_| self.options.takes_others)
        else {
            return;
        };
        node.buckets.get_mut(&lease).into_iter().for_each(|bucket| bucket.run.handle_waiting(task));
        self.send_demand(number, lease);
    }

    fn perform_local(&mut self, number: usize, local: Local) {
        match local {
            Local::Demand(lease, demand) => self.nodes[number].worker.handle_demand(lease, demand),
            Local::SlotFree(slot, lease, demand) => {
                self.nodes[number].worker.handle_slot_free(slot, lease, demand);
            }
            Local::Over(lease) => {
                self.nodes[number].buckets.remove(&lease);
                self.nodes[number].worker.handle_bucket_finished(lease);
            }
            Local::Resume(lease, node) => {
                if let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
                    bucket.run.resume(node);
                }
                self.send_demand(number, lease);
            }
            Local::Granted(lease, slot, node) => {
                let bucket = self.nodes[number].buckets.get_mut(&lease);
                match bucket.and_then(|bucket| bucket.run.start_task(&self.study.stage, node, 0)) {
                    Some(call) => {
                        self.begin(number, lease, slot, call);
                        self.look_up_ahead(number, lease);
                        self.demand(number, lease);
                    }
                    None => self.slot_free(number, slot, lease),
                }
            }
        }
    }

    /// Returns the keys of a task. Its inputs are known.
    fn keys(&self, number: usize, lease: LeaseId, call: &TaskRequest) -> Option<Keys> {
        let bucket = self.nodes[number].buckets.get(&lease)?;
        let mut reads = Vec::new();
        for input in &call.inputs {
            reads.push(match input {
                InputLocation::Stage { instance, .. } => {
                    let tile = TaskInputId::Stored(self.study.tile_key(*instance));
                    (tile, tile)
                }
                InputLocation::Task(output) => {
                    let known = bucket.outputs.get(output)?;
                    (TaskInputId::Output(known.known.identity), TaskInputId::Output(known.origin))
                }
            });
        }
        let task = &self.study.stage.tasks[call.task];
        let key = task_key::key(task, &call.arguments, reads.iter().map(|(read, _)| *read));
        let origin = task_key::key(task, &call.arguments, reads.iter().map(|(_, origin)| *origin));
        Some(Keys { key, origin })
    }

    fn begin(&mut self, number: usize, lease: LeaseId, slot: SlotId, call: TaskRequest) {
        let Some(keys) = self.keys(number, lease, &call) else {
            debug_assert!(false, "the inputs of a started task are known");
            return;
        };
        let node = &mut self.nodes[number];
        let Some(bucket) = node.buckets.get_mut(&lease) else { return };
        if bucket.claims.remove(&call.node).is_some() {
            return self.start(number, lease, Some(slot), call, keys, Purpose::Run);
        }
        if let Some(record) = node.results.acquire(&keys.key, &call.requested) {
            self.add_outputs(number, lease, call.node, &keys, &record, None);
            let node = &mut self.nodes[number];
            node.buckets.get_mut(&lease).into_iter().for_each(|bucket| bucket.run.handle_done(call.node));
            self.follow_bucket(number, lease);
            return self.slot_free(number, slot, lease);
        }
        if node.results.is_running(&keys.key) {
            node.results.wait(keys.key, lease, call.node);
            bucket.run.suspend(call.node);
            return self.slot_free(number, slot, lease);
        }
        node.results.begin(keys.key);
        if node.directory.is_shared() && !bucket.recomputed.contains(&call.node) {
            bucket.run.look_up_started(call.node);
            self.send_look_up(number, lease, call, keys);
            return self.slot_free(number, slot, lease);
        }
        self.start(number, lease, Some(slot), call, keys, Purpose::Run);
    }

    fn look_up_ahead(&mut self, number: usize, lease: LeaseId) {
        if !self.nodes[number].directory.is_shared() {
            return;
        }
        loop {
            let node = &mut self.nodes[number];
            let Some(bucket) = node.buckets.get_mut(&lease).filter(|bucket| bucket.run.is_started()) else {
                return;
            };
            let under_way = bucket.resolving.len() + bucket.claims.len();
            let Some(next) = bucket.run.unresolved().next().filter(|_| under_way < AHEAD_TASKS) else {
                return;
            };
            let call = bucket.run.request(&self.study.stage, next);
            if self.study.tasks[call.task].seconds > AHEAD_SECONDS || bucket.recomputed.contains(&next) {
                return;
            }
            let Some(keys) = self.keys(number, lease, &call) else { return };
            let node = &mut self.nodes[number];
            let Some(bucket) = node.buckets.get_mut(&lease) else { return };
            bucket.run.look_up_ahead(next);
            if let Some(record) = node.results.acquire(&keys.key, &call.requested) {
                self.add_outputs(number, lease, next, &keys, &record, None);
                self.finish_found(number, lease, next, None);
            } else if node.results.is_running(&keys.key) {
                node.results.wait(keys.key, lease, next);
            } else {
                node.results.begin(keys.key);
                self.send_look_up(number, lease, call, keys);
            }
        }
    }

    fn send_look_up(&mut self, number: usize, lease: LeaseId, call: TaskRequest, keys: Keys) {
        let now = self.now();
        let wait = Duration::from_secs_f64(self.study.tasks[call.task].seconds * WAIT_FACTOR).max(MIN_WAIT);
        let node = &mut self.nodes[number];
        node.looked_up.insert(keys.key, (lease, call.node));
        let wanted = call.requested.clone();
        if let Some(bucket) = node.buckets.get_mut(&lease) {
            bucket.resolving.insert(call.node, (call, keys));
        }
        node.directory.look_up(keys.key, wanted, wait, now);
    }

    fn resolved(&mut self, number: usize, lease: LeaseId, node: NodeId, resolution: Resolution) {
        let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) else {
            return;
        };
        let Some((call, keys)) = bucket.resolving.remove(&node) else { return };
        if !bucket.run.end_look_up(node) {
            return self.abandon(number, keys.key);
        }
        match resolution {
            Resolution::Claimed | Resolution::Unclaimed => {
                if bucket.run.admit(node) {
                    bucket.claims.insert(node, keys);
                } else {
                    self.abandon(number, keys.key);
                }
            }
            Resolution::Found { record, holders } => {
                let requested = bucket.run.request(&self.study.stage, node).requested;
                let call = TaskRequest { requested, ..call };
                if bucket.run.given_by(node).is_empty() {
                    self.add_found(number, lease, &call, &keys, record, holders);
                    self.finish_found(number, lease, node, Some(keys.key));
                } else {
                    return self.start(number, lease, None, call, keys, Purpose::Given(record, holders));
                }
            }
        }
        self.send_demand(number, lease);
    }

    pub(super) fn send_demand(&mut self, number: usize, lease: LeaseId) {
        self.look_up_ahead(number, lease);
        self.demand(number, lease);
    }

    /// Adds the outputs of a task that another worker has run.
    pub(super) fn add_found(
        &mut self,
        number: usize,
        lease: LeaseId,
        call: &TaskRequest,
        keys: &Keys,
        record: TaskRecord,
        holders: Vec<Member>,
    ) {
        let outputs = record.outputs.iter().zip(&call.requested);
        let outputs = outputs.map(|(output, wanted)| output.filter(|_| *wanted)).collect();
        let wanted = TaskRecord { outputs, ..record.clone() };
        let remote = Arc::new(RemoteTask { key: keys.key, record, holders });
        self.add_outputs(number, lease, call.node, keys, &wanted, Some(&remote));
    }

    pub(super) fn add_outputs(
        &mut self,
        number: usize,
        lease: LeaseId,
        node: NodeId,
        keys: &Keys,
        record: &TaskRecord,
        remote: Option<&Arc<RemoteTask>>,
    ) {
        let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) else { return };
        for (output, known) in record.outputs.iter().enumerate() {
            let Some(known) = *known else { continue };
            let origin = provenance_id(&keys.origin, output);
            let held = Output { known, origin, remote: remote.cloned() };
            bucket.outputs.insert(OutputId { node, output }, held);
        }
    }

    pub(super) fn finish_found(
        &mut self,
        number: usize,
        lease: LeaseId,
        node: NodeId,
        ended: Option<TaskKey>,
    ) {
        if let Some(key) = ended {
            self.end_running(number, key);
        }
        if let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
            bucket.run.handle_found(node);
        }
        self.follow_bucket(number, lease);
    }

    pub(super) fn end_running(&mut self, number: usize, key: TaskKey) {
        let node = &mut self.nodes[number];
        let waiting = node.results.end(&key);
        node.local.extend(waiting.into_iter().map(|(lease, node)| Local::Resume(lease, node)));
    }

    pub(super) fn abandon(&mut self, number: usize, key: TaskKey) {
        let now = self.now();
        self.nodes[number].directory.abandon(key, now);
        self.end_running(number, key);
    }

    /// Performs the effects of a bucket.
    pub(super) fn follow_bucket(&mut self, number: usize, lease: LeaseId) {
        let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) else { return };
        let is_gone = |node: &NodeId| !bucket.run.is_ready(*node);
        let gone: Vec<NodeId> = bucket.claims.keys().copied().filter(is_gone).collect();
        let gone: Vec<Keys> = gone.into_iter().filter_map(|node| bucket.claims.remove(&node)).collect();
        gone.into_iter().for_each(|keys| self.abandon(number, keys.key));
        loop {
            let node = &mut self.nodes[number];
            let Some(bucket) = node.buckets.get_mut(&lease) else { return };
            match bucket.run.poll_effect() {
                None => return,
                Some(Effect::Drop(output)) => {
                    if let Some(held) = bucket.outputs.remove(&output).filter(|held| held.remote.is_none()) {
                        node.results.release(&held.known.identity);
                    }
                }
                Some(Effect::Done { instance, .. }) => {
                    let reports = std::mem::take(&mut bucket.reports);
                    self.send_to_manager(number, WorkerMessage::Done(lease, instance, reports));
                }
                Some(Effect::Over) => node.local.push_back(Local::Over(lease)),
                Some(Effect::Failed { .. } | Effect::Lacking { .. }) => {}
            }
        }
    }

    /// Runs a task: its seconds pass once its inputs are present.
    pub(super) fn run_task(&mut self, number: usize, job: u64) {
        let Some(at) = self.nodes[number].jobs.get(&job) else { return };
        let Some(bucket) = self.nodes[number].buckets.get(&at.lease) else { return };
        let instance = bucket.run.first_instance(at.call.node);
        let seconds = self.study.seconds(at.call.task, instance, &at.keys.key);
        self.at(self.now_us + (seconds * 1e6) as u64, Due::Ran(number, job));
    }

    /// Ends a job whose task has run, or whose inputs are lost.
    pub(super) fn end_job(&mut self, number: usize, job: u64) {
        let Some(job) = self.nodes[number].jobs.remove(&job) else { return };
        let Job { lease, slot, call, keys, purpose, fetched, lost, .. } = job;
        if let Purpose::Given(record, holders) = purpose {
            return self.end_given(number, lease, (call, keys), (record, holders), lost);
        }
        self.localize(number, lease, &fetched);
        match lost {
            Some(lost) => {
                self.abandon(number, keys.key);
                if let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
                    bucket.run.suspend(call.node);
                }
                self.reopen(number, lease, lost);
                if let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
                    bucket.run.resume(call.node);
                }
            }
            None => self.end_run(number, lease, &call, keys),
        }
        self.follow_bucket(number, lease);
        if let Some(slot) = slot {
            self.slot_free(number, slot, lease);
        }
        self.look_up_ahead(number, lease);
    }

    fn end_run(&mut self, number: usize, lease: LeaseId, call: &TaskRequest, keys: Keys) {
        let now = self.now();
        let Some(bucket) = self.nodes[number].buckets.get(&lease) else { return };
        let instance = bucket.run.first_instance(call.node);
        let seconds = self.study.seconds(call.task, instance, &keys.key);
        self.stats.runs += 1;
        self.stats.run_seconds += seconds;
        self.share_seconds[number] += seconds;
        let times = self.ran.entry(keys.key).or_insert(0);
        *times += 1;
        if *times > 1 {
            self.stats.repeated += 1;
            self.stats.repeated_seconds += seconds;
        }
        let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) else { return };
        let reads: Vec<Digest> = call
            .inputs
            .iter()
            .filter_map(|input| match input {
                InputLocation::Task(output) => Some(bucket.outputs.get(output)?.known.digest),
                InputLocation::Stage { .. } => None,
            })
            .collect();
        bucket.reports.push(ran(0, call.task as u32, seconds));
        let contents = self.study.outputs(call.task, instance, &call.arguments, reads);
        debug_assert!(contents.len() == call.requested.len(), "each task has known outputs");
        let output = |(output, content): (usize, Digest)| {
            let identity: RegionIdentity = self.study.identity(provenance_id(&keys.key, output), content);
            let known = ResultOutput { identity, digest: content, bytes: self.study.region_bytes };
            call.requested[output].then_some(known)
        };
        let outputs: Vec<Option<ResultOutput>> = contents.into_iter().enumerate().map(output).collect();
        let record = TaskRecord { origin: keys.origin, outputs, seconds };
        self.nodes[number].results.insert(keys.key, &record);
        self.add_outputs(number, lease, call.node, &keys, &record, None);
        let node = &mut self.nodes[number];
        if record.known() == 0 {
            node.directory.abandon(keys.key, now);
        } else {
            node.directory.hold(keys.key, record, now);
        }
        node.buckets.get_mut(&lease).into_iter().for_each(|bucket| bucket.run.handle_done(call.node));
        self.end_running(number, keys.key);
    }
}
