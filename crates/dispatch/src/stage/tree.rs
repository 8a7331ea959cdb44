//! The reuse tree of one bucket, with the readers of every output counted.

use super::task::NodeId;
use crate::InstanceId;
use crate::message::BucketWork;
use pleach_regions::RegionKey;
use pleach_workflow::{Read, Stage, Value};
use std::collections::HashMap;

/// A task instance.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<NodeId>,
    pub(super) children: Vec<NodeId>,
    /// Index into the stage's tasks.
    pub(super) level: usize,
    /// The instance that first asked for it.
    pub(super) instance: InstanceId,
    pub(super) arguments: Vec<Value>,
    /// Where its outputs begin in [`Tree::readers`].
    pub(super) first_output: usize,
    pub(super) state: NodeState,
    /// Stage instances that end here.
    pub(super) leaves: Vec<InstanceId>,
    /// Those of `leaves` whose outputs stay in storage, for readers that wait for others as well.
    pub(super) staying: u64,
}

/// Where a task instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeState {
    /// Has not run yet.
    Open,
    /// Has run, so the outputs that anything reads are held.
    Done,
    /// Has failed, or will not run because one above it has.
    Failed,
}

#[derive(Debug)]
pub(super) struct Tree {
    /// In the order of execution: depth-first, so parents come before their children.
    pub(super) nodes: Vec<Node>,
    /// For each output of each node: task instances and stage instances that have yet to read it.
    pub(super) readers: Vec<u32>,
    pub(super) roots: Vec<NodeId>,
    /// Of instances that have not ended yet, those whose outputs stay in storage.
    pub(super) staying: u64,
}

/// What makes two task instances below one parent the same: the values they consume and, at the first level,
/// the regions that the stage reads.
type Key = (Option<NodeId>, Vec<Value>, Vec<RegionKey>);

impl Tree {
    /// Inserts one stage instance after another, with a hash look-up a level (thesis, section 3.3.3).
    pub(super) fn build(stage: &Stage, work: &BucketWork) -> Self {
        let mut tree = Self { nodes: Vec::new(), readers: Vec::new(), roots: Vec::new(), staying: 0 };
        let mut index: HashMap<Key, NodeId> = HashMap::new();
        for instance in &work.instances {
            let mut parent = None;
            for (level, task) in stage.tasks.iter().enumerate() {
                let arguments: Vec<Value> = task.arguments.iter().map(|&a| instance.parameters[a]).collect();
                let inputs = if level == 0 { instance.inputs.clone() } else { Vec::new() };
                let next = NodeId(tree.nodes.len() as u32);
                let node = *index.entry((parent, arguments.clone(), inputs)).or_insert(next);
                if node == next {
                    tree.nodes.push(Node {
                        parent,
                        children: Vec::new(),
                        level,
                        instance: instance.id,
                        arguments,
                        first_output: tree.readers.len(),
                        state: NodeState::Open,
                        leaves: Vec::new(),
                        staying: 0,
                    });
                    tree.readers.extend(task.writes.iter().map(|_| 0));
                    match parent {
                        Some(parent) => tree.nodes[parent.index()].children.push(node),
                        None => tree.roots.push(node),
                    }
                    for read in &task.reads {
                        if let Read::Task { task, output } = *read {
                            let writer = tree.ancestor(node, task);
                            *tree.readers_of(writer, output) += 1;
                        }
                    }
                }
                parent = Some(node);
            }
            // A stage has at least one task, so `parent` is the leaf.
            if let Some(leaf) = parent {
                tree.nodes[leaf.index()].leaves.push(instance.id);
                tree.nodes[leaf.index()].staying += u64::from(instance.stays);
                tree.staying += u64::from(instance.stays);
                for out in &stage.outputs {
                    let writer = tree.ancestor(leaf, out.task);
                    *tree.readers_of(writer, out.output) += 1;
                }
            }
        }
        tree
    }

    /// The readers that an output still has.
    pub(super) fn readers_of(&mut self, writer: NodeId, output: usize) -> &mut u32 {
        &mut self.readers[self.nodes[writer.index()].first_output + output]
    }

    /// A node has run, or will not.
    pub(super) fn end(&mut self, node: NodeId, state: NodeState) {
        let node = &mut self.nodes[node.index()];
        self.staying -= node.staying;
        node.state = state;
    }

    /// Numbers all nodes anew in the order in which they are executed, depth-first.
    pub(super) fn renumber(&mut self) {
        let mut stack: Vec<NodeId> = self.roots.iter().rev().copied().collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = stack.pop() {
            order.push(node);
            stack.extend(self.nodes[node.index()].children.iter().rev());
        }
        let mut new = vec![NodeId(0); order.len()];
        for (number, old) in (0u32..).zip(&order) {
            new[old.index()] = NodeId(number);
        }
        let mut old: Vec<Option<Node>> = std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
        self.nodes = order.iter().filter_map(|id| old[id.index()].take()).collect();
        let renumber = |id: &mut NodeId| *id = new[id.index()];
        for node in &mut self.nodes {
            node.parent.iter_mut().chain(&mut node.children).for_each(renumber);
        }
        self.roots.iter_mut().for_each(renumber);
    }

    /// The node at `level` on the way from the root to `node`.
    pub(super) fn ancestor(&self, node: NodeId, level: usize) -> NodeId {
        let mut at = node;
        while self.nodes[at.index()].level > level {
            match self.nodes[at.index()].parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }
}
