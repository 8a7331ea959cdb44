//! The shell around a [`BucketExecution`], without threads: runs tasks on values that are hashes, holds their outputs,
//! counts their bytes, and refuses everything that a real shell could not do.

use crate::failures::failure;
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::{BucketDemand, TaskMemory};
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::stage::{BucketExecution, Effect, InputLocation, NodeId, OutputId, TaskRequest};
use pleach_workflow::{Stage, TaskInput, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;

/// Stands for the content of a region: everything it was computed from.
pub(crate) type Content = u64;

/// What an operation makes of its inputs; `failing` of 5 fails about every fifth call, 0 none.
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

/// How an instance ended: contents of its outputs, or the name of the task that failed.
pub(crate) type End = Result<Vec<Content>, String>;

/// One instance on its own, task after task, without any reuse; and how many of its tasks ran.
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

/// A bucket being executed.
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
    /// Tasks started, in order, by name and arguments.
    pub(crate) started: Vec<String>,
    /// How each instance ended, in order of the effects.
    pub(crate) ended: Vec<(InstanceId, End)>,
    /// Completions of tasks so far; the number of the last reader of each output; failures among them.
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

    /// Outputs held now.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// The bytes of outputs held now.
    fn held_bytes(&self) -> u64 {
        self.held.keys().map(|id| self.sizes[id]).sum()
    }

    /// What the bucket says it could use, checked against what can be seen from outside.
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

    /// Starts the next task, if any is ready; all it reads must be held.
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

    /// Gives the `which`-th of the running tasks back, as if somebody else were running the same: it is not next
    /// until [`resume`](Self::resume).
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

    /// Whoever ran the same as the suspended tasks has finished. Returns whether there were any.
    pub(crate) fn resume(&mut self) -> bool {
        let any = !self.suspended.is_empty();
        self.suspended.drain(..).for_each(|node| self.run.resume(node));
        any
    }

    /// Has the bucket give back instances, and checks which: not those that a running task is about to finish.
    pub(crate) fn hand_back(&mut self, all: bool) -> Vec<InstanceId> {
        // What goes is given up at this moment, as with a failure.
        self.clock += 1;
        self.failures.insert(self.clock);
        let back = self.run.take_unstarted(all);
        self.perform();
        let over = |id: &InstanceId| self.ended.iter().any(|(ended, _)| ended == id);
        assert!(!back.iter().any(over), "{back:?} were over");
        if !all && self.running.is_empty() && self.suspended.is_empty() && !back.is_empty() {
            assert!(!self.over, "a part was asked for, and nothing is left");
        }
        back
    }

    /// Has the bucket give up everything that is not over.
    pub(crate) fn abandon(&mut self) -> Vec<InstanceId> {
        self.clock += 1;
        self.failures.insert(self.clock);
        let back = self.run.cancel();
        self.perform();
        back
    }

    /// Ends the `which`-th of the running tasks and carries out what follows from it.
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
                assert_eq!(call.wanted.len(), contents.len());
                for (output, content) in contents.into_iter().enumerate().filter(|(o, _)| call.wanted[*o]) {
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
                    // Now, not later: with the last read, or with a failure that gave up further ones, or as soon as it
                    // is written when those who wanted it have failed.
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
