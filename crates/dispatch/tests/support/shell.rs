//! The shell around a [`BucketRun`], without threads: runs tasks on values that are hashes, holds their outputs,
//! and refuses everything that a real shell could not do.

use crate::shapes::failure;
use pleach_dispatch::InstanceId;
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::stage::{BucketRun, Effect, Input, OutputId, TaskCall};
use pleach_workflow::{Read, Stage, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

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
        let read = |read: &Read| match *read {
            Read::StageInput(input) => content_of_input(instance, input),
            Read::Task { task, output } => written[task][output],
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
    run: BucketRun,
    held: BTreeMap<OutputId, Content>,
    running: Vec<TaskCall>,
    /// Tasks started, in order, by name and arguments.
    pub(crate) started: Vec<String>,
    /// How each instance ended, in order of the effects.
    pub(crate) ended: Vec<(InstanceId, End)>,
    /// Completions of tasks so far; the number of the last reader of each output; failures among them.
    clock: usize,
    last_read: BTreeMap<OutputId, usize>,
    failures: BTreeSet<usize>,
    over: bool,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(stage: &'a Stage, work: &'a BucketWork, failing: u64) -> Self {
        Self {
            stage,
            work,
            failing,
            run: BucketRun::new(stage, work).expect("work that fits its stage"),
            held: BTreeMap::new(),
            running: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            clock: 0,
            last_read: BTreeMap::new(),
            failures: BTreeSet::new(),
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

    /// Starts the next task, if any is ready; all it reads must be held.
    pub(crate) fn start(&mut self) -> bool {
        let ready = self.run.ready();
        let Some(call) = self.run.start_task(self.stage) else {
            assert_eq!(ready, 0, "a ready task was not given");
            return false;
        };
        assert_eq!(self.run.ready(), ready - 1);
        for input in &call.inputs {
            if let Input::Task(output) = input {
                assert!(self.held.contains_key(output), "{call:?} reads {output:?}, which is not held");
            }
        }
        let arguments = call.arguments.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
        self.started.push(format!("{}({arguments})", self.stage.tasks[call.task].name));
        self.running.push(call);
        true
    }

    /// Ends the `which`-th of the running tasks and carries out what follows from it.
    pub(crate) fn end(&mut self, which: usize) {
        let call = self.running.remove(which);
        self.clock += 1;
        let mut inputs = Vec::new();
        for input in &call.inputs {
            inputs.push(match *input {
                Input::Task(output) => {
                    self.last_read.insert(output, self.clock);
                    self.held[&output]
                }
                Input::Stage { instance, input } => content_of_input(self.instance(instance), input),
            });
        }
        let task = &self.stage.tasks[call.task];
        match compute(call.task, &call.arguments, &inputs, task.writes.len(), self.failing) {
            Some(contents) => {
                assert_eq!(call.wanted.len(), contents.len());
                for (output, content) in contents.into_iter().enumerate().filter(|(o, _)| call.wanted[*o]) {
                    self.held.insert(OutputId { node: call.node, output }, content);
                }
                self.run.handle_done(self.stage, call.node);
            }
            None => {
                self.failures.insert(self.clock);
                self.run.handle_failed(self.stage, call.node, &failure(&task.name));
            }
        }
        self.perform();
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
                Effect::Failed { instance, cause } => self.ended.push((instance, Err(cause.at))),
                Effect::Drop(output) => {
                    assert!(self.held.remove(&output).is_some(), "{output:?} was not held");
                    // Now, not later: with the last read, or with a failure that gave up further ones.
                    let now = self.last_read.get(&output) == Some(&self.clock);
                    assert!(now || self.failures.contains(&self.clock), "{output:?} was held for too long");
                }
                Effect::Over => self.over = true,
            }
        }
        assert_eq!(self.over, self.run.is_over());
    }
}
