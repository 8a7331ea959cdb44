//! The gate before the ready tasks of a bucket: tasks that the shell looks up in the result directory first.
//!
//! A long task is looked up once a slot is free: a claim that waits for a slot would keep other workers from running the
//! task. At most one such look-up is under way, so that a free slot leads to one claim. Short tasks are looked up ahead.

use crate::ids::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Shorter paths are not worth the messages to move an instance to another worker, and the transfer of its inputs.
const MIN_PATH: Duration = Duration::from_millis(250);

/// The last tasks of an instance have at most a quarter of the longest path: t7 of the nuclei segmentation has a tenth, t6
/// more than half.
const MAX_LAST_SHARE: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// By task of the stage: whether it is looked up. Empty without a directory.
    levels: Vec<bool>,
    /// Tasks to look up, with their tasks of the stage. Their parents are done.
    unresolved: BTreeMap<NodeId, usize>,
    /// By task of the stage: predicted time of the longest path from its start to the end of an instance.
    paths: Vec<Duration>,
    /// With at most this number of open tasks in the bucket, the task with the longest path is next.
    tail_tasks: usize,
    /// The task that is being looked up for a free slot.
    resolving: Option<NodeId>,
}

impl Gate {
    pub(super) fn new(levels: Vec<bool>) -> Self {
        Self { levels, ..Self::default() }
    }

    /// Looks up the task with the longest path first, once at most `tail_tasks` tasks are open.
    pub(super) fn set_paths(&mut self, paths: Vec<Duration>, tail_tasks: usize) {
        (self.paths, self.tail_tasks) = (paths, tail_tasks);
    }

    /// Adds a task if its level is looked up. Returns whether it is, and the task is new.
    pub(super) fn insert(&mut self, node: NodeId, level: usize) -> bool {
        self.levels.get(level).is_some_and(|looked_up| *looked_up)
            && self.unresolved.insert(node, level).is_none()
    }

    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.unresolved.remove(&node).is_some()
    }

    /// Returns the task to look up for the next free slot of a bucket with this number of open tasks.
    ///
    /// Depth-first while tasks are many, because that needs least memory. Near the end, long paths first: the last tasks to
    /// run are short then, and idle workers can take them.
    pub(super) fn next(&self, open_tasks: usize) -> Option<NodeId> {
        if self.resolving.is_some() {
            return None;
        }
        if open_tasks > self.tail_tasks {
            return self.unresolved.first_key_value().map(|(node, _)| *node);
        }
        let path = |level: usize| self.paths.get(level).copied().unwrap_or_default();
        self.unresolved.iter().map(|(node, level)| (Reverse(path(*level)), *node)).min().map(|(_, node)| node)
    }

    /// Returns the predicted path from the start of a task of the stage.
    pub(super) fn path(&self, level: usize) -> Duration {
        self.paths.get(level).copied().unwrap_or_default()
    }

    /// Returns whether a task of the stage is among the last ones of its instances, with a path that is worth a look for a
    /// longer one.
    pub(super) fn is_last(&self, level: usize) -> bool {
        let longest = self.paths.iter().max().copied().unwrap_or_default();
        self.path(level) >= MIN_PATH && self.path(level).saturating_mul(MAX_LAST_SHARE) <= longest
    }

    pub(super) fn has_no_paths(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns whether a bucket with this number of open tasks is near its end.
    pub(super) fn is_tail(&self, open_tasks: usize) -> bool {
        open_tasks <= self.tail_tasks
    }

    /// Returns the tasks to look up with their tasks of the stage, except the one that is being looked up for a slot.
    pub(super) fn levels(&self) -> impl Iterator<Item = (NodeId, usize)> {
        self.unresolved.iter().map(|(node, level)| (*node, *level))
    }

    pub(super) fn resolving(&self) -> Option<NodeId> {
        self.resolving
    }

    pub(super) fn unresolved(&self) -> impl Iterator<Item = NodeId> {
        self.unresolved.keys().copied()
    }

    pub(super) fn begin_resolving(&mut self, node: NodeId) {
        self.resolving = Some(node);
    }

    pub(super) fn end_resolving(&mut self, node: NodeId) {
        self.resolving = self.resolving.filter(|resolving| *resolving != node);
    }

    pub(super) fn is_resolving(&self) -> bool {
        self.resolving.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unresolved.is_empty()
    }
}
