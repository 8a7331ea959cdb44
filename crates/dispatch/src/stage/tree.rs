//! The reuse tree of one bucket: instances that share their first tasks. It determines the order of the instances.
//! [`graph`](super::graph) determines the executed tasks.

use crate::message::BucketWork;
use pleach_regions::RegionKey;
use pleach_workflow::{Stage, Value};
use std::collections::HashMap;

/// Index into [`BucketTree::nodes`].
pub(super) type NodeIndex = usize;

/// A task instance, below all tasks before it.
#[derive(Debug)]
pub(super) struct TreeNode {
    pub(super) children: Vec<NodeIndex>,
    /// Index into the stage's tasks.
    pub(super) level: usize,
    /// Stage instances that end here, as indices into the bucket.
    leaves: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct BucketTree {
    /// Parents come before their children.
    pub(super) nodes: Vec<TreeNode>,
    roots: Vec<NodeIndex>,
}

/// Identity of a task instance below one parent: the values it consumes and, at the first level,
/// the regions that the stage reads.
type Key = (Option<NodeIndex>, Vec<Value>, Vec<RegionKey>);

impl BucketTree {
    /// Inserts one stage instance after another, with a hash look-up for each level (thesis, section 3.3.3).
    pub(super) fn build(stage: &Stage, work: &BucketWork) -> Self {
        let mut tree = Self { nodes: Vec::new(), roots: Vec::new() };
        let mut index: HashMap<Key, NodeIndex> = HashMap::new();
        for (number, instance) in work.instances.iter().enumerate() {
            let mut parent = None;
            for (level, task) in stage.tasks.iter().enumerate() {
                let arguments: Vec<Value> = task.arguments.iter().map(|&a| instance.parameters[a]).collect();
                let inputs = if level == 0 { instance.inputs.clone() } else { Vec::new() };
                let next = tree.nodes.len();
                let node = *index.entry((parent, arguments, inputs)).or_insert(next);
                if node == next {
                    tree.nodes.push(TreeNode { children: Vec::new(), level, leaves: Vec::new() });
                    match parent {
                        Some(parent) => tree.nodes[parent].children.push(node),
                        None => tree.roots.push(node),
                    }
                }
                parent = Some(node);
            }
            // A stage has at least one task, so `parent` is the leaf.
            if let Some(leaf) = parent {
                tree.nodes[leaf].leaves.push(number);
            }
        }
        tree
    }

    /// Returns the instances in the order of a depth-first walk, as indices into the bucket.
    pub(super) fn instances(&self) -> impl Iterator<Item = usize> {
        let mut stack: Vec<NodeIndex> = self.roots.iter().rev().copied().collect();
        let walk = std::iter::from_fn(move || {
            let place = stack.pop()?;
            stack.extend(self.nodes[place].children.iter().rev());
            Some(&self.nodes[place].leaves)
        });
        walk.flatten().copied()
    }
}
