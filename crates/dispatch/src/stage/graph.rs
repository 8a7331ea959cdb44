//! The tasks of one bucket as a graph: each task instance once, with a reader count for every output.
//!
//! The bucket's [`ReuseScope`] decides which task instances share a node. In every scope, an instance of the
//! stage ends with one node of the last level. Nodes are numbered in the execution order of a single slot:
//! instance after instance, in the order of the reuse tree, each with its new nodes. A node therefore comes
//! after all its parents.

use super::interface::OutputId;
use super::tree::BucketTree;
use crate::InstanceId;
use crate::ids::NodeId;
use crate::message::BucketWork;
use crate::plan::ReuseScope;
use pleach_regions::RegionKey;
use pleach_workflow::{Stage, TaskInput, Value};
use std::collections::{BTreeSet, HashMap};

/// A task instance.
#[derive(Debug)]
pub(super) struct TaskNode {
    /// Nodes that wait for it.
    pub(super) children: Vec<NodeId>,
    /// Number of nodes that it still waits for.
    pub(super) waits_for: u32,
    /// Index into the stage's tasks.
    pub(super) level: usize,
    /// The first instance that needs it.
    pub(super) instance: InstanceId,
    pub(super) arguments: Vec<Value>,
    /// The outputs of other tasks that it reads, repeated for each read.
    pub(super) reads: Vec<OutputId>,
    /// Index of its first output in [`BucketGraph::readers`].
    pub(super) first_output: usize,
    pub(super) state: NodeState,
    /// Stage instances that end here.
    pub(super) leaves: Vec<InstanceId>,
    /// The outputs of the stage that such an instance returns.
    pub(super) gives: Vec<OutputId>,
    /// Number of `leaves` whose outputs stay in storage: their readers wait for other parents as well.
    pub(super) staying: u64,
}

/// State of a task instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeState {
    /// Has not run yet.
    Open,
    /// Has run: its outputs with readers are held.
    Done,
    /// Has failed, or will not run because a parent has failed.
    Failed,
}

#[derive(Debug)]
pub(super) struct BucketGraph {
    /// In execution order.
    pub(super) nodes: Vec<TaskNode>,
    /// For each output of each node: the number of task and stage instances that have yet to read it.
    pub(super) readers: Vec<u32>,
    /// Number of open instances whose outputs stay in storage.
    pub(super) staying: u64,
    /// The instances whose outputs stay in storage.
    stays: BTreeSet<InstanceId>,
}

/// Identity of a task instance: its task, the values it consumes, the nodes it waits for, and the stage input regions that
/// it depends on.
type Key = (usize, Vec<Value>, Vec<NodeId>, Vec<RegionKey>);

impl BucketGraph {
    /// Numbers the tasks of a bucket in the order of `tree`, with one hash look-up for each task instance.
    pub(super) fn build(stage: &Stage, work: &BucketWork, tree: &BucketTree) -> Self {
        let stays = work.instances.iter().filter(|instance| instance.stays).map(|instance| instance.id);
        let mut graph = Self { nodes: Vec::new(), readers: Vec::new(), staying: 0, stays: stays.collect() };
        let mut index: HashMap<Key, NodeId> = HashMap::new();
        let ends = unread(stage);
        let mut path: Vec<NodeId> = Vec::with_capacity(stage.tasks.len());
        for instance in tree.instances().map(|number| &work.instances[number]) {
            path.clear();
            for (level, task) in stage.tasks.iter().enumerate() {
                let mut waits: Vec<NodeId> = match work.sharing {
                    // A reuse tree runs the tasks of an instance as a chain.
                    ReuseScope::Tree => path.last().copied().into_iter().collect(),
                    ReuseScope::Dataflow | ReuseScope::Value => {
                        task.reads.iter().filter_map(|read| writer(read, &path)).collect()
                    }
                };
                if work.sharing != ReuseScope::Tree && level + 1 == stage.tasks.len() {
                    // An instance is finished when all its tasks have run, including those without readers.
                    waits.extend(ends.iter().filter_map(|&end| path.get(end)));
                }
                waits.sort_unstable();
                waits.dedup();
                let regions = match work.sharing {
                    ReuseScope::Tree if level > 0 => Vec::new(),
                    ReuseScope::Tree => instance.inputs.clone(),
                    ReuseScope::Dataflow | ReuseScope::Value => stage_inputs(&task.reads, &instance.inputs),
                };
                let arguments: Vec<Value> = task.arguments.iter().map(|&a| instance.parameters[a]).collect();
                let next = NodeId(graph.nodes.len() as u32);
                let key = (level, arguments, waits, regions);
                let node = *index.entry(key.clone()).or_insert(next);
                debug_assert!(
                    key.2.iter().all(|parent| *parent < node),
                    "{node} precedes a parent: {:?}",
                    key.2
                );
                if node == next {
                    let (_, arguments, waits, _) = key;
                    graph.insert(stage, level, instance.id, arguments, &waits, &path);
                }
                path.push(node);
            }
            // A stage has at least one task, so every instance has a leaf.
            if let Some(leaf) = path.last() {
                let gives: Vec<OutputId> = stage
                    .outputs
                    .iter()
                    .map(|out| OutputId { node: path[out.task], output: out.output })
                    .collect();
                gives.iter().for_each(|&output| *graph.readers_of(output) += 1);
                graph.staying += u64::from(instance.stays);
                let leaf = &mut graph.nodes[leaf.index()];
                leaf.leaves.push(instance.id);
                leaf.staying += u64::from(instance.stays);
                leaf.gives = gives;
            }
        }
        graph
    }

    fn insert(
        &mut self,
        stage: &Stage,
        level: usize,
        instance: InstanceId,
        arguments: Vec<Value>,
        waits: &[NodeId],
        path: &[NodeId],
    ) {
        let node = NodeId(self.nodes.len() as u32);
        let task = &stage.tasks[level];
        let read = |read: &TaskInput| match *read {
            TaskInput::Task { task, output } => Some(OutputId { node: path[task], output }),
            TaskInput::StageInput(_) => None,
        };
        let reads: Vec<OutputId> = task.reads.iter().filter_map(read).collect();
        reads.iter().for_each(|&output| *self.readers_of(output) += 1);
        waits.iter().for_each(|writer| self.nodes[writer.index()].children.push(node));
        self.nodes.push(TaskNode {
            children: Vec::new(),
            waits_for: waits.len() as u32,
            level,
            instance,
            arguments,
            reads,
            first_output: self.readers.len(),
            state: NodeState::Open,
            leaves: Vec::new(),
            gives: Vec::new(),
            staying: 0,
        });
        self.readers.extend(task.writes.iter().map(|_| 0));
    }

    /// Returns the nodes without parents.
    pub(super) fn roots(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId).filter(|node| self.nodes[node.index()].waits_for == 0)
    }

    /// Returns the entry of [`readers`](Self::readers) for an output, to be changed.
    pub(super) fn readers_of(&mut self, output: OutputId) -> &mut u32 {
        let place = self.place(output);
        &mut self.readers[place]
    }

    /// Returns the index of an output in [`readers`](Self::readers).
    pub(super) fn place(&self, output: OutputId) -> usize {
        self.nodes[output.node.index()].first_output + output.output
    }

    /// Returns the number of remaining readers of an output.
    pub(super) fn readers(&self, output: OutputId) -> usize {
        self.readers[self.place(output)] as usize
    }

    /// Returns the outputs of a node.
    pub(super) fn outputs(&self, node: NodeId) -> impl Iterator<Item = OutputId> + use<> {
        let first = self.nodes[node.index()].first_output;
        let next = self.nodes.get(node.index() + 1).map_or(self.readers.len(), |next| next.first_output);
        (0..next - first).map(move |output| OutputId { node, output })
    }

    /// Marks a done or failed node as open again. Its instances have been reported.
    pub(super) fn reopen(&mut self, node: NodeId) {
        let at = &mut self.nodes[node.index()];
        assert!(at.state != NodeState::Open, "{node} is reopened, and is open");
        at.state = NodeState::Open;
        at.waits_for = 0;
        (at.staying, at.leaves, at.gives) = (0, Vec::new(), Vec::new());
    }

    /// Removes the instances of `gone` that end at a node. Returns them.
    pub(super) fn remove_leaves(&mut self, node: NodeId, gone: &BTreeSet<InstanceId>) -> Vec<InstanceId> {
        let at = &mut self.nodes[node.index()];
        let (removed, stay): (Vec<InstanceId>, _) =
            at.leaves.iter().partition(|instance| gone.contains(instance));
        at.leaves = stay;
        let staying = removed.iter().filter(|instance| self.stays.contains(instance)).count() as u64;
        at.staying -= staying;
        self.staying -= staying;
        removed
    }

    /// Marks a node as done or failed.
    pub(super) fn end(&mut self, node: NodeId, state: NodeState) {
        let at = &mut self.nodes[node.index()];
        assert!(at.state == NodeState::Open, "{node} becomes {state:?}, and was {:?}", at.state);
        let staying = self.staying;
        assert!(staying >= at.staying, "{} instances of {node} stay, of {staying}", at.staying);
        self.staying -= at.staying;
        at.state = state;
    }
}

/// Returns the tasks before the last one whose outputs no other task reads.
fn unread(stage: &Stage) -> Vec<usize> {
    let is_read = |level: usize| {
        let reads = stage.tasks.iter().flat_map(|task| &task.reads);
        reads.into_iter().any(|read| matches!(*read, TaskInput::Task { task, .. } if task == level))
    };
    (0..stage.tasks.len().saturating_sub(1)).filter(|&level| !is_read(level)).collect()
}

fn writer(read: &TaskInput, path: &[NodeId]) -> Option<NodeId> {
    match *read {
        TaskInput::Task { task, .. } => path.get(task).copied(),
        TaskInput::StageInput(_) => None,
    }
}

fn stage_inputs(reads: &[TaskInput], inputs: &[RegionKey]) -> Vec<RegionKey> {
    let key = |read: &TaskInput| match *read {
        TaskInput::StageInput(input) => inputs.get(input).copied(),
        TaskInput::Task { .. } => None,
    };
    reads.iter().filter_map(key).collect()
}
