//! The baseline (thesis §3.3.1): groups consecutive instances in the given order. O(n).
//!
//! Only the order determines the sharing. Keys are not read. Instances are consecutive among those of equal
//! inputs: with several tiles in one problem, each tile is grouped as if it were alone.

use std::num::NonZeroUsize;

use crate::buckets::Buckets;
use crate::graph::interner::Interner;
use crate::merge_problem::{Member, MergeProblem};

pub(super) fn solve(problem: &MergeProblem, max_bucket_size: NonZeroUsize) -> Buckets {
    let mut inputs = Interner::default();
    let mut open: Vec<Vec<Member>> = Vec::new();
    let mut buckets = Buckets::default();
    for member in problem.members() {
        let group = inputs.intern(problem.inputs(member)) as usize;
        if group == open.len() {
            open.push(Vec::new());
        }
        open[group].push(member);
        if open[group].len() == max_bucket_size.get() {
            buckets.push(open[group].drain(..));
        }
    }
    // Partial buckets come last, ordered by the first appearance of their inputs.
    for rest in open.into_iter().filter(|rest| !rest.is_empty()) {
        buckets.push(rest);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    #[test]
    fn consecutive_instances_of_equal_inputs_are_grouped() {
        let problem = MergeProblem::new(1, vec![0, 1, 0, 0, 1, 0], vec![9; 6], TaskCosts::Count).unwrap();
        let buckets = solve(&problem, NonZeroUsize::new(2).unwrap());
        let lists: Vec<Vec<u32>> =
            buckets.iter().map(|members| members.iter().map(|member| member.0).collect()).collect();
        assert_eq!(lists, [vec![0, 2], vec![1, 4], vec![3, 5]]);
    }
}
