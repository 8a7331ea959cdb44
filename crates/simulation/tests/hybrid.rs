//! Nodes with cores and accelerators: the makespans of one worker under a virtual clock, tasks by kind of slot, and equal
//! simulations of equal options.

#[path = "../../dispatch/tests/support/clock.rs"]
mod clock;
#[path = "../../dispatch/tests/support/shapes.rs"]
mod shapes;

use clock::{Clock, PIPELINE, Setup};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan};
use pleach_dispatch::worker::{SchedulePolicy, WorkerSlots};
use pleach_dispatch::{InstanceId, SlotKind};
use pleach_simulation::hybrid::{
    HybridCluster, HybridOptions, HybridStats, HybridStudy, InvalidHybridStudy, PipelineTask, TaskSeconds,
};
use pleach_workflow::TaskInput;
use proptest::prelude::*;

fn slots(cores: u32, accelerators: u32, policy: SchedulePolicy) -> WorkerSlots {
    WorkerSlots { cores, accelerators, device_bytes: u64::MAX, policy }
}

/// Returns the example of Region Templates without the variants of a kind.
fn tasks(without: Option<SlotKind>) -> Vec<PipelineTask> {
    let seconds = |ms: f64, kind| (without != Some(kind)).then_some(ms / 1000.0);
    let task = |task: &clock::PipelineTask| PipelineTask {
        name: task.name.to_owned(),
        seconds: TaskSeconds {
            core: seconds(task.core_ms, SlotKind::Core),
            accelerator: seconds(task.device_ms, SlotKind::Accelerator),
        },
        reads: task.reads.to_vec(),
    };
    PIPELINE.iter().map(task).collect()
}

fn run(tasks: &[PipelineTask], tiles: u32, options: HybridOptions) -> HybridStats {
    let study = HybridStudy::pipeline(tasks, tiles).expect("a valid pipeline");
    let stats = HybridCluster::new(study, HybridOptions { audited: true, ..options }).run(1e6);
    let stats = stats.expect("the study ends");
    // The simulation counts the runs of each task of each instance, and fails if one is not 1.
    let runs = stats.total.cores.runs + stats.total.accelerators.runs;
    assert_eq!(runs, u64::from(tiles) * tasks.len() as u64);
    assert_eq!((stats.ends, stats.finished), (u64::from(tiles), u64::from(tiles)));
    for task in &stats.tasks[0][..tasks.len()] {
        assert_eq!(task.cores.runs + task.accelerators.runs, u64::from(tiles));
    }
    stats
}

/// With 40 buckets at once, as the published table of the prototype, and with the worker's own number, 43.
#[test]
fn one_node_takes_as_long_as_its_worker_under_a_virtual_clock() {
    let tasks = tasks(None);
    for policy in SchedulePolicy::ALL {
        let slots = slots(16, 1, policy);
        for (max_buckets, in_flight) in [(Some(40), 40), (None, 43)] {
            let options = HybridOptions { max_buckets, ..HybridOptions::new(vec![slots], 1) };
            let found = run(&tasks, 300, options).makespan_seconds;
            let expected = Clock::run(&Setup::new(&PIPELINE, slots, 300, in_flight)).seconds;
            println!("{policy}, {in_flight} buckets: {found:.2} s, virtual clock {expected:.2} s");
            assert!((found / expected - 1.0).abs() <= 0.03, "{policy}: {found} s instead of {expected} s");
        }
    }
}

#[test]
fn pats_precedes_heft_and_fcfs_on_several_nodes() {
    let run = |policy| {
        let options =
            HybridOptions { variation: 0.2, ..HybridOptions::new(vec![slots(16, 1, policy); 4], 7) };
        run(&tasks(None), 4 * 150, options)
    };
    let [fcfs, heft, pats] = SchedulePolicy::ALL.map(run);
    let seconds = [&fcfs, &heft, &pats].map(|stats| stats.makespan_seconds);
    assert!(seconds[0] >= 1.12 * seconds[2] && seconds[1] >= 1.08 * seconds[2], "{seconds:?}");
    // Operations of features gain most (Gradient 17.8), Area gains least (4.6).
    let share = |stats: &HybridStats, task: usize| stats.tasks[0][task].accelerators.runs as f64 / 600.0;
    assert!(share(&pats, 8) > 0.8 && share(&pats, 3) < 0.2, "{:?}", pats.tasks);
    assert!(share(&fcfs, 8) < 0.6, "{:?}", fcfs.tasks);
}

/// Nodes without accelerators, with nothing but one, and with cores that have nothing to do.
#[test]
fn one_kind_alone_runs_all_tasks() {
    let seconds = |kind| tasks(None).iter().filter_map(|task| task.seconds.on(kind)).sum::<f64>();
    let (core, device) = (seconds(SlotKind::Core), seconds(SlotKind::Accelerator));
    let policy = SchedulePolicy::Pats;
    let cores = run(&tasks(None), 200, HybridOptions::new(vec![slots(16, 0, policy)], 1));
    assert_eq!(cores.total.accelerators.runs, 0);
    let bound = core * 200.0 / 16.0;
    assert!(cores.makespan_seconds >= bound && cores.makespan_seconds < 1.05 * bound, "{cores:?}");
    for policy in SchedulePolicy::ALL {
        for (of_cores, tasks) in
            [(0, tasks(None)), (0, tasks(Some(SlotKind::Core))), (4, tasks(Some(SlotKind::Core)))]
        {
            let stats = run(&tasks, 50, HybridOptions::new(vec![slots(of_cores, 1, policy)], 1));
            assert_eq!(stats.total.cores.runs, 0);
            let bound = device * 50.0;
            assert!(stats.makespan_seconds >= bound && stats.makespan_seconds < 1.01 * bound, "{stats:?}");
        }
    }
}

#[test]
fn tasks_without_a_variant_for_the_slots_are_an_error() {
    let study = HybridStudy::pipeline(&tasks(Some(SlotKind::Core)), 2).expect("a valid pipeline");
    let nodes = vec![slots(2, 0, SchedulePolicy::Pats)];
    let found = HybridCluster::new(study, HybridOptions::new(nodes, 1)).run(1e6);
    assert!(found.is_err_and(|why| why.contains("no variant")));
}

/// With one bucket at once, the tasks from the opening to the labels and the gradient follow the task that they read.
#[test]
fn transfers_take_time_and_inputs_on_the_device_save_half() {
    let options = HybridOptions {
        max_buckets: Some(1),
        transfer_seconds: 0.04,
        ..HybridOptions::new(vec![slots(0, 1, SchedulePolicy::Pats)], 1)
    };
    let stats = run(&tasks(None), 20, options);
    assert_eq!(stats.local, 6 * 20, "{stats:?}");
    let device: f64 = PIPELINE.iter().map(|task| task.device_ms / 1000.0).sum();
    let expected = 20.0 * (device + 10.0 * 0.04 - 6.0 * 0.02);
    assert!((stats.total.accelerators.seconds - expected).abs() < 1e-6, "{stats:?}");
}

/// A plan of two stages: the second reads the first of the same tile. Its buckets have two instances that share a task.
#[test]
fn plans_of_several_stages_end() {
    let (read, tile) = (|task| TaskInput::Task { task, output: 0 }, TaskInput::StageInput(0));
    let first = shapes::stage(0, 1, vec![shapes::task("a", &[], &[tile], 1)], &[(0, 0)]);
    let second = vec![
        shapes::task("b", &[], &[tile], 1),
        shapes::task("c", &[0], &[read(0)], 1),
        shapes::task("end", &[], &[read(1)], 1),
    ];
    let second = shapes::stage(1, 1, second, &[(2, 0)]);
    let output = |number, stored| vec![OutputPlan { key: shapes::key(number), stored, reported: !stored }];
    let stages = (0..30_u32).map(|tile| InstancePlan {
        stage: 0,
        parameters: Vec::new(),
        inputs: vec![shapes::key(tile)],
        outputs: output(100 + tile, true),
        parents: Vec::new(),
    });
    let readers = (0..60_u32).map(|number| InstancePlan {
        stage: 1,
        parameters: vec![pleach_workflow::Value::Integer(i64::from(number % 2))],
        inputs: vec![shapes::key(100 + number / 2)],
        outputs: output(200 + number, false),
        parents: vec![InstanceId(number / 2)],
    });
    let bucket = |instances: Vec<u32>| BucketPlan {
        instances: instances.into_iter().map(InstanceId).collect(),
        pixels: 1,
    };
    let buckets =
        (0..30).map(|tile| vec![tile]).chain((0..30).map(|tile| vec![30 + 2 * tile, 31 + 2 * tile]));
    let plan = ExecutionPlan {
        stages: vec![first, second],
        instances: stages.chain(readers).collect(),
        buckets: buckets.map(bucket).collect(),
        sharing: pleach_dispatch::plan::ReuseScope::Dataflow,
        ..ExecutionPlan::default()
    };
    let both = TaskSeconds { core: Some(1.0), accelerator: Some(0.1) };
    let seconds = vec![vec![both], vec![both, both, TaskSeconds::NONE]];
    let study = HybridStudy::new(plan, seconds).expect("seconds for each task");
    let nodes = vec![slots(2, 1, SchedulePolicy::Pats), slots(3, 0, SchedulePolicy::Pats)];
    let options = HybridOptions { audited: true, ..HybridOptions::new(nodes, 1) };
    let stats = HybridCluster::new(study, options).run(1e4).expect("the study ends");
    assert_eq!((stats.ends, stats.finished), (60, 90));
    // The manager splits some buckets by the speed of workers. Both parts run the shared task then.
    let [a, b, c] = [(0, 0), (1, 0), (1, 1)].map(|(stage, task): (usize, usize)| {
        let runs = stats.tasks[stage][task];
        runs.cores.runs + runs.accelerators.runs
    });
    assert!((a, c) == (30, 60) && (30..45).contains(&b), "{a}, {b} and {c} runs");
}

#[test]
fn invalid_studies_are_refused() {
    let task = |core, accelerator, reads| PipelineTask {
        name: "a".to_owned(),
        seconds: TaskSeconds { core, accelerator },
        reads,
    };
    let refused = |task| HybridStudy::pipeline(&[task], 1).expect_err("refused");
    assert_eq!(refused(task(Some(1.0), None, vec![0])), InvalidHybridStudy::Read { task: 0, read: 0 });
    for (core, accelerator) in
        [(None, None), (Some(-1.0), None), (Some(1.0), Some(0.0)), (Some(f64::NAN), None)]
    {
        let refused = refused(task(core, accelerator, Vec::new()));
        assert!(matches!(refused, InvalidHybridStudy::Seconds { stage: 0, task: 0, .. }), "{refused}");
    }
    let found = HybridStudy::new(ExecutionPlan::default(), vec![vec![TaskSeconds::NONE]]);
    assert_eq!(found.err(), Some(InvalidHybridStudy::Shape { stage: 0, given: 1, tasks: 0 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_study_ends_and_is_reproducible(
        seed in any::<u64>(),
        tiles in 1..60_u32,
        nodes in prop::collection::vec((0..5_u32, 0..3_u32), 1..6),
        policy in prop::sample::select(SchedulePolicy::ALL.to_vec()),
        variation in 0.0..0.8,
        transfer_seconds in prop::sample::select(vec![0.0, 0.02]),
        max_buckets in prop::option::of(1..50_u32),
        is_slow in any::<bool>(),
    ) {
        let kinds = |(cores, accelerators)| slots(cores + u32::from(cores + accelerators == 0), accelerators, policy);
        let latency_us = if is_slow { (1_000, 900_000) } else { (100, 1_000) };
        let nodes = nodes.into_iter().map(kinds).collect();
        let options = HybridOptions {
            variation,
            transfer_seconds,
            max_buckets,
            latency_us,
            audited: true,
            logged: true,
            ..HybridOptions::new(nodes, seed)
        };
        let study = HybridStudy::pipeline(&tasks(None), tiles).expect("a valid pipeline");
        let mut clusters = [HybridCluster::new(study.clone(), options.clone()), HybridCluster::new(study, options)];
        let [first, second] = clusters.each_mut().map(|cluster| cluster.run(1e6));
        prop_assert!(first.is_ok(), "{first:?}");
        prop_assert_eq!(&first, &second);
        let differs = clusters[0].log().iter().zip(clusters[1].log()).find(|(a, b)| a != b);
        prop_assert_eq!(differs, None);
        let stats = first.unwrap();
        let runs = stats.total.cores.runs + stats.total.accelerators.runs;
        prop_assert_eq!(runs, u64::from(tiles) * 10);
    }
}
