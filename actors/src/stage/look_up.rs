//! Look-ups of tasks in the result directory, before they run.
//!
//! A task that another worker has run is done at once and moves no bytes: its outputs are fetched by the first task that
//! runs and reads them. Long tasks are looked up when a slot is free, short ones ahead, so that their claims wait for no
//! round trip.

use super::StageActor;
use super::execution::{Execution, Fetched, JobResult, RemoteFetches, TaskKeys};
use super::guard::Flow;
use super::live_outputs::{RemoteOutput, RemoteTask};
use crate::directory::{LookUpAnswer, LookUpTask, Resolved, ResultChange};
use actix::prelude::*;
use pleach_dispatch::SlotId;
use pleach_dispatch::directory::{Member, MemberId, Resolution, ResultOutput, TaskRecord};
use pleach_dispatch::message::{ReuseSource, TaskOutcome, TaskSource};
use pleach_dispatch::stage::{InputLocation, NodeId, OutputId, TaskRequest};
use pleach_regions::{DataRegion, Digest, TaskKey, provenance_id};
use std::sync::Arc;
use std::time::Duration;

/// Longer tasks are claimed only when a slot is free. A claim ahead of a slot keeps the task from other workers, for up to
/// the length of the running task.
const AHEAD_SECONDS: f64 = 0.02;

/// Short tasks that a bucket looks up or claims ahead, for each slot. With two, the next claim is present when a task ends.
const AHEAD_TASKS: usize = 2;

/// Shortest limit of the wait for another worker that runs the task.
const MIN_WAIT: Duration = Duration::from_secs(2);

/// A worker waits for another at most three times the predicted duration of the task: after that, a run of its own is
/// probably finished first.
const WAIT_FACTOR: f64 = 3.0;

/// Returns a task that the holders of its record have run.
fn remote_task(keys: TaskKeys, record: &TaskRecord, holders: Vec<Member>) -> RemoteTask {
    let TaskRecord { origin, ref outputs, seconds } = *record;
    RemoteTask { key: keys.key, origin, seconds, outputs: outputs.len(), holders }
}

impl StageActor {
    /// Returns whether other buckets may have run a task, or may use its outputs.
    pub(super) fn is_keyed(&self, task: usize) -> bool {
        self.worth.as_ref().is_some_and(|worth| worth.keyed[task])
    }

    /// Returns whether other workers may have results of the bucket's tile.
    pub(super) fn looks_up(&self) -> bool {
        let directory = self.around.directory.as_ref();
        directory.is_some_and(|directory| directory.is_shared()) && !self.around.own_tile.is_own()
    }

    /// Suspends a task that has a slot, and looks it up. The slot is free meanwhile.
    pub(super) fn look_up_started(
        &mut self,
        slot: SlotId,
        call: TaskRequest,
        keys: TaskKeys,
        ctx: &Context<Self>,
    ) {
        self.run.look_up_started(call.node);
        self.send_look_up(call, keys, ctx);
        self.report_slot_free(slot);
    }

    /// Looks up short ready tasks before they have a slot.
    pub(super) fn look_up_ahead(&mut self, ctx: &Context<Self>) {
        if !self.looks_up() || !self.inputs_loaded {
            return;
        }
        let limit = AHEAD_TASKS * self.around.slots.len();
        loop {
            let under_way = self.resolving.len() + self.claims.len();
            let Some(node) = self.run.unresolved().next().filter(|_| under_way < limit) else { return };
            let call = self.run.request(&self.stage, node);
            // A task that is skipped, not decided yet or not to be looked up waits for its slot.
            if !matches!(self.flow(&call), Ok(Flow::Run)) || self.recomputed.contains(&node) {
                return;
            }
            if self.predict(&call) > AHEAD_SECONDS {
                return;
            }
            let Some(keys) = self.keys(&call) else { return };
            let mut results = self.outputs.results();
            let is_local = self.given_fetches(&call).is_empty();
            if let Some((outputs, from)) =
                is_local.then(|| results.shelf.acquire(&keys.key, &call.requested)).flatten()
            {
                let reused = self.reuse_source(&results, from, keys);
                let ran_for = results.ran_for(&keys.key, self.study);
                drop(results);
                self.run.look_up_ahead(node);
                self.report(&call, TaskOutcome::Reused(reused), ran_for, 0.0);
                let id = |output| OutputId { node, output };
                self.outputs.add_shelved(outputs, id, |output| provenance_id(&keys.origin, output));
                self.run.handle_found(node);
                self.follow();
                continue;
            }
            if results.is_running(&keys.key) {
                results.wait(keys.key, ctx.address().recipient(), node);
                drop(results);
                self.run.look_up_ahead(node);
                continue;
            }
            if results.find_stored(&keys.key, &call.requested).is_some() {
                // Decoded or read from its tier once it has a slot.
                return;
            }
            results.begin(keys.key);
            drop(results);
            self.run.look_up_ahead(node);
            self.send_look_up(call, keys, ctx);
        }
    }

    /// Returns the predicted seconds of a task.
    pub(super) fn predict(&self, call: &TaskRequest) -> f64 {
        let operation = &*self.operations[call.task];
        self.around.costs.lock().predict(operation, &call.arguments, self.pixels)
    }

    fn send_look_up(&mut self, call: TaskRequest, keys: TaskKeys, ctx: &Context<Self>) {
        let Some(directory) = &self.around.directory else { return };
        let wait = Duration::try_from_secs_f64(self.predict(&call) * WAIT_FACTOR).unwrap_or(Duration::MAX);
        let (node, stage) = (call.node, ctx.address().recipient());
        let (wanted, longest) = (call.requested.clone(), wait.max(MIN_WAIT));
        directory.look_up(LookUpTask { key: keys.key, wanted, longest, stage, node });
        let before = self.resolving.insert(node, (call, keys));
        assert!(before.is_none(), "{node} is looked up twice");
    }

    /// Takes the claim of a task that has been looked up. Returns whether it is a claim of this key: an input that is not
    /// deterministic, lost and computed again since, changes the key of its readers.
    pub(super) fn take_claim(&mut self, node: NodeId, key: Option<TaskKey>) -> bool {
        let claimed = self.claims.remove(&node);
        let is_same = claimed.is_some_and(|keys| Some(keys.key) == key);
        if let Some(keys) = claimed.filter(|_| !is_same) {
            self.abandon(keys.key);
        }
        is_same
    }

    /// Returns whether the inputs of a task have another identity than at its look-up.
    fn is_outdated(&self, call: &TaskRequest, keys: TaskKeys) -> bool {
        self.keys(call).is_some_and(|now| now.key != keys.key)
    }

    /// Gives up a claim, and lets other tasks of this worker that wait for it continue.
    pub(super) fn abandon(&self, key: TaskKey) {
        if let Some(directory) = &self.around.directory {
            directory.change(ResultChange::Abandoned(key));
        }
        self.outputs.results().end(&key);
    }

    /// Gives up the claims of tasks that have been withdrawn from the bucket.
    pub(super) fn abandon_withdrawn(&mut self) {
        let gone: Vec<NodeId> =
            self.claims.keys().copied().filter(|node| !self.run.is_ready(*node)).collect();
        for node in gone {
            if let Some(keys) = self.claims.remove(&node) {
                self.abandon(keys.key);
            }
        }
    }

    /// Announces the outputs of a task that has run on this worker.
    pub(super) fn announce(
        &self,
        call: &TaskRequest,
        keys: TaskKeys,
        digests: &[Option<Digest>],
        seconds: f64,
    ) {
        let Some(directory) = &self.around.directory else { return };
        let output = |output: usize| {
            let id = OutputId { node: call.node, output };
            let (identity, digest) =
                (self.outputs.info(id)?.identity, digests.get(output).copied().flatten()?);
            Some(ResultOutput { identity, digest, bytes: self.outputs.region(id)?.bytes() })
        };
        let outputs: Vec<Option<ResultOutput>> = (0..call.requested.len()).map(output).collect();
        if outputs.iter().flatten().count() == 0 {
            return directory.change(ResultChange::Abandoned(keys.key));
        }
        let mut results = self.outputs.results();
        outputs.iter().flatten().for_each(|output| results.offer(output.identity));
        drop(results);
        let record = TaskRecord { origin: keys.origin, outputs, seconds };
        directory.change(match self.around.own_tile.is_own() {
            true => ResultChange::HeldAlone(keys.key, record),
            false => ResultChange::Held(keys.key, record),
        });
    }

    /// Puts fetched outputs into the result cache. Announces this worker as a holder of tasks with one output.
    pub(super) fn localize(&mut self, fetched: Vec<(OutputId, Arc<DataRegion>)>) {
        let source = self.root_input();
        for (output, region) in fetched {
            let Some(remote) = self.outputs.remote(output).cloned() else { continue };
            let bytes = region.bytes();
            self.outputs.localize(output, region, source);
            let RemoteOutput { task, identity, digest } = remote;
            if let Some(directory) = self.around.directory.as_ref().filter(|_| task.outputs == 1) {
                let outputs = vec![Some(ResultOutput { identity, digest, bytes })];
                let record = TaskRecord { origin: task.origin, outputs, seconds: task.seconds };
                directory.change(ResultChange::Fetched(task.key, record));
            }
        }
    }

    /// Returns the outputs to fetch before instances end: those that they return.
    pub(super) fn given_fetches(&self, call: &TaskRequest) -> RemoteFetches {
        self.remote_fetches(self.run.given_by(call.node).iter().copied())
    }

    fn remote_fetches(&self, outputs: impl Iterator<Item = OutputId>) -> RemoteFetches {
        let exchange = self.around.directory.as_ref().map(|directory| directory.exchange.clone());
        let remote = outputs.filter_map(|output| Some((output, self.outputs.remote(output)?.clone())));
        RemoteFetches::new(exchange, remote.collect())
    }

    /// Returns the outputs to fetch before a task runs: its remote inputs, and those that its instances return.
    pub(super) fn fetches(&self, call: &TaskRequest) -> RemoteFetches {
        let inputs = call.inputs.iter().filter_map(|input| match *input {
            InputLocation::Task(output) => Some(output),
            InputLocation::Stage { .. } => None,
        });
        self.remote_fetches(inputs.chain(self.run.given_by(call.node).iter().copied()))
    }

    /// Handles an output that no holder sent as announced: its task is looked up again, and runs if no other worker has it. `reader`
    /// waits for it.
    pub(super) fn handle_lost_output(&mut self, lost: OutputId, reader: NodeId) {
        self.run.suspend(reader);
        self.reopen(lost);
        self.run.resume(reader);
    }

    fn reopen(&mut self, lost: OutputId) {
        // Another task may have fetched it meanwhile.
        if self.outputs.region(lost).is_some() {
            return;
        }
        if let (Some(remote), Some(directory)) = (self.outputs.remote(lost), &self.around.directory) {
            let holders: Vec<MemberId> = remote.task.holders.iter().map(|holder| holder.id).collect();
            directory.change(ResultChange::Rejected(remote.task.key, holders));
        }
        self.run.reopen(lost.node);
    }

    /// Finishes a looked-up task that another worker has run. `own` are those of its outputs that have been fetched.
    fn finish_found(
        &mut self,
        (call, keys): (TaskRequest, TaskKeys),
        (record, holders): (TaskRecord, Vec<Member>),
        own: Vec<(OutputId, Arc<DataRegion>)>,
    ) {
        let holder = holders.first().map(|holder| TaskSource::Holder(holder.id));
        let task = Arc::new(remote_task(keys, &record, holders));
        for (output, known) in record.outputs.into_iter().enumerate() {
            let Some(ResultOutput { identity, digest, bytes }) = known.filter(|_| call.requested[output])
            else {
                continue;
            };
            let remote = RemoteOutput { task: Arc::clone(&task), identity, digest };
            let (id, origin) = (OutputId { node: call.node, output }, provenance_id(&keys.origin, output));
            self.outputs.add_remote(id, remote, origin, bytes);
        }
        self.report(&call, TaskOutcome::Reused(ReuseSource::Peer), holder, 0.0);
        self.localize(own);
        self.outputs.results().end(&keys.key);
        self.run.handle_found(call.node);
        self.follow();
    }

    /// Handles a found task that ends instances: the outputs that they return are fetched first.
    fn fetch_given(
        &mut self,
        (call, keys): (TaskRequest, TaskKeys),
        (record, holders): (TaskRecord, Vec<Member>),
        ctx: &mut Context<Self>,
    ) {
        let task = Arc::new(remote_task(keys, &record, holders.clone()));
        let remote = |output: &OutputId| match output.node == call.node {
            true => {
                let known = record.outputs.get(output.output).copied().flatten()?;
                let (identity, digest) = (known.identity, known.digest);
                Some((*output, RemoteOutput { task: Arc::clone(&task), identity, digest }))
            }
            false => Some((*output, self.outputs.remote(*output)?.clone())),
        };
        let given = self.run.given_by(call.node).iter().filter_map(remote).collect();
        let exchange = self.around.directory.as_ref().map(|directory| directory.exchange.clone());
        let fetch = RemoteFetches::new(exchange, given).fetch().into_actor(self);
        ctx.spawn(fetch.map(move |fetched: Fetched, actor, ctx| {
            if !actor.run.end_look_up(call.node) {
                actor.outputs.results().end(&keys.key);
            } else {
                match fetched {
                    Ok(fetched) => actor.finish_fetched((call, keys), (record, holders), fetched, ctx),
                    Err(lost) => actor.handle_lost_given(lost, &call, keys, &holders),
                }
            }
            actor.send_demand(ctx);
        }));
    }

    /// Finishes a found task whose instances return fetched outputs, unless tasks were reopened meanwhile.
    fn finish_fetched(
        &mut self,
        (call, keys): (TaskRequest, TaskKeys),
        found: (TaskRecord, Vec<Member>),
        fetched: Vec<(OutputId, Arc<DataRegion>)>,
        ctx: &mut Context<Self>,
    ) {
        let (own, others) = fetched.into_iter().partition(|(output, _)| output.node == call.node);
        self.localize(others);
        let requested = self.run.request(&self.stage, call.node).requested;
        if !found.0.has(&requested) {
            self.outputs.results().end(&keys.key);
            return self.run.resume(call.node);
        }
        let call = TaskRequest { requested, ..call };
        // Another worker may have an output of a reopened task, which is not fetched yet.
        if self.given_fetches(&call).is_empty() {
            self.finish_found((call, keys), found, own);
        } else {
            self.fetch_given((call, keys), found, ctx);
        }
    }

    /// Ends a task that had a slot, once the outputs that its instances return are in memory. An output of a task that was
    /// reopened meanwhile may be at another worker.
    pub(super) fn end_with_given(
        &mut self,
        slot: SlotId,
        call: TaskRequest,
        how: Execution,
        done: JobResult,
        ctx: &mut Context<Self>,
    ) {
        let JobResult { result, fetched } = done;
        let lost = fetched.as_ref().err().copied();
        self.localize(fetched.unwrap_or_default());
        let missing = self.given_fetches(&call);
        if missing.is_empty() || lost.is_some() {
            self.end(slot, &call, how, result, lost);
            return self.look_up_ahead(ctx);
        }
        let fetch = missing.fetch().into_actor(self);
        ctx.spawn(fetch.map(move |fetched: Fetched, actor, ctx| {
            // Without these outputs the task runs again, after the task that wrote the lost one.
            let result = result.filter(|_| fetched.is_ok());
            actor.end_with_given(slot, call, how, JobResult { result, fetched }, ctx);
        }));
    }

    fn handle_lost_given(&mut self, lost: OutputId, call: &TaskRequest, keys: TaskKeys, holders: &[Member]) {
        if lost.node == call.node {
            if let Some(directory) = &self.around.directory {
                let holders = holders.iter().map(|holder| holder.id).collect();
                directory.change(ResultChange::Rejected(keys.key, holders));
            }
        } else {
            self.reopen(lost);
        }
        self.outputs.results().end(&keys.key);
        self.run.resume(call.node);
        self.follow();
    }

    /// Sends the present demand, after tasks became ready or done without a slot.
    pub(super) fn send_demand(&mut self, ctx: &Context<Self>) {
        self.look_up_ahead(ctx);
        self.report_demand();
    }

    /// Loads the inputs of the bucket for its first task, which has a slot, and begins the task then.
    pub(super) fn load_inputs(&mut self, slot: SlotId, call: TaskRequest, ctx: &mut Context<Self>) {
        let storage = self.around.storage.clone();
        let regions: Vec<_> =
            self.inputs.iter().map(|(key, _)| storage.send(crate::storage::GetRegion(*key))).collect();
        let load = async move {
            for region in regions {
                // The task that reads the region detects a failed load.
                let _ = region.await;
            }
        };
        ctx.spawn(load.into_actor(self).map(move |(), actor, ctx| {
            actor.inputs_loaded = true;
            actor.begin(slot, TaskRequest { brings_inputs: false, ..call }, ctx);
            actor.send_demand(ctx);
        }));
    }
}

impl Handler<Resolved> for StageActor {
    type Result = ();

    fn handle(&mut self, Resolved { node, answer }: Resolved, ctx: &mut Self::Context) {
        let LookUpAnswer::Final(resolution) = answer else {
            self.run.handle_waiting(node);
            return self.send_demand(ctx);
        };
        let Some((call, keys)) = self.resolving.remove(&node) else { return };
        if !self.run.end_look_up(node) {
            // Withdrawn meanwhile.
            return self.abandon(keys.key);
        }
        match resolution {
            Resolution::Claimed | Resolution::Unclaimed => {
                if self.run.admit(node) {
                    self.claims.insert(node, keys);
                } else {
                    // A claimer must not wait for another claim.
                    self.abandon(keys.key);
                }
            }
            // Readers may have been withdrawn, and added by a reopened task.
            Resolution::Found { record, .. }
                if !record.has(&self.run.request(&self.stage, node).requested)
                    || self.is_outdated(&call, keys) =>
            {
                self.outputs.results().end(&keys.key);
                self.run.resume(node);
            }
            Resolution::Found { record, holders } if self.run.given_by(node).is_empty() => {
                let call = TaskRequest { requested: self.run.request(&self.stage, node).requested, ..call };
                self.finish_found((call, keys), (record, holders), Vec::new());
            }
            Resolution::Found { record, holders } => {
                let call = TaskRequest { requested: self.run.request(&self.stage, node).requested, ..call };
                return self.fetch_given((call, keys), (record, holders), ctx);
            }
        }
        self.send_demand(ctx);
    }
}
