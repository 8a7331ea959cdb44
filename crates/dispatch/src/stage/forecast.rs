//! How many bytes a bucket will need: its tree executed ahead of time, on sizes instead of regions.
//!
//! The tasks that run end first; then the rest runs one task at a time, in the tree's order, which does not depend on
//! the order in which tasks ended so far. Whenever an instance is finished, what it leaves in storage is read by others
//! before this bucket goes on: later stages come first on a worker. Only what is known to have to wait stays.

use super::task::NodeId;
use super::tree::{NodeState, Tree};
use crate::memory::{Drain, Forecast, TaskBytes};
use pleach_workflow::{Read, Stage};
use std::collections::BTreeSet;

/// Trees of up to so many tasks are executed ahead for every forecast, larger ones are judged by a bound that is
/// computed once: a forecast is asked for with every task, and must not cost what a task costs.
const EXACT_TASKS: usize = 2048;

/// The sizes of a bucket's tasks, and bounds that follow from them.
#[derive(Debug)]
pub(super) struct Sizes {
    /// By level.
    tasks: Vec<TaskBytes>,
    /// By node: the most that the subtree adds to what is held, executed depth-first, when nothing is let go of
    /// before its subtree is done.
    bounds: Vec<u64>,
    /// What one finished instance leaves in storage.
    store_bytes: u64,
    /// What it takes to have that read and let go of, itself included.
    drain: Drain,
}

impl Sizes {
    /// Of a tree that is in order. `tasks` has one entry for each task of the stage.
    pub(super) fn new(tree: &Tree, tasks: Vec<TaskBytes>, store_bytes: u64, drain: Drain) -> Self {
        let bounds = bounds(tree, &tasks);
        // What is left must at least be there.
        let drain = Drain { bytes: drain.bytes.max(store_bytes), ..drain };
        Self { tasks, bounds, store_bytes, drain }
    }

    pub(super) fn store_bytes(&self) -> u64 {
        self.store_bytes
    }

    pub(super) fn of_level(&self, level: usize) -> &TaskBytes {
        &self.tasks[level]
    }

    /// What a task takes: while it runs, or afterwards by what its instances leave, which each stores for itself.
    pub(super) fn takes(&self, tree: &Tree, stage: &Stage, node: NodeId) -> u64 {
        let mut reads = read_by(tree, stage, node);
        reads.sort_unstable();
        let last_reads = reads.chunk_by(|a, b| a == b).filter(|reads| {
            let (writer, output) = reads[0];
            tree.readers[tree.nodes[writer.index()].first_output + output] as usize == reads.len()
        });
        let size =
            |(writer, output): (NodeId, usize)| self.tasks[tree.nodes[writer.index()].level].outputs[output];
        let let_go: u64 = last_reads.map(|reads| size(reads[0])).sum();
        let after = (self.wanted(tree, node) + self.left(tree, node)).saturating_sub(let_go);
        self.tasks[tree.nodes[node.index()].level].running().max(after)
    }

    /// The wanted outputs of a task.
    pub(super) fn wanted(&self, tree: &Tree, node: NodeId) -> u64 {
        wanted(tree, &tree.readers, node, &self.tasks[tree.nodes[node.index()].level])
    }

    /// What the bucket needs when `running` end and then `ready` and all below are run.
    pub(super) fn forecast(
        &self,
        tree: &Tree,
        stage: &Stage,
        running: &BTreeSet<NodeId>,
        ready: &BTreeSet<NodeId>,
    ) -> Forecast {
        if tree.nodes.len() > EXACT_TASKS {
            return self.bounded(tree, running, ready);
        }
        let mut ahead = Ahead { tree, stage, sizes: self, readers: tree.readers.clone(), held: 0 };
        // What several instances leave that end at about the same time is there all at once.
        let left: u64 = running.iter().map(|&node| self.left(tree, node)).sum();
        running.iter().for_each(|&node| ahead.complete(node));
        let growth_bytes = ahead.held.saturating_add_unsigned(left).max(0).unsigned_abs();
        // What an earlier instance has left may have to be read first: its readers are on their way, or its readers' are.
        let mut most = growth_bytes + self.drain.bytes;
        let staying: u64 = running.iter().map(|&node| tree.nodes[node.index()].staying).sum();
        ahead.held = ahead.held.saturating_add_unsigned(self.store_bytes * staying);
        // What readers leave, such as inputs they have brought, they leave once.
        let mut rest_bytes = self.drain.rest_bytes;
        let ends = |node: &NodeId| !tree.nodes[node.index()].leaves.is_empty();
        if running.iter().any(ends) {
            ahead.held = ahead.held.saturating_add_unsigned(std::mem::take(&mut rest_bytes));
        }
        // Parents come before children, so what is reached has no open parent.
        let rest = (0..tree.nodes.len() as u32).map(NodeId);
        let open =
            |node: &NodeId| tree.nodes[node.index()].state == NodeState::Open && !running.contains(node);
        for node in rest.filter(open) {
            let at = &tree.nodes[node.index()];
            most = most.max(ahead.with(self.tasks[at.level].running()));
            ahead.complete(node);
            if !at.leaves.is_empty() {
                most = most.max(ahead.with(self.drain.bytes.max(self.left(tree, node))));
                let rest_bytes = std::mem::take(&mut rest_bytes);
                ahead.held = ahead.held.saturating_add_unsigned(self.store_bytes * at.staying + rest_bytes);
            }
        }
        Forecast { growth_bytes, finish_bytes: most }
    }

    fn bounded(&self, tree: &Tree, running: &BTreeSet<NodeId>, ready: &BTreeSet<NodeId>) -> Forecast {
        let keeps = |&node: &NodeId| self.wanted(tree, node) + self.left(tree, node);
        let growth_bytes = running.iter().map(keeps).sum();
        let below = ready.iter().chain(running).map(|node| self.bounds[node.index()]).max().unwrap_or(0);
        let finish_bytes = growth_bytes + below + self.drain.bytes + self.staying(tree);
        Forecast { growth_bytes, finish_bytes }
    }

    /// What instances that are not finished yet, and their readers, will leave for longer than the bucket lasts.
    pub(super) fn staying(&self, tree: &Tree) -> u64 {
        tree.staying * self.store_bytes + self.drain.rest_bytes
    }

    /// What the instances that end with a task leave in storage.
    fn left(&self, tree: &Tree, node: NodeId) -> u64 {
        self.store_bytes * tree.nodes[node.index()].leaves.len() as u64
    }
}

fn bounds(tree: &Tree, tasks: &[TaskBytes]) -> Vec<u64> {
    let mut bounds = vec![0; tree.nodes.len()];
    // Parents come before their children.
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        let below = node.children.iter().map(|child| bounds[child.index()]).max().unwrap_or(0);
        let kept = wanted(tree, &tree.readers, NodeId(index as u32), &tasks[node.level]);
        bounds[index] = tasks[node.level].running().max(kept + below);
    }
    bounds
}

fn wanted(tree: &Tree, readers: &[u32], node: NodeId, bytes: &TaskBytes) -> u64 {
    let first = tree.nodes[node.index()].first_output;
    let read = |&(output, _): &(usize, &u64)| readers[first + output] > 0;
    bytes.outputs.iter().enumerate().filter(read).map(|(_, bytes)| bytes).sum()
}

/// The outputs that a task and the instances that end with it read, each as often as it is read.
fn read_by(tree: &Tree, stage: &Stage, node: NodeId) -> Vec<(NodeId, usize)> {
    let at = &tree.nodes[node.index()];
    let given = at.leaves.iter().flat_map(|_| stage.outputs.iter().map(|out| (out.task, out.output)));
    let read = stage.tasks[at.level].reads.iter().filter_map(|read| match *read {
        Read::Task { task, output } => Some((task, output)),
        Read::StageInput(_) => None,
    });
    given.chain(read).map(|(task, output)| (tree.ancestor(node, task), output)).collect()
}

/// The bucket, some tasks later.
struct Ahead<'a> {
    tree: &'a Tree,
    stage: &'a Stage,
    sizes: &'a Sizes,
    /// As [`Tree::readers`].
    readers: Vec<u32>,
    /// Bytes held, beyond those held now.
    held: i64,
}

impl Ahead<'_> {
    /// Bytes held with `more`, beyond those held now.
    fn with(&self, more: u64) -> u64 {
        self.held.saturating_add_unsigned(more).max(0).unsigned_abs()
    }

    fn complete(&mut self, node: NodeId) {
        let at = &self.tree.nodes[node.index()];
        let kept = wanted(self.tree, &self.readers, node, &self.sizes.tasks[at.level]);
        self.held = self.held.saturating_add_unsigned(kept);
        for (writer, output) in read_by(self.tree, self.stage, node) {
            self.let_go(writer, output);
        }
    }

    fn let_go(&mut self, writer: NodeId, output: usize) {
        let at = &self.tree.nodes[writer.index()];
        let readers = &mut self.readers[at.first_output + output];
        *readers -= 1;
        if *readers == 0 {
            self.held = self.held.saturating_sub_unsigned(self.sizes.tasks[at.level].outputs[output]);
        }
    }
}
