//! Worked examples of the paper (Figures 5–13).

use crate::support::workflow;
use pleach_clustering::{
    Candidates, Clustering, Method, Options, Reading, Size, Vertical, Workflow, cluster, metrics,
};

fn options(method: Method, jobs: usize, candidates: Candidates) -> Options {
    Options { method, size: Size::Jobs(jobs), candidates, ..Options::default() }
}

/// Returns the jobs of the first level, each in ascending order.
fn first_level(workflow: &Workflow, options: Options) -> Vec<Vec<u32>> {
    let jobs = cluster(workflow, &options).jobs().to_vec();
    let first = jobs.into_iter().filter(|job| workflow.level_of(job[0]) == 0);
    first
        .map(|mut job| {
            job.sort_unstable();
            job
        })
        .collect()
}

/// Figure 7, left, and Figures 8 and 10: two pairs of tasks, each with a child, and a last task.
fn symmetric(seconds: [f64; 4]) -> Workflow {
    let edges = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)];
    workflow(&[&seconds[..], &[1.0; 3]].concat(), &edges)
}

/// Figure 7, right: one task and three tasks with a child each, and a last task.
fn asymmetric() -> Workflow {
    workflow(&[1.0; 7], &[(0, 4), (1, 5), (2, 5), (3, 5), (4, 6), (5, 6)])
}

/// Figure 9: two tasks and three tasks with a child each, and a last task.
fn two_and_three() -> Workflow {
    workflow(&[1.0; 8], &[(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 7), (6, 7)])
}

#[test]
fn figure_7_has_its_metrics() {
    let left = metrics(&symmetric([1.0; 4]), Reading::Definition)[0].variance;
    let right = metrics(&asymmetric(), Reading::Definition)[0].variance;
    assert!(left.hifv.abs() < 1e-12 && (right.hifv - 1.0 / 6.0).abs() < 1e-12);
    // Distances 2, 4, 4, 4, 4, 2 and 4, 4, 4, 2, 2, 2: 1.03 and 1.10 in the paper.
    assert!((left.hdv - 1.033).abs() < 5e-4, "{}", left.hdv);
    assert!((right.hdv - 1.095).abs() < 5e-4, "{}", right.hdv);
}

#[test]
fn figure_5_run_times_are_balanced() {
    let workflow = symmetric([10.0, 10.0, 30.0, 30.0]);
    let before = metrics(&workflow, Reading::Definition)[0].variance.hrv;
    let options = options(Method::Hrb, 2, Candidates::Spread);
    assert_eq!(first_level(&workflow, options), [[0, 2], [1, 3]]);
    let clustering = cluster(&workflow, &options);
    let change =
        pleach_clustering::imbalance_after(&workflow, &clustering, Reading::Definition).expect("jobs");
    assert_eq!(change.before[0].variance.hrv, before);
    assert!(before > 0.5 && change.after[0].variance.hrv == 0.0 && change.after[0].tasks == 2);
}

#[test]
fn figure_9_impact_factors_group_tasks() {
    let workflow = two_and_three();
    let examples = [vec![0, 1], vec![2, 3], vec![4]];
    assert_eq!(first_level(&workflow, options(Method::Hifb, 3, Candidates::Examples)), examples);
    // The paper notes that distances give the same result here.
    assert_eq!(first_level(&workflow, options(Method::Hdb, 3, Candidates::Examples)), examples);
    // Empty jobs come first, and the last task joins a job of the other impact factor.
    let spread = [vec![0, 4], vec![1], vec![2, 3]];
    assert_eq!(first_level(&workflow, options(Method::Hifb, 3, Candidates::Spread)), spread);
}

#[test]
fn figure_10_distances_group_tasks_of_equal_impact() {
    let workflow = symmetric([1.0; 4]);
    assert_eq!(first_level(&workflow, options(Method::Hdb, 2, Candidates::Examples)), [[0, 1], [2, 3]]);
    assert_eq!(first_level(&workflow, options(Method::Hdb, 2, Candidates::Spread)), [[0, 2], [1, 3]]);
    // Impact factors are equal: tasks fill the first job, whatever their children.
    let interleaved = workflow_of_pairs();
    assert_eq!(first_level(&interleaved, options(Method::Hdb, 2, Candidates::Examples)), [[0, 2], [1, 3]]);
    assert_eq!(first_level(&interleaved, options(Method::Hifb, 2, Candidates::Examples)), [[0, 1], [2, 3]]);
}

/// As Figure 10, with the tasks of both pairs in turns.
fn workflow_of_pairs() -> Workflow {
    workflow(&[1.0; 7], &[(0, 4), (2, 4), (1, 5), (3, 5), (4, 6), (5, 6)])
}

#[test]
fn figure_11_only_impact_factors_differ() {
    // All five tasks share a child, three of them have a second child: every distance is 2.
    let edges = [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5), (1, 6), (2, 6), (4, 6), (5, 7), (6, 7)];
    let workflow = workflow(&[1.0; 8], &edges);
    let variance = metrics(&workflow, Reading::Definition)[0].variance;
    assert!(variance.hdv == 0.0 && variance.hifv > 0.0);
    let jobs = |method| first_level(&workflow, options(method, 3, Candidates::Examples));
    assert_eq!(jobs(Method::Hifb), [vec![0, 3], vec![1, 2], vec![4]]);
    assert_eq!(jobs(Method::Hdb), [vec![0, 1], vec![2, 3], vec![4]]);
}

/// Figures 12 and 13: four chains of two tasks between a first and a last task. Levels have different orders of run times.
fn pipelines() -> Workflow {
    let chains =
        [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (2, 6), (3, 7), (4, 8), (5, 9), (6, 9), (7, 9), (8, 9)];
    workflow(&[1.0, 10.0, 20.0, 30.0, 40.0, 40.0, 30.0, 10.0, 20.0, 1.0], &chains)
}

#[test]
fn figure_12_chains_are_clustered_before_levels() {
    let workflow = pipelines();
    let options = |vertical| Options { vertical, ..options(Method::Hrb, 2, Candidates::Spread) };
    let only = cluster(&workflow, &options(Vertical::Only));
    assert_eq!(only.jobs(), [vec![0], vec![1, 5], vec![2, 6], vec![3, 7], vec![4, 8], vec![9]]);
    // Chains of 50, 50, 40 and 60 s.
    let prior = cluster(&workflow, &options(Vertical::Prior));
    assert_eq!(prior.jobs(), [vec![0], vec![4, 8, 3, 7], vec![1, 5, 2, 6], vec![9]]);
    let none = Options { method: Method::None, ..options(Vertical::Prior) };
    assert_eq!(cluster(&workflow, &none), only);
}

#[test]
fn figure_13_chains_are_broken_by_levels() {
    let workflow = pipelines();
    let options = |vertical| Options { vertical, ..options(Method::Hrb, 2, Candidates::Spread) };
    let levels = cluster(&workflow, &options(Vertical::None));
    assert_eq!(levels.jobs(), [vec![0], vec![4, 1], vec![3, 2], vec![5, 7], vec![6, 8], vec![9]]);
    assert_eq!(cluster(&workflow, &options(Vertical::Posterior)), levels);
    // With two chains, each level stays as it is, and vertical clustering joins the chains.
    let two = Options { size: Size::Jobs(4), ..options(Vertical::Posterior) };
    assert_eq!(cluster(&workflow, &two).jobs().len(), 6);
}

#[test]
fn limits_close_jobs_in_the_order_of_the_file() {
    let workflow = workflow(&[3.0, 4.0, 9.0, 1.0, 1.0, 6.0, 2.0], &[]);
    let jobs = |max_seconds| {
        let options = Options { method: Method::Dfjs { max_seconds }, ..Options::default() };
        cluster(&workflow, &options).jobs().to_vec()
    };
    assert_eq!(jobs(8.0), [vec![0, 1], vec![2], vec![3, 4, 5], vec![6]]);
    // A first task beyond the limit leaves no empty job, and the last job stays.
    assert_eq!(jobs(2.0), [vec![0], vec![1], vec![2], vec![3, 4], vec![5], vec![6]]);
    assert_eq!(jobs(26.0).len(), 1);
    assert_eq!(jobs(0.0), Clustering::single(&workflow).jobs());
}

#[test]
fn sizes_count_jobs_or_tasks() {
    let workflow = workflow(&[1.0; 23], &[]);
    let lengths = |method, size| {
        let options = Options { method, size, ..Options::default() };
        let jobs = cluster(&workflow, &options).jobs().to_vec();
        jobs.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(lengths(Method::Hc, Size::Jobs(5)), [5, 5, 5, 4, 4]);
    assert_eq!(lengths(Method::Hrb, Size::Jobs(5)), [5, 5, 5, 4, 4]);
    assert_eq!(lengths(Method::Hc, Size::Tasks(5)), [5, 5, 5, 5, 3]);
    assert_eq!(lengths(Method::Hrb, Size::Tasks(5)), [5, 5, 5, 4, 4]);
    assert_eq!(lengths(Method::Hc, Size::Jobs(23)), [1; 23]);
    assert_eq!(lengths(Method::Hdb, Size::Jobs(30)), [1; 23]);
    assert_eq!(lengths(Method::Hifb, Size::Jobs(0)), [23]);
    assert_eq!(lengths(Method::None, Size::Jobs(5)), [1; 23]);
}

#[test]
fn seeds_change_the_order_of_horizontal_clustering() {
    let workflow = workflow(&[1.0; 40], &[]);
    let jobs = |seed| cluster(&workflow, &Options { seed, ..options(Method::Hc, 4, Candidates::Spread) });
    assert_eq!(jobs(1), jobs(1));
    assert_ne!(jobs(1), jobs(2));
    let size = Options { method: Method::Hc, size: Size::Tasks(10), ..Options::default() };
    assert_eq!(cluster(&workflow, &size).jobs()[1], (10..20).collect::<Vec<_>>());
}
