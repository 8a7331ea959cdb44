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

    /// Reopens the task that wrote a lost output, and those of its parents whose outputs are dropped. Tasks that read them
    /// and have not started wait again. [`Effect::Drop`] follows for the other outputs of reopened tasks.
    pub fn reopen(&mut self, lost: NodeId) {
        // Withdrawn meanwhile, or reopened for another reader.
        if self.graph.nodes[lost.index()].state != NodeState::Done {
            return;
        }
        let mut again = BTreeSet::from([lost]);
        let mut open = vec![lost];
        while let Some(node) = open.pop() {
            for read in &self.graph.nodes[node.index()].reads {
                let is_done = self.graph.nodes[read.node.index()].state == NodeState::Done;
                // A done task with a reader still has its output, or its location.
                if is_done && self.graph.readers(*read) == 0 && again.insert(read.node) {
                    open.push(read.node);
                }
            }
        }
        for &node in &again {
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
        for &node in &again {
            for child in self.graph.nodes[node.index()].children.clone() {
                let is_open = self.graph.nodes[child.index()].state == NodeState::Open;
                if is_open && !again.contains(&child) {
                    self.graph.nodes[child.index()].waits_for += 1;
                    self.ready.remove(&child);
                    self.gate.remove(child);
                }
            }
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
