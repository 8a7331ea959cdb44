//! Laws of replanning: started instances stay, limits hold, and without a change no instance moves.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use pleach_reuse::{
    Buckets, Member, MergeProblem, PartitionError, PreviousPlan, ReuseTree, TaskCosts, TrtmaOptions,
    bucket_costs, replan, trtma,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

#[derive(Debug, Clone)]
struct Change {
    problem: MergeProblem,
    /// Number of previous instances.
    known: usize,
    begun: Vec<bool>,
    before: NonZeroUsize,
    after: NonZeroUsize,
}

fn change(most_added: usize) -> impl Generator<Value = Change> {
    (1_usize..5, 1_usize..24, 0..=most_added).prop_flat_map(|(levels, known, added)| {
        let instances = known + added;
        let limit = || (1_usize..9).prop_map(|limit| NonZeroUsize::new(limit).unwrap());
        let tables = (vec(0_u32..3, levels * instances), vec(0_u32..3, instances), vec(any::<bool>(), known));
        (tables, limit(), limit()).prop_map(move |((keys, inputs, begun), before, after)| {
            let problem = MergeProblem::new(levels, inputs, keys, TaskCosts::Count).unwrap();
            Change { problem, known, begun, before, after }
        })
    })
}

/// Plans the first instances as a separate problem.
fn previous(change: &Change) -> Buckets {
    let (problem, known) = (&change.problem, change.known);
    let members = || problem.members().take(known);
    let inputs = members().map(|member| problem.inputs(member)).collect();
    let keys = members().flat_map(|member| problem.keys(member).to_vec()).collect();
    let part = MergeProblem::new(problem.levels(), inputs, keys, TaskCosts::Count).unwrap();
    trtma(&part, &ReuseTree::build(&part), change.before, TrtmaOptions::default()).0
}

struct Outcome {
    before: Vec<u32>,
    after: Vec<u32>,
    moved: Vec<Member>,
    /// Cost of the unstarted instances of each bucket that has any.
    waiting_before: BTreeMap<u32, f64>,
    waiting_after: BTreeMap<u32, f64>,
}

fn outcome(change: &Change) -> Outcome {
    let buckets = previous(change);
    let tree = ReuseTree::build(&change.problem);
    let previous = PreviousPlan { buckets: &buckets, max_buckets: change.before, has_other_costs: false };
    let begun = |member: Member| change.begun[member.0 as usize];
    let found = replan(&change.problem, &tree, previous, begun, change.after).unwrap();
    assert_eq!(found.buckets().check_partition(&change.problem), Ok(()));
    let waiting = |bucket_of: &[u32]| {
        let mut members: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
        for (member, bucket) in (0..).map(Member).zip(bucket_of) {
            if member.0 as usize >= change.known || !begun(member) {
                members.entry(*bucket).or_default().push(member);
            }
        }
        let cost = |members: Vec<Member>| {
            let mut buckets = Buckets::default();
            buckets.push(members);
            bucket_costs(&tree, &buckets, |_| true)[0].cost
        };
        members.into_iter().map(|(bucket, members)| (bucket, cost(members))).collect()
    };
    let before = buckets.bucket_of();
    Outcome {
        waiting_before: waiting(&before),
        waiting_after: waiting(&found.bucket_of),
        before,
        after: found.bucket_of,
        moved: found.moved,
    }
}

fn dearest(costs: &BTreeMap<u32, f64>) -> f64 {
    costs.values().copied().fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn started_instances_stay_and_limits_hold(change in change(8)) {
        let found = outcome(&change);
        let differs = |member: &Member| found.before[member.0 as usize] != found.after[member.0 as usize];
        let moved: Vec<Member> = (0..change.known as u32).map(Member).filter(differs).collect();
        prop_assert_eq!(&found.moved, &moved);
        prop_assert!(moved.iter().all(|member| !change.begun[member.0 as usize]));
        prop_assert!(found.waiting_after.len() <= change.after.get());
    }

    #[test]
    fn replan_without_changes_moves_nothing(mut change in change(0)) {
        change.after = change.before;
        let found = outcome(&change);
        prop_assert_eq!(found.moved, []);
        prop_assert_eq!(found.before, found.after);
    }

    #[test]
    fn leaving_worker_moves_only_instances_of_dropped_buckets(change in change(0)) {
        let change = Change {
            after: change.after.min(change.before),
            before: change.after.max(change.before),
            ..change
        };
        let found = outcome(&change);
        let left: BTreeSet<u32> = found.moved.iter().map(|member| found.before[member.0 as usize]).collect();
        let too_many = found.waiting_before.len().saturating_sub(change.after.get());
        prop_assert_eq!(left.len(), too_many);
        prop_assert!(left.iter().all(|bucket| !found.waiting_after.contains_key(bucket)));
        prop_assert!(found.moved.iter().all(|member| found.waiting_before.contains_key(&found.after[member.0 as usize])));
    }

    #[test]
    fn a_join_moves_into_new_buckets_only_and_lowers_the_makespan(change in change(0)) {
        let change = Change {
            after: change.after.max(change.before).saturating_add(1),
            before: change.after.min(change.before),
            ..change
        };
        let found = outcome(&change);
        let old = found.before.iter().max().map_or(0, |bucket| bucket + 1);
        prop_assert!(found.moved.iter().all(|member| found.after[member.0 as usize] >= old));
        prop_assert!(dearest(&found.waiting_after) <= dearest(&found.waiting_before));
        if found.waiting_before.len() == 1 && !found.moved.is_empty() {
            // The only bucket is no longer as expensive.
            prop_assert!(dearest(&found.waiting_after) < dearest(&found.waiting_before));
        }
    }

    #[test]
    fn inputs_stay_apart_while_they_can(change in change(8)) {
        let inputs: BTreeSet<u32> = change.problem.members().map(|member| change.problem.inputs(member)).collect();
        let enough = |limit: NonZeroUsize| limit.saturating_add(inputs.len() - 1);
        let change = Change { before: enough(change.before), after: enough(change.after), ..change };
        let found = outcome(&change);
        let mut input_of: BTreeMap<u32, u32> = BTreeMap::new();
        for (member, bucket) in change.problem.members().zip(&found.after) {
            if member.0 as usize >= change.known || !change.begun[member.0 as usize] {
                let input = change.problem.inputs(member);
                prop_assert_eq!(*input_of.entry(*bucket).or_insert(input), input);
            }
        }
    }
}

/// Replans for other task costs, with as many buckets as before. Returns the buckets.
fn with_costs(problem: &MergeProblem, buckets: &Buckets, begun: impl Fn(Member) -> bool) -> Buckets {
    let most = NonZeroUsize::new(buckets.iter().count()).unwrap();
    let previous = PreviousPlan { buckets, max_buckets: most, has_other_costs: true };
    replan(problem, &ReuseTree::build(problem), previous, begun, most).unwrap().buckets()
}

proptest! {
    #[test]
    fn other_costs_never_lengthen_the_makespan_and_started_instances_stay(
        change in change(0),
        costs in vec(0.5_f64..50.0, 5),
    ) {
        let buckets = previous(&change);
        let mut problem = change.problem.clone();
        problem.scale_costs(|level, _| costs[level]);
        let begun = |member: Member| change.begun[member.0 as usize];
        let after = with_costs(&problem, &buckets, begun);
        prop_assert_eq!(after.check_partition(&problem), Ok(()));
        let tree = ReuseTree::build(&problem);
        let makespan = |buckets: &Buckets| {
            let costs = bucket_costs(&tree, buckets, |member| !begun(member));
            costs.iter().map(|bucket| bucket.cost).fold(0.0, f64::max)
        };
        prop_assert!(makespan(&after) <= makespan(&buckets) + 1e-6);
        // Buckets keep their started instances together.
        let (before, now) = (buckets.bucket_of(), after.bucket_of());
        for (a, b) in problem.members().zip(problem.members().skip(1)).filter(|(a, b)| begun(*a) && begun(*b)) {
            let same = |of: &[u32]| of[a.0 as usize] == of[b.0 as usize];
            prop_assert_eq!(same(&before), same(&now));
        }
    }
}

#[test]
fn buckets_are_evened_out_by_new_costs() {
    // Two buckets of 8 tasks each: seven instances that share their first task, and four that share nothing.
    let keys = [[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [0, 6], [1, 7], [2, 8], [3, 9], [4, 10]];
    let mut problem = MergeProblem::new(2, vec![0; 11], keys.concat(), TaskCosts::Count).unwrap();
    let mut buckets = Buckets::default();
    buckets.push((0..7).map(Member));
    buckets.push((7..11).map(Member));
    assert_eq!(with_costs(&problem, &buckets, |_| false).bucket_of(), buckets.bucket_of());
    // The second task turns out to take ten times as long: 71 and 44. Moving one instance makes it 61 and 55.
    problem.scale_costs(|level, _| if level == 1 { 10.0 } else { 1.0 });
    let after = with_costs(&problem, &buckets, |_| false);
    assert_eq!(after.iter().map(<[Member]>::len).collect::<Vec<_>>(), [6, 5]);
}

#[test]
fn a_second_worker_gets_half_of_what_waits() {
    // 12 instances of three tasks, four under each first task. One worker had all, and two have started.
    let keys = (0..12).flat_map(|instance: u32| [instance / 4, instance / 2, instance]).collect();
    let problem = MergeProblem::new(3, vec![0; 12], keys, TaskCosts::Count).unwrap();
    let mut buckets = Buckets::default();
    buckets.push(problem.members());
    let previous = PreviousPlan { buckets: &buckets, max_buckets: NonZeroUsize::MIN, has_other_costs: false };
    let two = NonZeroUsize::new(2).unwrap();
    let found = replan(&problem, &ReuseTree::build(&problem), previous, |member| member.0 < 2, two).unwrap();
    let costs = bucket_costs(&ReuseTree::build(&problem), &found.buckets(), |member| member.0 >= 2);
    assert_eq!(costs.iter().map(|bucket| bucket.cost).collect::<Vec<_>>(), [10.0, 10.0]);
}

#[test]
fn added_instance_joins_the_bucket_with_most_shared_tasks() {
    // Two buckets of five tasks each. One new instance shares two tasks with the second bucket, and the other
    // shares nothing.
    let keys = [[1, 1, 1], [1, 2, 1], [2, 1, 1], [2, 2, 1], [2, 2, 2], [3, 1, 1]];
    let problem = MergeProblem::new(3, vec![0; 6], keys.concat(), TaskCosts::Count).unwrap();
    let tree = ReuseTree::build(&problem);
    let mut buckets = Buckets::default();
    buckets.push([Member(0), Member(1)]);
    buckets.push([Member(2), Member(3)]);
    let after = |before: usize, after: usize| {
        let [before, after] = [before, after].map(|limit| NonZeroUsize::new(limit).unwrap());
        let previous = PreviousPlan { buckets: &buckets, max_buckets: before, has_other_costs: false };
        replan(&problem, &tree, previous, |_| false, after).unwrap()
    };
    // While buckets can be opened, none exceeds the most expensive one.
    assert_eq!(after(4, 4).bucket_of, [0, 0, 1, 1, 2, 3]);
    // At the limit, the instance that shares two tasks joins their bucket, and the other one joins the
    // cheapest.
    assert_eq!(after(2, 2).bucket_of, [0, 0, 1, 1, 1, 0]);
    assert_eq!(after(2, 2).moved, []);
}

#[test]
fn a_plan_of_other_instances_is_refused() {
    let problem = MergeProblem::new(1, vec![0; 3], vec![1, 2, 3], TaskCosts::Count).unwrap();
    let tree = ReuseTree::build(&problem);
    let plan = |lists: &[&[u32]]| {
        let mut buckets = Buckets::default();
        lists.iter().for_each(|list| buckets.push(list.iter().copied().map(Member)));
        let previous =
            PreviousPlan { buckets: &buckets, max_buckets: NonZeroUsize::MIN, has_other_costs: false };
        replan(&problem, &tree, previous, |_| false, NonZeroUsize::MIN).map(|found| found.bucket_of)
    };
    assert_eq!(plan(&[&[0, 1]]), Ok(vec![0, 0, 0]));
    assert_eq!(plan(&[&[0, 0]]), Err(PartitionError::Occurrences { member: 0, buckets: 2 }));
    assert_eq!(plan(&[&[0, 2]]), Err(PartitionError::Unknown { member: 2, instances: 2 }));
    assert_eq!(plan(&[&[0, 1, 2, 3]]), Err(PartitionError::Unknown { member: 3, instances: 3 }));
}
