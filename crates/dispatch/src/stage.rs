//! One bucket's execution: a reuse tree or a graph of tasks, run depth-first, with a bounded number of active paths
//! (003, Alg. 1: RMSR).
//!
//! A node is a task instance. The bucket's [`ReuseScope`] decides which instances share one node. A
//! node runs after all its parents. An output lives until its last reader is done. The shell runs tasks, or finds their
//! outputs in the result cache, and holds them. This state machine picks the next task, drops unreferenced outputs,
//! reports finished stage instances, and forecasts the bucket's memory. [`KeyPolicy`] selects the tasks that the shell looks
//! up, and [`task_key`] computes their keys.

mod gate;
mod graph;
mod interface;
mod key_policy;
mod memory_forecast;
mod offer;
mod reopen;
mod sibling_order;
mod spare;
mod split;
pub mod task_key;
mod transfer;
mod tree;
mod withdraw;

use crate::InstanceId;
use crate::memory_model::{BucketDemand, TaskMemory};
use crate::message::{BucketWork, InstanceWork, TaskFailure};
use crate::plan::{OutputPlan, ReuseScope};
use gate::Gate;
use graph::{BucketGraph, NodeState};
use memory_forecast::TaskSizes;
use offer::DeviceTasks;
use pleach_regions::RegionKey;
use pleach_workflow::{Stage, StageOutput, TaskInput, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;
use thiserror::Error;
use tree::BucketTree;

pub use crate::ids::NodeId;
pub use interface::{Effect, InputLocation, OutputId, TaskRequest};
pub use key_policy::{DeclaredCosts, KeyPolicy};
pub use offer::{DeviceTask, GAIN_UNIT, MAX_OFFERS, Offer};
pub use transfer::OutputPlace;

/// Work that does not match its stage: an internal error of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} does not fit its stage")]
pub struct InvalidBucket(InstanceId);

/// The execution of one bucket.
#[derive(Debug)]
pub struct BucketExecution {
    graph: BucketGraph,
    sharing: ReuseScope,
    sizes: TaskSizes,
    /// Ready tasks. The first one is next, so a subtree is finished before its sibling begins, and the order of
    /// ended tasks does not change the choice.
    ready: BTreeSet<NodeId>,
    running: BTreeSet<NodeId>,
    /// Suspended tasks: the shell looks them up, or another bucket or worker runs the same task.
    suspended: BTreeSet<NodeId>,
    /// Running tasks with a failed parent, and its failure.
    orphans: BTreeMap<NodeId, TaskFailure>,
    gate: Gate,
    /// For running tasks: the outputs that the shell must keep.
    requested: BTreeMap<NodeId, Vec<bool>>,
    /// Maximum of running tasks, each on its own path: `activePaths` of Algorithm 1.
    active_paths: u32,
    /// Number of nodes that are neither done, failed nor withdrawn.
    open: usize,
    /// Bytes of the held outputs.
    held_bytes: u64,
    /// The first task, while it runs, and the bytes of stage inputs that it loads into storage.
    loading: Option<(NodeId, u64)>,
    started: bool,
    /// Grants received.
    heard: u64,
    /// Estimates of the tasks on accelerators. `None` if the worker has no accelerator.
    devices: Option<Box<DeviceTasks>>,
    effects: VecDeque<Effect>,
}

impl BucketExecution {
    /// Builds the graph of a bucket. `bytes` has an entry for each task of the stage, with one size for each output it
    /// writes. Instances run in the order of their reuse tree, with siblings in the order of least memory. At most
    /// `active_paths` tasks run at once. `None` means one for each slot.
    ///
    /// # Errors
    /// [`InvalidBucket`] when the parameters, inputs or outputs of an instance do not match those declared by the stage, or
    /// the sizes do not match the stage's tasks.
    pub fn new(
        stage: &Stage,
        work: &BucketWork,
        bytes: Vec<TaskMemory>,
        active_paths: Option<NonZeroU32>,
    ) -> Result<Self, InvalidBucket> {
        let shape = (stage.parameters.len(), stage.inputs.len(), stage.outputs.len());
        let misfits = |i: &&InstanceWork| (i.parameters.len(), i.inputs.len(), i.outputs.len()) != shape;
        if let Some(bad) = work.instances.iter().find(misfits) {
            return Err(InvalidBucket(bad.id));
        }
        let sizes =
            bytes.iter().map(|task| task.outputs.len()).eq(stage.tasks.iter().map(|t| t.writes.len()));
        if let (false, Some(first)) = (sizes, work.instances.first()) {
            return Err(InvalidBucket(first.id));
        }
        let left = |(out, plan): (&StageOutput, &OutputPlan)| {
            if plan.stored { bytes[out.task].outputs[out.output] } else { 0 }
        };
        let left = |instance: &InstanceWork| stage.outputs.iter().zip(&instance.outputs).map(left).sum();
        let store_bytes = work.instances.iter().map(left).max().unwrap_or(0);
        let mut tree = BucketTree::build(stage, work);
        sibling_order::order(&mut tree, stage, &bytes);
        let graph = BucketGraph::build(stage, work, &tree);
        let sizes = TaskSizes::new(bytes, store_bytes, work.drain);
        let mut run = Self {
            open: graph.nodes.len(),
            ready: graph.roots().collect(),
            graph,
            sharing: work.sharing,
            sizes,
            running: BTreeSet::new(),
            suspended: BTreeSet::new(),
            orphans: BTreeMap::new(),
            gate: Gate::default(),
            requested: BTreeMap::new(),
            active_paths: active_paths.map_or(u32::MAX, NonZeroU32::get),
            held_bytes: 0,
            loading: None,
            started: false,
            heard: 0,
            devices: None,
            effects: VecDeque::new(),
        };
        run.end_if_over();
        Ok(run)
    }

    /// Counts the bucket's task instances: its cost in tasks.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.graph.nodes.len()
    }

    /// Counts the task instances of each of the stage's tasks.
    #[must_use]
    pub fn tasks_by_level(&self, stage: &Stage) -> Vec<u64> {
        let mut tasks = vec![0; stage.tasks.len()];
        self.graph.nodes.iter().for_each(|node| tasks[node.level] += 1);
        tasks
    }

    /// Counts tasks that can get a slot now.
    #[must_use]
    pub fn ready(&self) -> usize {
        let ready = self.ready.len() + usize::from(self.gate.next(self.open).is_some());
        ready.min((self.active_paths as usize).saturating_sub(self.running.len()))
    }

    /// Returns the bucket's next task and its memory forecast. `missing_bytes` is the size of the stage inputs that are not
    /// in storage yet.
    #[must_use]
    pub fn demand(&self, missing_bytes: u64) -> BucketDemand {
        let forecast = |next| self.sizes.forecast(&self.graph, &self.running, next);
        let now = forecast(None);
        let (mut then, mut next_bytes) = (now, 0);
        if let Some(next) = self.next() {
            then = forecast(Some(next));
            next_bytes = self.sizes.takes(&self.graph, next);
        }
        BucketDemand {
            heard: self.heard,
            ready: self.ready() as u32,
            next: self.next(),
            resolving: self.gate.is_resolving(),
            tail: self.tail_demand(),
            next_time: Duration::ZERO,
            started: self.started,
            held_bytes: self.held_bytes,
            next_bytes,
            load_bytes: if self.started { self.loading.map_or(0, |(_, bytes)| bytes) } else { missing_bytes },
            local_bytes: 0,
            store_bytes: self.sizes.store_bytes(),
            stay_bytes: self.sizes.staying(&self.graph),
            now,
            then,
        }
    }

    /// Returns the demand for a worker without a memory limit. It omits the forecast, which takes time to compute.
    #[must_use]
    pub fn demand_without_bytes(&self) -> BucketDemand {
        let (heard, ready, next, started) = (self.heard, self.ready() as u32, self.next(), self.started);
        let resolving = self.gate.is_resolving();
        let tail = self.tail_demand();
        BucketDemand { heard, ready, next, resolving, tail, started, ..BucketDemand::default() }
    }

    /// Returns the tasks to run until the first instance that needs the next task is finished. Each item is the
    /// index of a stage's task and its arguments. In a graph, the instance may wait for further tasks as well.
    pub fn next_path(&self) -> impl Iterator<Item = (usize, &[Value])> {
        let ids = std::iter::successors(self.next(), |id| {
            let node = &self.graph.nodes[id.index()];
            let is_open = |child: &&NodeId| self.graph.nodes[child.index()].state == NodeState::Open;
            let goes_on = node.leaves.is_empty();
            node.children.iter().filter(|_| goes_on).find(is_open).copied()
        });
        let nodes = ids.map(|id| &self.graph.nodes[id.index()]);
        nodes.map(|node| (node.level, node.arguments.as_slice()))
    }

    /// Returns the first instance of the bucket that needs a task.
    #[must_use]
    pub fn first_instance(&self, node: NodeId) -> InstanceId {
        self.graph.nodes[node.index()].instance
    }

    fn next(&self) -> Option<NodeId> {
        // Resolved tasks first: other workers may wait for this worker's claims.
        self.ready.first().copied().or_else(|| self.gate.next(self.open)).filter(|_| self.ready() > 0)
    }

    /// Returns whether every task is done, failed or withdrawn.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Receives a grant and starts its task: the next one at the time of [`demand`](Self::demand), even if tasks that
    /// became ready since precede it. Returns `None` if the task has been withdrawn meanwhile.
    /// `missing_bytes` is as for `demand`.
    pub fn start_task(&mut self, stage: &Stage, node: NodeId, missing_bytes: u64) -> Option<TaskRequest> {
        // Also for a withdrawn task: the worker compares the number with the grants that it has sent.
        self.heard += 1;
        if self.ready() == 0 || !(self.ready.remove(&node) || self.gate.remove(node)) {
            return None;
        }
        let brings_inputs = !std::mem::replace(&mut self.started, true);
        if brings_inputs {
            self.loading = Some((node, missing_bytes));
        }
        self.running.insert(node);
        self.sizes.set_waiting(&self.graph, node, false);
        let call = TaskRequest { brings_inputs, ..self.request(stage, node) };
        let before = self.requested.insert(node, call.requested.clone());
        assert!(before.is_none(), "{node} starts, and runs already");
        Some(call)
    }

    /// Returns the inputs and arguments of a task that is ready, without starting it.
    #[must_use]
    pub fn request(&self, stage: &Stage, node: NodeId) -> TaskRequest {
        let at = &self.graph.nodes[node.index()];
        let task = &stage.tasks[at.level];
        let mut reads = at.reads.iter();
        let inputs = task.reads.iter().filter_map(|read| match *read {
            TaskInput::StageInput(input) => Some(InputLocation::Stage { instance: at.instance, input }),
            TaskInput::Task { .. } => reads.next().map(|&output| InputLocation::Task(output)),
        });
        let mut inputs: Vec<InputLocation> = inputs.collect();
        let guard = inputs.split_off(task.operands().len());
        TaskRequest {
            node,
            task: at.level,
            arguments: at.arguments.clone(),
            inputs,
            guard,
            requested: self.wanted(node),
            brings_inputs: false,
        }
    }

    /// Returns which outputs of a task have a reader.
    fn wanted(&self, node: NodeId) -> Vec<bool> {
        let outputs = self.graph.outputs(node);
        outputs.map(|output| self.graph.readers(output) > 0).collect()
    }

    /// Suspends a started task that has not been run, since another bucket runs the same task. It waits for
    /// [`resume`](Self::resume). Other tasks of the bucket may run meanwhile.
    pub fn suspend(&mut self, node: NodeId) {
        self.stop_running(node);
        self.sizes.set_waiting(&self.graph, node, true);
        let is_new = self.suspended.insert(node);
        assert!(is_new, "{node} was running and suspended");
    }

    /// Makes a suspended task ready again, since the other execution of it has finished.
    pub fn resume(&mut self, node: NodeId) {
        // The task may have been withdrawn while the message was in transit.
        if self.suspended.remove(&node) {
            match self.orphans.remove(&node) {
                Some(cause) => self.fail(node, &cause),
                None if self.graph.nodes[node.index()].waits_for == 0 => self.make_ready(node),
                // Its instances may have been withdrawn while it ran, and then its parent, which had been reopened.
                None => {
                    self.give_up_unneeded();
                    self.end_if_over();
                }
            }
        }
    }

    /// Makes a task ready whose parents are done: to be resolved first, if its level is gated.
    fn make_ready(&mut self, node: NodeId) {
        let at = &self.graph.nodes[node.index()];
        assert!(at.state == NodeState::Open, "{node} becomes ready, and is {:?}", at.state);
        // A parent may have been reopened meanwhile. Its end makes the task ready.
        if at.waits_for > 0 {
            return;
        }
        let is_new = self.gate.insert(node, at.level) || self.ready.insert(node);
        assert!(is_new, "{node} becomes ready twice");
    }

    /// Finishes a task whose wanted outputs the shell holds.
    pub fn handle_done(&mut self, node: NodeId) {
        let wanted = self.stop_running(node);
        self.finish(node, &wanted);
    }

    fn finish(&mut self, node: NodeId, wanted: &[bool]) {
        if self.repeats(node, wanted) {
            let kept = (0..wanted.len()).filter(|&output| wanted[output]);
            self.effects.extend(kept.map(|output| Effect::Drop(OutputId { node, output })));
            self.sizes.set_waiting(&self.graph, node, true);
            self.suspended.insert(node);
            return self.resume(node);
        }
        assert!(self.open > 0, "{node} is done, and no task is open");
        self.open -= 1;
        self.graph.end(node, NodeState::Done);
        self.sizes.set_waiting(&self.graph, node, false);
        self.held_bytes += self.sizes.requested_bytes(&self.graph, node);
        // The readers may have failed meanwhile.
        let kept = (0..wanted.len()).filter(|&output| wanted[output]).map(|output| OutputId { node, output });
        let unread = kept.filter(|&output| self.graph.readers(output) == 0).map(Effect::Drop);
        self.effects.extend(unread);
        let at = &self.graph.nodes[node.index()];
        for instance in at.leaves.clone() {
            let outputs = self.graph.nodes[node.index()].gives.clone();
            self.effects.push_back(Effect::Done { instance, outputs: outputs.clone() });
            outputs.into_iter().for_each(|output| self.release_read(output));
        }
        self.stop_reading(node);
        for child in self.graph.nodes[node.index()].children.clone() {
            let at = &mut self.graph.nodes[child.index()];
            // The others ended before this task was reopened, or were withdrawn.
            if at.state != NodeState::Open {
                continue;
            }
            assert!(at.waits_for > 0, "{child} waits for no task, and {node} is done");
            at.waits_for -= 1;
            // A running or suspended task got its inputs before a parent was reopened.
            let is_begun = self.running.contains(&child) || self.suspended.contains(&child);
            if at.waits_for == 0 && !is_begun {
                if let Some(devices) = &mut self.devices {
                    devices.record_ready(child, node);
                }
                self.make_ready(child);
            }
        }
        self.end_if_over();
    }

    /// Fails a task, all its descendants, and the instances that end with one of them.
    pub fn handle_failed(&mut self, node: NodeId, cause: &TaskFailure) {
        self.stop_running(node);
        self.fail(node, cause);
    }

    fn fail(&mut self, node: NodeId, cause: &TaskFailure) {
        self.sizes.reset_profile();
        let mut failed = vec![node];
        while let Some(id) = failed.pop() {
            // A task with several failed parents is reached from each of them.
            if self.graph.nodes[id.index()].state != NodeState::Open {
                continue;
            }
            if self.running.contains(&id) {
                // It got its inputs before the failed task was reopened. It may still be done, but not begin again.
                self.orphans.insert(id, cause.clone());
                continue;
            }
            self.suspended.remove(&id);
            self.gate.end_resolving(id);
            assert!(self.open > 0, "{id} fails, and no task is open");
            self.open -= 1;
            self.graph.end(id, NodeState::Failed);
            for instance in self.graph.nodes[id.index()].leaves.clone() {
                self.effects.push_back(Effect::Failed { instance, cause: cause.clone() });
                let gives = self.graph.nodes[id.index()].gives.clone();
                gives.into_iter().for_each(|output| self.release_read(output));
            }
            self.stop_reading(id);
            failed.extend(self.graph.nodes[id.index()].children.iter().rev());
        }
        self.end_if_over();
    }

    /// Handles a task that could not run because an input region is unavailable. The bucket's instances all
    /// read the same inputs, so all open ones are withdrawn with [`Effect::Lacking`]. Another worker may try.
    pub fn handle_missing_input(&mut self, node: NodeId, key: RegionKey) {
        self.stop_running(node);
        let lacking = self.cancel();
        if lacking.is_empty() {
            // All instances were withdrawn while the task ran, so `cancel` had nothing to end it with.
            self.give_up_unneeded();
            self.end_if_over();
        }
        // `cancel` has queued the end of the bucket. The reports of its instances must precede it.
        let over = std::mem::take(&mut self.effects);
        self.effects.extend(lacking.into_iter().map(|instance| Effect::Lacking { instance, key }));
        self.effects.extend(over);
    }

    /// Returns the next effect, in order. `None` if none is pending.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn stop_reading(&mut self, node: NodeId) {
        let reads = self.graph.nodes[node.index()].reads.clone();
        reads.into_iter().for_each(|output| self.release_read(output));
    }

    /// Returns the outputs that were wanted when the task was started.
    fn stop_running(&mut self, node: NodeId) -> Vec<bool> {
        let was_running = self.running.remove(&node);
        assert!(was_running, "{node} ends, and was not running");
        self.loading = self.loading.filter(|(first, _)| *first != node);
        let requested = self.requested.remove(&node);
        assert!(requested.is_some(), "{node} was running without requested outputs");
        requested.unwrap_or_default()
    }

    fn release_read(&mut self, output: OutputId) {
        let readers = self.graph.readers_of(output);
        assert!(*readers > 0, "{output:?} was read by all its readers before");
        *readers -= 1;
        // An output that was not written, or whose task failed, cannot be dropped.
        let is_there = self.graph.nodes[output.node.index()].state == NodeState::Done;
        if is_there && self.graph.readers(output) == 0 {
            let (held_bytes, bytes) = (self.held_bytes, self.sizes.of(&self.graph, output));
            assert!(held_bytes >= bytes, "{output:?} of {bytes} bytes is dropped, of {held_bytes} held");
            self.held_bytes -= bytes;
            self.effects.push_back(Effect::Drop(output));
        }
    }

    fn end_if_over(&mut self) {
        if self.open == 0 {
            assert!(self.running.is_empty(), "the bucket has ended, and {:?} run", self.running);
            assert!(self.ready.is_empty(), "the bucket has ended, and {:?} are ready", self.ready);
            assert!(self.gate.is_empty(), "the bucket has ended, and tasks are unresolved: {:?}", self.gate);
            assert!(self.suspended.is_empty(), "the bucket has ended, and {:?} wait", self.suspended);
            assert!(self.held_bytes == 0, "the bucket has ended, and {} bytes are held", self.held_bytes);
            self.effects.push_back(Effect::Over);
        }
    }
}
