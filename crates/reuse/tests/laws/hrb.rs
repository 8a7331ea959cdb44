//! Horizontal Runtime Balancing compared with a reference implementation that searches lists, and its bounds.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use pleach_reuse::{Buckets, Member, MergeProblem, ReuseTree, Strategy, TaskCosts};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// Problems of up to three inputs. Whole costs make sums independent of their order, and some tasks are free.
fn problem() -> impl Generator<Value = MergeProblem> {
    (1_usize..4, 0_usize..30).prop_flat_map(|(levels, instances)| {
        let (inputs, tables) = (vec(0_u32..3, instances), levels * instances);
        (inputs, vec(0_u32..3, tables), vec(0_u32..6, tables)).prop_map(move |(inputs, keys, costs)| {
            let costs = TaskCosts::PerTask(costs.into_iter().map(f64::from).collect());
            MergeProblem::new(levels, inputs, keys, costs).unwrap()
        })
    })
}

fn solve(problem: &MergeProblem, max_buckets: usize) -> Buckets {
    let max_buckets = NonZeroUsize::new(max_buckets).unwrap();
    Strategy::Hrb { max_buckets }.solve(problem, &ReuseTree::build(problem)).unwrap()
}

/// An item placed into a bucket, and the buckets with room at that time.
struct Placement {
    bucket: usize,
    cost: f64,
    open_buckets: usize,
    open_cost: f64,
}

/// Algorithm 1 with searches in lists: item numbers of each bucket, and all placements.
fn reference(costs: &[f64], buckets: usize) -> (Vec<Vec<usize>>, Vec<Placement>) {
    let max_items = costs.len().div_ceil(buckets);
    let mut rest: Vec<usize> = (0..costs.len()).collect();
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); buckets];
    let mut placements = Vec::new();
    while !rest.is_empty() {
        let longest = rest.iter().map(|item| costs[*item]).fold(0.0, f64::max);
        let next = rest.remove(rest.iter().position(|item| costs[*item] == longest).unwrap());
        let cost = |part: &Vec<usize>| part.iter().map(|item| costs[*item]).sum::<f64>();
        let open: Vec<usize> = (0..buckets).filter(|bucket| parts[*bucket].len() < max_items).collect();
        let open_cost = open.iter().map(|bucket| cost(&parts[*bucket])).sum();
        let key = |bucket: &usize| (cost(&parts[*bucket]), parts[*bucket].len(), *bucket);
        let bucket = open.iter().copied().min_by(|a, b| key(a).partial_cmp(&key(b)).unwrap()).unwrap();
        placements.push(Placement { bucket, cost: costs[next], open_buckets: open.len(), open_cost });
        parts[bucket].push(next);
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    (parts, placements)
}

/// Members of each input, in the order of first appearance.
fn inputs(problem: &MergeProblem) -> Vec<Vec<Member>> {
    let mut inputs: Vec<Vec<Member>> = Vec::new();
    for member in problem.members() {
        let same = |members: &&mut Vec<Member>| problem.inputs(members[0]) == problem.inputs(member);
        match inputs.iter_mut().find(same) {
            Some(members) => members.push(member),
            None => inputs.push(vec![member]),
        }
    }
    inputs
}

/// Buckets of each input: one each, and each further one to the input with the most expensive buckets on average.
fn shares(problem: &MergeProblem, inputs: &[Vec<Member>], max_buckets: usize) -> Vec<usize> {
    let mut shares = vec![1; inputs.len()];
    while shares.iter().sum::<usize>() < max_buckets {
        let mut best: Option<(f64, usize)> = None;
        for (input, members) in inputs.iter().enumerate().filter(|(input, all)| shares[*input] < all.len()) {
            let cost: f64 = members.iter().map(|member| problem.member_cost(*member)).sum();
            let mean = cost / shares[input] as f64;
            let is_better = best
                .is_none_or(|(most, other)| mean > most || (mean == most && shares[input] < shares[other]));
            if is_better {
                best = Some((mean, input));
            }
        }
        let Some((_, input)) = best else { break };
        shares[input] += 1;
    }
    shares
}

fn load(problem: &MergeProblem, members: &[Member]) -> f64 {
    members.iter().map(|member| problem.member_cost(*member)).sum()
}

proptest! {
    #[test]
    fn buckets_are_those_of_the_reference(problem in problem(), max_buckets in 1_usize..12) {
        let inputs = inputs(&problem);
        let mut expected: Vec<Vec<Member>> = Vec::new();
        if inputs.len() <= max_buckets {
            for (members, share) in inputs.iter().zip(shares(&problem, &inputs, max_buckets)) {
                let costs: Vec<f64> = members.iter().map(|member| problem.member_cost(*member)).collect();
                let (parts, _) = reference(&costs, share);
                expected.extend(parts.iter().map(|part| part.iter().map(|item| members[*item]).collect()));
            }
        } else {
            let costs: Vec<f64> = inputs.iter().map(|members| load(&problem, members)).collect();
            let (parts, _) = reference(&costs, max_buckets);
            expected.extend(parts.iter().map(|part| part.iter().flat_map(|input| inputs[*input].clone()).collect()));
        }
        let found: Vec<Vec<Member>> = solve(&problem, max_buckets).iter().map(<[Member]>::to_vec).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn buckets_are_a_partition_within_limit_and_cap(problem in problem(), max_buckets in 1_usize..12) {
        let buckets = solve(&problem, max_buckets);
        prop_assert_eq!(buckets.check_partition(&problem), Ok(()));
        let inputs = inputs(&problem);
        if inputs.len() > max_buckets {
            prop_assert_eq!(buckets.len(), max_buckets);
            return Ok(());
        }
        prop_assert_eq!(buckets.len(), max_buckets.min(problem.len()));
        for members in &inputs {
            let input = problem.inputs(members[0]);
            let of_input: Vec<&[Member]> = buckets.iter().filter(|bucket| problem.inputs(bucket[0]) == input).collect();
            let own: BTreeSet<u32> = of_input.iter().flat_map(|bucket| bucket.iter()).map(|m| problem.inputs(*m)).collect();
            prop_assert_eq!(own.into_iter().collect::<Vec<_>>(), [input]);
            let cap = members.len().div_ceil(of_input.len());
            prop_assert!(of_input.iter().all(|bucket| bucket.len() <= cap), "{cap}: {of_input:?}");
        }
    }

    /// The last instance of a bucket joins the least of the u buckets with room, which is at most their mean. While all R
    /// buckets have room, they hold at most the total without that instance: the bound is the mean of all buckets and
    /// (1 − 1/R) of the longest instance.
    #[test]
    fn longest_bucket_is_near_the_mean(costs in vec(0_u32..50, 1..30), buckets in 1_usize..8) {
        let costs: Vec<f64> = costs.into_iter().map(f64::from).collect();
        let count = costs.len();
        let buckets = buckets.min(count);
        let keys = (0..count as u32).collect();
        let problem = MergeProblem::new(1, vec![0; count], keys, TaskCosts::PerTask(costs.clone())).unwrap();
        let found = solve(&problem, buckets);
        let (_, placements) = reference(&costs, buckets);
        let (total, longest) = (costs.iter().sum::<f64>(), costs.iter().copied().fold(0.0, f64::max));
        for (bucket, members) in found.iter().enumerate() {
            let last = placements.iter().rfind(|placement| placement.bucket == bucket).unwrap();
            let found = load(&problem, members);
            let bound = last.open_cost / last.open_buckets as f64 + last.cost;
            prop_assert!(found <= bound + 1e-9, "{found} of {bound}");
            if last.open_buckets == buckets {
                let bound = total / buckets as f64 + longest * (1.0 - 1.0 / buckets as f64);
                prop_assert!(found <= bound + 1e-9, "{found} of {bound}");
            }
        }
    }

    #[test]
    fn equal_costs_make_equal_numbers(count in 1_usize..60, cost in 0_u32..5, max_buckets in 1_usize..12) {
        let keys = (0..count as u32).collect();
        let costs = TaskCosts::PerLevel(vec![f64::from(cost) * 0.1]);
        let problem = MergeProblem::new(1, vec![0; count], keys, costs).unwrap();
        let sizes: Vec<usize> = solve(&problem, max_buckets).iter().map(<[Member]>::len).collect();
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        prop_assert!(most - least <= 1, "{sizes:?}");
    }

    /// Keys have no influence: the baseline balances without regard to reuse.
    #[test]
    fn shared_tasks_change_no_bucket(problem in problem(), max_buckets in 1_usize..12) {
        let costs = |member| (0..problem.levels()).map(move |level| (member, level));
        let costs = problem.members().flat_map(costs).map(|(member, level)| problem.cost(member, level));
        let inputs: Vec<u32> = problem.members().map(|member| problem.inputs(member)).collect();
        let keys = (0..(problem.levels() * problem.len()) as u32).collect();
        let distinct = MergeProblem::new(problem.levels(), inputs, keys, TaskCosts::PerTask(costs.collect())).unwrap();
        prop_assert_eq!(solve(&problem, max_buckets), solve(&distinct, max_buckets));
    }
}
