//! Sibling order with the smallest memory peak in a depth-first execution of a reuse tree.
//!
//! Every child of the task that wrote an output has some of its readers in its subtree. The output is therefore held
//! until the last child is reached, and can be released only within that child: the child that needs most by itself
//! comes last, and no other order needs less. The other children keep their order.

use super::tree::{BucketTree, NodeIndex};
use crate::memory_model::TaskMemory;
use pleach_workflow::{Stage, TaskInput};

/// Sorts siblings. Linear in nodes, times the square of the stage's tasks.
pub(super) fn order(tree: &mut BucketTree, stage: &Stage, tasks: &[TaskMemory]) {
    let levels = Levels::new(stage, tasks);
    // Children come after their parents, so a node's subtree is sorted before the node itself.
    for index in (0..tree.nodes.len()).rev() {
        let mut children = std::mem::take(&mut tree.nodes[index].children);
        let needs = |child: &NodeIndex| levels.needs(tree, *child);
        // Among equals, the last one stays last.
        if children.len() > 1
            && let Some((dearest, _)) = children.iter().enumerate().max_by_key(|(_, child)| needs(child))
        {
            let dearest = children.remove(dearest);
            children.push(dearest);
        }
        tree.nodes[index].children = children;
    }
}

/// Bytes that tasks write and release, by level.
struct Levels<'a> {
    tasks: &'a [TaskMemory],
    /// Bytes of a task's outputs that have a reader.
    retained_bytes: Vec<u64>,
    /// `lets_go[writer][reader]`: bytes of a task's outputs that another task reads last.
    lets_go: Vec<Vec<u64>>,
}

impl<'a> Levels<'a> {
    fn new(stage: &Stage, tasks: &'a [TaskMemory]) -> Self {
        let mut levels = Self {
            tasks,
            retained_bytes: vec![0; tasks.len()],
            lets_go: vec![vec![0; tasks.len()]; tasks.len()],
        };
        for (writer, bytes) in tasks.iter().enumerate() {
            for (output, bytes) in bytes.outputs.iter().enumerate() {
                let read = TaskInput::Task { task: writer, output };
                let given = stage.outputs.iter().any(|out| (out.task, out.output) == (writer, output));
                let reader = stage.tasks.iter().rposition(|task| task.reads.contains(&read));
                // An instance's outputs are returned with its last task.
                if let Some(reader) = if given { tasks.len().checked_sub(1) } else { reader } {
                    levels.retained_bytes[writer] += bytes;
                    levels.lets_go[writer][reader] += bytes;
                }
            }
        }
        levels
    }

    /// Returns the maximum that a subtree adds to the held bytes.
    fn needs(&self, tree: &BucketTree, root: NodeIndex) -> u64 {
        let (mut held, mut most) = (0, 0);
        self.walk(tree, root, tree.nodes[root].level, &mut held, &mut most);
        most
    }

    /// Executes a node and its subtree. From level `last` on, every node on the path to it is its parent's last child.
    /// The recursion is as deep as a stage has tasks.
    fn walk(&self, tree: &BucketTree, node: NodeIndex, last: usize, held: &mut u64, most: &mut u64) {
        let at = &tree.nodes[node];
        *most = (*most).max(*held + self.tasks[at.level].running());
        *held += self.retained_bytes[at.level];
        *held -= self.lets_go[last..=at.level].iter().map(|readers| readers[at.level]).sum::<u64>();
        for child in &at.children {
            let last = if Some(child) == at.children.last() { last } else { at.level + 1 };
            self.walk(tree, *child, last, held, most);
        }
    }
}
