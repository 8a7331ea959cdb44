//! Replans of ranges: contiguous, of unstarted instances only, and none for ranges that stay.

use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_dispatch::study::{NewBuckets, Replanner, Study, StudySnapshot};
use pleach_dispatch::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_planner::{RangeTables, ReplannedStage, StudyReplanner};
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{Member, MergeProblem, ReuseTree, Strategy, TaskCosts, TaskGraph, tree_order};
use pleach_workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Instances of each of two tiles.
const EACH: u32 = 12;

/// Instances of two tasks on two tiles. The first task has three values, the second one for each instance.
fn problem() -> MergeProblem {
    let all = 0..2 * EACH;
    let keys = all.clone().flat_map(|instance| [instance % 3, instance]).collect();
    let inputs = all.map(|instance| instance / EACH).collect();
    MergeProblem::new(2, inputs, keys, TaskCosts::PerLevel(vec![4.0, 1.0])).expect("a problem")
}

fn stage() -> Stage {
    let region = |name: &str| RegionDecl { region: name.to_owned(), element: ElementType::Gray8 };
    let task = |name: &str, reads| Task {
        name: name.to_owned(),
        description: String::new(),
        operation: name.to_owned(),
        version: 1,
        arguments: Vec::new(),
        reads: vec![reads],
        writes: vec![region(name)],
        guard: None,
    };
    let read = TaskInput::Task { task: 0, output: 0 };
    Stage {
        name: "stage".to_owned(),
        description: String::new(),
        inputs: vec![StageInput::new(region("tile"), InputOrigin::Input(0))],
        outputs: vec![StageOutput::new(region("t2"), 1, 0)],
        parameters: Vec::new(),
        tasks: vec![task("t1", TaskInput::StageInput(0)), task("t2", read)],
        switch: None,
    }
}

/// Returns the study in six ranges, and its replanner.
fn study() -> (Study, StudyReplanner) {
    let (problem, graph) = (problem(), TaskGraph::chain(2));
    let (tree, max_buckets) = (ReuseTree::build(&problem), NonZeroUsize::new(6).expect("not 0"));
    let buckets = Strategy::Ranges { max_buckets }.solve(&problem, &tree).expect("solved");
    let key = |number: u32| RegionKey(u128::from(number).to_be_bytes());
    let instance = |member: Member| InstancePlan {
        stage: 0,
        parameters: Vec::new(),
        inputs: vec![key(problem.inputs(member))],
        outputs: vec![OutputPlan { key: key(100 + member.0), stored: false, reported: true }],
        parents: Vec::new(),
    };
    let id = |member: &Member| InstanceId(member.0);
    let bucket = |members: &[Member]| BucketPlan { instances: members.iter().map(id).collect(), pixels: 64 };
    let plan = ExecutionPlan {
        stages: vec![stage()],
        instances: problem.members().map(instance).collect(),
        buckets: buckets.iter().map(bucket).collect(),
        sharing: ReuseScope::Dataflow,
        ..ExecutionPlan::default()
    };
    let members: Vec<InstanceId> = problem.members().map(|member| id(&member)).collect();
    let ranges = Some(RangeTables::new(&problem, &graph));
    let stage = ReplannedStage::new(members, vec![64; problem.len()], problem, ranges);
    let replanner = StudyReplanner::new(vec![stage], max_buckets, NonZeroUsize::MIN);
    (Study::new(plan).expect("a plan that keeps the rules"), replanner)
}

/// Checks that buckets are contiguous among the unstarted instances, and of one tile.
fn check(buckets: &[BucketPlan], snapshot: &StudySnapshot) {
    let order = tree_order(&problem(), &TaskGraph::chain(2)).into_iter().map(|member| InstanceId(member.0));
    let unstarted: Vec<InstanceId> = order.filter(|instance| snapshot.is_unstarted(*instance)).collect();
    let mut seen = BTreeSet::new();
    for BucketPlan { instances, .. } in buckets {
        let start = unstarted.iter().position(|instance| *instance == instances[0]).expect("unstarted");
        assert_eq!(instances[..], unstarted[start..start + instances.len()]);
        assert!(instances.iter().all(|instance| seen.insert(*instance)), "{instances:?} are in two buckets");
        assert!(instances.iter().all(|instance| instance.0 / EACH == instances[0].0 / EACH));
    }
}

#[test]
fn more_slots_make_more_ranges_of_the_unstarted_instances() {
    let (mut study, mut replanner) = study();
    let granted = study.grant(BucketId(0), WorkerId(0), LeaseId(0), Duration::ZERO).expect("a ready bucket");
    assert_eq!(granted.instances.len(), 4);
    let snapshot = study.snapshot();
    assert_eq!(replanner.replan(&snapshot, 2), None, "3 ranges for each slot exist");
    let buckets = replanner.replan(&snapshot, 4).expect("more ranges");
    check(&buckets, &snapshot);
    // 20 of 24 instances are unstarted, so 10 of 12 ranges are theirs.
    assert_eq!(buckets.len(), 10);
    assert_eq!(buckets.iter().map(|bucket| bucket.instances.len()).sum::<usize>(), 20);
}

#[test]
fn only_the_ranges_that_are_split_change() {
    let (study, mut replanner) = study();
    let snapshot = study.snapshot();
    let buckets = replanner.replan(&snapshot, 3).expect("more ranges");
    check(&buckets, &snapshot);
    // Nine ranges instead of six: three of four instances each are halved.
    assert_eq!(buckets.iter().map(|bucket| bucket.instances.len()).collect::<Vec<_>>(), [2; 6]);
}

#[test]
fn ranges_that_stay_are_left_out() {
    let (mut study, mut replanner) = study();
    let snapshot = study.snapshot();
    let fewer = replanner.replan(&snapshot, 1).expect("fewer ranges");
    check(&fewer, &snapshot);
    // One of six ranges of four instances stays, and two and three of the others are joined.
    let mut sizes: Vec<usize> = fewer.iter().map(|bucket| bucket.instances.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [8, 12]);
    let merged = study.handle_replanned(NewBuckets::new(fewer).expect("each instance once"));
    assert_eq!(merged.expect("buckets of the study").outdated, 0);
    // Three ranges for two tiles: one tile is a single range.
    let lone = |bucket: &BucketPlan| bucket.instances.len() == EACH as usize;
    let (snapshot, mut replanner) = (study.snapshot(), self::study().1);
    let again = replanner.replan(&snapshot, 1);
    assert_eq!(again, None, "the ranges are those of the last replan");
    let more = replanner.replan(&snapshot, 2).expect("more ranges");
    check(&more, &snapshot);
    assert!(!more.iter().any(lone), "{more:?}");
}
