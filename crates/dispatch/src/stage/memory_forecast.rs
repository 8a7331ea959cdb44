//! Memory forecast of a bucket: executes its graph ahead of time on sizes instead of regions.
//!
//! The running tasks end first. Then the rest runs one task at a time, in the graph's order, whatever the order
//! of the tasks that ended before. After each finished instance, its stored outputs are read before this bucket
//! continues, since later stages come first on a worker. Only outputs whose readers must wait stay.

use super::graph::{BucketGraph, NodeState};
use super::interface::OutputId;
use crate::ids::NodeId;
use crate::memory_model::{MemoryForecast, OutputConsumption, TaskMemory};
use std::collections::BTreeSet;

/// Graphs of up to 2,048 tasks are executed ahead for every forecast. Larger ones use a bound that is
/// computed once: a forecast is needed for every task and must cost less than a task.
const EXACT_TASKS: usize = 2048;

/// Sizes of a bucket's tasks, and bounds derived from them.
#[derive(Debug)]
pub(super) struct TaskSizes {
    /// By level.
    tasks: Vec<TaskMemory>,
    /// By node: maximum of held bytes from there on when all tasks run in order, one at a time.
    max_from: Vec<u64>,
    /// Bytes that one finished instance leaves in storage.
    store_bytes: u64,
    /// Memory to have these bytes read and released, themselves included.
    drain: OutputConsumption,
}

impl TaskSizes {
    /// Creates the sizes of a bucket. `tasks` has one entry for each task of the stage.
    pub(super) fn new(
        graph: &BucketGraph,
        tasks: Vec<TaskMemory>,
        store_bytes: u64,
        drain: OutputConsumption,
    ) -> Self {
        // The consumption of outputs needs at least the outputs themselves.
        let drain = OutputConsumption { bytes: drain.bytes.max(store_bytes), ..drain };
        let mut sizes = Self { tasks, max_from: Vec::new(), store_bytes, drain };
        sizes.max_from = sizes.max_from(graph);
        sizes
    }

    pub(super) fn store_bytes(&self) -> u64 {
        self.store_bytes
    }

    /// Returns the memory of a task: the maximum of its memory while it runs and of its memory afterwards, when each of its
    /// instances has stored its own outputs.
    pub(super) fn takes(&self, graph: &BucketGraph, node: NodeId) -> u64 {
        let mut reads: Vec<OutputId> = read_by(graph, node).collect();
        reads.sort_unstable();
        let last_reads = reads.chunk_by(|a, b| a == b).filter(|reads| graph.readers(reads[0]) == reads.len());
        let released: u64 = last_reads.map(|reads| self.of(graph, reads[0])).sum();
        let after = (self.requested_bytes(graph, node) + self.left(graph, node)).saturating_sub(released);
        self.tasks[graph.nodes[node.index()].level].running().max(after)
    }

    /// Returns the bytes of an output.
    pub(super) fn of(&self, graph: &BucketGraph, output: OutputId) -> u64 {
        self.tasks[graph.nodes[output.node.index()].level].outputs[output.output]
    }

    /// Returns the bytes of a task's wanted outputs.
    pub(super) fn requested_bytes(&self, graph: &BucketGraph, node: NodeId) -> u64 {
        wanted(graph, &graph.readers, node, &self.tasks[graph.nodes[node.index()].level])
    }

    /// Forecasts the bucket, with `held_bytes`, when the `running` tasks end and then all open ones run.
    pub(super) fn forecast(
        &self,
        graph: &BucketGraph,
        running: &BTreeSet<NodeId>,
        held_bytes: u64,
    ) -> MemoryForecast {
        if graph.nodes.len() > EXACT_TASKS {
            return self.bounded(graph, running, held_bytes);
        }
        let mut ahead = Ahead { graph, sizes: self, readers: graph.readers.clone(), held: 0 };
        // Outputs of several instances that end at about the same time are stored all at once.
        let left: u64 = running.iter().map(|&node| self.left(graph, node)).sum();
        running.iter().for_each(|&node| ahead.complete(node));
        let growth_bytes = ahead.held.saturating_add_unsigned(left).max(0).unsigned_abs();
        // The outputs of an earlier instance may have to be read first: their readers, or these readers' readers, may be
        // about to run.
        let mut most = growth_bytes + self.drain.bytes;
        let staying: u64 = running.iter().map(|&node| graph.nodes[node.index()].staying).sum();
        ahead.held = ahead.held.saturating_add_unsigned(self.store_bytes * staying);
        // Readers leave their remainder, such as inputs they have loaded, only once.
        let mut rest_bytes = self.drain.rest_bytes;
        let ends = |node: &NodeId| !graph.nodes[node.index()].leaves.is_empty();
        if running.iter().any(ends) {
            ahead.held = ahead.held.saturating_add_unsigned(std::mem::take(&mut rest_bytes));
        }
        // Parents come before children, so each visited node has no open parent.
        let rest = (0..graph.nodes.len() as u32).map(NodeId);
        let open =
            |node: &NodeId| graph.nodes[node.index()].state == NodeState::Open && !running.contains(node);
        for node in rest.filter(open) {
            let at = &graph.nodes[node.index()];
            most = most.max(ahead.with(self.tasks[at.level].running()));
            ahead.complete(node);
            if !at.leaves.is_empty() {
                most = most.max(ahead.with(self.drain.bytes.max(self.left(graph, node))));
                let rest_bytes = std::mem::take(&mut rest_bytes);
                ahead.held = ahead.held.saturating_add_unsigned(self.store_bytes * at.staying + rest_bytes);
            }
        }
        MemoryForecast { growth_bytes, finish_bytes: most }
    }

    /// Returns an upper bound of [`forecast`](Self::forecast). All tasks before the first open one have run or are running:
    /// the held bytes from there on are at most those of an execution in order, plus outputs written ahead of it.
    fn bounded(&self, graph: &BucketGraph, running: &BTreeSet<NodeId>, held_bytes: u64) -> MemoryForecast {
        let keeps = |&node: &NodeId| self.requested_bytes(graph, node) + self.left(graph, node);
        let growth_bytes: u64 = running.iter().map(keeps).sum();
        let mut finish_bytes = growth_bytes + self.drain.bytes;
        if let Some(first) = graph.first_open(running) {
            let ahead = graph.done_after(first).chain(running.range(first..).copied());
            let ahead_bytes: u64 = ahead.map(|node| self.requested_bytes(graph, node)).sum();
            let most = self.max_from[first.index()] + ahead_bytes;
            finish_bytes = finish_bytes.max(most.saturating_sub(held_bytes));
        }
        MemoryForecast { growth_bytes, finish_bytes: finish_bytes + self.staying(graph) }
    }

    /// Returns the bytes that unfinished instances and their readers leave in storage beyond the end of the bucket.
    pub(super) fn staying(&self, graph: &BucketGraph) -> u64 {
        graph.staying * self.store_bytes + self.drain.rest_bytes
    }

    /// Returns the bytes that the instances ending with a task leave in storage.
    fn left(&self, graph: &BucketGraph, node: NodeId) -> u64 {
        self.store_bytes * graph.nodes[node.index()].leaves.len() as u64
    }

    /// Computes the field of the same name for a graph before its execution.
    fn max_from(&self, graph: &BucketGraph) -> Vec<u64> {
        let mut ahead = Ahead { graph, sizes: self, readers: graph.readers.clone(), held: 0 };
        let mut most: Vec<u64> = Vec::with_capacity(graph.nodes.len());
        for (node, at) in (0u32..).map(NodeId).zip(&graph.nodes) {
            let before = ahead.with(self.tasks[at.level].running());
            ahead.complete(node);
            let leaves = if at.leaves.is_empty() { 0 } else { self.drain.bytes.max(self.left(graph, node)) };
            most.push(before.max(ahead.with(leaves)));
        }
        for later in (1..most.len()).rev() {
            most[later - 1] = most[later - 1].max(most[later]);
        }
        most
    }
}

fn wanted(graph: &BucketGraph, readers: &[u32], node: NodeId, bytes: &TaskMemory) -> u64 {
    let first = graph.nodes[node.index()].first_output;
    let read = |&(output, _): &(usize, &u64)| readers[first + output] > 0;
    bytes.outputs.iter().enumerate().filter(read).map(|(_, bytes)| bytes).sum()
}

/// Returns the outputs that a task and the instances ending with it read, repeated for each read.
fn read_by(graph: &BucketGraph, node: NodeId) -> impl Iterator<Item = OutputId> {
    let at = &graph.nodes[node.index()];
    at.leaves.iter().flat_map(|_| &at.gives).chain(&at.reads).copied()
}

/// Simulated state of the bucket, some tasks ahead.
struct Ahead<'a> {
    graph: &'a BucketGraph,
    sizes: &'a TaskSizes,
    /// As [`BucketGraph::readers`].
    readers: Vec<u32>,
    /// Bytes held, relative to those held now.
    held: i64,
}

impl Ahead<'_> {
    /// Returns the bytes held with `more`, relative to those held now.
    fn with(&self, more: u64) -> u64 {
        self.held.saturating_add_unsigned(more).max(0).unsigned_abs()
    }

    fn complete(&mut self, node: NodeId) {
        let at = &self.graph.nodes[node.index()];
        let kept = wanted(self.graph, &self.readers, node, &self.sizes.tasks[at.level]);
        self.held = self.held.saturating_add_unsigned(kept);
        for output in read_by(self.graph, node) {
            let readers =
                &mut self.readers[self.graph.nodes[output.node.index()].first_output + output.output];
            *readers -= 1;
            if *readers == 0 {
                self.held = self.held.saturating_sub_unsigned(self.sizes.of(self.graph, output));
            }
        }
    }
}
