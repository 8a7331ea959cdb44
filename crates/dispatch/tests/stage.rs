//! A bucket's execution: every task once, depth-first, and nothing held longer than it is read.

#[path = "support/shapes.rs"]
mod shapes;
#[path = "support/shell.rs"]
mod shell;

use pleach_dispatch::InstanceId;
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::OutputPlan;
use pleach_dispatch::stage::BucketRun;
use pleach_workflow::{Read, Stage, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use shapes::{ids, key, stage, task};
use shell::{Shell, alone};
use std::collections::{BTreeMap, HashSet};

/// Three tasks in a row, each of one parameter; the last also reads what the first wrote second.
fn three_tasks() -> Stage {
    let of = |task, output| Read::Task { task, output };
    let tasks = vec![
        task("a", &[0], &[Read::StageInput(0)], 2),
        task("b", &[1], &[of(0, 0)], 2),
        task("c", &[2], &[of(1, 0), of(0, 1), Read::StageInput(0)], 1),
    ];
    stage(3, 1, tasks, &[(2, 0)])
}

/// Instances with these parameters, all on one tile.
fn work(stage: &Stage, parameters: &[[i64; 3]]) -> BucketWork {
    let instances = (0u32..).zip(parameters).map(|(number, values)| instance(stage, number, values, &[0]));
    BucketWork { stage: 0, instances: instances.collect() }
}

fn instance(stage: &Stage, number: u32, parameters: &[i64], inputs: &[u32]) -> InstanceWork {
    let output = |output: usize| OutputPlan {
        key: key(1_000 + 10 * number + output as u32),
        stored: true,
        reported: false,
    };
    InstanceWork {
        id: InstanceId(number),
        parameters: parameters.iter().copied().map(Value::Integer).collect(),
        inputs: inputs.iter().copied().map(key).collect(),
        outputs: (0..stage.outputs.len()).map(output).collect(),
    }
}

/// What the shell does with one slot, as a reader would write it down.
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

/// Instances 0, 1 and 2 share `a(1)`; 0 and 2 share `b(1)` below it; 3 shares nothing.
const FOUR: [[i64; 3]; 4] = [[1, 1, 1], [1, 2, 1], [1, 1, 2], [2, 1, 1]];

#[test]
fn a_subtree_is_finished_before_its_sibling_begins() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut shell = Shell::new(&stage, &work, 0);
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
    let mut shell = Shell::new(&stage, &work, 0);
    let lines = trace(&mut shell);
    assert_eq!(lines[2], "c(1), instance 0 done, instance 1 done, 2 -> 0 held");
    assert_eq!(lines.len(), 3);
}

#[test]
fn instances_on_different_tiles_share_nothing() {
    let stage = three_tasks();
    let mut work = work(&stage, &[[1, 1, 1], [1, 1, 1]]);
    work.instances[1].inputs = vec![key(1)];
    assert_eq!(Shell::new(&stage, &work, 0).tasks(), 6);
}

#[test]
fn a_failed_inner_task_fails_exactly_the_instances_below_it() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut run = BucketRun::new(&stage, &work).expect("fits");
    let a = run.start_task(&stage).expect("a(1)");
    run.handle_done(&stage, a.node);
    let b = run.start_task(&stage).expect("b(1)");
    assert!(run.poll_effect().is_none());
    let cause = shapes::failure("b");
    run.handle_failed(&stage, b.node, &cause);
    use pleach_dispatch::stage::Effect;
    let failed = ids([0, 2]).into_iter().map(|instance| Effect::Failed { instance, cause: cause.clone() });
    let effects: Vec<Effect> = std::iter::from_fn(|| run.poll_effect()).collect();
    // Nothing is dropped: b(2) still reads a's first output, and c below it the second.
    assert_eq!(effects, failed.collect::<Vec<_>>());
    assert_eq!(
        run.start_task(&stage).map(|call| (call.task, call.arguments)),
        Some((1, vec![Value::Integer(2)]))
    );
}

#[test]
fn outputs_that_nobody_reads_are_not_wanted() {
    let stage = three_tasks();
    let work = work(&stage, &FOUR);
    let mut run = BucketRun::new(&stage, &work).expect("fits");
    let a = run.start_task(&stage).expect("a(1)");
    assert_eq!(a.wanted, [true, true]);
    run.handle_done(&stage, a.node);
    assert_eq!(run.start_task(&stage).expect("b(1)").wanted, [true, false]);
}

#[test]
fn work_that_does_not_fit_its_stage_is_refused() {
    let stage = three_tasks();
    let mut work = work(&stage, &FOUR);
    work.instances[2].parameters.pop();
    let error = BucketRun::new(&stage, &work).expect_err("two parameters of three");
    assert_eq!(error.to_string(), "instance 2 does not fit its stage");
}

#[test]
fn a_bucket_without_instances_is_over_at_once() {
    let stage = three_tasks();
    let mut run = BucketRun::new(&stage, &work(&stage, &[])).expect("fits");
    assert!(run.is_over());
    assert_eq!(run.poll_effect(), Some(pleach_dispatch::stage::Effect::Over));
}

/// A random stage, random instances, and a random course of events.
#[derive(Debug)]
struct Case {
    stage: Stage,
    work: BucketWork,
    /// Tasks running at once.
    slots: usize,
    /// Which of the running tasks ends next.
    order: Vec<usize>,
    /// See [`shell::compute`].
    failing: u64,
}

type RawTask = (Vec<usize>, Vec<(usize, usize)>, usize);

/// Wraps random numbers into a stage whose reads all exist: stage inputs, or any output of any earlier task.
fn random_stage(parameters: usize, inputs: usize, tasks: &[RawTask], outputs: &[(usize, usize)]) -> Stage {
    let mut made = Vec::new();
    for (level, (arguments, reads, writes)) in tasks.iter().enumerate() {
        let arguments: Vec<usize> = arguments.iter().map(|a| a % parameters).collect();
        let read = |&(from, output): &(usize, usize)| match from % (level + 1) {
            0 => Read::StageInput(output % inputs),
            task => Read::Task { task: task - 1, output: output % tasks[task - 1].2 },
        };
        let reads: Vec<Read> = reads.iter().map(read).collect();
        made.push(task(&format!("t{}", level + 1), &arguments, &reads, *writes));
    }
    let mut outputs: Vec<(usize, usize)> =
        outputs.iter().map(|(t, o)| (t % tasks.len(), o % tasks[t % tasks.len()].2)).collect();
    outputs.sort_unstable();
    outputs.dedup();
    stage(parameters, inputs, made, &outputs)
}

prop_compose! {
    fn cases()(parameters in 1usize..4, inputs in 1usize..3)(
        tasks in vec((vec(any::<usize>(), 0..3), vec(any::<(usize, usize)>(), 1..4), 1usize..3), 1..6),
        outputs in vec(any::<(usize, usize)>(), 1..3),
        // Few distinct values, so that much is shared.
        instances in vec((vec(0i64..3, parameters), vec(0u32..2, inputs)), 1..14),
        slots in 1usize..5,
        order in vec(any::<usize>(), 100),
        failing in prop_oneof![Just(0u64), 4u64..12],
        parameters in Just(parameters),
        inputs in Just(inputs),
    ) -> Case {
        let stage = random_stage(parameters, inputs, &tasks, &outputs);
        let instances = (0u32..).zip(&instances).map(|(n, (values, keys))| instance(&stage, n, values, keys));
        let work = BucketWork { stage: 0, instances: instances.collect() };
        Case { stage, work, slots, order, failing }
    }
}

/// What makes the first `levels` tasks of an instance those of another one.
fn prefix(stage: &Stage, instance: &InstanceWork, levels: usize) -> impl Eq + std::hash::Hash + use<> {
    let values = |task: &pleach_workflow::Task| -> Vec<Value> {
        task.arguments.iter().map(|&a| instance.parameters[a]).collect()
    };
    (instance.inputs.clone(), stage.tasks[..levels].iter().map(values).collect::<Vec<_>>())
}

/// Instances in the order in which a depth-first walk of their prefixes meets them.
fn depth_first(stage: &Stage, instances: Vec<&InstanceWork>, levels: usize) -> Vec<InstanceId> {
    if levels > stage.tasks.len() {
        return instances.iter().map(|instance| instance.id).collect();
    }
    let mut groups: Vec<Vec<&InstanceWork>> = Vec::new();
    for instance in instances {
        let same = |group: &&mut Vec<&InstanceWork>| {
            prefix(stage, group[0], levels) == prefix(stage, instance, levels)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(instance),
            None => groups.push(vec![instance]),
        }
    }
    groups.into_iter().flat_map(|group| depth_first(stage, group, levels + 1)).collect()
}

proptest! {
    #[test]
    fn every_instance_ends_once_and_as_if_alone(case in cases()) {
        let Case { stage, work, slots, order, failing } = &case;
        let mut shell = Shell::new(stage, work, *failing);
        for choice in order.iter().cycle() {
            while shell.running() < *slots && shell.start() {}
            if shell.running() == 0 {
                break;
            }
            shell.end(choice % shell.running());
        }
        prop_assert!(shell.is_over());
        prop_assert_eq!(shell.held(), 0);

        let ended: BTreeMap<_, _> = shell.ended.iter().cloned().collect();
        prop_assert_eq!(ended.len(), shell.ended.len(), "an instance ended twice");
        prop_assert_eq!(ended.len(), work.instances.len());
        let mut prefixes = HashSet::new();
        let mut reached = HashSet::new();
        for instance in &work.instances {
            let (levels, end) = alone(stage, instance, *failing);
            prop_assert_eq!(&ended[&instance.id], &end);
            prefixes.extend((1..=stage.tasks.len()).map(|level| prefix(stage, instance, level)));
            reached.extend((1..=levels).map(|level| prefix(stage, instance, level)));
        }
        prop_assert_eq!(shell.tasks(), prefixes.len());
        // Nothing runs twice, and nothing below a failure runs at all.
        prop_assert_eq!(shell.started.len(), reached.len());
        if *slots == 1 {
            let order: Vec<InstanceId> = shell.ended.iter().map(|(instance, _)| *instance).collect();
            prop_assert_eq!(order, depth_first(stage, work.instances.iter().collect(), 1));
        }
    }
}
