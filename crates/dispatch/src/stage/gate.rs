//! The gate before the ready tasks of a bucket: tasks that the shell looks up in the result directory first.
//!
//! A long task is looked up once a slot is free: a claim that waits for a slot would keep other workers from running the
//! task. At most one such look-up is under way, so that a free slot leads to one claim. Short tasks are looked up ahead.

use crate::ids::NodeId;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// By task of the stage: whether it is looked up. Empty without a directory.
    levels: Vec<bool>,
    /// Tasks to look up. Their parents are done.
    unresolved: BTreeSet<NodeId>,
    /// The task that is being looked up for a free slot.
    resolving: Option<NodeId>,
}

impl Gate {
    pub(super) fn new(levels: Vec<bool>) -> Self {
        Self { levels, ..Self::default() }
    }

    /// Adds a task if its level is looked up. Returns whether it is, and the task is new.
    pub(super) fn insert(&mut self, node: NodeId, level: usize) -> bool {
        self.levels.get(level).is_some_and(|looked_up| *looked_up) && self.unresolved.insert(node)
    }

    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.unresolved.remove(&node)
    }

    /// Returns the task to look up for the next free slot.
    pub(super) fn next(&self) -> Option<NodeId> {
        self.unresolved.first().copied().filter(|_| self.resolving.is_none())
    }

    pub(super) fn unresolved(&self) -> impl Iterator<Item = NodeId> {
        self.unresolved.iter().copied()
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
