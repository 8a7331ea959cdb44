//! Execution of a bucket: every task runs once, depth-first, and no output is held longer than it is read.

use crate::buckets::{Case, bucket, cases, instance};
use crate::failures;
use crate::shapes::{key, stage, task};
use crate::shell::{Shell, alone};
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::{BucketExecution, Effect, NodeId};
use pleach_workflow::{Stage, Task, TaskInput, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

/// Returns a stage of three tasks in a row, with one parameter each. The last task also reads the second output
/// of the first.
fn three_tasks() -> Stage {
    let of = |task, output| TaskInput::Task { task, output };
    let tasks = vec![
        task("a", &[0], &[TaskInput::StageInput(0)], 2),
        task("b", &[1], &[of(0, 0)], 2),
        task("c", &[2], &[of(1, 0), of(0, 1), TaskInput::StageInput(0)], 1),
    ];
    stage(3, 1, tasks, &[(2, 0)])
}

/// Returns a bucket of instances with these parameters, all on one tile.
fn work(stage: &Stage, parameters: &[[i64; 3]]) -> BucketWork {
    let instances = (0u32..).zip(parameters).map(|(number, values)| instance(stage, number, values, &[0]));
    bucket(instances.collect())
}

/// Returns sizes of 1 byte for each output and 0 bytes of scratch.
fn a_byte_each(stage: &Stage) -> Vec<TaskMemory> {
    let of = |task: &Task| TaskMemory { scratch: 0, outputs: vec![1; task.writes.len()] };
    stage.tasks.iter().map(of).collect()
}

/// Runs a bucket in one slot. Returns a line for each task.
fn trace(shell: &mut Shell<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    while shell.start() {
        let (ended, before) = (shell.ended.len(), shell.held());
        shell.end(0);
        let mut line = shell.started.last().expect("one was started").clone();
        for (instance, end) in &shell.ended[ended..] {
            line += &format!(", {instance} {}", if end.is_ok() { "done" } else { "failed" });
        }
        lines.push(format!("{line}, {} -> {} held", before, shell.held()));
    }
    assert!(shell.is_over());
    lines
}

/// Instances 0, 1 and 2 share `a(1)`. 0 and 2 share `b(1)` below it. 3 shares nothing.
const FOUR: [[i64; 3]; 4] = [[1, 1, 1], [1, 2, 1], [1, 1, 2], [2, 1, 1]];

#[test]
fn next_path_lists_tasks_to_the_next_finished_instance() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut run = BucketExecution::new(&stage, &work, a_byte_each(&stage), None).expect("it fits");
    let path = |run: &BucketExecution| -> Vec<String> {
        let name =
            |(task, arguments): (usize, &[Value])| format!("{}({})", stage.tasks[task].name, arguments[0]);
        run.next_path().map(name).collect()
    };
    let end_next = |run: &mut BucketExecution| {
        let next = run.demand(0).next.expect("something is ready");
        assert!(run.start_task(&stage, next, 0).is_some());
        run.handle_done(next);
    };
    assert_eq!(path(&run), ["a(1)", "b(1)", "c(1)"]);
    end_next(&mut run);
    assert_eq!(path(&run), ["b(1)", "c(1)"]);
    end_next(&mut run);
    end_next(&mut run);
    assert_eq!(path(&run), ["c(2)"]);
    // The path does not include a running task: the next task belongs to another instance.
    let next = run.demand(0).next.expect("something is ready");
    run.start_task(&stage, next, 0);
    assert_eq!(path(&run), ["b(2)", "c(1)"]);
    // The path is empty once all instances are canceled.
    run.cancel();
    assert!(path(&run).is_empty());
}

#[test]
fn a_subtree_is_finished_before_its_sibling_begins() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut shell = Shell::new(&stage, &work, a_byte_each(&stage), None, 0);
    assert_eq!(shell.tasks(), 9);
    assert_eq!(
        trace(&mut shell),
        [
            "a(1), 0 -> 2 held",
            "b(1), 2 -> 3 held",
            "c(1), instance 0 done, 3 -> 3 held",
            "c(2), instance 2 done, 3 -> 2 held",
            // The second b is the last reader of a's first output.
            "b(2), 2 -> 2 held",
            "c(1), instance 1 done, 2 -> 0 held",
            "a(2), 0 -> 2 held",
            "b(1), 2 -> 2 held",
            "c(1), instance 3 done, 2 -> 0 held",
        ]
    );
}

#[test]
fn equal_instances_share_every_task_and_end_together() {
    let stage = three_tasks();
    let work = work(&stage, &[[1, 1, 1], [1, 1, 1]]);
    let mut shell = Shell::new(&stage, &work, a_byte_each(&stage), None, 0);
    let lines = trace(&mut shell);
    assert_eq!(lines[2], "c(1), instance 0 done, instance 1 done, 2 -> 0 held");
    assert_eq!(lines.len(), 3);
}

#[test]
fn instances_on_different_tiles_share_nothing() {
    let stage = three_tasks();
    let mut work = work(&stage, &[[1, 1, 1], [1, 1, 1]]);
    work.instances[1].inputs = vec![key(1)];
    assert_eq!(Shell::new(&stage, &work, a_byte_each(&stage), None, 0).tasks(), 6);
}

#[test]
fn a_failed_inner_task_fails_exactly_the_instances_below_it() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut run = BucketExecution::new(&stage, &work, a_byte_each(&stage), None).expect("fits");
    let a = run.start_task(&stage, NodeId(0), 0).expect("a(1)");
    run.handle_done(a.node);
    let b = run.start_task(&stage, NodeId(1), 0).expect("b(1)");
    assert!(run.poll_effect().is_none());
    let cause = failures::failure("b");
    run.handle_failed(b.node, &cause);
    use pleach_dispatch::stage::Effect;
    let failed =
        [0, 2].map(InstanceId).into_iter().map(|instance| Effect::Failed { instance, cause: cause.clone() });
    let effects: Vec<Effect> = std::iter::from_fn(|| run.poll_effect()).collect();
    // Nothing is dropped: b(2) still reads a's first output, and c below it the second.
    assert_eq!(effects, failed.collect::<Vec<_>>());
    assert_eq!(
        run.start_task(&stage, NodeId(4), 0).map(|call| (call.task, call.arguments)),
        Some((1, vec![Value::Integer(2)]))
    );
}

#[test]
fn unread_outputs_are_not_requested() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut run = BucketExecution::new(&stage, &work, a_byte_each(&stage), None).expect("fits");
    let a = run.start_task(&stage, NodeId(0), 0).expect("a(1)");
    assert_eq!(a.requested, [true, true]);
    run.handle_done(a.node);
    assert_eq!(run.start_task(&stage, NodeId(1), 0).expect("b(1)").requested, [true, false]);
}

#[test]
fn canceled_bucket_ends_with_a_task_whose_input_is_missing() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut run = BucketExecution::new(&stage, &work, a_byte_each(&stage), None).expect("it fits");
    let running: Vec<NodeId> = (0..2)
        .map(|_| {
            let next = run.demand(0).next.expect("something is ready");
            assert!(run.start_task(&stage, next, 0).is_some());
            next
        })
        .collect();
    assert_eq!(run.cancel().len(), 4);
    run.handle_missing_input(running[0], key(0));
    assert!(!run.is_over(), "the other task runs");
    run.handle_missing_input(running[1], key(0));
    assert!(run.is_over());
    assert_eq!(std::iter::from_fn(|| run.poll_effect()).collect::<Vec<_>>(), [Effect::Over]);
}

#[test]
fn work_that_does_not_fit_its_stage_is_refused() {
    let stage = three_tasks();
    let mut work = work(&stage, &FOUR);
    work.instances[2].parameters.pop();
    let error =
        BucketExecution::new(&stage, &work, a_byte_each(&stage), None).expect_err("two parameters of three");
    assert_eq!(error.to_string(), "instance 2 does not fit its stage");
}

#[test]
fn a_bucket_without_instances_is_over_at_once() {
    let stage = three_tasks();
    let mut run = BucketExecution::new(&stage, &work(&stage, &[]), a_byte_each(&stage), None).expect("fits");
    assert!(run.is_over());
    assert_eq!(run.poll_effect(), Some(pleach_dispatch::stage::Effect::Over));
}

/// Identity of the first `levels` tasks of an instance in a reuse tree.
fn prefix(stage: &Stage, instance: &InstanceWork, levels: usize) -> impl Eq + std::hash::Hash + use<> {
    let values = |task: &pleach_workflow::Task| -> Vec<Value> {
        task.arguments.iter().map(|&a| instance.parameters[a]).collect()
    };
    (instance.inputs.clone(), stage.tasks[..levels].iter().map(values).collect::<Vec<_>>())
}

/// Identity of a task instance: its prefix in a reuse tree, or its provenance in a graph.
#[derive(PartialEq, Eq, Hash)]
enum Same<P> {
    Prefix(P),
    Made(String),
}

/// Returns the provenance of a task's outputs as text, from the stage's inputs on. The last task of a stage
/// also waits for the tasks that no other task reads from.
fn made(stage: &Stage, instance: &InstanceWork, level: usize) -> String {
    let task = &stage.tasks[level];
    let values: Vec<String> = task.arguments.iter().map(|&a| instance.parameters[a].to_string()).collect();
    let read = |read: &TaskInput| match *read {
        TaskInput::StageInput(input) => instance.inputs[input].to_string(),
        TaskInput::Task { task, output } => format!("{}.{output}", made(stage, instance, task)),
    };
    let mut reads: Vec<String> = task.reads.iter().map(read).collect();
    if level + 1 == stage.tasks.len() {
        let is_read = |other: usize| {
            let of = |read: &TaskInput| matches!(*read, TaskInput::Task { task, .. } if task == other);
            stage.tasks.iter().any(|task| task.reads.iter().any(of))
        };
        reads.extend((0..level).filter(|&other| !is_read(other)).map(|other| made(stage, instance, other)));
    }
    format!("{level}({})[{}]", values.join(","), reads.join(","))
}

/// Returns whether instances that share their first tasks are adjacent, for any number of tasks.
fn is_depth_first(stage: &Stage, work: &BucketWork, order: &[InstanceId]) -> bool {
    let instance = |id: &InstanceId| work.instances.iter().find(|i| i.id == *id).expect("of the bucket");
    (1..=stage.tasks.len()).all(|levels| {
        let mut runs: Vec<_> = order.iter().map(|id| prefix(stage, instance(id), levels)).collect();
        runs.dedup();
        let distinct: HashSet<_> = runs.iter().collect();
        distinct.len() == runs.len()
    })
}

proptest! {
    /// For any returns at any time, each instance either ends as if executed alone or is returned. Tasks that
    /// no instance needs any more hold nothing in the end.
    #[test]
    fn returned_instances_are_not_executed_and_the_rest_are(
        case in cases(),
        slots in 1usize..5,
        order in vec(any::<usize>(), 100),
        asked in vec((0usize..30, any::<bool>()), 0..4),
        abandoned in prop_oneof![3 => Just(None), 1 => (0usize..30).prop_map(Some)],
    ) {
        let Case { stage, work, bytes, active_paths } = &case;
        let mut shell = Shell::new(stage, work, bytes.clone(), *active_paths, 0);
        let mut back = Vec::new();
        for (step, choice) in order.iter().cycle().enumerate() {
            for (_, all) in asked.iter().filter(|(at, _)| *at == step) {
                back.extend(shell.hand_back(*all));
            }
            if abandoned == Some(step) {
                back.extend(shell.abandon());
            }
            while shell.running() < slots && shell.start() {}
            match shell.running() {
                0 => break,
                running => shell.end(choice % running),
            }
        }
        prop_assert!(shell.is_over());
        prop_assert_eq!(shell.held(), 0);
        let ended: BTreeMap<_, _> = shell.ended.iter().cloned().collect();
        prop_assert_eq!(ended.len(), shell.ended.len(), "an instance ended twice");
        let given: HashSet<_> = back.iter().copied().collect();
        prop_assert_eq!(given.len(), back.len(), "an instance was given back twice");
        for instance in &work.instances {
            prop_assert_eq!(ended.contains_key(&instance.id), !given.contains(&instance.id));
            if let Some(end) = ended.get(&instance.id) {
                prop_assert_eq!(end, &alone(stage, instance, 0).1);
            }
        }
    }

    #[test]
    fn every_instance_ends_once_and_as_if_alone(
        case in cases(),
        slots in 1usize..5,
        // Selects the running task that ends next.
        order in vec(any::<usize>(), 100),
        failing in prop_oneof![Just(0u64), 4u64..12],
    ) {
        let Case { stage, work, bytes, active_paths } = &case;
        let mut shell = Shell::new(stage, work, bytes.clone(), *active_paths, failing);
        let mut waited = false;
        for (step, choice) in order.iter().cycle().enumerate() {
            while shell.running() < slots && shell.start() {}
            if shell.running() == 0 && !shell.resume() {
                break;
            }
            match shell.running() {
                0 => {}
                running if choice % 5 == 0 && step < 200 => {
                    waited = true;
                    shell.suspend(choice / 5 % running);
                }
                running => shell.end(choice / 5 % running),
            }
        }
        prop_assert!(shell.is_over());
        prop_assert_eq!(shell.held(), 0);

        let ended: BTreeMap<_, _> = shell.ended.iter().cloned().collect();
        prop_assert_eq!(ended.len(), shell.ended.len(), "an instance ended twice");
        prop_assert_eq!(ended.len(), work.instances.len());
        let mut all = HashSet::new();
        let mut reached = HashSet::new();
        let tree = work.sharing == ReuseScope::Tree;
        for instance in &work.instances {
            let (levels, end) = alone(stage, instance, failing);
            let ours = &ended[&instance.id];
            // In a graph, several tasks of an instance may fail.
            prop_assert!(ours == &end || (!tree && ours.is_err() && end.is_err()), "{:?} and {:?}", ours, end);
            let same = |level| if tree { Same::Prefix(prefix(stage, instance, level + 1)) } else { Same::Made(made(stage, instance, level)) };
            all.extend((0..stage.tasks.len()).map(same));
            reached.extend((0..levels).map(same));
        }
        prop_assert_eq!(shell.tasks(), all.len());
        // No task runs twice, and no task below a failure runs.
        if tree || failing == 0 {
            prop_assert_eq!(shell.started.len(), reached.len());
        } else {
            prop_assert!(shell.started.len() <= all.len());
        }
        if tree && !waited && (slots == 1 || active_paths.is_some_and(|paths| paths.get() == 1)) {
            // For any order of siblings, instances that share more tasks end closer together.
            let order: Vec<InstanceId> = shell.ended.iter().map(|(instance, _)| *instance).collect();
            prop_assert!(is_depth_first(stage, work, &order));
        }
    }
}
