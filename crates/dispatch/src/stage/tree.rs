//! The reuse tree of one bucket, with the readers of every output counted.

use super::NodeId;
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
    /// For each output: task instances and stage instances that have yet to read it.
    pub(super) readers: Vec<usize>,
    /// The task has run, so the outputs that anything reads are held.
    pub(super) done: bool,
    /// Stage instances that end here.
    pub(super) leaves: Vec<InstanceId>,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) roots: Vec<NodeId>,
}

/// What makes two task instances below one parent the same: the values they consume and, at the first level,
/// the regions that the stage reads.
type Key = (Option<NodeId>, Vec<Value>, Vec<RegionKey>);

impl Tree {
    /// Inserts one stage instance after another, with a hash look-up a level (thesis, section 3.3.3).
    pub(super) fn build(stage: &Stage, work: &BucketWork) -> Self {
        let mut tree = Self { nodes: Vec::new(), roots: Vec::new() };
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
                        readers: vec![0; task.writes.len()],
                        done: false,
                        leaves: Vec::new(),
                    });
                    match parent {
                        Some(parent) => tree.nodes[parent.index()].children.push(node),
                        None => tree.roots.push(node),
                    }
                    for read in &task.reads {
                        if let Read::Task { task, output } = *read {
                            let writer = tree.ancestor(node, task);
                            tree.nodes[writer.index()].readers[output] += 1;
                        }
                    }
                }
                parent = Some(node);
            }
            // A stage has at least one task, so `parent` is the leaf.
            if let Some(leaf) = parent {
                tree.nodes[leaf.index()].leaves.push(instance.id);
                for out in &stage.outputs {
                    let writer = tree.ancestor(leaf, out.task);
                    tree.nodes[writer.index()].readers[out.output] += 1;
                }
            }
        }
        tree
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
