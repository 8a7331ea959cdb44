//! One bucket's execution: a reuse tree of tasks, run depth-first, with a bounded number of active paths (003,
//! Alg. 1: RMSR).
//!
//! A node of the tree is a task instance: tasks in the stage's order, each level keyed by the parameters it
//! consumes, the first also by the stage's inputs. Children run after their parent; an output lives until its
//! last reader in the tree is done. The shell runs tasks and holds their outputs; this machine says which task
//! comes next, which outputs may go, which stage instances are finished, and what the bucket will need.

mod forecast;
mod order;
mod task;
mod tree;

use crate::InstanceId;
use crate::memory::{Demand, TaskBytes};
use crate::message::{BucketWork, InstanceWork, TaskFailure};
use crate::plan::OutputPlan;
use forecast::Sizes;
use pleach_workflow::{Read, Stage, StageOutput};
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU32;
use thiserror::Error;
use tree::{NodeState, Tree};

pub use task::{Effect, Input, NodeId, OutputId, TaskCall};

/// The work does not fit the stage: a defect of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} does not fit its stage")]
pub struct BadWork(InstanceId);

/// The execution of one bucket.
#[derive(Debug)]
pub struct BucketRun {
    tree: Tree,
    sizes: Sizes,
    /// Ready tasks; the first one is next, so a subtree is finished before its sibling begins, and which task is next
    /// does not depend on the order in which tasks ended.
    ready: BTreeSet<NodeId>,
    running: BTreeSet<NodeId>,
    /// Tasks that may run at once, each on a path of its own: `activePaths` of Algorithm 1.
    active_paths: u32,
    /// Nodes neither run nor given up.
    open: usize,
    /// Outputs held.
    held_bytes: u64,
    /// The first task, while it runs, and the bytes of stage inputs that it is bringing into storage.
    loading: Option<(NodeId, u64)>,
    started: bool,
    /// Grants heard of.
    heard: u64,
    effects: VecDeque<Effect>,
}

impl BucketRun {
    /// Builds the reuse tree of a bucket. `bytes` has an entry for each task of the stage, with as many outputs as it
    /// writes; siblings in the tree run in the order that needs least memory. At most `active_paths` tasks run at
    /// once (`None`: as many as there are slots).
    ///
    /// # Errors
    /// [`BadWork`] when an instance has not the parameters, inputs or outputs that the stage declares, or the sizes
    /// are not those of the stage's tasks.
    pub fn new(
        stage: &Stage,
        work: &BucketWork,
        bytes: Vec<TaskBytes>,
        active_paths: Option<NonZeroU32>,
    ) -> Result<Self, BadWork> {
        let shape = (stage.parameters.len(), stage.inputs.len(), stage.outputs.len());
        let misfits = |i: &&InstanceWork| (i.parameters.len(), i.inputs.len(), i.outputs.len()) != shape;
        if let Some(bad) = work.instances.iter().find(misfits) {
            return Err(BadWork(bad.id));
        }
        let sizes =
            bytes.iter().map(|task| task.outputs.len()).eq(stage.tasks.iter().map(|t| t.writes.len()));
        if let (false, Some(first)) = (sizes, work.instances.first()) {
            return Err(BadWork(first.id));
        }
        let left = |(out, plan): (&StageOutput, &OutputPlan)| {
            if plan.stored { bytes[out.task].outputs[out.output] } else { 0 }
        };
        let left = |instance: &InstanceWork| stage.outputs.iter().zip(&instance.outputs).map(left).sum();
        let store_bytes = work.instances.iter().map(left).max().unwrap_or(0);
        let mut tree = Tree::build(stage, work);
        order::order(&mut tree, stage, &bytes);
        let sizes = Sizes::new(&tree, bytes, store_bytes, work.drain);
        let mut run = Self {
            open: tree.nodes.len(),
            ready: tree.roots.iter().copied().collect(),
            tree,
            sizes,
            running: BTreeSet::new(),
            active_paths: active_paths.map_or(u32::MAX, NonZeroU32::get),
            held_bytes: 0,
            loading: None,
            started: false,
            heard: 0,
            effects: VecDeque::new(),
        };
        run.end_if_over();
        Ok(run)
    }

    /// Task instances of the bucket: what it costs, counted in tasks.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Task instances of each of the stage's tasks.
    #[must_use]
    pub fn tasks_by_level(&self, stage: &Stage) -> Vec<u64> {
        let mut tasks = vec![0; stage.tasks.len()];
        self.tree.nodes.iter().for_each(|node| tasks[node.level] += 1);
        tasks
    }

    /// Tasks that could run now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len().min((self.active_paths as usize).saturating_sub(self.running.len()))
    }

    /// What the bucket could use and will need. `missing_bytes` is what its stage inputs will take that are not in
    /// storage yet.
    #[must_use]
    pub fn demand(&self, stage: &Stage, missing_bytes: u64) -> Demand {
        let now = self.sizes.forecast(&self.tree, stage, &self.running, &self.ready);
        let (mut then, mut next_bytes) = (now, 0);
        if let Some(next) = self.next() {
            let mut running = self.running.clone();
            running.insert(next);
            then = self.sizes.forecast(&self.tree, stage, &running, &self.ready);
            next_bytes = self.sizes.takes(&self.tree, stage, next);
        }
        Demand {
            heard: self.heard,
            ready: self.ready() as u32,
            next: self.next(),
            started: self.started,
            held_bytes: self.held_bytes,
            next_bytes,
            load_bytes: if self.started { self.loading.map_or(0, |(_, bytes)| bytes) } else { missing_bytes },
            store_bytes: self.sizes.store_bytes(),
            stay_bytes: self.sizes.staying(&self.tree),
            now,
            then,
        }
    }

    /// What the bucket could use, for a worker without a limit: bytes are left out, which take time to foresee.
    #[must_use]
    pub fn demand_without_bytes(&self) -> Demand {
        let (heard, ready, next, started) = (self.heard, self.ready() as u32, self.next(), self.started);
        Demand { heard, ready, next, started, ..Demand::default() }
    }

    fn next(&self) -> Option<NodeId> {
        self.ready.first().copied().filter(|_| self.ready() > 0)
    }

    /// Whether everything is finished or failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Hears of a grant, and takes the task it is for: what was next when [`demand`](Self::demand) was said, though
    /// others may have become ready since that come before it. `None` when it has been given up meanwhile.
    /// `missing_bytes` as there.
    pub fn start_task(&mut self, stage: &Stage, node: NodeId, missing_bytes: u64) -> Option<TaskCall> {
        self.heard += 1;
        if self.ready() == 0 || !self.ready.remove(&node) {
            return None;
        }
        let brings_inputs = !std::mem::replace(&mut self.started, true);
        if brings_inputs {
            self.loading = Some((node, missing_bytes));
        }
        self.running.insert(node);
        let (level, first) =
            (self.tree.nodes[node.index()].level, self.tree.nodes[node.index()].first_output);
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
            wanted: (0..task.writes.len()).map(|output| self.tree.readers[first + output] > 0).collect(),
            brings_inputs,
        })
    }

    /// A task has run, and the shell holds its wanted outputs.
    pub fn handle_done(&mut self, stage: &Stage, node: NodeId) {
        self.stop_running(node);
        self.open -= 1;
        self.tree.end(node, NodeState::Done);
        self.held_bytes += self.sizes.wanted(&self.tree, node);
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
        self.ready.extend(&self.tree.nodes[node.index()].children);
        self.end_if_over();
    }

    /// A task has failed: so have all instances below it.
    pub fn handle_failed(&mut self, stage: &Stage, node: NodeId, cause: &TaskFailure) {
        self.stop_running(node);
        let mut failed = vec![node];
        while let Some(id) = failed.pop() {
            self.open -= 1;
            self.tree.end(id, NodeState::Failed);
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

    fn stop_running(&mut self, node: NodeId) {
        self.running.remove(&node);
        self.loading = self.loading.filter(|(first, _)| *first != node);
    }

    fn let_go(&mut self, id: OutputId) {
        let readers = self.tree.readers_of(id.node, id.output);
        *readers -= 1;
        let writer = &self.tree.nodes[id.node.index()];
        // What a failed task would have written is not there to be dropped.
        if self.tree.readers[writer.first_output + id.output] == 0 && writer.state == NodeState::Done {
            self.held_bytes -= self.sizes.of_level(writer.level).outputs[id.output];
            self.effects.push_back(Effect::Drop(id));
        }
    }

    fn end_if_over(&mut self) {
        if self.open == 0 {
            self.effects.push_back(Effect::Over);
        }
    }
}
