//! Tasks that are looked up instead of run, and tasks that run again because their outputs are lost.
//!
//! A task found at another worker is done without its outputs: the shell fetches an output for the first task that runs
//! and reads it. If no holder sends it, the task that wrote it is reopened, with those of its parents whose outputs are
//! dropped.

use super::BucketExecution;
use super::gate::Gate;
use super::graph::NodeState;
use super::interface::{Effect, OutputId};
use crate::ids::NodeId;
use std::collections::BTreeSet;
use std::time::Duration;

impl BucketExecution {
    /// Has the shell look up the tasks of these levels before they run. Call it before the first task starts.
    #[must_use]
    pub fn with_gate(mut self, levels: Vec<bool>) -> Self {
        assert!(!self.started, "the gate is set before the first task starts");
        self.gate = Gate::new(levels);
        for node in std::mem::take(&mut self.ready) {
            self.make_ready(node);
        }
        self
    }

    /// Orders looked-up tasks by their longest path to the end of an instance, once at most `tail_tasks` tasks of the bucket
    /// are open. `paths` has the predicted time for each task of the stage. The order before is depth-first.
    #[must_use]
    pub fn with_paths(mut self, paths: Vec<Duration>, tail_tasks: usize) -> Self {
        self.gate.set_paths(paths, tail_tasks);
        self
    }

    /// Returns the tasks to look up, in order.
    pub fn unresolved(&self) -> impl Iterator<Item = NodeId> {
        self.gate.unresolved()
    }

    /// Returns whether a task of the bucket has been started. Its inputs are being loaded, or are in storage.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Suspends an unresolved task, because the shell looks it up ahead of a free slot.
    pub fn look_up_ahead(&mut self, node: NodeId) {
        let was_unresolved = self.gate.remove(node);
        assert!(was_unresolved, "{node} is looked up, and was not to be");
        let is_new = self.suspended.insert(node);
        assert!(is_new, "{node} was unresolved and suspended");
    }

    /// Suspends a started task, because the shell looks it up. The bucket needs the slot again.
    pub fn look_up_started(&mut self, node: NodeId) {
        self.suspend(node);
        self.gate.begin_resolving(node);
    }

    /// Handles a look-up that waits for another worker: the slot that is free for it can take another task.
    pub fn handle_waiting(&mut self, node: NodeId) {
        self.gate.end_resolving(node);
    }

    /// Ends a look-up. Returns whether the task still waits for it: it may have been withdrawn.
    pub fn end_look_up(&mut self, node: NodeId) -> bool {
        self.gate.end_resolving(node);
        self.suspended.contains(&node)
    }

    /// Has a looked-up task run in the next slot. Returns `false` if a parent has been reopened meanwhile: the task will be
    /// looked up again.
    pub fn admit(&mut self, node: NodeId) -> bool {
        let was_suspended = self.suspended.remove(&node);
        assert!(was_suspended, "{node} is admitted, and was not looked up");
        if self.graph.nodes[node.index()].waits_for > 0 {
            return false;
        }
        let is_new = self.ready.insert(node);
        assert!(is_new, "{node} was ready and suspended");
        true
    }

    /// Returns whether a task is ready, resolved or not.
    #[must_use]
    pub fn is_ready(&self, node: NodeId) -> bool {
        self.ready.contains(&node)
    }

    /// Finishes a looked-up task without a run: the shell knows its wanted outputs.
    pub fn handle_found(&mut self, node: NodeId) {
        let was_suspended = self.suspended.remove(&node);
        assert!(was_suspended, "{node} is found, and was not looked up");
        let wanted = self.wanted(node);
        self.finish(node, &wanted);
    }

    /// Returns the outputs that the instances that end with a task return.
    #[must_use]
    pub fn given_by(&self, node: NodeId) -> &[OutputId] {
        let node = &self.graph.nodes[node.index()];
        if node.leaves.is_empty() { &[] } else { &node.gives }
    }

    /// Returns whether a task with these outputs must be done again, because tasks were reopened meanwhile: one of them reads
    /// an output that was not wanted before, or wrote one that the instances that end here return.
    pub(super) fn repeats(&self, node: NodeId, wanted: &[bool]) -> bool {
        let is_open = |given: &OutputId| {
            given.node != node && self.graph.nodes[given.node.index()].state == NodeState::Open
        };
        let is_missing = |(now, before): (bool, &bool)| now && !before;
        self.given_by(node).iter().any(is_open) || self.wanted(node).into_iter().zip(wanted).any(is_missing)
    }

    /// Has the last tasks of unfinished instances wait for the reopened tasks that wrote what the instances return. Other
    /// tasks wait for those whose outputs they read.
    fn wait_for_given(&mut self, again: &BTreeSet<NodeId>) {
        for leaf in (0..self.graph.nodes.len() as u32).map(NodeId) {
            if again.contains(&leaf) || self.graph.nodes[leaf.index()].state != NodeState::Open {
                continue;
            }
            let givers: BTreeSet<NodeId> = self.given_by(leaf).iter().map(|given| given.node).collect();
            for giver in givers.intersection(again) {
                let children = &mut self.graph.nodes[giver.index()].children;
                if !children.contains(&leaf) {
                    children.push(leaf);
                }
            }
        }
    }

    /// Lets running tasks begin again if no parent of them is failed any longer.
    fn adopt(&mut self, again: &BTreeSet<NodeId>) {
        let children = again.iter().flat_map(|node| &self.graph.nodes[node.index()].children);
        let has_parents = |child: &&NodeId| {
            let reads = &self.graph.nodes[child.index()].reads;
            reads.iter().all(|read| self.graph.nodes[read.node.index()].state != NodeState::Failed)
        };
        let adopted: Vec<NodeId> = children.filter(has_parents).copied().collect();
        adopted.iter().for_each(|child| _ = self.orphans.remove(child));
    }

    /// Reopens the task that wrote a lost output, and those of its parents whose outputs are dropped. Tasks that read them
    /// and have not started wait again. [`Effect::Drop`] follows for the other outputs of reopened tasks.
    pub fn reopen(&mut self, lost: NodeId) {
        // Withdrawn meanwhile, or reopened for another reader.
        if self.graph.nodes[lost.index()].state != NodeState::Done {
            return;
        }
        self.sizes.reset_profile();
        let mut again = BTreeSet::from([lost]);
        let mut open = vec![lost];
        while let Some(node) = open.pop() {
            for read in &self.graph.nodes[node.index()].reads {
                let is_gone = match self.graph.nodes[read.node.index()].state {
                    NodeState::Open => false,
                    // A done task with a reader still has its output, or its location.
                    NodeState::Done => self.graph.readers(*read) == 0,
                    // Reopened before, and failed or withdrawn since.
                    NodeState::Failed => true,
                };
                if is_gone && again.insert(read.node) {
                    open.push(read.node);
                }
            }
        }
        let is_failed = |node: &NodeId| self.graph.nodes[node.index()].state == NodeState::Failed;
        let failed: BTreeSet<NodeId> = again.iter().copied().filter(is_failed).collect();
        for &node in again.difference(&failed) {
            let held: Vec<OutputId> =
                self.graph.outputs(node).filter(|output| self.graph.readers(*output) > 0).collect();
            for output in held {
                self.held_bytes -= self.sizes.of(&self.graph, output);
                self.effects.push_back(Effect::Drop(output));
            }
        }
        for &node in &again {
            self.graph.reopen(node);
            self.open += 1;
            for read in self.graph.nodes[node.index()].reads.clone() {
                *self.graph.readers_of(read) += 1;
            }
        }
        self.wait_for_given(&again);
        for &node in &again {
            if failed.contains(&node) {
                // Its open children are running, and still wait for it.
                continue;
            }
            for child in self.graph.nodes[node.index()].children.clone() {
                let is_open = self.graph.nodes[child.index()].state == NodeState::Open;
                if is_open && !again.contains(&child) {
                    self.graph.nodes[child.index()].waits_for += 1;
                    self.ready.remove(&child);
                    self.gate.remove(child);
                }
            }
        }
        self.adopt(&again);
        for &node in &again {
            let parents: BTreeSet<NodeId> =
                self.graph.nodes[node.index()].reads.iter().map(|read| read.node).collect();
            let is_open = |parent: &&NodeId| self.graph.nodes[parent.index()].state == NodeState::Open;
            // A parent may have been reopened for another task before.
            self.graph.nodes[node.index()].waits_for = parents.iter().filter(is_open).count() as u32;
        }
        for &node in &again {
            if self.graph.nodes[node.index()].waits_for == 0 {
                self.make_ready(node);
            }
        }
    }
}
