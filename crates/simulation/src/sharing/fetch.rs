//! Outputs that a worker fetches from others: for a task that runs and reads them, or for instances that return them.

use super::node::{Job, Keys, Output, Purpose, RemoteTask};
use super::{Due, SharingCluster};
use crate::random::Random;
use pleach_dispatch::directory::{Member, MemberId, TaskRecord};
use pleach_dispatch::stage::{InputLocation, OutputId, TaskRequest};
use pleach_dispatch::storage::broadcast::Continuation;
use pleach_dispatch::{LeaseId, SlotId};
use pleach_regions::RegionIdentity;
use std::collections::BTreeMap;

/// A job that waits for an output, and the holders that it can ask, this one first.
#[derive(Debug)]
pub(super) struct Receiver {
    node: usize,
    job: u64,
    output: OutputId,
    holders: Vec<MemberId>,
}

/// Time until a request to a dead worker fails.
const DEAD_US: u64 = 1_000_000;

impl SharingCluster {
    /// Fetches the remote inputs of a task, then runs it, or ends it if it has been found at another worker.
    pub(super) fn start(
        &mut self,
        number: usize,
        lease: LeaseId,
        slot: Option<SlotId>,
        call: TaskRequest,
        keys: Keys,
        purpose: Purpose,
    ) {
        if let (Purpose::Run, Some(slot)) = (&purpose, slot)
            && self.recompute_inputs(number, lease, slot, &call, &keys)
        {
            return;
        }
        let Some(bucket) = self.nodes[number].buckets.get(&lease) else { return };
        let given = bucket.run.given_by(call.node).iter().copied();
        let inputs = call.inputs.iter().filter_map(|input| match (&purpose, input) {
            (Purpose::Run, InputLocation::Task(output)) => Some(*output),
            _ => None,
        });
        let mut fetches: BTreeMap<OutputId, (RegionIdentity, Vec<Member>)> = BTreeMap::new();
        for output in given.chain(inputs) {
            let known = match &purpose {
                Purpose::Given(record, holders) if output.node == call.node => {
                    let known = record.outputs.get(output.output).copied().flatten();
                    known.map(|known| (known.identity, holders.clone()))
                }
                _ => bucket
                    .outputs
                    .get(&output)
                    .and_then(|held| Some((held.known.identity, held.remote.as_ref()?.holders.clone()))),
            };
            fetches.extend(known.map(|known| (output, known)));
        }
        self.jobs += 1;
        let job = self.jobs;
        let (fetched, lost) = (Vec::new(), None);
        let state = Job { lease, slot, call, keys, purpose, fetches: fetches.len(), fetched, lost };
        let is_given = matches!(state.purpose, Purpose::Given(..));
        self.nodes[number].jobs.insert(job, state);
        if fetches.is_empty() {
            return if is_given { self.end_job(number, job) } else { self.run_task(number, job) };
        }
        for (output, (identity, holders)) in fetches {
            let mut holders: Vec<MemberId> = holders.into_iter().map(|holder| holder.id).collect();
            // Each worker asks the holders in an order of its own.
            let mut place = [0; 8];
            place.copy_from_slice(&identity.0[..8]);
            holders.sort_by_cached_key(|holder| {
                Random::of(number as u64, &[u64::from_le_bytes(place), holder.0]).word()
            });
            self.ask(number, job, output, holders);
        }
    }

    fn ask(&mut self, node: usize, job: u64, output: OutputId, holders: Vec<MemberId>) {
        let to = holders.first().and_then(|holder| self.by_member.get(holder).copied());
        let wait = match to {
            Some(to) if self.nodes[to].up => self.latency_us(),
            Some(_) => DEAD_US,
            None => return self.at(self.now_us, Due::Fetched { node, job, output, is_there: false }),
        };
        self.at(self.now_us + wait, Due::Asked { node, job, output, holders });
    }

    /// Sends an output, if the holder has it.
    pub(super) fn asked(&mut self, node: usize, job: u64, output: OutputId, mut holders: Vec<MemberId>) {
        let holder = holders.first().and_then(|holder| self.by_member.get(holder).copied());
        let identity = self.wanted_identity(node, job, output);
        let (Some(holder), Some(identity)) = (holder, identity) else { return };
        if !self.nodes[holder].up || !self.nodes[holder].results.has(&identity) {
            holders.remove(0);
            return self.ask(node, job, output, holders);
        }
        if !self.options.broadcasts {
            return self.send_output(holder, Receiver { node, job, output, holders });
        }
        let receiver = Receiver { node, job, output, holders };
        if let Some(receiver) = self.nodes[holder].broadcasts.begin(identity, receiver) {
            self.send_output(holder, receiver);
        }
    }

    /// Sends an output. The holder is free for the next receiver once this one has it.
    fn send_output(&mut self, holder: usize, Receiver { node, job, output, .. }: Receiver) {
        let bytes = self.study.region_bytes;
        let length = (bytes as f64 / self.options.bytes_per_second * 1e6) as u64;
        let begin = self.now_us.max(self.nodes[holder].sends_until).max(self.nodes[node].receives_until);
        (self.nodes[holder].sends_until, self.nodes[node].receives_until) = (begin + length, begin + length);
        self.stats.bytes_moved += bytes;
        let at = begin + length + self.latency_us();
        let identity = self.wanted_identity(node, job, output);
        self.at(at, Due::Fetched { node, job, output, is_there: true });
        if let Some(identity) = identity.filter(|_| self.options.broadcasts) {
            self.at(at, Due::Sent { holder, identity, to: node });
        }
    }

    /// Continues with the receivers that wait for an output that has been sent.
    pub(super) fn sent(&mut self, holder: usize, identity: RegionIdentity, to: usize) {
        let is_received = self.nodes[to].up && self.nodes[to].results.has(&identity);
        let Continuation { mut send, redirect } = self.nodes[holder].broadcasts.end(identity, is_received);
        for Receiver { node, job, output, mut holders } in redirect {
            holders.insert(0, self.nodes[to].id);
            let wait = self.latency_us() + self.latency_us();
            self.at(self.now_us + wait, Due::Asked { node, job, output, holders });
        }
        while let Some(receiver) = send {
            if self.wanted_identity(receiver.node, receiver.job, receiver.output).is_some() {
                return self.send_output(holder, receiver);
            }
            // Withdrawn meanwhile.
            let next = self.nodes[holder].broadcasts.end(identity, false);
            send = next.send;
        }
    }

    /// Has the receivers that wait for a dead worker ask the next holder.
    pub(super) fn end_sends(&mut self, holder: usize) {
        for Receiver { node, job, output, mut holders } in self.nodes[holder].broadcasts.take_waiting() {
            holders.remove(0);
            self.at(self.now_us + DEAD_US, Due::Asked { node, job, output, holders });
        }
    }

    fn wanted_identity(&self, node: usize, job: u64, output: OutputId) -> Option<RegionIdentity> {
        let job = self.nodes[node].jobs.get(&job)?;
        if let Purpose::Given(record, _) = &job.purpose
            && output.node == job.call.node
        {
            return record.outputs.get(output.output).copied().flatten().map(|known| known.identity);
        }
        let held = self.nodes[node].buckets.get(&job.lease)?.outputs.get(&output)?;
        Some(held.known.identity)
    }

    pub(super) fn fetched(&mut self, number: usize, job: u64, output: OutputId, is_there: bool) {
        let Some(state) = self.nodes[number].jobs.get_mut(&job) else { return };
        state.fetches -= 1;
        if is_there {
            state.fetched.push(output);
        } else {
            state.lost = state.lost.or(Some(output));
        }
        let (is_last, lease, is_run) =
            (state.fetches == 0, state.lease, matches!(state.purpose, Purpose::Run));
        if is_there && is_run && self.options.announces_early {
            self.localize(number, lease, &[output]);
        }
        let Some(state) = self.nodes[number].jobs.get(&job).filter(|_| is_last) else { return };
        if state.lost.is_some() || matches!(state.purpose, Purpose::Given(..)) {
            self.end_job(number, job);
        } else {
            self.run_task(number, job);
        }
    }

    /// Puts fetched outputs into the worker's results. Announces this worker as a holder of tasks with one output.
    pub(super) fn localize(&mut self, number: usize, lease: LeaseId, fetched: &[OutputId]) {
        let now = self.now();
        let node = &mut self.nodes[number];
        let Some(bucket) = node.buckets.get_mut(&lease) else { return };
        for output in fetched {
            let Some(held) = bucket.outputs.get_mut(output) else { continue };
            let Some(remote) = held.remote.take() else { continue };
            let RemoteTask { key, record, .. } = &*remote;
            let mut outputs = vec![None; record.outputs.len()];
            outputs[output.output] = Some(held.known);
            let record = TaskRecord { outputs, ..record.clone() };
            node.results.insert(*key, &record);
            let whole = node.results.acquire(key, &vec![true; record.outputs.len()]);
            let users = whole.iter().flat_map(|whole| whole.outputs.iter().flatten());
            users.for_each(|output| node.results.release(&output.identity));
            match whole {
                Some(whole) if self.options.announces_early => node.directory.hold_replica(*key, whole, now),
                _ if record.outputs.len() == 1 => node.directory.hold_replica(*key, record, now),
                _ => {}
            }
        }
    }

    /// Has a lost output looked up again.
    pub(super) fn reopen(&mut self, number: usize, lease: LeaseId, lost: OutputId) {
        let now = self.now();
        let node = &mut self.nodes[number];
        let Some(bucket) = node.buckets.get_mut(&lease) else { return };
        let Some(Output { remote, .. }) = bucket.outputs.get(&lost) else { return };
        let Some(remote) = remote.clone() else { return };
        remote.holders.iter().for_each(|holder| node.directory.reject(remote.key, holder.id, now));
        bucket.run.reopen(lost.node);
    }

    /// Finishes a task that has been found at another worker and ends instances.
    pub(super) fn end_given(
        &mut self,
        number: usize,
        lease: LeaseId,
        (call, keys): (TaskRequest, Keys),
        (record, holders): (TaskRecord, Vec<Member>),
        lost: Option<OutputId>,
    ) {
        let now = self.now();
        let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) else {
            return self.end_running(number, keys.key);
        };
        if !bucket.run.end_look_up(call.node) {
            self.end_running(number, keys.key);
        } else if let Some(lost) = lost {
            if lost.node == call.node {
                let directory = &mut self.nodes[number].directory;
                holders.iter().for_each(|holder| directory.reject(keys.key, holder.id, now));
            } else {
                self.reopen(number, lease, lost);
            }
            self.end_running(number, keys.key);
            let bucket = self.nodes[number].buckets.get_mut(&lease);
            bucket.into_iter().for_each(|bucket| bucket.run.resume(call.node));
            self.follow_bucket(number, lease);
        } else {
            let given: Vec<OutputId> = bucket.run.given_by(call.node).to_vec();
            self.add_found(number, lease, &call, &keys, record, holders);
            self.localize(number, lease, &given);
            self.finish_found(number, lease, call.node, Some(keys.key));
        }
        self.send_demand(number, lease);
    }
}
