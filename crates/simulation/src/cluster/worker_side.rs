//! The simulated workers: connect, request, fetch, execute, report.

use super::node::Run;
use super::processors::{SharedProcessors, stretch};
use super::shared_results::InstanceRun;
use super::{BACKOFF_US, Cluster, DueEvent, ManagerMessage, WorkerMessage};
use crate::event::ran;
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
    /// Connects a node to the manager. The node joins and reattaches its leases and regions.
    pub(super) fn connect(&mut self, node: usize) {
        if !self.nodes[node].up || self.nodes[node].connected {
            return;
        }
        if !self.is_up || self.nodes[node].cut_until_us > self.now_us {
            let wait = BACKOFF_US / 2 + self.random.exponential(BACKOFF_US as f64 / 2.0) as u64;
            return self.at(self.now_us + wait, DueEvent::Connect(node));
        }
        let here = &mut self.nodes[node];
        here.link += 1;
        // Requests of the earlier connection are void: the manager forgot them with the worker id.
        (here.connected, here.requested, here.last_us) = (true, 0, [0; 2]);
        // Join comes first, because the manager drops messages of unknown workers. Requests come last, so that it knows
        // the node's leases and regions before it grants.
        self.say(node, WorkerMessage::Join);
        for (lease, (study, instances)) in self.nodes[node].has() {
            self.say(node, WorkerMessage::Adopt(study, lease, instances.into_iter().collect()));
        }
        let mut held: BTreeMap<PlanId, Vec<RegionKey>> = BTreeMap::new();
        self.nodes[node].regions.iter().for_each(|(study, key)| held.entry(*study).or_default().push(*key));
        for (study, keys) in held {
            self.say(node, WorkerMessage::Holds(study, keys));
        }
        if self.nodes[node].draining {
            self.say(node, WorkerMessage::Drain);
        }
        self.go_on(node);
    }

    /// Starts buckets in free slots and requests more.
    fn go_on(&mut self, node: usize) {
        while let Some(lease) = self.nodes[node].next_to_start() {
            self.start(node, lease);
        }
        if self.nodes[node].connected {
            let buckets = self.nodes[node].ask();
            if buckets > 0 {
                self.say(node, WorkerMessage::Request(buckets));
            }
        }
    }

    /// Starts a bucket in a slot: fetches missing inputs from reachable peers.
    fn start(&mut self, node: usize, lease: LeaseId) {
        let Some(run) = self.nodes[node].runs.get_mut(&lease) else { return };
        run.started = true;
        let (study, elsewhere) = (run.study, std::mem::take(&mut run.elsewhere));
        let first = run.remaining.front().copied();
        let (mut missing, mut bytes) = (Vec::new(), 0);
        let mut far_seconds = 0.0;
        for there in elsewhere {
            if self.nodes[node].regions.contains(&(study, there.key)) {
                continue;
            }
            let holder = self.nearest_with(node, &there.workers, study, there.key);
            if let Some(holder) = holder.filter(|_| self.nodes[node].cut_until_us <= self.now_us) {
                let region = self.workloads[study.index()].bytes_of(there.key);
                bytes += region;
                far_seconds += self.leave_site(holder, node, region);
                // Present at once: a simulated transfer that has begun never fails, and the bucket waits for its time.
                self.nodes[node].regions.insert((study, there.key));
            } else {
                missing.push(there.key);
            }
        }
        self.figures.bytes_moved += bytes;
        let network = self.schedule.network;
        let files = first.map_or(0.0, |first| self.read_files(node, study, first));
        let seconds = bytes as f64 / network.bytes_per_second + far_seconds;
        let wait = if bytes > 0 { 2 * network.latency_us + (seconds * 1e6) as u64 } else { 0 };
        let wait = wait + (files * 1e6) as u64 + self.bucket_overhead_us;
        self.nodes[node].steps += 1;
        let step = self.nodes[node].steps;
        self.at(self.now_us + wait, DueEvent::Fetched(node, lease, step, missing));
        if let Some(run) = self.nodes[node].runs.get_mut(&lease) {
            run.begin(step);
        }
    }

    pub(super) fn has_region(&self, worker: WorkerId, study: PlanId, key: RegionKey) -> bool {
        self.workers.get(&worker).is_some_and(|&node| {
            let there = &self.nodes[node];
            there.up && there.cut_until_us <= self.now_us && there.regions.contains(&(study, key))
        })
    }

    pub(super) fn fetched(&mut self, node: usize, lease: LeaseId, step: u64, missing: Vec<RegionKey>) {
        let Some(run) = self.nodes[node].runs.get_mut(&lease).filter(|run| run.step == step) else {
            return;
        };
        if missing.is_empty() {
            return self.next_instance(node, lease);
        }
        let (study, open): (PlanId, Vec<InstanceId>) = (run.study, run.open().collect());
        self.nodes[node].runs.remove(&lease);
        for instance in open {
            self.say(node, WorkerMessage::Lacking(study, lease, instance, missing.clone()));
        }
        self.go_on(node);
    }

    /// Starts the next instance of a bucket, or ends the bucket.
    fn next_instance(&mut self, node: usize, lease: LeaseId) {
        let Some(run) = self.nodes[node].runs.get_mut(&lease) else { return };
        let Some(next) = run.remaining.pop_front() else {
            self.nodes[node].runs.remove(&lease);
            return self.go_on(node);
        };
        let (study, last) = (run.study, run.last);
        let rate = self.starting_rate(node);
        let speed = self.nodes[node].spec.speed * rate;
        let workload = &self.workloads[study.index()];
        let tasks = workload.tasks(last, next);
        let seconds: f64 = tasks.iter().map(|(_, seconds)| seconds).sum();
        let wait = (seconds / speed * 1e6) as u64;
        let stage = workload.stage(next);
        let end_us = self.nodes[node].end_us;
        // As a worker predicts: without the results of others.
        let late = end_us.is_some_and(|end_us| self.now_us + wait > end_us);
        if late {
            let Some(run) = self.nodes[node].runs.get_mut(&lease) else { return };
            // An instance that would miss the time limit is returned: other workers may have time for it.
            run.remaining.push_front(next);
            self.hand_back(node, lease, |_| 0);
            return self.go_on(node);
        }
        let own = InstanceRun {
            seconds: seconds / speed,
            executed_seconds: self.workloads[study.index()].foreseen_seconds(last, next),
            tasks: tasks.into_iter().map(|(task, seconds)| ran(stage, task, seconds / speed)).collect(),
        };
        let pixels = workload.pixels_of(next);
        let begun = self.begin_shared(node, study, next).unwrap_or(own);
        let machine = self.processors.filter(|shared| shared.has(node));
        let delay = |shared: SharedProcessors| shared.delay(begun.tasks.len(), pixels) / rate;
        let seconds = begun.seconds + machine.map_or(0.0, delay);
        let (wait, tasks) = ((seconds * 1e6) as u64, begun.tasks.len() as u64);
        let Some(run) = self.nodes[node].runs.get_mut(&lease) else { return };
        (run.current, run.end_us, run.started_us) = (Some(next), end_us, self.now_us);
        (run.predicted_seconds, run.ends_us, run.rate) = (seconds, self.now_us + wait, rate);
        let demand = |shared: SharedProcessors| shared.demand(begun.tasks.len(), pixels, seconds * rate);
        run.demand = machine.map_or(1.0, demand);
        run.tasks = begun.tasks;
        if self.poison.contains(&(study.index(), next)) {
            return self.crash(node);
        }
        self.figures.work_seconds += begun.seconds * speed;
        self.figures.foreseen_seconds += begun.executed_seconds;
        self.figures.tasks += tasks;
        self.nodes[node].steps += 1;
        let step = self.nodes[node].steps;
        if let Some(run) = self.nodes[node].runs.get_mut(&lease) {
            run.begin(step);
        }
        self.at(self.now_us + wait, DueEvent::Worked(node, lease, step));
    }

    /// Finishes an instance: stores its outputs and reports it.
    pub(super) fn worked(&mut self, node: usize, lease: LeaseId, step: u64) {
        let Some(run) = self.nodes[node].runs.get_mut(&lease).filter(|run| run.step == step) else {
            return;
        };
        let Some(instance) = run.current.take() else { return };
        run.last = Some(instance);
        let begun_us = run.started_us;
        let (study, mut tasks) = (run.study, std::mem::take(&mut run.tasks));
        if self.processors.is_some() && run.predicted_seconds > 0.0 {
            stretch(&mut tasks, (self.now_us - begun_us) as f64 / 1e6 / run.predicted_seconds);
        }
        self.figures.executed += 1;
        self.note_span(node, study, instance, begun_us, true);
        let here = &mut self.nodes[node];
        here.regions.extend(self.workloads[study.index()].stored(study, instance).map(|key| (study, key)));
        // Stored until the manager has it: if the connection is lost, the node reports the instance again.
        here.unheard.entry(lease).or_insert_with(|| (study, BTreeSet::new())).1.insert(instance);
        self.say(node, WorkerMessage::Done(study, lease, instance, tasks));
        self.next_instance(node, lease);
    }

    pub(super) fn hears(&mut self, node: usize, hear: ManagerMessage) {
        match hear {
            ManagerMessage::Assign(study, lease, reason, mut instances, elsewhere) => {
                let workload = &self.workloads[study.index()];
                instances.sort_by_key(|instance| workload.order(*instance));
                let here = &mut self.nodes[node];
                here.requested = here.requested.saturating_sub(u32::from(reason != GrantReason::Short));
                here.runs.insert(lease, Run::new(study, instances.into(), elsewhere));
                if self.nodes[node].draining {
                    self.hand_back(node, lease, |_| 0);
                }
                self.go_on(node);
            }
            ManagerMessage::Revoke(lease) => {
                self.nodes[node].runs.remove(&lease);
                self.nodes[node].unheard.remove(&lease);
                self.go_on(node);
            }
            ManagerMessage::Share(lease) => {
                self.hand_back(node, lease, |left| left / 2);
                self.go_on(node);
            }
            ManagerMessage::Copy(study, key, from) => {
                if self.has_region(from, study, key) {
                    let bytes = self.workloads[study.index()].bytes_of(key);
                    self.figures.bytes_moved += bytes;
                    let seconds = bytes as f64 / self.schedule.network.bytes_per_second;
                    let link = self.nodes[node].link;
                    self.at(self.now_us + (seconds * 1e6) as u64, DueEvent::Copied(node, link, study, key));
                }
            }
            ManagerMessage::Kept(lease, kept) => self.kept(node, lease, &kept),
            ManagerMessage::Drain => {
                self.nodes[node].draining = true;
                let leases: Vec<LeaseId> = self.nodes[node].runs.keys().copied().collect();
                leases.into_iter().for_each(|lease| self.hand_back(node, lease, |_| 0));
            }
            ManagerMessage::Dismiss => {
                self.say(node, WorkerMessage::Leave);
                self.end(node);
            }
        }
    }

    /// Returns the unstarted instances of a bucket to the manager, except for the number that `keep` computes.
    fn hand_back(&mut self, node: usize, lease: LeaseId, keep: fn(usize) -> usize) {
        let Some(run) = self.nodes[node].runs.get_mut(&lease) else { return };
        let (study, kept) = (run.study, keep(run.remaining.len()));
        let back: Vec<InstanceId> = run.remaining.split_off(kept).into();
        if run.current.is_none() && run.remaining.is_empty() {
            self.nodes[node].runs.remove(&lease);
        }
        self.say(node, WorkerMessage::Back(study, lease, back));
    }

    /// Handles the manager's answer to a reattached lease: continues with the kept instances only.
    fn kept(&mut self, node: usize, lease: LeaseId, kept: &BTreeSet<InstanceId>) {
        let here = &mut self.nodes[node];
        let mut again = Vec::new();
        if let Some((study, unheard)) = here.unheard.get_mut(&lease) {
            unheard.retain(|instance| kept.contains(instance));
            again.extend(unheard.iter().map(|instance| (*study, *instance)));
            if unheard.is_empty() {
                here.unheard.remove(&lease);
            }
        }
        if let Some(run) = here.runs.get_mut(&lease) {
            run.remaining.retain(|instance| kept.contains(instance));
            let goes_on = run.current.is_none_or(|current| kept.contains(&current));
            if !goes_on {
                run.current = None;
                // The pending end of the current instance is void.
                here.steps += 1;
                run.begin(here.steps);
            }
            if run.current.is_none() && run.started {
                if run.remaining.is_empty() {
                    here.runs.remove(&lease);
                } else if !goes_on {
                    self.next_instance(node, lease);
                }
            }
        }
        // The lost connection may have swallowed these reports.
        for (study, instance) in again {
            self.say(node, WorkerMessage::Done(study, lease, instance, Vec::new()));
        }
        self.go_on(node);
    }
}
