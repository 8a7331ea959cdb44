//! The Smart Cut Algorithm (thesis §3.3.2, Algorithm 2): a baseline for small studies.
//!
//! Stage instances are the vertices of a complete graph. An edge weighs the tasks that its two instances share.
//! Minimum 2-cuts (Stoer and Wagner, "A simple min-cut algorithm", J. ACM 44, 1997) continue on the larger side
//! until it fits into a bucket. The remaining instances start over. Instances of different inputs share nothing, so
//! each input's graph is cut separately.
//!
//! The cut is implemented here: a complete graph needs only a dense matrix and two loops, and the adjacency lists
//! and hash tables of graph libraries would only cost time. Each cut takes O(n³), with up to n cuts per bucket,
//! hence the limit [`MAX_INSTANCES`].

use std::num::NonZeroUsize;

use super::SolveError;
use crate::buckets::Buckets;
use crate::graph::interner::Interner;
use crate::graph::tree::ReuseTree;
use crate::merge_problem::{Member, MergeProblem};

/// Maximum number of instances of one input. 200 instances take seconds. The time grows with the fifth power, and
/// the thesis gave up on 2000 after 14,000 s.
pub const MAX_INSTANCES: usize = 200;

pub(super) fn solve(
    problem: &MergeProblem,
    tree: &ReuseTree,
    max_bucket_size: NonZeroUsize,
) -> Result<Buckets, SolveError> {
    let mut inputs = Interner::default();
    let mut groups: Vec<Vec<Member>> = Vec::new();
    for member in problem.members() {
        let group = inputs.intern(problem.inputs(member)) as usize;
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(member);
    }
    if let Some(group) = groups.iter().find(|group| group.len() > MAX_INSTANCES) {
        return Err(SolveError::TooManyToCut { instances: group.len(), limit: MAX_INSTANCES });
    }
    let mut buckets = Buckets::default();
    for mut left in groups {
        // After each bucket the cuts start over on all remaining instances (thesis Algorithm 2, lines 3-12).
        while left.len() > max_bucket_size.get() {
            let mut bucket = left.clone();
            while bucket.len() > max_bucket_size.get() {
                let before = bucket.len();
                bucket = Cut::minimum(tree, &bucket).larger_side;
                assert!((1..before).contains(&bucket.len()), "a cut of {before} leaves {}", bucket.len());
            }
            let before = left.len();
            left.retain(|member| !bucket.contains(member));
            assert!(
                left.len() + bucket.len() == before,
                "{before} instances are cut into {} and {}",
                left.len(),
                bucket.len()
            );
            buckets.push(bucket);
        }
        buckets.push(left);
    }
    Ok(buckets)
}

/// A minimum cut.
#[derive(Debug, PartialEq)]
struct Cut {
    weight: f64,
    /// On ties, the side with the first instance.
    larger_side: Vec<Member>,
}

impl Cut {
    /// Cuts two instances or more. On ties the first cut found counts.
    fn minimum(tree: &ReuseTree, members: &[Member]) -> Self {
        let mut weights = weights(tree, members);
        // Merged vertices are represented by the first of them, with the list of its members.
        let mut merged: Vec<Vec<usize>> = (0..members.len()).map(|vertex| vec![vertex]).collect();
        let mut active: Vec<usize> = (0..members.len()).collect();
        let mut best = (f64::INFINITY, Vec::new());
        while active.len() > 1 {
            let (before_last, last, weight) = phase(&weights, &active);
            // Also a sum of costs beyond all numbers cuts.
            if weight < best.0 || best.1.is_empty() {
                best = (weight, merged[last].clone());
            }
            let gone = std::mem::take(&mut merged[last]);
            merged[before_last].extend(gone);
            for vertex in &active {
                let both = weights[before_last][*vertex] + weights[last][*vertex];
                weights[before_last][*vertex] = both;
                weights[*vertex][before_last] = both;
            }
            active.retain(|vertex| *vertex != last);
        }
        let (one, other): (Vec<usize>, Vec<usize>) =
            (0..members.len()).partition(|vertex| best.1.contains(vertex));
        let one_is_larger = (one.len(), other.first()) > (other.len(), one.first());
        let larger_side = if one_is_larger { one } else { other };
        Self { weight: best.0, larger_side: larger_side.into_iter().map(|vertex| members[vertex]).collect() }
    }
}

/// Runs a phase of Stoer and Wagner: vertices join in the order of the weight that connects them to the
/// joined ones. Returns the last two vertices and the weight that connects the last.
fn phase(weights: &[Vec<f64>], active: &[usize]) -> (usize, usize, f64) {
    let mut left = active.to_vec();
    let mut bound = vec![0.0; weights.len()];
    let (mut before_last, mut last, mut weight) = (active[0], active[0], 0.0);
    while !left.is_empty() {
        // On ties the first vertex joins, so cuts do not depend on anything but the order of instances.
        let tightest = (0..left.len()).reduce(|a, b| if bound[left[b]] > bound[left[a]] { b } else { a });
        let next = left.remove(tightest.unwrap_or(0));
        (before_last, last, weight) = (last, next, bound[next]);
        for vertex in &left {
            bound[*vertex] += weights[next][*vertex];
        }
    }
    (before_last, last, weight)
}

/// Returns the weight of each pair: the cost of the first tasks that both share.
fn weights(tree: &ReuseTree, members: &[Member]) -> Vec<Vec<f64>> {
    let paths: Vec<Vec<_>> = members.iter().map(|member| tree.upwards(*member).collect()).collect();
    let shared = |a: &[_], b: &[_]| {
        let in_both = a.iter().zip(b).filter(|(a, b)| a == b);
        in_both.map(|(node, _)| tree.cost(*node)).sum()
    };
    paths.iter().map(|a| paths.iter().map(|b| shared(a, b)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    fn names(members: &[Member]) -> String {
        members.iter().map(|member| ['b', 'a', 'c', 'd', 'e'][member.0 as usize]).collect()
    }

    /// Thesis Fig. 3.5: five instances of six tasks. The text gives the weights of its cuts (4 for c, 10 for
    /// a): all share one task, a, b, d and e three, a and b four, d and e five. This makes a and b equal, and
    /// the later one leaves first.
    const FIGURE_3_5: [[u32; 6]; 5] =
        [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 2, 1], [1, 2, 1, 1, 1, 1], [1, 1, 1, 2, 1, 1], [1, 1, 1, 2, 1, 2]];

    #[test]
    fn figure_3_5_removes_c_then_a_then_b() {
        let problem =
            MergeProblem::new(6, vec![0; 5], FIGURE_3_5.as_flattened().to_vec(), TaskCosts::Count).unwrap();
        let tree = ReuseTree::build(&problem);
        let mut left: Vec<Member> = problem.members().collect();
        let mut cuts = Vec::new();
        while left.len() > 2 {
            let cut = Cut::minimum(&tree, &left);
            cuts.push((cut.weight, names(&cut.larger_side)));
            left = cut.larger_side;
        }
        let expected = [(4.0, "bade"), (10.0, "bde"), (6.0, "de")];
        assert_eq!(cuts, expected.map(|(weight, left)| (weight, left.to_owned())));
        let buckets = solve(&problem, &tree, NonZeroUsize::new(2).unwrap()).unwrap();
        assert_eq!(buckets.iter().map(names).collect::<Vec<_>>(), ["de", "ba", "c"]);
    }

    #[test]
    fn too_many_instances_are_refused_with_both_numbers() {
        let count = MAX_INSTANCES as u32 + 1;
        let of = |inputs| MergeProblem::new(1, inputs, (0..count).collect(), TaskCosts::Count).unwrap();
        let solved = |problem: &MergeProblem| solve(problem, &ReuseTree::build(problem), NonZeroUsize::MIN);
        let refused = SolveError::TooManyToCut { instances: MAX_INSTANCES + 1, limit: MAX_INSTANCES };
        assert_eq!(solved(&of(vec![0; count as usize])), Err(refused));
        assert_eq!(refused.to_string(), "cut 201 stage instances of one input; SCA takes at most 200");
        assert_eq!(solved(&of((0..count).collect())).unwrap().len(), count as usize);
    }

    /// No cut of seven instances in two is lighter than the minimum, for any shape of three tasks with two
    /// values.
    #[test]
    fn no_cut_is_lighter_than_the_minimum() {
        let mut state = 1_u32;
        for _ in 0..200 {
            let mut random = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 31
            };
            let keys = (0..21).map(|_| random()).collect();
            let problem =
                MergeProblem::new(3, vec![0; 7], keys, TaskCosts::PerLevel(vec![1.0, 4.0, 2.0])).unwrap();
            let tree = ReuseTree::build(&problem);
            let members: Vec<Member> = problem.members().collect();
            let weights = weights(&tree, &members);
            let weight = |side: u32| -> f64 {
                let on = |vertex: usize| side >> vertex & 1 == 1;
                let pairs = (0..7).flat_map(|a| (0..7).map(move |b| (a, b)));
                pairs.filter(|(a, b)| on(*a) && !on(*b)).map(|(a, b)| weights[a][b]).sum()
            };
            let lightest = (1..(1 << 7) - 1).map(weight).fold(f64::INFINITY, f64::min);
            let cut = Cut::minimum(&tree, &members);
            assert_eq!(cut.weight, lightest);
            let side = cut.larger_side.iter().map(|member| 1 << member.0).sum();
            assert_eq!(weight(side), lightest);
            assert!(cut.larger_side.len() >= 4);
        }
    }
}
