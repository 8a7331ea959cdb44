//! Buckets whose tasks are looked up: random buckets, answers, losses of fetched outputs and withdrawals. Every instance ends
//! once, every held output is dropped, and the bucket ends.

use crate::buckets::{Case, bucket, cases, instance};
use crate::shapes;
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::TaskFailure;
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::{BucketExecution, Effect, InputLocation, NodeId, OutputId, TaskRequest};
use pleach_workflow::TaskInput;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A shell that looks tasks up.
struct Shell<'a> {
    case: &'a Case,
    run: BucketExecution,
    gated: Vec<bool>,
    /// Present outputs, and whether they are at another worker.
    outputs: BTreeMap<OutputId, bool>,
    running: Vec<TaskRequest>,
    resolving: Vec<NodeId>,
    /// Tasks that wait for the same task of another bucket.
    waiting: Vec<NodeId>,
    claims: BTreeSet<NodeId>,
    ended: BTreeMap<InstanceId, &'static str>,
    over: bool,
    reopened: u32,
}

impl<'a> Shell<'a> {
    fn new(case: &'a Case, gated: Vec<bool>, tail_tasks: usize) -> Self {
        let run = BucketExecution::new(&case.stage, &case.work, case.bytes.clone(), case.active_paths);
        let paths = (0..case.stage.tasks.len()).map(|level| Duration::from_secs(level as u64 % 3)).collect();
        let run =
            run.expect("work that fits its stage").with_gate(gated.clone()).with_paths(paths, tail_tasks);
        let mut shell = Self {
            case,
            run,
            gated,
            outputs: BTreeMap::new(),
            running: Vec::new(),
            resolving: Vec::new(),
            waiting: Vec::new(),
            claims: BTreeSet::new(),
            ended: BTreeMap::new(),
            over: false,
            reopened: 0,
        };
        shell.follow();
        shell
    }

    fn end(&mut self, instance: InstanceId, how: &'static str) {
        let before = self.ended.insert(instance, how);
        assert_eq!(before, None, "{instance} ends twice, now {how}");
    }

    fn follow(&mut self) {
        let run = &self.run;
        self.claims.retain(|node| run.is_ready(*node));
        while let Some(effect) = self.run.poll_effect() {
            assert!(!self.over, "{effect:?} after the end");
            match effect {
                Effect::Done { instance, outputs } => {
                    self.end(instance, "done");
                    let missing = outputs.iter().find(|output| !self.outputs.contains_key(output));
                    assert_eq!(missing, None, "{instance} returns an output that is not held");
                }
                Effect::Failed { instance, .. } => self.end(instance, "failed"),
                Effect::Lacking { instance, .. } => self.end(instance, "lacking"),
                Effect::Drop(output) => {
                    assert!(
                        self.outputs.remove(&output).is_some(),
                        "{output:?} is dropped, and was not held"
                    );
                }
                Effect::Over => self.over = true,
            }
        }
    }

    /// Grants a slot to the next task. Returns false if none is ready.
    fn start(&mut self) -> bool {
        let Some(node) = self.run.demand(0).next else { return false };
        let Some(call) = self.run.start_task(&self.case.stage, node, 0) else { return true };
        for input in &call.inputs {
            if let InputLocation::Task(output) = input {
                assert!(self.outputs.contains_key(output), "{node} starts without its input {output:?}");
            }
        }
        if self.claims.remove(&node) || !self.gated[call.task] {
            self.running.push(call);
        } else {
            self.run.look_up_started(node);
            self.resolving.push(node);
        }
        true
    }

    fn look_up_ahead(&mut self) {
        let next = self.run.unresolved().next();
        if let Some(node) = next.filter(|_| self.run.is_started()) {
            self.run.look_up_ahead(node);
            self.resolving.push(node);
        }
    }

    /// Adds the wanted outputs of a task.
    fn add(&mut self, node: NodeId, requested: &[bool], is_remote: bool) {
        for output in (0..requested.len()).filter(|output| requested[*output]) {
            self.outputs.insert(OutputId { node, output }, is_remote);
        }
    }

    /// Answers a look-up.
    fn resolve(&mut self, choice: usize) {
        if self.resolving.is_empty() {
            return;
        }
        let node = self.resolving.swap_remove(choice / 8 % self.resolving.len());
        if choice % 8 == 7 {
            // It waits for a claimer first.
            self.run.handle_waiting(node);
            return self.resolving.push(node);
        }
        if !self.run.end_look_up(node) {
            return;
        }
        if choice.is_multiple_of(2) {
            if self.run.admit(node) {
                self.claims.insert(node);
            }
            return;
        }
        // The outputs that its instances return are fetched first, and may be lost.
        let given = self.run.given_by(node).to_vec();
        let lost =
            given.iter().find(|output| self.outputs.get(output) == Some(&true) && choice.is_multiple_of(3));
        if let Some(lost) = lost {
            self.reopened += 1;
            self.run.reopen(lost.node);
            return self.run.resume(node);
        }
        let requested = self.run.request(&self.case.stage, node).requested;
        self.add(node, &requested, true);
        self.outputs
            .iter_mut()
            .filter(|(output, _)| given.contains(output))
            .for_each(|(_, remote)| *remote = false);
        self.run.handle_found(node);
    }

    /// Ends a running task: it loses an input, fails, lacks a region, waits for another bucket, or is done.
    fn finish(&mut self, choice: usize) {
        if self.running.is_empty() {
            return;
        }
        let call = self.running.swap_remove(choice / 16 % self.running.len());
        let node = call.node;
        let inputs = call.inputs.iter().filter_map(|input| match input {
            InputLocation::Task(output) => Some(*output),
            InputLocation::Stage { .. } => None,
        });
        let inputs: Vec<OutputId> = inputs.collect();
        let lost = inputs.iter().find(|output| self.outputs.get(output) == Some(&true));
        match (choice % 16, lost) {
            (0..6, Some(lost)) => {
                self.run.suspend(node);
                self.reopened += 1;
                self.run.reopen(lost.node);
                self.run.resume(node);
            }
            (6, _) => {
                let cause = TaskFailure { at: "a task".to_owned(), cause: "a test".to_owned() };
                self.run.handle_failed(node, &cause);
            }
            (7, _) => self.run.handle_missing_input(node, shapes::key(7)),
            (8, _) => {
                self.run.suspend(node);
                self.waiting.push(node);
            }
            _ => {
                for input in inputs {
                    self.outputs.entry(input).and_modify(|remote| *remote = false);
                }
                self.add(node, &call.requested, false);
                self.run.handle_done(node);
            }
        }
    }

    fn withdraw(&mut self, choice: usize) {
        let back = match choice % 5 {
            0 => self.run.take_part(|_, _| 1.0),
            1 => self.run.take_unstarted(),
            2 => self.run.withdraw(&BTreeSet::from([InstanceId((choice / 5) as u32 % 14)])),
            3 => self.run.take_spare(Duration::from_secs((choice / 5) as u64 % 3)).1,
            _ => self.run.cancel(),
        };
        back.into_iter().for_each(|instance| self.end(instance, "withdrawn"));
    }

    fn step(&mut self, choice: usize) {
        let (action, choice) = (choice % 24, choice / 24);
        match action {
            0..8 => _ = self.start(),
            8..13 => self.resolve(choice),
            13..18 => self.finish(choice),
            18..20 => self.look_up_ahead(),
            20..22 => {
                if let Some(node) = self.waiting.pop() {
                    self.run.resume(node);
                }
            }
            // Rarely: a withdrawal ends most of a bucket.
            _ if choice % 8 == 0 => self.withdraw(choice / 8),
            _ => {}
        }
        self.follow();
    }

    /// Runs to the end without losses.
    fn complete(&mut self) {
        let mut steps = 0;
        while !self.over {
            steps += 1;
            assert!(steps < 10_000, "the bucket does not end: {:?}", self.run);
            while let Some(node) = self.waiting.pop() {
                self.run.resume(node);
            }
            self.start();
            self.resolve(steps % 2);
            self.finish(15);
            self.follow();
        }
    }

    fn check_end(&mut self) {
        let missing = self.case.work.instances.iter().find(|instance| !self.ended.contains_key(&instance.id));
        assert!(missing.is_none(), "{missing:?} has not ended");
        assert!(self.outputs.is_empty(), "held at the end: {:?}", self.outputs);
        assert_eq!(self.run.demand(0).held_bytes, 0);
        assert!(self.run.is_over());
        // Late answers do not concern an ended bucket.
        for node in std::mem::take(&mut self.resolving) {
            assert!(!self.run.end_look_up(node), "{node} still waits for an answer");
        }
        assert!(self.run.poll_effect().is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_instance_ends_once_and_every_output_is_dropped(
        case in cases(),
        is_value in any::<bool>(),
        gated in vec(prop::bool::weighted(0.8), 6),
        tail_tasks in 0..40_usize,
        choices in vec(any::<usize>(), 0..400),
    ) {
        let sharing = if is_value { ReuseScope::Value } else { ReuseScope::Dataflow };
        let mut case = case;
        case.work.sharing = sharing;
        let mut shell = Shell::new(&case, gated[..case.stage.tasks.len()].to_vec(), tail_tasks);
        for choice in choices {
            if shell.over {
                break;
            }
            shell.step(choice);
        }
        if !shell.over {
            shell.complete();
        }
        shell.check_end();
    }
}

/// Returns a case of two instances with three tasks in a row, whose last tasks differ.
fn chains() -> Case {
    let of = |task| TaskInput::Task { task, output: 0 };
    let tasks = vec![
        shapes::task("a", &[], &[TaskInput::StageInput(0)], 1),
        shapes::task("b", &[0], &[of(0)], 1),
        shapes::task("c", &[0], &[of(1)], 1),
    ];
    let stage = shapes::stage(1, 1, tasks, &[(2, 0)]);
    let instances = vec![instance(&stage, 0, &[0], &[0]), instance(&stage, 1, &[1], &[0])];
    let mut work = bucket(instances);
    work.sharing = ReuseScope::Value;
    let bytes = vec![TaskMemory { scratch: 0, outputs: vec![1] }; 3];
    Case { stage, work, bytes, active_paths: None }
}

/// Looks the next task up and answers.
fn next_task(shell: &mut Shell<'_>, is_found: bool) -> String {
    assert!(shell.start());
    let node = *shell.resolving.last().expect("the task is looked up");
    let name = shell.case.stage.tasks[shell.run.request(&shell.case.stage, node).task].name.clone();
    shell.resolve(usize::from(is_found));
    if !is_found {
        shell.start();
        shell.finish(15);
    }
    shell.follow();
    name
}

#[test]
fn lost_output_of_a_found_task_runs_it_again() {
    let case = chains();
    let mut shell = Shell::new(&case, vec![true; 3], 0);
    assert_eq!(next_task(&mut shell, true), "a");
    // The reader of the found task runs, and no holder sends the output.
    shell.start();
    shell.resolve(0);
    shell.start();
    shell.finish(0);
    shell.follow();
    assert_eq!(shell.reopened, 1);
    assert_eq!(next_task(&mut shell, false), "a");
    shell.complete();
    shell.check_end();
}

#[test]
fn waiting_look_up_leaves_the_slot_to_another_task() {
    let case = chains();
    let mut shell = Shell::new(&case, vec![true; 3], 0);
    assert_eq!(next_task(&mut shell, false), "a");
    assert!(shell.start());
    assert!(!shell.start(), "one look-up at a time");
    assert!(shell.run.demand(0).resolving);
    shell.run.handle_waiting(shell.resolving[0]);
    assert!(!shell.run.demand(0).resolving);
    assert!(shell.start(), "the other instance is looked up meanwhile");
    shell.complete();
    shell.check_end();
}

#[test]
fn long_paths_are_first_near_the_end() {
    let order = |tail_tasks: usize| {
        let case = chains();
        let run =
            BucketExecution::new(&case.stage, &case.work, case.bytes.clone(), None).expect("a valid case");
        let paths = [3, 2, 1].map(Duration::from_secs).to_vec();
        let run = run.with_gate(vec![true; 3]).with_paths(paths, tail_tasks);
        let mut shell = Shell { run, ..Shell::new(&case, vec![true; 3], 0) };
        let names: Vec<String> = (0..5).map(|_| next_task(&mut shell, false)).collect();
        names.concat()
    };
    assert_eq!(order(0), "abcbc");
    assert_eq!(order(4), "abbcc");
    assert_eq!(order(2), "abcbc");
}

#[test]
fn spare_instances_are_those_with_a_ready_task_that_no_slot_runs() {
    let case = chains();
    let run = BucketExecution::new(&case.stage, &case.work, case.bytes.clone(), None).expect("a valid case");
    let seconds = |seconds| Duration::from_secs(seconds);
    let run = run.with_gate(vec![true; 3]).with_paths([8, 6, 2].map(seconds).to_vec(), 40);
    let mut shell = Shell { run, ..Shell::new(&case, vec![true; 3], 0) };
    let tail = |shell: &Shell<'_>| shell.run.demand(0).tail;
    assert_eq!((tail(&shell).next_path, tail(&shell).spare_path), (seconds(8), Some(seconds(8))));
    assert!(shell.start());
    assert_eq!(tail(&shell).spare_path, None, "both wait for the first task");
    shell.resolve(0);
    shell.start();
    shell.finish(15);
    shell.follow();
    assert_eq!([next_task(&mut shell, false), next_task(&mut shell, false)], ["b", "b"]);
    // The last tasks differ, and have a quarter of the longest path.
    assert!(tail(&shell).is_last && tail(&shell).spare_path == Some(seconds(2)), "{:?}", tail(&shell));
    assert_eq!(shell.run.take_spare(seconds(2)), (Duration::ZERO, Vec::new()), "not longer");
    assert!(shell.start());
    shell.resolve(0);
    assert!(!tail(&shell).is_last, "a claimed task runs at once");
    let (path, spare) = shell.run.take_spare(Duration::ZERO);
    assert_eq!((path, &spare[..]), (seconds(2), &[InstanceId(1)][..]));
    spare.into_iter().for_each(|instance| shell.end(instance, "withdrawn"));
    shell.complete();
    shell.check_end();
}
