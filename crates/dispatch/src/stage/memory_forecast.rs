//! Memory forecast of a bucket: the memory of its graph if it is executed on sizes instead of regions.
//!
//! The running tasks end first. Then the rest runs one task at a time, in the graph's order, whatever the order
//! of the tasks that ended before. After each finished instance, its stored outputs are read before this bucket
//! continues, since later stages come first on a worker. Only outputs whose readers must wait stay.
//!
//! Each event needs a forecast, so the rest is kept as a [`Profile`], which events change in logarithmic time.

mod profile;

use super::graph::{BucketGraph, NodeState};
use super::interface::OutputId;
use crate::ids::NodeId;
use crate::memory_model::{MemoryForecast, OutputConsumption, TaskMemory};
use profile::{Profile, Span};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Sizes of a bucket's tasks, and its memory profile.
#[derive(Debug)]
pub(super) struct TaskSizes {
    /// By level.
    tasks: Vec<TaskMemory>,
    /// Bytes that one finished instance leaves in storage.
    store_bytes: u64,
    /// Memory to have these bytes read and released, themselves included.
    drain: OutputConsumption,
    /// Computed by the first forecast: a worker without a memory limit needs none.
    profile: OnceCell<Profile>,
}

impl TaskSizes {
    /// Creates the sizes of a bucket. `tasks` has one entry for each task of the stage.
    pub(super) fn new(tasks: Vec<TaskMemory>, store_bytes: u64, drain: OutputConsumption) -> Self {
        // The consumption of outputs needs at least the outputs themselves.
        let drain = OutputConsumption { bytes: drain.bytes.max(store_bytes), ..drain };
        Self { tasks, store_bytes, drain, profile: OnceCell::new() }
    }

    /// Records whether a task waits: it is open and does not run.
    pub(super) fn set_waiting(&mut self, graph: &BucketGraph, node: NodeId, waits: bool) {
        if let Some(mut profile) = self.profile.take() {
            profile.set_waiting(graph, self, node, waits);
            self.profile = OnceCell::from(profile);
        }
    }

    /// Has the next forecast compute the profile again, after tasks have been withdrawn, failed or reopened.
    pub(super) fn reset_profile(&mut self) {
        self.profile.take();
    }

    pub(super) fn store_bytes(&self) -> u64 {
        self.store_bytes
    }

    fn running(&self, level: usize) -> u64 {
        self.tasks[level].running()
    }

    /// Returns the memory of a task: the maximum of its memory while it runs and of its memory afterwards, when each of its
    /// instances has stored its own outputs.
    pub(super) fn takes(&self, graph: &BucketGraph, node: NodeId) -> u64 {
        let mut reads: Vec<OutputId> = read_by(graph, node).collect();
        reads.sort_unstable();
        let last_reads = reads.chunk_by(|a, b| a == b).filter(|reads| graph.readers(reads[0]) == reads.len());
        let released: u64 = last_reads.map(|reads| self.of(graph, reads[0])).sum();
        let after = (self.requested_bytes(graph, node) + self.left(graph, node)).saturating_sub(released);
        self.running(graph.nodes[node.index()].level).max(after)
    }

    /// Returns the bytes of an output.
    pub(super) fn of(&self, graph: &BucketGraph, output: OutputId) -> u64 {
        self.tasks[graph.nodes[output.node.index()].level].outputs[output.output]
    }

    /// Returns the bytes of a task's wanted outputs.
    pub(super) fn requested_bytes(&self, graph: &BucketGraph, node: NodeId) -> u64 {
        let wanted = graph.outputs(node).filter(|output| graph.readers(*output) > 0);
        wanted.map(|output| self.of(graph, output)).sum()
    }

    /// Forecasts the bucket when the `running` tasks and `next` end, and then all open ones run.
    pub(super) fn forecast(
        &self,
        graph: &BucketGraph,
        running: &BTreeSet<NodeId>,
        next: Option<NodeId>,
    ) -> MemoryForecast {
        let profile = self.profile.get_or_init(|| Profile::new(graph, self, running));
        let first = || running.iter().copied().chain(next);
        // Outputs of several instances that end at about the same time are stored all at once.
        let left: u64 = first().map(|node| self.left(graph, node)).sum();
        let mut held = self.growth(graph, first());
        let growth_bytes = held.saturating_add_unsigned(left).max(0).unsigned_abs();
        // The outputs of an earlier instance may have to be read first: their readers, or these readers' readers, may be
        // about to run.
        let most = growth_bytes + self.drain.bytes;
        let staying: u64 = first().map(|node| graph.nodes[node.index()].staying).sum();
        held = held.saturating_add_unsigned(self.store_bytes * staying);
        // Readers leave their remainder, such as inputs they have loaded, only once.
        let mut rest_bytes = self.drain.rest_bytes;
        if first().any(|node| !graph.nodes[node.index()].leaves.is_empty()) {
            held = held.saturating_add_unsigned(std::mem::take(&mut rest_bytes));
        }
        let rest: Span = next.map_or_else(|| profile.all(), |next| profile.without(graph, self, next));
        let later = held.saturating_add(rest.most(rest_bytes)).max(0).unsigned_abs();
        MemoryForecast { growth_bytes, finish_bytes: most.max(later) }
    }

    /// Returns the bytes that tasks add to the held ones by their end: their outputs with other readers, less the outputs that
    /// only they have yet to read.
    fn growth(&self, graph: &BucketGraph, tasks: impl Iterator<Item = NodeId> + Clone) -> i64 {
        let mut reads: BTreeMap<OutputId, usize> = BTreeMap::new();
        tasks
            .clone()
            .flat_map(|node| read_by(graph, node))
            .for_each(|read| *reads.entry(read).or_insert(0) += 1);
        let outputs = tasks.flat_map(|node| graph.outputs(node));
        let is_kept = |output: &OutputId| graph.readers(*output) > reads.get(output).copied().unwrap_or(0);
        let kept: i64 = outputs.filter(is_kept).map(|output| signed(self.of(graph, output))).sum();
        let is_held = |output: &OutputId| graph.nodes[output.node.index()].state == NodeState::Done;
        let read =
            reads.iter().filter(|(output, count)| is_held(output) && graph.readers(**output) == **count);
        kept - read.map(|(output, _)| signed(self.of(graph, *output))).sum::<i64>()
    }

    /// Returns the bytes that unfinished instances and their readers leave in storage beyond the end of the bucket.
    pub(super) fn staying(&self, graph: &BucketGraph) -> u64 {
        graph.staying * self.store_bytes + self.drain.rest_bytes
    }

    /// Returns the bytes that the instances ending with a task leave in storage.
    fn left(&self, graph: &BucketGraph, node: NodeId) -> u64 {
        self.store_bytes * graph.nodes[node.index()].leaves.len() as u64
    }
}

/// Returns the outputs that a task and the instances ending with it read, repeated for each read.
fn read_by(graph: &BucketGraph, node: NodeId) -> impl Iterator<Item = OutputId> {
    let at = &graph.nodes[node.index()];
    at.leaves.iter().flat_map(|_| &at.gives).chain(&at.reads).copied()
}

/// Returns bytes as a signed number, as far as it can be one.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
