//! The planner on the authors' own study: the 458 parameter sets of their 15-parameter MOAT run. Published
//! and independently planned numbers are in the project's design notes ("Oracles on the authors' own study").

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use std::num::NonZeroUsize;

use crate::application::{TASKS, task_graph};
use crate::data::data;
use pleach_reuse::{
    Dataflow, Interner, LeftoverRule, MergeProblem, ReuseSummary, ReuseTree, Strategy, TaskCosts,
    TrtmaOptions, best_order, trtma,
};

/// Returns the study as a problem on one tile. Returns `None`, and logs to stderr, without the test data.
fn moat_458(test: &str) -> Option<MergeProblem> {
    moat_458_costing(test, TaskCosts::Count)
}

fn moat_458_costing(test: &str, costs: TaskCosts) -> Option<MergeProblem> {
    let path = data(test)?.join("sensitivity/rtf_moat/parameter_sets_458.csv");
    let mut table = csv::Reader::from_path(path).unwrap();
    let columns = table.headers().unwrap().clone();
    let column = |name: &&str| columns.iter().position(|column| column == *name).unwrap();
    let tasks = TASKS.map(|parameters| parameters.iter().map(column).collect::<Vec<_>>());
    let mut interners: [Interner<Vec<String>>; 7] = Default::default();
    let mut keys = Vec::new();
    for record in table.records() {
        let record = record.unwrap();
        for (task, interner) in tasks.iter().zip(&mut interners) {
            keys.push(interner.intern(task.iter().map(|column| record[*column].to_owned()).collect()));
        }
    }
    let instances = keys.len() / TASKS.len();
    Some(MergeProblem::new(TASKS.len(), vec![0; instances], keys, costs).unwrap())
}

/// Returns reuse in percent with two decimals, and the number of buckets.
fn reuse(problem: &MergeProblem, strategy: Strategy) -> (String, usize) {
    let tree = ReuseTree::build(problem);
    let buckets = strategy.solve(problem, &tree).unwrap();
    let figures = ReuseSummary::new(problem, &tree, &buckets, |_| true);
    (format!("{:.2}", 100.0 * figures.reuse_fraction), figures.buckets)
}

fn rtma(max_bucket_size: usize, ending: LeftoverRule) -> Strategy {
    Strategy::Rtma { max_bucket_size: NonZeroUsize::new(max_bucket_size).unwrap(), ending }
}

#[test]
fn reuse_tree_of_the_authors_study() {
    let Some(problem) = moat_458("reuse_tree_of_the_authors_study") else { return };
    let tree = ReuseTree::build(&problem);
    assert_eq!(tree.nodes_per_level(), [173, 202, 258, 315, 343, 400, 458]);
    assert_eq!((tree.len(), problem.len() * problem.levels()), (2149, 3206));
}

#[test]
fn rtma_reuse_on_the_authors_study() {
    let Some(problem) = moat_458("rtma_reuse_on_the_authors_study") else { return };
    let found = [2, 4, 7, 8].map(|size| reuse(&problem, rtma(size, LeftoverRule::WholeGroups)));
    let expected = [("23.46", 285), ("30.26", 205), ("32.47", 176), ("32.97", 173)];
    assert_eq!(found, expected.map(|(reuse, buckets)| (reuse.to_owned(), buckets)));
}

#[test]
fn naive_reuse_on_the_authors_study() {
    let Some(problem) = moat_458("naive_reuse_on_the_authors_study") else { return };
    let found = [2, 4, 7, 8].map(|size| {
        let max_bucket_size = NonZeroUsize::new(size).unwrap();
        reuse(&problem, Strategy::Naive { max_bucket_size }).0
    });
    assert_eq!(found, ["16.16", "25.20", "27.85", "30.19"]);
}

#[test]
fn other_endings_share_less_on_the_authors_study() {
    let Some(problem) = moat_458("other_endings_share_less_on_the_authors_study") else { return };
    let found = |ending| [4, 7, 8].map(|size| reuse(&problem, rtma(size, ending)).0);
    assert_eq!(found(LeftoverRule::Single), ["17.72", "4.77", "2.53"]);
    assert_eq!(found(LeftoverRule::ChunkUnderRoot), ["27.67", "28.04", "30.54"]);
}

#[test]
fn stage_level_merging_alone_shares_no_task() {
    let Some(problem) = moat_458("stage_level_merging_alone_shares_no_task") else { return };
    assert_eq!(reuse(&problem, Strategy::Stage), ("0.00".to_owned(), 458));
}

/// MaxBuckets, an independent planner's most expensive and cheapest bucket in tasks, and its reuse in
/// percent.
const TRTMA: [(usize, f64, f64, f64); 5] = [
    (24, 94.0, 87.0, 32.1),
    (48, 49.0, 42.0, 32.1),
    (96, 26.0, 19.0, 30.8),
    (192, 15.0, 8.0, 25.0),
    (384, 14.0, 7.0, 11.0),
];

#[test]
fn trtma_on_the_authors_study() {
    let Some(problem) = moat_458("trtma_on_the_authors_study") else { return };
    let tree = ReuseTree::build(&problem);
    for (max_buckets, max_cost, min_cost, reuse) in TRTMA {
        let limit = NonZeroUsize::new(max_buckets).unwrap();
        let (buckets, report) = trtma(&problem, &tree, limit, TrtmaOptions::default());
        let found = ReuseSummary::new(&problem, &tree, &buckets, |_| true);
        // The order of equal costs changes reuse by about a percentage point.
        assert!(
            (100.0 * found.reuse_fraction - reuse).abs() < 1.0,
            "{max_buckets}: {}",
            found.reuse_fraction
        );
        assert!((found.max_bucket_cost - max_cost).abs() <= 1.0, "{max_buckets}: {}", found.max_bucket_cost);
        assert!((found.min_bucket_cost - min_cost).abs() <= 1.0, "{max_buckets}: {}", found.min_bucket_cost);
        assert_eq!((found.buckets, report.mixed_buckets), (max_buckets, 0));
    }
}

/// MaxBuckets, the costs of HRB's most expensive and cheapest bucket in tasks, and their HRV: instances of equal cost are
/// dealt out in turn, counted by an independent script.
const HRB: [(usize, f64, f64, f64); 5] = [
    (24, 140.0, 133.0, 0.0148),
    (48, 70.0, 63.0, 0.0528),
    (96, 35.0, 28.0, 0.0886),
    (192, 21.0, 14.0, 0.2046),
    (384, 14.0, 7.0, 0.3311),
];

/// Neighbors of a trajectory, which share most, are all in different buckets: balance alone keeps no reuse.
#[test]
fn hrb_on_the_authors_study() {
    let Some(problem) = moat_458("hrb_on_the_authors_study") else { return };
    let tree = ReuseTree::build(&problem);
    for (limit, max_cost, min_cost, hrv) in HRB {
        let max_buckets = NonZeroUsize::new(limit).unwrap();
        let buckets = Strategy::Hrb { max_buckets }.solve(&problem, &tree).unwrap();
        let found = ReuseSummary::new(&problem, &tree, &buckets, |_| true);
        assert_eq!((found.buckets, found.reuse_fraction), (limit, 0.0));
        assert_eq!((found.max_bucket_cost, found.min_bucket_cost), (max_cost, min_cost));
        assert!((found.bucket_cost_hrv - hrv).abs() < 1e-4, "{limit}: {}", found.bucket_cost_hrv);
    }
}

/// Seconds of each task, thesis Table 4.3.
const TABLE_4_3: [f64; 7] = [1.14, 1.99, 0.65, 0.33, 0.76, 3.76, 0.86];

#[test]
fn dataflow_of_the_authors_study() {
    let costs = TaskCosts::PerLevel(TABLE_4_3.to_vec());
    let Some(problem) = moat_458_costing("dataflow_of_the_authors_study", costs) else { return };
    let graph = task_graph();
    let dataflow = Dataflow::build(&problem, &graph);
    assert_eq!(dataflow.tasks_per_level(), [173, 5, 99, 171, 343, 400, 458]);
    let figures = dataflow.figures(&problem);
    let all = problem.len() as f64 * TABLE_4_3.iter().sum::<f64>();
    let percent = |fraction: f64| format!("{:.2}", 100.0 * fraction);
    let of_tree = |problem: &MergeProblem| percent(1.0 - ReuseTree::build(problem).unique_cost() / all);
    // By cost, an independent prototype gets 31 % and 44 % for a study of 640 evaluations.
    assert_eq!(of_tree(&problem), "30.30");
    assert_eq!(percent(figures.cost_reuse_fraction), "42.79");
    assert_eq!(percent(figures.reuse_fraction), "48.57");
    // A tree gets most of that if the background task follows the candidates.
    let order = best_order(&problem, &graph);
    assert_eq!((order.tasks.as_slice(), order.exact), (&[1, 2, 0, 3, 4, 5, 6][..], true));
    assert_eq!(of_tree(&problem.reordered(&graph, &order.tasks).unwrap()), "39.47");
}
