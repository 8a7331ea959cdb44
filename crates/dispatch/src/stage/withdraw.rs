//! Withdrawal: instances that leave a bucket unfinished, because they are returned or canceled.
//!
//! Tasks that no other instance needs are not run. A running task runs to its end.

use super::BucketExecution;
use super::graph::NodeState;
use crate::InstanceId;
use crate::ids::NodeId;
use crate::plan::ReuseScope;
use pleach_workflow::Value;
use std::collections::BTreeSet;

impl BucketExecution {
    /// Withdraws all open instances that are not started, to return them to the manager. An instance counts as started if it is
    /// the next to be finished by a running task.
    pub fn take_unstarted(&mut self) -> Vec<InstanceId> {
        let under_way = self.under_way();
        let open: BTreeSet<InstanceId> = self.open_instances().map(|(_, id)| id).collect();
        self.withdraw(&open.difference(&under_way).copied().collect())
    }

    /// Withdraws a part of the unstarted instances for an idle worker: the later half. In a reuse tree, where the other worker
    /// repeats the tasks that both parts need, the part that shortens the time of both most, if any does. `seconds` predicts
    /// the time of a task of the stage with its arguments.
    pub fn take_part(&mut self, seconds: impl Fn(usize, &[Value]) -> f64) -> Vec<InstanceId> {
        let under_way = self.under_way();
        let open: Vec<(NodeId, InstanceId)> =
            self.open_instances().filter(|(_, id)| !under_way.contains(id)).collect();
        let kept = match (self.sharing, under_way.is_empty()) {
            (ReuseScope::Tree, is_empty) => self.shortest_split(&open, usize::from(is_empty), seconds),
            // Without a started instance the bucket keeps one half, or it would only move from worker to worker.
            (_, true) => open.len().div_ceil(2),
            (_, false) => open.len() / 2,
        };
        self.withdraw(&open[kept..].iter().map(|(_, id)| *id).collect())
    }

    /// Withdraws all open instances and returns them.
    pub fn cancel(&mut self) -> Vec<InstanceId> {
        let open = self.open_instances().map(|(_, id)| id).collect();
        self.withdraw(&open)
    }

    /// Returns the open instances, in order, each with its leaf.
    fn open_instances(&self) -> impl Iterator<Item = (NodeId, InstanceId)> {
        self.open_leaves().flat_map(|(leaf, instances)| instances.into_iter().map(move |id| (leaf, id)))
    }

    /// Returns the open leaves, in order, with the instances that end there.
    fn open_leaves(&self) -> impl Iterator<Item = (NodeId, Vec<InstanceId>)> {
        let nodes = (0u32..).map(NodeId).zip(&self.graph.nodes);
        let open = nodes.filter(|(_, node)| node.state == NodeState::Open && !node.leaves.is_empty());
        open.map(|(id, node)| (id, node.leaves.clone()))
    }

    fn under_way(&self) -> BTreeSet<InstanceId> {
        let mut under_way = BTreeSet::new();
        for &running in self.running.iter().chain(&self.suspended) {
            let (mut below, mut first) = (vec![running], None);
            let mut seen = BTreeSet::new();
            while let Some(id) = below.pop() {
                let node = &self.graph.nodes[id.index()];
                if node.state != NodeState::Open || !seen.insert(id) {
                    continue;
                }
                if !node.leaves.is_empty() {
                    first = Some(first.map_or(id, |first: NodeId| first.min(id)));
                }
                below.extend(&node.children);
            }
            if let Some(first) = first {
                under_way.extend(self.graph.nodes[first.index()].leaves.iter().copied());
            }
        }
        under_way
    }

    /// Withdraws instances. Returns those of them that were not finished.
    pub fn withdraw(&mut self, instances: &BTreeSet<InstanceId>) -> Vec<InstanceId> {
        self.sizes.reset_profile();
        let mut back = Vec::new();
        let leaves: Vec<NodeId> = self.open_leaves().map(|(id, _)| id).collect();
        for leaf in leaves {
            let gone = self.graph.remove_leaves(leaf, instances);
            let gives = self.graph.nodes[leaf.index()].gives.clone();
            for _ in &gone {
                gives.iter().for_each(|output| self.release_read(*output));
            }
            back.extend(gone);
        }
        if !back.is_empty() {
            self.give_up_unneeded();
            self.end_if_over();
        }
        back
    }

    /// Withdraws open tasks that no instance needs, except running ones.
    pub(super) fn give_up_unneeded(&mut self) {
        self.sizes.reset_profile();
        let mut needed = vec![false; self.graph.nodes.len()];
        // Children have higher numbers than their parents, so one backward pass suffices.
        for index in (0..needed.len()).rev() {
            let node = &self.graph.nodes[index];
            let open = node.state == NodeState::Open;
            needed[index] =
                open && (!node.leaves.is_empty() || node.children.iter().any(|child| needed[child.index()]));
        }
        for id in (0..needed.len() as u32).map(NodeId) {
            let at = &self.graph.nodes[id.index()];
            if needed[id.index()] || at.state != NodeState::Open || self.running.contains(&id) {
                continue;
            }
            assert!(self.open > 0, "{id} is withdrawn, and no task is open");
            self.open -= 1;
            self.ready.remove(&id);
            self.gate.remove(id);
            self.suspended.remove(&id);
            self.gate.end_resolving(id);
            self.graph.end(id, NodeState::Failed);
            self.stop_reading(id);
        }
    }
}
