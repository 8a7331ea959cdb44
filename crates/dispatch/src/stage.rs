//! One bucket's execution: a reuse tree of tasks, run depth-first (003, Alg. 1: RMSR).
//!
//! A node of the tree is a task instance: tasks in the stage's order, each level keyed by the parameters it
//! consumes, the first also by the stage's inputs. Children run after their parent; an output lives until its
//! last reader in the tree is done. The shell runs tasks and holds their outputs; this machine says which task
//! comes next, which outputs may go, and which stage instances are finished.

mod tree;

use crate::InstanceId;
use crate::message::{BucketWork, TaskFailure};
use pleach_workflow::{Read, Stage, Value};
use std::collections::VecDeque;
use thiserror::Error;
use tree::Tree;

/// A task instance of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// One output of a task instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId {
    /// The task instance.
    pub node: NodeId,
    /// Which of its outputs.
    pub output: usize,
}

/// Where a task instance finds an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The region that this instance's stage input holds.
    Stage {
        /// Any instance of the subtree: they agree on it.
        instance: InstanceId,
        /// Which stage input.
        input: usize,
    },
    /// An output of an ancestor in the tree.
    Task(OutputId),
}

/// A task to run.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskCall {
    /// The task instance.
    pub node: NodeId,
    /// Index into the stage's tasks.
    pub task: usize,
    /// Arguments of the operation.
    pub arguments: Vec<Value>,
    /// Inputs of the operation.
    pub inputs: Vec<Input>,
    /// For each output of the operation: whether anything reads it. Others may be dropped at once.
    pub wanted: Vec<bool>,
}

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A stage instance is finished: hand over its outputs, in the stage's order, and report it. The outputs
    /// are still held for others of the bucket, or dropped by a later effect.
    Done {
        /// The instance.
        instance: InstanceId,
        /// Its outputs.
        outputs: Vec<OutputId>,
    },
    /// A stage instance failed.
    Failed {
        /// The instance.
        instance: InstanceId,
        /// Why.
        cause: TaskFailure,
    },
    /// Nothing in this bucket reads the output any more.
    Drop(OutputId),
    /// Every instance of the bucket is finished or failed.
    Over,
}

/// The work does not fit the stage: a defect of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} does not fit its stage")]
pub struct BadWork(InstanceId);

/// The execution of one bucket.
#[derive(Debug)]
pub struct BucketRun {
    tree: Tree,
    /// Ready tasks; the last one is next, so a subtree is finished before its sibling begins.
    stack: Vec<NodeId>,
    /// Nodes neither run nor given up.
    open: usize,
    effects: VecDeque<Effect>,
}

impl BucketRun {
    /// Builds the reuse tree of a bucket.
    ///
    /// # Errors
    /// [`BadWork`] when an instance has not the parameters, inputs or outputs that the stage declares.
    pub fn new(stage: &Stage, work: &BucketWork) -> Result<Self, BadWork> {
        let shape = (stage.parameters.len(), stage.inputs.len(), stage.outputs.len());
        let misfits = |i: &&crate::message::InstanceWork| {
            (i.parameters.len(), i.inputs.len(), i.outputs.len()) != shape
        };
        if let Some(bad) = work.instances.iter().find(misfits) {
            return Err(BadWork(bad.id));
        }
        let tree = Tree::build(stage, work);
        let mut stack = tree.roots.clone();
        stack.reverse();
        let open = tree.nodes.len();
        let mut run = Self { tree, stack, open, effects: VecDeque::new() };
        run.end_if_over();
        Ok(run)
    }

    /// Task instances of the bucket: what it costs, counted in tasks.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Tasks that could run now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.stack.len()
    }

    /// Whether everything is finished or failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Takes the next task, deepest first.
    pub fn start_task(&mut self, stage: &Stage) -> Option<TaskCall> {
        let node = self.stack.pop()?;
        let level = self.tree.nodes[node.index()].level;
        let task = &stage.tasks[level];
        let inputs = task.reads.iter().map(|read| match *read {
            Read::StageInput(input) => {
                Input::Stage { instance: self.tree.nodes[node.index()].instance, input }
            }
            Read::Task { task, output } => {
                Input::Task(OutputId { node: self.tree.ancestor(node, task), output })
            }
        });
        Some(TaskCall {
            node,
            task: level,
            arguments: self.tree.nodes[node.index()].arguments.clone(),
            inputs: inputs.collect(),
            wanted: self.tree.nodes[node.index()].readers.iter().map(|&readers| readers > 0).collect(),
        })
    }

    /// A task has run, and the shell holds its wanted outputs.
    pub fn handle_done(&mut self, stage: &Stage, node: NodeId) {
        self.open -= 1;
        self.tree.nodes[node.index()].done = true;
        for instance in self.tree.nodes[node.index()].leaves.clone() {
            let outputs: Vec<OutputId> = stage
                .outputs
                .iter()
                .map(|out| OutputId { node: self.tree.ancestor(node, out.task), output: out.output })
                .collect();
            self.effects.push_back(Effect::Done { instance, outputs: outputs.clone() });
            for output in outputs {
                self.let_go(output);
            }
        }
        self.stop_reading(stage, node);
        let children = &self.tree.nodes[node.index()].children;
        self.stack.extend(children.iter().rev());
        self.end_if_over();
    }

    /// A task has failed: so have all instances below it.
    pub fn handle_failed(&mut self, stage: &Stage, node: NodeId, cause: &TaskFailure) {
        let mut failed = vec![node];
        while let Some(id) = failed.pop() {
            self.open -= 1;
            for instance in self.tree.nodes[id.index()].leaves.clone() {
                self.effects.push_back(Effect::Failed { instance, cause: cause.clone() });
                for out in &stage.outputs {
                    self.let_go(OutputId { node: self.tree.ancestor(id, out.task), output: out.output });
                }
            }
            self.stop_reading(stage, id);
            failed.extend(self.tree.nodes[id.index()].children.iter().rev());
        }
        self.end_if_over();
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn stop_reading(&mut self, stage: &Stage, node: NodeId) {
        let level = self.tree.nodes[node.index()].level;
        for read in &stage.tasks[level].reads {
            if let Read::Task { task, output } = *read {
                self.let_go(OutputId { node: self.tree.ancestor(node, task), output });
            }
        }
    }

    fn let_go(&mut self, id: OutputId) {
        let writer = &mut self.tree.nodes[id.node.index()];
        writer.readers[id.output] -= 1;
        // What a failed task would have written is not there to be dropped.
        if writer.readers[id.output] == 0 && writer.done {
            self.effects.push_back(Effect::Drop(id));
        }
    }

    fn end_if_over(&mut self) {
        if self.open == 0 {
            self.effects.push_back(Effect::Over);
        }
    }
}
