//! Horizontal Runtime Balancing (paper 002, Algorithm 1): instances by falling cost, each into the bucket of least
//! cost that has room.
//!
//! Costs are those of instances without reuse: the strategy balances, and reads no key. It is the baseline that
//! separates the effect of balance from that of reuse. A problem of several inputs divides its buckets among them as
//! TRTMA does, and each input is balanced alone. With fewer buckets than inputs, whole inputs are balanced.
//!
//! R buckets take at most C = ⌈n / R⌉ of n instances each. The paper prints n / R: rounded down, R buckets of C could
//! not take all instances. O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;

use crate::bucket_shares::{InputLoad, bucket_shares};
use crate::buckets::Buckets;
use crate::graph::interner::Interner;
use crate::merge_problem::{Member, MergeProblem};

/// Groups the instances into at most `max_buckets` buckets, ordered by input, then by bucket number. Members are in the
/// order of the problem.
pub(super) fn solve(problem: &MergeProblem, max_buckets: NonZeroUsize) -> Buckets {
    let mut interner = Interner::default();
    let mut inputs: Vec<Vec<Member>> = Vec::new();
    for member in problem.members() {
        let input = interner.intern(problem.inputs(member)) as usize;
        if input == inputs.len() {
            inputs.push(Vec::new());
        }
        inputs[input].push(member);
    }
    let costs: Vec<Vec<f64>> = inputs
        .iter()
        .map(|members| members.iter().map(|member| problem.member_cost(*member)).collect())
        .collect();
    let loads: Vec<InputLoad> =
        costs.iter().map(|costs| InputLoad { cost: costs.iter().sum(), instances: costs.len() }).collect();
    let mut buckets = Buckets::default();
    match bucket_shares(&loads, max_buckets.get()) {
        Some(shares) => {
            for ((members, costs), share) in inputs.iter().zip(&costs).zip(shares) {
                let parts = balance(costs, share);
                parts.iter().for_each(|part| buckets.push(part.iter().map(|number| members[*number])));
            }
        }
        None => {
            let costs: Vec<f64> = loads.iter().map(|load| load.cost).collect();
            for part in balance(&costs, max_buckets.get()) {
                buckets.push(part.iter().flat_map(|input| inputs[*input].iter().copied()));
            }
        }
    }
    buckets
}

/// Algorithm 1: returns the numbers of the items of each of `buckets` buckets, in ascending order. There are at least
/// as many items as buckets, and no bucket is empty.
///
/// Items of equal cost are taken by number. Of buckets of equal cost, the one with fewer items takes the next, then the
/// one with the lower number: free items would fill the first bucket otherwise, and leave the last one empty.
fn balance(costs: &[f64], buckets: usize) -> Vec<Vec<usize>> {
    assert!(costs.len() >= buckets, "{} items leave one of {buckets} buckets empty", costs.len());
    let max_items = costs.len().div_ceil(buckets.max(1));
    let mut order: Vec<usize> = (0..costs.len()).collect();
    // The sort is stable. The sums turn -0 into 0.
    order.sort_by(|a, b| (costs[*b] + 0.0).total_cmp(&(costs[*a] + 0.0)));
    let mut parts = vec![Vec::new(); buckets];
    // Costs are not negative, so their bits have the order of the numbers.
    let mut open: BinaryHeap<_> = (0..buckets).map(|bucket| Reverse((0_f64.to_bits(), 0, bucket))).collect();
    for item in order {
        let Some(Reverse((bits, items, bucket))) = open.pop() else { break };
        parts[bucket].push(item);
        if items + 1 < max_items {
            open.push(Reverse(((f64::from_bits(bits) + costs[item]).to_bits(), items + 1, bucket)));
        }
    }
    let placed: usize = parts.iter().map(Vec::len).sum();
    assert!(placed == costs.len(), "{buckets} buckets of {max_items} took {placed} of {} items", costs.len());
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    fn solved(inputs: &[u32], costs: &[f64], max_buckets: usize) -> Vec<Vec<u32>> {
        let keys = (0..inputs.len() as u32).collect();
        let problem =
            MergeProblem::new(1, inputs.to_vec(), keys, TaskCosts::PerTask(costs.to_vec())).unwrap();
        let buckets = solve(&problem, NonZeroUsize::new(max_buckets).unwrap());
        buckets.iter().map(|members| members.iter().map(|member| member.0).collect()).collect()
    }

    /// Fig. 8 merges t1 with t3, and t2 with t4. It prints no run times: these are of its outcome.
    #[test]
    fn figure_8_pairs_the_longest_task_with_the_shortest() {
        assert_eq!(solved(&[0; 4], &[3.0, 2.0, 1.0, 2.0], 2), [[0, 2], [1, 3]]);
        assert_eq!(solved(&[0; 4], &[4.0, 3.0, 2.0, 1.0], 2), [[0, 3], [1, 2]]);
    }

    /// Fig. 5: two tasks of 10 s and two of 30 s. Jobs of equal tasks have an HRV of 0.71, those of HRB of 0.
    #[test]
    fn figure_5_mixes_long_and_short_tasks() {
        assert_eq!(solved(&[0; 4], &[10.0, 10.0, 30.0, 30.0], 2), [[0, 2], [1, 3]]);
    }

    #[test]
    fn full_bucket_takes_no_more() {
        // Without the cap of 3, the second bucket would take all five of cost 1.
        assert_eq!(solved(&[0; 6], &[10.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2), [[0, 4, 5], [1, 2, 3]]);
    }

    #[test]
    fn equal_and_free_instances_are_spread() {
        assert_eq!(solved(&[0; 5], &[2.0; 5], 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(solved(&[0; 4], &[0.0; 4], 3), [vec![0, 3], vec![1], vec![2]]);
        assert_eq!(solved(&[0; 3], &[-0.0, 0.0, 1.0], 3), [[2], [0], [1]]);
    }

    #[test]
    fn inputs_get_buckets_by_their_cost_or_stay_whole() {
        let (inputs, costs) = ([5, 5, 5, 8, 9], [4.0, 3.0, 2.0, 1.0, 8.0]);
        assert_eq!(solved(&inputs, &costs, 4), [vec![0], vec![1, 2], vec![3], vec![4]]);
        assert_eq!(solved(&inputs, &costs, 2), [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(solved(&[], &[], 3), Vec::<Vec<u32>>::new());
    }
}
