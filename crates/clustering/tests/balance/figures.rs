//! Published figures (Table 5), and figures of an independent prototype on the same traces.

use crate::support::{read_trace, traces, workflow};
use pleach_clustering::{LevelMetrics, Reading, Workflow, metrics};

/// Checks values of consecutive levels, from the first.
fn check(found: &[LevelMetrics], of: fn(&LevelMetrics) -> f64, expected: &[f64], tolerance: f64) {
    for (metrics, expected) in found.iter().zip(expected) {
        let found = of(metrics);
        assert!(
            (found - expected).abs() <= tolerance,
            "level {}: {found}, {expected} expected",
            metrics.level
        );
    }
    assert!(found.len() >= expected.len());
}

fn hdv(metrics: &LevelMetrics) -> f64 {
    metrics.variance.hdv
}

fn table(workflow: &Workflow) -> Vec<LevelMetrics> {
    metrics(workflow, Reading::Table)
}

#[test]
fn sipht_has_the_distances_of_table_5() {
    let Some(data) = traces("sipht_has_the_distances_of_table_5") else { return };
    let sipht = read_trace(&data.join("dag/Sipht_1000.dag.gz"));
    // The table has a sixth level: a task without run time after each of the 32 last tasks.
    let last = sipht.levels()[sipht.levels().len() - 1].clone();
    let mut tasks = sipht.tasks().to_vec();
    let mut edges: Vec<_> = sipht.edges().collect();
    for parent in &last {
        edges.push((*parent, tasks.len() as u32));
        let mut task = tasks[*parent as usize].clone();
        (task.id, task.seconds) = (format!("{}-end", task.id), 0.0);
        tasks.push(task);
    }
    let sipht = Workflow::new("Sipht_1000", tasks, sipht.files().to_vec(), &edges).expect("a workflow");
    let found = table(&sipht);
    assert_eq!(found.iter().map(|level| level.tasks).collect::<Vec<_>>(), [712, 64, 128, 32, 32, 32]);
    check(&found, hdv, &[53198.8, 1195.59, 3013.76, 342.52, 228.35, 114.17], 0.05);
    check(&found, hdv, &[53199.0, 1196.0, 3013.0, 342.0, 228.0, 114.0], 1.0);
    check(&found, |level| level.variance.hrv, &[3.364, 1.064, 1.717, 0.0, 0.262, 0.0], 5e-4);
    assert!((found[0].variance.hifv - 0.0023).abs() < 5e-5);
}

/// Returns Epigenomics: lanes of chains of four tasks between a first and a last task, and three tasks that join the lanes.
fn epigenomics(lanes: u32, chains: u32) -> Workflow {
    let mut edges = Vec::new();
    let mut count = 2 * lanes + 3;
    for lane in 0..lanes {
        let (first, last) = (lane, lanes + lane);
        for _ in 0..chains {
            edges.push((first, count));
            edges.extend((0..3).map(|step| (count + step, count + step + 1)));
            edges.push((count + 3, last));
            count += 4;
        }
        edges.push((last, 2 * lanes));
    }
    edges.extend([(2 * lanes, 2 * lanes + 1), (2 * lanes + 1, 2 * lanes + 2)]);
    workflow(&vec![1.0; count as usize], &edges)
}

#[test]
fn epigenomics_has_the_distances_of_table_5() {
    let found = table(&epigenomics(3, 13));
    assert_eq!(found.iter().map(|level| level.tasks).collect::<Vec<_>>(), [3, 39, 39, 39, 39, 3, 1, 1, 1]);
    check(&found[1..], hdv, &[578.1, 421.2, 264.3, 107.4, 0.0, 0.0, 0.0, 0.0], 0.05);
}

#[test]
fn levels_of_few_kinds_have_the_distances_of_table_5() {
    // The last level of LIGO: 18 exits.
    check(&table(&workflow(&[1.0; 18], &[])), hdv, &[43.73], 0.005);
    // The third level of CyberShake: 347 tasks with one child, and one exit.
    let edges: Vec<_> = (0..347).map(|task| (task, 348)).collect();
    check(&table(&workflow(&[1.0; 349], &edges)), hdv, &[26.19], 0.005);
}

#[test]
fn montage_and_cybershake_have_the_distances_of_the_prototype() {
    let Some(data) = traces("montage_and_cybershake_have_the_distances_of_the_prototype") else { return };
    check(&table(&read_trace(&data.join("dax/Montage_300.xml.gz"))), hdv, &[189.74], 0.005);
    let cybershake = read_trace(&data.join("dax/CyberShake_500.xml.gz"));
    let found = table(&cybershake);
    check(&found, hdv, &[1.22, 0.0, 22.05, 0.0], 0.005);
    assert!((found[2].variance.hifv - 0.0003).abs() < 5e-5);
    let by_definition = metrics(&cybershake, Reading::Definition)[2].variance.hifv;
    assert!((by_definition - 0.063).abs() < 1e-3, "{by_definition}");
}

#[test]
fn one_graph_in_two_formats_has_the_same_metrics() {
    let Some(data) = traces("one_graph_in_two_formats_has_the_same_metrics") else { return };
    let (a, b) = (read_trace(&data.join("dax/Montage_25.xml")), read_trace(&data.join("dag/Montage_25.dag")));
    assert!((a.total_seconds() - 227.75).abs() < 1e-6 && (b.total_seconds() - 227.75).abs() < 1e-6);
    for reading in [Reading::Definition, Reading::Table] {
        for (a, b) in metrics(&a, reading).iter().zip(metrics(&b, reading)) {
            for (a, b) in
                [(a.variance.hrv, b.variance.hrv), (a.variance.hifv, b.variance.hifv), (hdv(a), hdv(&b))]
            {
                assert!((a - b).abs() < 1e-12);
            }
        }
    }
    check(&table(&a), hdv, &[1.79], 0.005);
}
