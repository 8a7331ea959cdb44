//! Laws of the methods, against slow references.

use crate::laws::graphs;
use crate::reference;
use crate::support::{read_trace, traces, workflow};
use pleach_clustering::chains::{bounded_chains, chains};
use pleach_clustering::{
    Candidates, Clustering, Method, Options, Reading, Size, Vertical, Workflow, cluster, reduced,
};
use proptest::prelude::*;

pub(crate) const METHODS: [Method; 7] = [
    Method::None,
    Method::Hc,
    Method::Hrb,
    Method::Hifb,
    Method::Hdb,
    Method::Dfjs { max_seconds: 3.0 },
    Method::Afjs { max_seconds: 5.0, max_bytes: 100.0 },
];

const VERTICALS: [Vertical; 4] = [Vertical::None, Vertical::Prior, Vertical::Posterior, Vertical::Only];

/// Returns the jobs of a level.
fn of_level<'a>(clustering: &'a Clustering, workflow: &Workflow, level: usize) -> Vec<&'a Vec<u32>> {
    clustering.jobs().iter().filter(|job| workflow.level_of(job[0]) == level).collect()
}

fn seconds(workflow: &Workflow, job: &[u32]) -> f64 {
    job.iter().map(|task| workflow.tasks()[*task as usize].seconds).sum()
}

fn chains_of(workflow: &Workflow, jobs: usize, is_bounded: bool) -> Vec<Vec<u32>> {
    if is_bounded { bounded_chains(workflow, jobs) } else { chains(workflow) }
}

/// Checks that each pair of tasks of a job is in one chain or, by chains if they come first, in one level.
fn check_jobs(
    workflow: &Workflow,
    clustering: &Clustering,
    vertical: Vertical,
    chains: Vec<Vec<u32>>,
) -> Result<(), TestCaseError> {
    let chains = Clustering::new(workflow, chains).expect("chains");
    let chain_of = chains.job_of();
    let levels = chains.workflow(workflow).expect("chains");
    for job in clustering.jobs() {
        for (a, b) in job.iter().zip(&job[1..]) {
            let in_chain = chain_of[*a as usize] == chain_of[*b as usize];
            let in_level = workflow.level_of(*a) == workflow.level_of(*b);
            let level = |task: u32| levels.level_of(chain_of[task as usize]);
            match vertical {
                Vertical::None => prop_assert!(in_level),
                Vertical::Only => prop_assert!(in_chain),
                Vertical::Prior => prop_assert!(in_chain || level(*a) == level(*b)),
                Vertical::Posterior => {}
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn clusterings_are_partitions_without_cycles(workflow in graphs(), jobs in 1..6_usize, bounded_chains: bool) {
        let chains = chains_of(&workflow, jobs, bounded_chains);
        for method in METHODS {
            for vertical in VERTICALS {
                for candidates in [Candidates::Spread, Candidates::Examples] {
                    let options =
                        Options { method, size: Size::Jobs(jobs), vertical, bounded_chains, candidates, seed: 5 };
                    let found = cluster(&workflow, &options);
                    prop_assert_eq!(&Clustering::new(&workflow, found.jobs().to_vec()).expect("valid"), &found);
                    check_jobs(&workflow, &found, vertical, chains.clone())?;
                }
            }
        }
    }

    #[test]
    fn jobs_of_a_level_have_equal_numbers(workflow in graphs(), jobs in 1..6_usize) {
        let by = |method| cluster(&workflow, &Options { method, size: Size::Jobs(jobs), ..Options::default() });
        for (level, tasks) in workflow.levels().iter().enumerate() {
            let hc = by(Method::Hc);
            let mut lengths: Vec<_> = of_level(&hc, &workflow, level).iter().map(|job| job.len()).collect();
            lengths.sort_unstable();
            prop_assert_eq!(lengths.len(), jobs.min(tasks.len()));
            prop_assert!(lengths[lengths.len() - 1] - lengths[0] <= 1);
            for method in [Method::Hrb, Method::Hifb, Method::Hdb] {
                let found = by(method);
                let found = of_level(&found, &workflow, level);
                prop_assert!(found.len() <= jobs.max(1));
                prop_assert!(found.iter().all(|job| job.len() <= tasks.len().div_ceil(jobs)));
            }
        }
    }

    #[test]
    fn runtime_balancing_bounds_the_longest_job(workflow in graphs(), jobs in 1..6_usize) {
        let found = cluster(&workflow, &Options { method: Method::Hrb, size: Size::Jobs(jobs), ..Options::default() });
        for (level, tasks) in workflow.levels().iter().enumerate().filter(|(_, tasks)| tasks.len() > jobs) {
            let mut sums: Vec<f64> =
                of_level(&found, &workflow, level).iter().map(|job| seconds(&workflow, job)).collect();
            sums.resize(jobs, 0.0);
            let task = tasks.iter().map(|task| seconds(&workflow, &[*task])).fold(0.0, f64::max);
            let longest = sums.iter().copied().fold(0.0, f64::max);
            let shortest = sums.iter().copied().fold(f64::INFINITY, f64::min);
            let total: f64 = sums.iter().sum();
            // Without its first task, a job is no longer than any other one.
            prop_assert!(longest <= shortest + task + 1e-9);
            let parts = jobs as f64;
            prop_assert!(longest <= total / parts + (1.0 - 1.0 / parts) * task + 1e-9);
        }
    }

    #[test]
    fn limits_are_exceeded_by_single_tasks_only(workflow in graphs(), max_seconds in 0.0..8.0_f64) {
        let found = cluster(&workflow, &Options { method: Method::Dfjs { max_seconds }, ..Options::default() });
        for job in found.jobs() {
            prop_assert!(job.len() == 1 || seconds(&workflow, job) <= max_seconds);
        }
        // No job has room for the first task of the next one.
        for pair in found.jobs().windows(2).filter(|pair| workflow.level_of(pair[0][0]) == workflow.level_of(pair[1][0])) {
            prop_assert!(seconds(&workflow, &pair[0]) + seconds(&workflow, &pair[1][..1]) > max_seconds);
            prop_assert!(pair[0].iter().chain(&pair[1]).is_sorted());
        }
    }

    #[test]
    fn balanced_jobs_are_those_of_the_reference(workflow in graphs(), jobs in 1..6_usize, examples: bool) {
        let candidates = if examples { Candidates::Examples } else { Candidates::Spread };
        let graph = reduced(&workflow);
        let by = |method| cluster(&workflow, &Options { method, size: Size::Jobs(jobs), candidates, ..Options::default() });
        let (hrb, hifb, hdb) = (by(Method::Hrb), by(Method::Hifb), by(Method::Hdb));
        for (level, tasks) in workflow.levels().iter().enumerate().filter(|(_, tasks)| tasks.len() > jobs) {
            let balance = |difference: &dyn Fn(u32, &[u32]) -> f64, near: &dyn Fn(u32) -> f64, candidates| {
                reference::balance(&workflow, tasks, jobs, candidates, difference, near)
            };
            let found = |clustering| of_level(clustering, &workflow, level).into_iter().cloned().collect::<Vec<_>>();
            // Without differences, all jobs are near or empty: runtime balancing.
            prop_assert_eq!(found(&hrb), balance(&|_, _| 0.0, &|_| 0.0, Candidates::Spread));
            let impact = |task| reference::impact(&graph, task, Reading::Definition);
            let impacts = |task, job: &[u32]| job.first().map_or(f64::INFINITY, |of| (impact(*of) - impact(task)).abs());
            prop_assert_eq!(found(&hifb), balance(&impacts, &|_| 0.0, candidates));
            let distance = |a, b| f64::from(reference::distance(&graph, a, b, Reading::Definition));
            let distances = |task, job: &[u32]| job.iter().map(|of| distance(task, *of)).fold(f64::INFINITY, f64::min);
            let least = |task: u32| {
                let others: Vec<u32> = tasks.iter().copied().filter(|other| *other != task).collect();
                distances(task, &others)
            };
            prop_assert_eq!(found(&hdb), balance(&distances, &least, candidates));
        }
    }
}

#[test]
fn data_limits_hold_on_a_trace() {
    let Some(data) = traces("data_limits_hold_on_a_trace") else { return };
    let workflow = read_trace(&data.join("dax/LIGO_800.xml.gz"));
    let bytes = |task: u32| {
        let task = &workflow.tasks()[task as usize];
        let files = task.reads.iter().chain(&task.writes);
        files.map(|file| workflow.files()[*file as usize].bytes as f64).sum::<f64>()
    };
    let (max_seconds, max_bytes) = (2000.0, 4e7);
    let found = cluster(
        &workflow,
        &Options { method: Method::Afjs { max_seconds, max_bytes }, ..Options::default() },
    );
    let sum = |job: &[u32]| job.iter().map(|task| bytes(*task)).sum::<f64>();
    for job in found.jobs().iter().filter(|job| job.len() > 1) {
        assert!(seconds(&workflow, job) <= max_seconds && sum(job) <= max_bytes);
    }
    // Both limits close jobs.
    let without_bytes =
        cluster(&workflow, &Options { method: Method::Dfjs { max_seconds }, ..Options::default() });
    assert!(found.jobs().len() > without_bytes.jobs().len());
    assert!(without_bytes.jobs().len() > workflow.levels().len());
}

#[test]
fn ids_of_jobs_may_be_those_of_tasks() {
    let workflow = workflow(&[2.0, 1.0, 1.0], &[(0, 1), (0, 2)]);
    let mut tasks = workflow.tasks().to_vec();
    for (number, task) in tasks.iter_mut().enumerate() {
        task.id = format!("job-{}", number + 1);
    }
    let edges: Vec<_> = workflow.edges().collect();
    let renamed = Workflow::new("jobs", tasks, vec![], &edges).expect("a workflow");
    // The first job has the task `job-1`, and the second job has two tasks.
    let options = Options { size: Size::Jobs(1), ..Options::default() };
    assert_eq!(cluster(&renamed, &options), cluster(&workflow, &options));
}

#[test]
fn chains_of_traces_are_joined() {
    let Some(data) = traces("chains_of_traces_are_joined") else { return };
    // Chains of LIGO are pairs of the first two and of the fourth and fifth level. Those of Montage are two pipelines.
    for (trace, tasks) in
        [("LIGO_800.xml.gz", 800), ("Montage_300.xml.gz", 300), ("CyberShake_500.xml.gz", 500)]
    {
        let workflow = read_trace(&data.join("dax").join(trace));
        let found = cluster(&workflow, &Options { vertical: Vertical::Only, ..Options::default() });
        assert_eq!(found.jobs().iter().map(Vec::len).sum::<usize>(), tasks);
        let joined = found.jobs().iter().filter(|job| job.len() > 1).map(Vec::len).collect::<Vec<_>>();
        match trace {
            "Montage_300.xml.gz" => assert_eq!(joined, [2, 4]),
            "CyberShake_500.xml.gz" => assert!(joined.is_empty()),
            _ => assert!(joined.len() > 200 && joined.iter().all(|length| *length == 2)),
        }
    }
}
