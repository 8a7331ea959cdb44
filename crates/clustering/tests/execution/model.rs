//! The o-DAG model: Fig. 3, phases of a job, and laws against a slow reference.

use super::reference::{self, Delays};
use super::support::{fair, hrb, vc, word, workers, workflow};
use pleach_clustering::simulate::{Delay, Overheads, Platform, gain, simulate};
use pleach_clustering::{Clustering, DataFile, Task, Workflow};
use proptest::prelude::*;

fn platform(count: usize, delays: Delays) -> Platform {
    let overheads = Overheads {
        engine: Delay::Fixed(delays.engine),
        queue: Delay::Fixed(delays.queue),
        clustering: Delay::Fixed(delays.clustering),
        post: Delay::Fixed(delays.post),
    };
    Platform::new(workers(count), delays.bytes_per_second, overheads).unwrap()
}

const QUEUE_ONLY: Delays =
    Delays { engine: 0.0, queue: 60.0, clustering: 1.0, post: 0.0, bytes_per_second: 1.0 };

#[test]
fn one_worker_takes_the_sums_of_figure_3() {
    let times = [3.0, 5.0, 7.0, 11.0];
    let diamond = workflow(&times.map(|time| ("run", time)), &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let platform = platform(1, QUEUE_ONLY);
    let joined = Clustering::new(&diamond, vec![vec![0], vec![1, 2], vec![3]]).unwrap();
    let gain = gain(&diamond, &joined, &platform, 0);
    assert_eq!(gain.baseline, 4.0 * 60.0 + 26.0);
    assert_eq!(gain.makespan, (60.0 + 3.0) + (60.0 + 1.0 + 5.0 + 7.0) + (60.0 + 11.0));
    assert_eq!(gain.gain(), 1.0 - 207.0 / 266.0);
    assert_eq!(gain.ratio(), 266.0 / 207.0);
    // Not joined, two workers execute t2 and t3 at the same time.
    let two = platform.with_workers(workers(2));
    assert_eq!(simulate(&diamond, &Clustering::single(&diamond), &two, 0).makespan, 3.0 * 60.0 + 21.0);
}

#[test]
fn phases_of_a_job_follow_each_other() {
    let files = vec![DataFile { name: "in".into(), bytes: 40 }, DataFile { name: "mid".into(), bytes: 6 }];
    let task = |id: &str, seconds, reads: &[u32], writes: &[u32]| Task {
        id: id.into(),
        kind: "run".into(),
        seconds,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    };
    let tasks = vec![task("a", 1.0, &[0], &[1]), task("b", 2.0, &[0, 1], &[]), task("c", 4.0, &[1], &[])];
    let tasks = Workflow::new("test", tasks, files, &[(0, 1), (0, 2)]).unwrap();
    let delays = Delays { engine: 100.0, queue: 10.0, clustering: 3.0, post: 1000.0, bytes_per_second: 2.0 };
    let executed = simulate(&tasks, &Clustering::single(&tasks), &platform(2, delays), 0);
    let [a, b, c] = &executed.jobs[..] else { panic!("three jobs") };
    assert_eq!((a.worker, a.submitted, a.transfer, a.ended), (0, 100.0, 20.0, 131.0));
    // b has both inputs at the worker of a. c takes the other worker and fetches its input.
    assert_eq!((b.worker, b.released, b.submitted, b.transfer, b.ended), (0, 1131.0, 1231.0, 0.0, 1243.0));
    assert_eq!((c.worker, c.moved_bytes, c.ended), (1, 6, 1248.0));
    assert_eq!((executed.makespan, executed.moved_bytes), (1248.0, 46));
    assert_eq!(executed.busy_seconds, [31.0 + 12.0, 17.0]);
    let phases = executed.phases;
    assert_eq!((phases.engine, phases.wait, phases.queue), (300.0, 0.0, 30.0));
    assert_eq!((phases.transfer, phases.clustering, phases.run), (23.0, 0.0, 7.0));
    // A job does not move files that one of its own tasks writes, and pays the clustering delay.
    let joined = Clustering::new(&tasks, vec![vec![0, 1, 2]]).unwrap();
    let executed = simulate(&tasks, &joined, &platform(2, delays), 0);
    assert_eq!(executed.makespan, 100.0 + 10.0 + 20.0 + 3.0 + 7.0);
}

#[test]
fn a_workflow_without_tasks_takes_no_time() {
    let empty = workflow(&[], &[]);
    let gain = gain(&empty, &Clustering::single(&empty), &Platform::default(), 0);
    assert_eq!((gain.makespan, gain.gain(), gain.ratio()), (0.0, 0.0, 1.0));
    let executed = simulate(&empty, &Clustering::single(&empty), &Platform::default(), 0);
    assert_eq!((executed.busy_seconds.len(), executed.utilization()), (20, 0.0));
}

#[test]
fn tasks_without_run_time_or_delays_end_at_once() {
    let chain = workflow(&[("run", 0.0); 50], &[(0, 1), (1, 2)]);
    let free = Platform::new(workers(3), f64::INFINITY, Overheads::NONE).unwrap();
    let executed = simulate(&chain, &Clustering::single(&chain), &free, 0);
    assert_eq!((executed.makespan, executed.jobs.len(), executed.utilization()), (0.0, 50, 0.0));
}

#[test]
fn a_drawn_delay_depends_on_seed_and_first_task_only() {
    let bag = workflow(&[("run", 5.0); 8], &[]);
    let drawn = Platform::default();
    let drawn = drawn.with_overheads(drawn.overheads().weibull(1.0)).unwrap();
    let queues = |jobs: Vec<Vec<u32>>, count, seed| -> Vec<f64> {
        let clustering = Clustering::new(&bag, jobs).unwrap();
        let executed = simulate(&bag, &clustering, &drawn.with_workers(workers(count)), seed);
        executed.jobs.iter().map(|job| job.queue).collect()
    };
    let single: Vec<Vec<u32>> = (0..8).map(|task| vec![task]).collect();
    let reversed = single.iter().rev().cloned().collect();
    let mut backward = queues(reversed, 3, 1);
    backward.reverse();
    let forward = queues(single.clone(), 1, 1);
    assert_eq!(forward, backward);
    assert_eq!(queues(vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]], 2, 1), [forward[0], forward[4]]);
    assert!(queues(single, 1, 2) != forward && forward[0] != forward[1]);
}

#[test]
fn a_hundred_thousand_tasks_run_on_a_thousand_workers() {
    // Stages of 10,000 tasks. Each task reads a file of all, one of its stage and one of the stage before.
    const WIDTH: u32 = 10_000;
    let files = (0..10 * WIDTH + 11).map(|file| DataFile { name: file.to_string(), bytes: 1_000 });
    let task = |number: u32| {
        let mut reads = vec![10 * WIDTH, 10 * WIDTH + 1 + number / WIDTH];
        reads.extend(number.checked_sub(WIDTH));
        let seconds = 1.0 + f64::from(number % 7);
        Task { id: number.to_string(), kind: "run".into(), seconds, reads, writes: vec![number] }
    };
    let edges: Vec<_> = (WIDTH..10 * WIDTH).map(|child| (child - WIDTH, child)).collect();
    let tasks = (0..10 * WIDTH).map(task).collect();
    let stages = Workflow::new("stages", tasks, files.collect(), &edges).unwrap();
    let platform = Platform::default().with_workers(workers(1000));
    let executed = simulate(&stages, &Clustering::single(&stages), &platform, 0);
    assert_eq!(executed.jobs.len(), 100_000);
    // Each worker fetches the 11 shared files at most, and a task follows its parent to its worker if that is idle.
    assert!(executed.moved_bytes <= 1_000 * (11 * 1_000 + 9 * 10_000));
    assert!(executed.makespan >= stages.total_seconds() / 1000.0 + 60.0 * 100.0);
}

/// A workflow of random edges, files and integral run times of 1 s or more, and a clustering of it.
fn random(seed: u64, tasks: u32, files: u64) -> (Workflow, Clustering) {
    let mut state = seed;
    let mut draw = |limit: u64| word(&mut state) % limit;
    let list = (0..files).map(|file| DataFile { name: format!("f{file}"), bytes: draw(4) * 7 });
    let list: Vec<_> = list.collect();
    let task = |number: u32| {
        let mut some = || (0..draw(4)).map(|_| draw(files) as u32).collect();
        let (reads, writes) = (some(), some());
        Task { id: format!("t{number}"), kind: "run".into(), seconds: 1.0 + draw(9) as f64, reads, writes }
    };
    let tasks: Vec<_> = (0..tasks).map(task).collect();
    let edges = (1..tasks.len() as u64).flat_map(|child| {
        let count = draw(3);
        (0..count).map(|_| (draw(child) as u32, child as u32)).collect::<Vec<_>>()
    });
    let edges: Vec<_> = edges.collect();
    let workflow = Workflow::new("random", tasks, list, &edges).unwrap();
    let clustering = match draw(4) {
        0 => Clustering::single(&workflow),
        1 => vc(&workflow),
        2 => fair(&workflow, 12.0, 60),
        _ => hrb(&workflow, 3),
    };
    (workflow, clustering)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_simulation_agrees_with_the_slow_reference(
        seed in any::<u64>(), tasks in 1..30_u32, files in 1..12_u64, count in 1..9_usize,
        (engine, queue, clustering, post) in (0..3_u32, 0..4_u32, 0..2_u32, 0..3_u32),
    ) {
        let (workflow, jobs) = random(seed, tasks, files);
        let delays = Delays {
            engine: engine.into(),
            queue: queue.into(),
            clustering: clustering.into(),
            post: post.into(),
            bytes_per_second: 5.0,
        };
        let executed = simulate(&workflow, &jobs, &platform(count, delays), 0);
        let records: Vec<_> = executed.jobs.iter()
            .map(|job| (job.worker, job.submitted, job.started, job.ended, job.moved_bytes)).collect();
        prop_assert_eq!(records, reference::execute(&workflow, &jobs, count, delays));
    }

    #[test]
    fn an_execution_keeps_the_laws_of_the_model(
        seed in any::<u64>(), tasks in 1..40_u32, files in 1..12_u64, count in 1..9_usize, shape in 0.5..3.0_f64,
    ) {
        let (workflow, clustering) = random(seed, tasks, files);
        let fixed = Delays { engine: 1.0, queue: 2.0, clustering: 1.0, post: 1.0, bytes_per_second: 5.0 };
        let platform = platform(count, fixed);
        let platform = platform.with_overheads(platform.overheads().weibull(shape)).unwrap();
        let executed = simulate(&workflow, &clustering, &platform, seed);
        prop_assert_eq!(&executed, &simulate(&workflow, &clustering, &platform, seed));
        prop_assert_eq!(executed.jobs.len(), clustering.jobs().len());
        let jobs = clustering.workflow(&workflow).unwrap();

        // Makespan: at least the longest path and the occupied seconds of each worker, or their mean.
        let occupied = |job: usize| executed.jobs[job].ended - executed.jobs[job].started;
        let mut path = vec![0.0; jobs.tasks().len()];
        for job in jobs.levels().iter().flatten() {
            let parents = jobs.parents(*job).iter().map(|parent| path[*parent as usize]).fold(0.0, f64::max);
            path[*job as usize] = parents + occupied(*job as usize);
        }
        let longest = path.into_iter().fold(0.0, f64::max);
        prop_assert!(executed.makespan >= longest - 1e-9);
        let busy: f64 = executed.busy_seconds.iter().sum();
        prop_assert!(executed.makespan >= busy / count as f64 - 1e-9);
        prop_assert!(executed.makespan >= workflow.total_seconds() / count as f64 - 1e-9);
        prop_assert!(executed.utilization() <= 1.0 + 1e-9);

        // A child starts after its parents, and a worker executes one job at a time.
        for (parent, child) in jobs.edges() {
            prop_assert!(executed.jobs[child as usize].started >= executed.jobs[parent as usize].ended);
        }
        let mut by_worker = executed.jobs.clone();
        by_worker.sort_by(|one, other| (one.worker, one.started).partial_cmp(&(other.worker, other.started)).unwrap());
        for pair in by_worker.windows(2) {
            prop_assert!(pair[0].worker != pair[1].worker || pair[1].started >= pair[0].ended);
        }

        // A file moves to a worker once at most.
        let readers = |file: u32| {
            let list = (0..).zip(jobs.tasks()).filter(|(_, task)| task.reads.contains(&file));
            list.map(|(job, _): (usize, _)| executed.jobs[job].worker).collect::<std::collections::HashSet<_>>().len()
        };
        let most: u64 = (0..).zip(workflow.files()).map(|(file, info)| info.bytes * readers(file) as u64).sum();
        prop_assert!(executed.moved_bytes <= most);
        if count == 1 {
            let mut written = std::collections::HashSet::<u32>::new();
            let mut present = std::collections::HashSet::new();
            let mut moved = 0;
            let mut order: Vec<usize> = (0..jobs.tasks().len()).collect();
            order.sort_by(|one, other| executed.jobs[*one].started.total_cmp(&executed.jobs[*other].started));
            for job in order {
                let task = &jobs.tasks()[job];
                for file in &task.reads {
                    if !written.contains(file) && present.insert(*file) {
                        moved += workflow.files()[*file as usize].bytes;
                    }
                }
                written.extend(&task.writes);
            }
            prop_assert_eq!(executed.moved_bytes, moved);
        }

        // More workers execute the same jobs.
        let more = simulate(&workflow, &clustering, &platform.with_workers(workers(count + 5)), seed);
        prop_assert_eq!(more.jobs.len(), executed.jobs.len());
        let runs = |jobs: &[pleach_clustering::simulate::JobRecord]| jobs.iter().map(|job| job.run).collect::<Vec<_>>();
        prop_assert_eq!(runs(&more.jobs), runs(&executed.jobs));
    }
}
