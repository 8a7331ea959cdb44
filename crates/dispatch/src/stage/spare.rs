//! The end of a bucket: instances that another worker can continue, by their predicted paths.
//!
//! An instance is spare if a task of it is ready, has no claim, and is not about to get a slot. Another worker that looks the
//! task up gets the claim then. Tasks that wait for other workers do not hinder it: they wait there as well.

use super::BucketExecution;
use super::graph::NodeState;
use crate::InstanceId;
use crate::ids::NodeId;
use crate::memory_model::TailDemand;
use std::collections::BTreeSet;
use std::time::Duration;

impl BucketExecution {
    pub(super) fn tail_demand(&self) -> TailDemand {
        let open_tasks = self.open as u32;
        if !self.gate.is_tail(self.open) || self.gate.has_no_paths() {
            return TailDemand { open_tasks, ..TailDemand::default() };
        }
        // A claimed task runs at once: other workers may wait for it.
        let next = self.next().filter(|next| !self.ready.contains(next));
        let level = next.map(|next| self.graph.nodes[next.index()].level);
        TailDemand {
            open_tasks,
            is_tail: true,
            waits: false,
            next_path: level.map_or(Duration::ZERO, |level| self.gate.path(level)),
            is_last: level.is_some_and(|level| self.gate.is_last(level)),
            spare_path: self.spare().map(|(path, _)| path).max(),
        }
    }

    /// Returns the spare instances with the longest path of a ready task.
    fn spare(&self) -> impl Iterator<Item = (Duration, InstanceId)> {
        let begun = self.begun();
        let mut spare: Vec<(Duration, InstanceId)> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut levels: Vec<(NodeId, usize)> = self.gate.levels().collect();
        levels.sort_by_key(|(node, level)| (std::cmp::Reverse(self.gate.path(*level)), *node));
        for (node, level) in levels {
            let path = self.gate.path(level);
            let below = self.instances_below(node);
            spare.extend(below.filter(|id| !begun.contains(id) && seen.insert(*id)).map(|id| (path, id)));
        }
        spare.into_iter()
    }

    /// Returns the next instance to be finished by each task that runs, or is about to.
    fn begun(&self) -> BTreeSet<InstanceId> {
        let begun = self.running.iter().chain(&self.ready).copied().chain(self.gate.resolving());
        begun.filter_map(|node| self.instances_below(node).next()).collect()
    }

    /// Returns the open instances that need a task, in order.
    fn instances_below(&self, node: NodeId) -> impl Iterator<Item = InstanceId> {
        let (mut open, mut seen) = (vec![node], BTreeSet::new());
        while let Some(id) = open.pop() {
            let node = &self.graph.nodes[id.index()];
            if node.state == NodeState::Open && seen.insert(id) {
                open.extend(&node.children);
            }
        }
        seen.into_iter().flat_map(|id| self.graph.nodes[id.index()].leaves.clone())
    }

    /// Withdraws the later half of the spare instances that have the longest path, if that is longer than `longer_than`.
    /// Returns them with their path.
    pub fn take_spare(&mut self, longer_than: Duration) -> (Duration, Vec<InstanceId>) {
        let spare: Vec<(Duration, InstanceId)> = self.spare().collect();
        let Some(longest) = spare.iter().map(|(path, _)| *path).max().filter(|path| *path > longer_than)
        else {
            return (Duration::ZERO, Vec::new());
        };
        let ids: Vec<InstanceId> =
            spare.into_iter().filter(|(path, _)| *path == longest).map(|(_, id)| id).collect();
        let taken: BTreeSet<InstanceId> = ids[ids.len() / 2..].iter().copied().collect();
        (longest, self.withdraw(&taken))
    }
}
