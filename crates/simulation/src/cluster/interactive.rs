//! Interactive control of a cluster: the caller adds and removes nodes, at other sites too, and inspects the state.
//! Transfers between sites take time and are counted.

use super::{Aborted, Cluster, DueEvent, Node};
use crate::audit::Violation;
use crate::recorder::RecordedManager;
use crate::scenario::{Incident, NodeSpec};
use pleach_dispatch::scaling::WorkByPartition;
use pleach_dispatch::study::{Study, StudySnapshot};
use pleach_dispatch::{InstanceId, PlanId, WorkerId};
use pleach_planner::replanned_seconds;
use pleach_regions::RegionKey;
use pleach_reuse::{Buckets, Member, PreviousPlan, ReuseTree, SharingSchedule};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

/// Site of a node, and its transfer rates from other sites and from the file storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteLink {
    /// The site.
    pub site: u32,
    /// Bytes per second from another site.
    pub wide_bytes_per_second: f64,
    /// Bytes per second from the file storage.
    pub store_bytes_per_second: f64,
}

impl Default for SiteLink {
    /// The link of a cluster's own nodes: one site, and local files.
    fn default() -> Self {
        Self { site: 0, wide_bytes_per_second: f64::INFINITY, store_bytes_per_second: f64::INFINITY }
    }
}

/// One instance run in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotSpan {
    /// The node.
    pub node: usize,
    /// The stage of the instance.
    pub stage: u32,
    /// Start.
    pub from_us: u64,
    /// End.
    pub to_us: u64,
    /// Whether the instance was finished.
    pub is_whole: bool,
}

impl Cluster {
    /// Records the work of the slots.
    #[must_use]
    pub fn with_spans(mut self) -> Self {
        self.spans = Some(Vec::new());
        self
    }

    /// Sets the delay of replans after workers have joined or left, so that changes in quick succession cause only
    /// one.
    #[must_use]
    pub fn replanning_after(mut self, seconds: f64) -> Self {
        self.replan_after_us = (seconds * 1e6) as u64;
        self
    }

    /// Makes each bucket take this time on its slot before it fetches inputs: the wait in a queue, or the start of a program.
    /// The manager learns it. Its clock has the resolution of ticks.
    #[must_use]
    pub fn with_bucket_overhead(mut self, seconds: f64) -> Self {
        self.bucket_overhead_us = (seconds * 1e6) as u64;
        self
    }

    /// Sets the number of buckets that the first plan of each study has for a stage [default: 3 for each slot].
    #[must_use]
    pub fn with_planned_buckets(mut self, buckets: usize) -> Self {
        self.initial_buckets = buckets;
        self
    }

    /// Returns the overhead of a bucket that the manager has measured, in seconds. `None` until it is known.
    #[must_use]
    pub fn measured_bucket_overhead(&self) -> Option<f64> {
        self.costs.lock().measured_bucket_overhead()
    }

    /// Returns whether all studies have ended.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ended.len() >= self.workloads.len()
    }

    /// Runs until `at_us`, or until all studies have ended.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Self::run).
    pub fn run_until(&mut self, at_us: u64) -> Result<(), Aborted> {
        while !self.is_complete() && self.queue.next_us().is_some_and(|next| next <= at_us) {
            let Some((next, due)) = self.queue.pop() else { break };
            self.now_us = self.now_us.max(next);
            self.happen(due)?;
            self.share_processors();
        }
        // The clock of a complete simulation stays at its last event: the makespan is computed from it.
        if !self.is_complete() {
            self.now_us = self.now_us.max(at_us);
        }
        Ok(())
    }

    /// Returns the microseconds since the beginning.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Adds a node and returns its number.
    pub fn join(&mut self, spec: NodeSpec, link: SiteLink) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node::new(spec));
        self.links.resize(node, SiteLink::default());
        self.links.push(link);
        self.at(self.now_us, DueEvent::Connect(node));
        node
    }

    /// Drains a node, if it has joined.
    ///
    /// # Errors
    /// Returns the first violation of the manager, under audit.
    pub fn drain(&mut self, node: usize) -> Result<(), Violation> {
        self.incident(Incident::Drain { node })
    }

    /// Interrupts a node after a notice. Without a notice the node crashes.
    ///
    /// # Errors
    /// Returns the first violation of the manager, under audit.
    pub fn interrupt(&mut self, node: usize, notice_seconds: f64) -> Result<(), Violation> {
        let milliseconds = (notice_seconds * 1e3) as u64;
        let incident = if milliseconds == 0 {
            Incident::Crash { node }
        } else {
            Incident::LeaseEnd { node, milliseconds }
        };
        self.incident(incident)
    }

    /// Returns the end time of a node. Returns `None` while it runs.
    #[must_use]
    pub fn ended_us(&self, node: usize) -> Option<u64> {
        self.nodes[node].ended_us
    }

    /// Returns whether the manager knows a node.
    #[must_use]
    pub fn is_known(&self, node: usize) -> bool {
        self.nodes[node].worker.is_some()
    }

    /// Returns whether a node is draining, has a time limit, or has ended.
    #[must_use]
    pub fn is_leaving(&self, node: usize) -> bool {
        let here = &self.nodes[node];
        here.draining || here.end_us.is_some() || !here.up
    }

    /// Returns the number of buckets that a node has, and the bytes that it holds.
    #[must_use]
    pub fn load(&self, node: usize) -> (usize, u64) {
        let here = &self.nodes[node];
        let bytes = |(study, key): &(PlanId, RegionKey)| self.workloads[study.index()].bytes_of(*key);
        (here.runs.len(), here.regions.iter().map(bytes).sum())
    }

    /// Returns the bytes sent from a site to others.
    #[must_use]
    pub fn egress_bytes(&self, site: u32) -> u64 {
        self.egress_bytes.get(&site).copied().unwrap_or(0)
    }

    /// Returns the recorded work of the slots.
    #[must_use]
    pub fn spans(&self) -> &[SlotSpan] {
        self.spans.as_deref().unwrap_or_default()
    }

    /// Counts the buckets of a study that are ready or waiting, and not leased.
    #[must_use]
    pub fn waiting_buckets(&self, study: PlanId) -> usize {
        self.state(study).map_or(0, |state| state.unstarted().count())
    }

    /// Returns a snapshot of a study for a replan. `None` if it has ended.
    #[must_use]
    pub fn snapshot(&self, study: PlanId) -> Option<StudySnapshot> {
        self.state(study).map(Study::snapshot)
    }

    fn state(&self, study: PlanId) -> Option<&Study> {
        RecordedManager::manager(&self.observed).study(study)
    }

    /// Returns the predicted remaining seconds of a study in its current buckets, on a worker of speed 1.
    #[must_use]
    pub fn remaining_work(&self, study: PlanId) -> f64 {
        let Some(state) = self.state(study) else { return 0.0 };
        let shared = &self.shared[study.index()];
        if !shared.is_empty() {
            return shared.iter().map(SharingSchedule::open_seconds).sum();
        }
        let (waiting, leased) = (state.unstarted().map(|(_, open)| open), leased(state));
        waiting.chain(leased).map(|open| self.chain(study, open)).sum()
    }

    /// Returns the predicted seconds of some instances, executed one after the other in the worker's order.
    fn chain(&self, study: PlanId, open: &BTreeSet<InstanceId>) -> f64 {
        let workload = &self.workloads[study.index()];
        let mut instances: Vec<InstanceId> = open.iter().copied().collect();
        instances.sort_by_key(|instance| workload.order(*instance));
        let before = [None].into_iter().chain(instances.iter().copied().map(Some));
        before.zip(&instances).map(|(before, instance)| workload.foreseen_seconds(before, *instance)).sum()
    }

    /// Returns the cost of the most expensive remaining instance, which is indivisible. Considers one instance of each
    /// bucket.
    #[must_use]
    pub fn longest_remaining(&self, study: PlanId) -> f64 {
        let Some(state) = self.state(study) else { return 0.0 };
        let workload = &self.workloads[study.index()];
        let firsts =
            state.unstarted().map(|(_, open)| open).chain(leased(state)).filter_map(|open| open.first());
        firsts.map(|first| workload.foreseen_seconds(None, *first)).fold(0.0, f64::max)
    }

    /// Predicts the remaining work if the unstarted instances were rebuilt into buckets for ascending numbers of slots, with as
    /// many buckets for each slot as the manager makes now. Returns the current work for each if replanning is impossible.
    #[must_use]
    pub fn cuts(&self, study: PlanId, slots: &[u32]) -> Vec<WorkByPartition> {
        let longest_seconds = self.longest_remaining(study);
        let now = self.remaining_work(study);
        let cut = |slots: u32, work_seconds| WorkByPartition { slots, work_seconds, longest_seconds };
        let as_it_is = || slots.iter().map(|slots| cut(*slots, now)).collect();
        let Some(state) = self.state(study) else { return Vec::new() };
        if !self.shared[study.index()].is_empty() {
            // Buckets share their tasks: more of them execute the same.
            return as_it_is();
        }
        let workload = &self.workloads[study.index()];
        let second = |open: &&BTreeSet<InstanceId>| open.iter().all(|id| workload.is_second(*id));
        let old: Vec<&BTreeSet<InstanceId>> =
            state.unstarted().map(|(_, open)| open).filter(second).collect();
        let movable: f64 = old.iter().map(|open| self.chain(study, open)).sum();
        // In the order of the manager's tables: a replan decides between equal branches by their place.
        let mut instances: Vec<InstanceId> = old.iter().flat_map(|open| open.iter().copied()).collect();
        instances.sort_unstable();
        let Some(before) = NonZeroUsize::new(self.planned_buckets(study)) else { return as_it_is() };
        let Some(problem) = workload.problem(&instances).ok().filter(|_| !instances.is_empty()) else {
            return as_it_is();
        };
        let member = |id: &InstanceId| instances.binary_search(id).map_or(Member(0), |at| Member(at as u32));
        let mut lists: Vec<Vec<Member>> = old.iter().map(|open| open.iter().map(member).collect()).collect();
        lists.sort_unstable();
        let mut buckets = Buckets::default();
        lists.into_iter().for_each(|members| buckets.push(members));
        let tree = ReuseTree::build(&problem);
        let each = self.buckets_per_slot(study);
        let limit = |slots: &u32| NonZeroUsize::new(each * *slots as usize);
        let previous = PreviousPlan { buckets: &buckets, max_buckets: before, has_other_costs: false };
        let planned = slots.iter().map(limit).collect::<Option<Vec<_>>>();
        let planned =
            planned.and_then(|limits| replanned_seconds(&problem, &tree, previous, |_| false, &limits));
        let Some(planned) = planned else { return as_it_is() };
        slots.iter().zip(planned).map(|(slots, seconds)| cut(*slots, now - movable + seconds)).collect()
    }

    /// Ends a node. Its started instances are lost.
    pub(super) fn end(&mut self, node: usize) {
        let here = &mut self.nodes[node];
        here.ended_us.get_or_insert(self.now_us);
        let speed = here.spec.speed;
        let begun: Vec<(PlanId, InstanceId, u64)> =
            here.runs.values().filter_map(|run| Some((run.study, run.current?, run.started_us))).collect();
        here.lose_all();
        self.drop_results(node);
        for (study, instance, begun_us) in begun {
            self.figures.lost_seconds += (self.now_us - begun_us) as f64 / 1e6 * speed;
            self.note_span(node, study, instance, begun_us, false);
        }
    }

    pub(super) fn note_span(
        &mut self,
        node: usize,
        study: PlanId,
        instance: InstanceId,
        from_us: u64,
        is_whole: bool,
    ) {
        let stage = self.workloads[study.index()].stage(instance);
        if let Some(spans) = &mut self.spans {
            spans.push(SlotSpan { node, stage, from_us, to_us: self.now_us, is_whole });
        }
    }

    fn link(&self, node: usize) -> SiteLink {
        self.links.get(node).copied().unwrap_or_default()
    }

    /// Returns the node to fetch a region from, preferably one of the same site.
    pub(super) fn nearest_with(
        &self,
        node: usize,
        workers: &[WorkerId],
        study: PlanId,
        key: RegionKey,
    ) -> Option<usize> {
        let holders = workers.iter().filter(|worker| self.has_region(**worker, study, key));
        let mut holders = holders.filter_map(|worker| self.workers.get(worker).copied());
        let first = holders.next()?;
        let site = self.link(node).site;
        let is_near = |holder: &usize| self.link(*holder).site == site;
        Some(if is_near(&first) { first } else { holders.find(is_near).unwrap_or(first) })
    }

    /// Counts bytes sent between nodes. Returns the additional seconds compared with a transfer within one site.
    pub(super) fn leave_site(&mut self, from: usize, to: usize, bytes: u64) -> f64 {
        let site = self.link(from).site;
        if site != self.link(to).site {
            *self.egress_bytes.entry(site).or_default() += bytes;
        }
        self.wide_seconds(from, to, bytes)
    }

    /// Returns the additional seconds of a transfer between nodes compared with one within one site.
    pub(super) fn wide_seconds(&self, from: usize, to: usize, bytes: u64) -> f64 {
        let (from, to) = (self.link(from), self.link(to));
        if from.site == to.site {
            return 0.0;
        }
        bytes as f64 / from.wide_bytes_per_second.min(to.wide_bytes_per_second)
    }

    /// Returns the seconds to read the files of an instance that the node has not read yet.
    pub(super) fn read_files(&mut self, node: usize, study: PlanId, instance: InstanceId) -> f64 {
        let rate = self.link(node).store_bytes_per_second;
        let workload = &self.workloads[study.index()];
        let bytes = workload.file_bytes() as f64;
        let read = &mut self.nodes[node].files;
        let new = workload.files(instance).iter().filter(|key| read.insert(**key)).count();
        if new > 0 { new as f64 * bytes / rate } else { 0.0 }
    }
}

/// Returns the open instances of each lease. Of two leases of the same instances, only the first counts.
fn leased(state: &Study) -> impl Iterator<Item = &BTreeSet<InstanceId>> {
    let mut seen = BTreeSet::new();
    state.all_leases().filter_map(move |(_, lease)| {
        let (_, open) = state.leased(lease)?;
        seen.insert(*open.first()?).then_some(open)
    })
}
