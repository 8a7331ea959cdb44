//! A shell around a [`BucketExecution`], without threads. It runs tasks on hashes instead of regions, holds
//! their outputs, counts their bytes, and rejects everything that a real shell could not do.

use crate::failures::failure;
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::{BucketDemand, TaskMemory};
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::stage::{BucketExecution, Effect, InputLocation, NodeId, OutputId, TaskRequest};
use pleach_workflow::{Stage, TaskInput, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;

/// Content of a region: a hash of everything that it was computed from.
pub(crate) type Content = u64;

/// Computes the outputs of an operation. About one call in `failing` returns `None`, a failure. 0 means none
/// fails.
pub(crate) fn compute(
    task: usize,
    arguments: &[Value],
    inputs: &[Content],
    outputs: usize,
    failing: u64,
) -> Option<Vec<Content>> {
    let hash = |output: usize| {
        let mut hasher = DefaultHasher::new();
        (task, arguments, inputs, output).hash(&mut hasher);
        hasher.finish()
    };
    let fails = failing > 0 && hash(usize::MAX).is_multiple_of(failing);
    (!fails).then(|| (0..outputs).map(hash).collect())
}

pub(crate) fn content_of_input(instance: &InstanceWork, input: usize) -> Content {
    let mut hasher = DefaultHasher::new();
    instance.inputs[input].hash(&mut hasher);
    hasher.finish()
}

/// Outcome of an instance: the contents of its outputs, or the name of the failed task.
pub(crate) type End = Result<Vec<Content>, String>;

/// Executes one instance without reuse. Returns the number of tasks that ran and the outcome.
pub(crate) fn alone(stage: &Stage, instance: &InstanceWork, failing: u64) -> (usize, End) {
    let mut written: Vec<Vec<Content>> = Vec::new();
    for (level, task) in stage.tasks.iter().enumerate() {
        let arguments: Vec<Value> = task.arguments.iter().map(|&a| instance.parameters[a]).collect();
        let read = |read: &TaskInput| match *read {
            TaskInput::StageInput(input) => content_of_input(instance, input),
            TaskInput::Task { task, output } => written[task][output],
        };
        let inputs: Vec<Content> = task.reads.iter().map(read).collect();
        match compute(level, &arguments, &inputs, task.writes.len(), failing) {
            Some(outputs) => written.push(outputs),
            None => return (level + 1, Err(task.name.clone())),
        }
    }
    (stage.tasks.len(), Ok(stage.outputs.iter().map(|out| written[out.task][out.output]).collect()))
}

/// The execution of a bucket.
pub(crate) struct Shell<'a> {
    stage: &'a Stage,
    work: &'a BucketWork,
    failing: u64,
    bytes: Vec<TaskMemory>,
    active_paths: Option<NonZeroU32>,
    run: BucketExecution,
    held: BTreeMap<OutputId, Content>,
    sizes: BTreeMap<OutputId, u64>,
    running: Vec<TaskRequest>,
    suspended: Vec<NodeId>,
    /// Name and arguments of the started tasks, in order.
    pub(crate) started: Vec<String>,
    /// Outcome of each instance, in order of the effects.
    pub(crate) ended: Vec<(InstanceId, End)>,
    /// Number of completions, failures and returns so far. `last_read` and `failures` hold its values.
    clock: usize,
    last_read: BTreeMap<OutputId, usize>,
    failures: BTreeSet<usize>,
    ended_last: Option<NodeId>,
    over: bool,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(
        stage: &'a Stage,
        work: &'a BucketWork,
        bytes: Vec<TaskMemory>,
        active_paths: Option<NonZeroU32>,
        failing: u64,
    ) -> Self {
        let run =
            BucketExecution::new(stage, work, bytes.clone(), active_paths).expect("work that fits its stage");
        Self {
            stage,
            work,
            failing,
            bytes,
            active_paths,
            run,
            held: BTreeMap::new(),
            sizes: BTreeMap::new(),
            running: Vec::new(),
            suspended: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            clock: 0,
            last_read: BTreeMap::new(),
            failures: BTreeSet::new(),
            ended_last: None,
            over: false,
        }
    }

    pub(crate) fn tasks(&self) -> usize {
        self.run.tasks()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Counts the held outputs.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the bytes of the held outputs.
    fn held_bytes(&self) -> u64 {
        self.held.keys().map(|id| self.sizes[id]).sum()
    }

    /// Returns the bucket's demand after checking it against the state of this shell.
    pub(crate) fn demand(&self) -> BucketDemand {
        let demand = self.run.demand(0);
        assert_eq!(demand.held_bytes, self.held_bytes());
        assert_eq!(demand.started, !self.started.is_empty());
        assert_eq!(demand.ready as usize, self.run.ready());
        let paths = self.active_paths.map_or(usize::MAX, |paths| paths.get() as usize);
        assert!(self.run.ready() + self.running.len() <= paths || self.run.ready() == 0);
        assert!(demand.now.finish_bytes >= demand.now.growth_bytes);
        demand
    }

    /// Starts the next task and checks that its inputs are held. Returns false if none is ready.
    pub(crate) fn start(&mut self) -> bool {
        let before = self.demand();
        assert_eq!(before.next.is_some(), before.ready > 0);
        let Some(next) = before.next else { return false };
        let call = self.run.start_task(self.stage, next, 0).expect("a ready task");
        assert_eq!(call.node, next);
        let takes = self.bytes[call.task].running();
        assert!(before.next_bytes >= takes);
        assert_eq!(call.brings_inputs, self.started.is_empty());
        assert!(self.active_paths.is_none_or(|paths| self.running.len() < paths.get() as usize));
        for input in &call.inputs {
            if let InputLocation::Task(output) = input {
                assert!(self.held.contains_key(output), "{call:?} reads {output:?}, which is not held");
            }
        }
        self.started.push(self.name(&call));
        self.running.push(call);
        let after = self.demand();
        assert_eq!(after.now, before.then, "what was foreseen of this grant");
        assert_eq!(after.heard, before.heard + 1);
        true
    }

    /// Suspends the `which`-th running task, as if another bucket were running the same task. It is not next
    /// until [`resume`](Self::resume). The first task of the bucket is never suspended.
    pub(crate) fn suspend(&mut self, which: usize) {
        if self.running[which].brings_inputs {
            return;
        }
        let call = self.running.remove(which);
        let name = self.name(&call);
        let at = self.started.iter().rposition(|started| *started == name).expect("it was started");
        self.started.remove(at);
        self.run.suspend(call.node);
        self.suspended.push(call.node);
        assert_ne!(self.demand().next, Some(call.node));
    }

    /// Resumes all suspended tasks: the other executions have finished. Returns whether any was suspended.
    pub(crate) fn resume(&mut self) -> bool {
        let any = !self.suspended.is_empty();
        self.suspended.drain(..).for_each(|node| self.run.resume(node));
        any
    }

    /// Has the bucket return unstarted instances, or with `all` every open one. Checks that no returned
    /// instance had ended.
    pub(crate) fn hand_back(&mut self, all: bool) -> Vec<InstanceId> {
        // A return may drop outputs at this moment, as a failure does.
        self.clock += 1;
        self.failures.insert(self.clock);
        let back = if all { self.run.take_unstarted() } else { self.run.take_part(|_, _| 1.0) };
        self.perform();
        let over = |id: &InstanceId| self.ended.iter().any(|(ended, _)| ended == id);
        assert!(!back.iter().any(over), "{back:?} were over");
        if !all && self.running.is_empty() && self.suspended.is_empty() && !back.is_empty() {
            assert!(!self.over, "a part was asked for, and nothing is left");
        }
        back
    }

    /// Has the bucket cancel all open instances and returns them.
    pub(crate) fn abandon(&mut self) -> Vec<InstanceId> {
        self.clock += 1;
        self.failures.insert(self.clock);
        let back = self.run.cancel();
        self.perform();
        back
    }

    /// Ends the `which`-th running task and performs the effects.
    pub(crate) fn end(&mut self, which: usize) {
        let call = self.running.remove(which);
        self.clock += 1;
        self.ended_last = Some(call.node);
        let mut inputs = Vec::new();
        for input in &call.inputs {
            inputs.push(match *input {
                InputLocation::Task(output) => {
                    self.last_read.insert(output, self.clock);
                    self.held[&output]
                }
                InputLocation::Stage { instance, input } => content_of_input(self.instance(instance), input),
            });
        }
        let task = &self.stage.tasks[call.task];
        match compute(call.task, &call.arguments, &inputs, task.writes.len(), self.failing) {
            Some(contents) => {
                assert_eq!(call.requested.len(), contents.len());
                for (output, content) in contents.into_iter().enumerate().filter(|(o, _)| call.requested[*o])
                {
                    let id = OutputId { node: call.node, output };
                    self.held.insert(id, content);
                    self.sizes.insert(id, self.bytes[call.task].outputs[output]);
                }
                self.run.handle_done(call.node);
            }
            None => {
                self.failures.insert(self.clock);
                self.run.handle_failed(call.node, &failure(&task.name));
            }
        }
        self.perform();
    }

    fn name(&self, call: &TaskRequest) -> String {
        let arguments = call.arguments.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
        format!("{}({arguments})", self.stage.tasks[call.task].name)
    }

    fn instance(&self, id: InstanceId) -> &'a InstanceWork {
        self.work.instances.iter().find(|instance| instance.id == id).expect("an instance of the bucket")
    }

    fn perform(&mut self) {
        while let Some(effect) = self.run.poll_effect() {
            assert!(!self.over, "{effect:?} after the end");
            match effect {
                Effect::Done { instance, outputs } => {
                    let contents = outputs.iter().map(|output| {
                        self.last_read.insert(*output, self.clock);
                        *self.held.get(output).unwrap_or_else(|| panic!("{instance} lost {output:?}"))
                    });
                    let end = Ok(contents.collect());
                    self.ended.push((instance, end));
                }
                Effect::Lacking { instance, key } => panic!("{instance} lacks {key}"),
                Effect::Failed { instance, cause } => self.ended.push((instance, Err(cause.at))),
                Effect::Drop(output) => {
                    assert!(self.held.remove(&output).is_some(), "{output:?} was not held");
                    // A drop must not be late. It follows the last read, a failure or return that removed the
                    // last reader, or the write if all readers have failed.
                    let now = self.last_read.get(&output) == Some(&self.clock);
                    let unread = self.ended_last == Some(output.node) && !self.failures.is_empty();
                    let given_up = self.failures.contains(&self.clock) || unread;
                    assert!(now || given_up, "{output:?} was held for too long");
                }
                Effect::Over => self.over = true,
            }
        }
        assert_eq!(self.over, self.run.is_over());
    }
}
