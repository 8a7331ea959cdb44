//! Rows of the paper's experiments.

use super::support::{candidates, five, hc, hrb, workers};
use pleach_clustering::choose::Candidate;
use pleach_clustering::experiments::{
    DATA_FACTORS, ExperimentRow, MANY_WORKERS, experiment_1, experiment_2, experiment_3,
};
use pleach_clustering::simulate::Platform;
use pleach_clustering::{Family, Workflow, generate};

fn horizontal(workflow: &Workflow, platform: &Platform) -> Vec<Candidate> {
    let count = platform.workers().get();
    let shuffled = (1..=10).map(|seed| hc(workflow, count, seed)).collect();
    vec![
        Candidate { method: "hc".into(), vertical: "none".into(), clusterings: shuffled },
        Candidate::new("hrb", "none", hrb(workflow, count)),
    ]
}

fn find<'a>(rows: &'a [ExperimentRow], workflow: &str, method: &str, vertical: &str) -> &'a ExperimentRow {
    let same =
        |row: &&ExperimentRow| row.workflow == workflow && row.method == method && row.vertical == vertical;
    rows.iter().find(same).unwrap()
}

#[test]
fn experiments_have_a_row_for_each_workflow_and_candidate() {
    let Some(workflows) = five("experiments_have_a_row_for_each_workflow_and_candidate") else { return };
    let platform = Platform::default();
    let rows = experiment_1(&workflows, &platform, 0, horizontal);
    assert_eq!(rows.len(), 10);
    let row = find(&rows, "LIGO_800", "hrb", "none");
    assert!((row.gain - 0.191).abs() <= 0.01 && row.half_width.is_none() && row.parameters.is_empty());
    let row = find(&rows, "SIPHT_200", "hc", "none");
    assert!(row.gain < 0.0 && row.half_width.is_some_and(|width| (0.02..0.2).contains(&width)), "{row:?}");
    let rows = experiment_3(&workflows, &platform, 0, |workflow, _| candidates(workflow, 20));
    assert_eq!((rows.len(), rows[0].experiment), (35, 3));
    assert_eq!(find(&rows, "Genome_200", "none", "none").gain, 0.0);
    assert!((find(&rows, "Montage_300", "hrb", "prior").gain - 0.615).abs() <= 0.01);
}

#[test]
fn data_and_workers_vary_in_experiment_2() {
    let Some(workflows) = five("data_and_workers_vary_in_experiment_2") else { return };
    let counts = [workers(5), workers(20)];
    let rows =
        experiment_2(&workflows[0], &Platform::default(), &DATA_FACTORS, &counts, 0, horizontal).unwrap();
    assert_eq!(rows.len(), 16);
    let hrb = |factor: f64, count: f64| {
        let same = |row: &&ExperimentRow| {
            row.method == "hrb" && row.parameters == [("data_factor", factor), ("workers", count)]
        };
        rows.iter().find(same).unwrap().gain
    };
    assert!((hrb(50.0, 20.0) - 0.147).abs() <= 0.01);
    assert!(hrb(1.0, 20.0) > hrb(100.0, 20.0));
    assert!(rows.iter().all(|row| row.experiment == 2 && row.workflow == "LIGO_800"));
}

#[test]
fn runtime_balancing_gains_with_many_workers() {
    let ligo = generate(Family::Ligo, 8000, 1).unwrap();
    let counts = MANY_WORKERS.map(workers);
    let candidates = |workflow: &Workflow, platform: &Platform| {
        let count = platform.workers().get();
        let candidate = |method: &str, clustering| Candidate::new(method, "none", clustering);
        vec![candidate("hc", hc(workflow, count, 1)), candidate("hrb", hrb(workflow, count))]
    };
    let rows = experiment_2(&ligo, &Platform::default(), &[1.0], &counts, 0, candidates).unwrap();
    assert_eq!(rows.len(), 10);
    for pair in rows.chunks(2) {
        assert!(pair[1].gain > 0.1 && pair[1].gain > pair[0].gain, "{pair:?}");
    }
}
