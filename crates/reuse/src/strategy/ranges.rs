//! Contiguous ranges of the tree order, balanced by dataflow cost.
//!
//! A depth-first walk of the reuse tree puts instances with common tasks next to each other. Each input's part of
//! this sequence is cut into ranges whose most expensive one is as cheap as possible. A range costs the tasks of its
//! members, each once. That cost never falls as a range grows, so for a given limit the fewest ranges come from
//! extending each as far as the limit allows, and bisection finds the lowest limit for a number of ranges.
//!
//! Takes O(kn) hash look-ups for the sequence, and O(kn) steps for each of about 60 limits. Neighboring ranges have
//! tasks in common: a worker that executes them one after the other finds those in its result cache.

mod adjust;

use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::ops::Range;

pub use adjust::{adjust_ranges, even_out_ranges};

use crate::buckets::Buckets;
use crate::cost::dataflow::Dataflow;
use crate::graph::task_graph::TaskGraph;
use crate::graph::task_order::best_order;
use crate::graph::tree::ReuseTree;
use crate::merge_problem::{Member, MergeProblem, TaskCosts};

/// Limits tried by a bisection. Each halves the interval: the last limit is within 2⁻³⁰ of the lowest one.
const BISECTIONS: usize = 30;

/// Returns all instances in the order of a depth-first walk of their reuse tree, whose tasks are in the
/// [order of maximum sharing](best_order). Instances of one input follow each other.
///
/// # Panics
/// If the number of tasks in the graph differs from the problem's levels.
pub fn tree_order(problem: &MergeProblem, graph: &TaskGraph) -> Vec<Member> {
    let order = best_order(problem, graph).tasks;
    let keys = |member: Member| order.iter().map(move |task| (member, *task));
    let keys = problem.members().flat_map(keys).map(|(member, task)| problem.keys(member)[task]);
    let ordered = problem.with_tasks(keys.collect(), TaskCosts::Count);
    walk(&ordered, &ReuseTree::build(&ordered))
}

/// Returns all instances in the order of a depth-first walk of this tree. Siblings are in the order of their first
/// instances.
pub(super) fn walk(problem: &MergeProblem, tree: &ReuseTree) -> Vec<Member> {
    // The place of each node above in the walk of its level. Nodes of the first level are below the inputs, which are in
    // the order of their first nodes.
    let mut inputs = crate::graph::interner::Interner::default();
    let above = |node: u32| inputs.intern(problem.inputs(tree.first_member(crate::NodeId(node))));
    let first = tree.level(0);
    let mut places = by_group(&(first.start.0..first.end.0).map(above).collect::<Vec<_>>());
    for level in 1..tree.levels() {
        let (before, nodes) = (tree.level(level - 1).start.0, tree.level(level));
        let parents = (nodes.start.0..nodes.end.0).filter_map(|node| tree.parent(crate::NodeId(node)));
        let parents: Vec<u32> = parents.map(|parent| places[(parent.0 - before) as usize]).collect();
        places = by_group(&parents);
    }
    let last = tree.level(tree.levels() - 1).start.0;
    let leaves: Vec<u32> =
        problem.members().map(|member| places[(tree.leaf(member).0 - last) as usize]).collect();
    let mut walk = vec![Member(0); leaves.len()];
    for (member, place) in problem.members().zip(by_group(&leaves)) {
        walk[place as usize] = member;
    }
    walk
}

/// Returns the place of each item once all are sorted by group. Items of one group stay in order: a counting sort.
fn by_group(groups: &[u32]) -> Vec<u32> {
    let count = groups.iter().max().map_or(0, |most| *most as usize + 1);
    let mut next = vec![0_u32; count + 1];
    groups.iter().for_each(|group| next[*group as usize + 1] += 1);
    for group in 0..count {
        next[group + 1] += next[group];
    }
    let take = |group: &u32| {
        let place = next[*group as usize];
        next[*group as usize] += 1;
        place
    };
    groups.iter().map(take).collect()
}

/// Cuts a sequence of instances into `max_buckets` contiguous ranges, or one for each instance if there are fewer. No
/// range has instances of two inputs, unless the sequence has more inputs than ranges: then each range has whole
/// inputs. Instances of one input must follow each other, and `dataflow` must have the tasks of the problem.
///
/// The most expensive range costs at most 2⁻³⁰ more than in any other such cut.
pub fn cut_ranges(
    problem: &MergeProblem,
    dataflow: &Dataflow,
    sequence: &[Member],
    max_buckets: NonZeroUsize,
) -> Buckets {
    let costs = MarginalCosts::new(dataflow, sequence);
    let same = |a: &Member, b: &Member| problem.inputs(*a) == problem.inputs(*b);
    let mut inputs: Vec<Range<usize>> = Vec::new();
    for part in sequence.chunk_by(same) {
        let start = inputs.last().map_or(0, |last| last.end);
        inputs.push(start..start + part.len());
    }
    let mut ends = if inputs.len() > max_buckets.get() {
        whole_inputs(&costs, &inputs, max_buckets.get())
    } else {
        parts_of_inputs(&costs, &inputs, max_buckets.get())
    };
    if inputs.len() <= max_buckets.get() {
        split_longest(&mut ends, max_buckets.get());
    }
    let mut buckets = Buckets::default();
    let mut start = 0;
    for end in ends {
        buckets.push(sequence[start..end].iter().copied());
        start = end;
    }
    assert!(start == sequence.len(), "ranges end at {start} of {} instances", sequence.len());
    buckets
}

/// Returns the ends of ranges within inputs: at most `max`, which is at least the number of inputs.
fn parts_of_inputs(costs: &MarginalCosts, inputs: &[Range<usize>], max: usize) -> Vec<usize> {
    let count = |limit: f64| inputs.iter().map(|input| costs.ranges(input, limit, |_| ())).sum::<usize>();
    let alone = |input: &Range<usize>| costs.alone[input.clone()].iter().copied().fold(0.0, f64::max);
    let least = inputs.iter().map(alone).fold(0.0, f64::max);
    let most = inputs.iter().map(|input| costs.of(input)).fold(least, f64::max);
    let limit = lowest(least, most, |limit| count(limit) <= max);
    let mut ends = Vec::new();
    for input in inputs {
        // An input's ranges are evened out by its own lowest limit for their number: the last range of the common
        // limit is what remains.
        let own = costs.ranges(input, limit, |_| ());
        let limit = lowest(alone(input), limit, |limit| costs.ranges(input, limit, |_| ()) <= own);
        costs.ranges(input, limit, |end| ends.push(end));
    }
    ends
}

/// Returns the ends of ranges of whole inputs, at most `max`. Inputs are taken as sharing nothing.
fn whole_inputs(costs: &MarginalCosts, inputs: &[Range<usize>], max: usize) -> Vec<usize> {
    let cost: Vec<f64> = inputs.iter().map(|input| costs.of(input)).collect();
    let fill = |limit: f64, ends: &mut Vec<usize>| {
        ends.clear();
        let mut filled = 0.0;
        for (input, cost) in inputs.iter().zip(&cost) {
            if input.start > 0 && filled + cost > limit {
                ends.push(input.start);
                filled = 0.0;
            }
            filled += cost;
        }
        ends.extend(inputs.last().map(|last| last.end));
    };
    let mut ends = Vec::new();
    let (least, most) = (cost.iter().copied().fold(0.0, f64::max), cost.iter().sum());
    let limit = lowest(least, most, |limit| {
        fill(limit, &mut ends);
        ends.len() <= max
    });
    fill(limit, &mut ends);
    ends
}

/// Returns the lowest limit that suffices, from `least` to `most`, which does.
fn lowest(least: f64, most: f64, mut suffices: impl FnMut(f64) -> bool) -> f64 {
    if suffices(least) {
        return least;
    }
    let (mut least, mut most) = (least, most);
    for _ in 0..BISECTIONS {
        let middle = least + (most - least) / 2.0;
        *(if suffices(middle) { &mut most } else { &mut least }) = middle;
    }
    most
}

/// Splits the ranges of most instances until there are `max`, or one for each instance. More ranges than the costs
/// ask for leave more to balance, and need less memory each.
fn split_longest(ends: &mut Vec<usize>, max: usize) {
    let mut start = 0;
    let mut longest = BinaryHeap::new();
    for end in ends.iter() {
        longest.push((end - start, std::cmp::Reverse(start)));
        start = *end;
    }
    for _ in ends.len()..max {
        let Some((instances, std::cmp::Reverse(start))) = longest.pop().filter(|(most, _)| *most > 1) else {
            break;
        };
        let first = instances.div_ceil(2);
        longest.push((first, std::cmp::Reverse(start)));
        longest.push((instances - first, std::cmp::Reverse(start + first)));
        ends.push(start + first);
    }
    ends.sort_unstable();
}

/// Cost that each instance of a sequence adds to a range that it extends.
struct MarginalCosts {
    /// Cost of the instance as the first of a range.
    alone: Vec<f64>,
    /// Costs by the range's start: an entry counts from this start on, since an earlier range start has its task.
    /// Tasks of the previous instance are left out: they count only where the instance is the first.
    added: Vec<(u32, f64)>,
    /// End of each instance's entries in `added`.
    ends: Vec<u32>,
}

impl MarginalCosts {
    fn new(dataflow: &Dataflow, sequence: &[Member]) -> Self {
        let mut costs = Self { alone: Vec::new(), added: Vec::new(), ends: Vec::new() };
        // Place after the last instance of the sequence that has the task: 0 for none.
        let mut after = vec![0_u32; dataflow.len()];
        for (place, member) in (0_u32..).zip(sequence) {
            let (mut alone, own) = (0.0, costs.added.len());
            for task in dataflow.row(*member) {
                let (cost, from) = (dataflow.cost(*task), after[task.0 as usize]);
                after[task.0 as usize] = place + 1;
                alone += cost;
                if from == place && place > 0 {
                    continue;
                }
                match costs.added[own..].iter_mut().find(|(known, _)| *known == from) {
                    Some((_, sum)) => *sum += cost,
                    None => costs.added.push((from, cost)),
                }
            }
            costs.alone.push(alone);
            costs.ends.push(costs.added.len() as u32);
        }
        costs
    }

    /// Returns what an instance adds to a range from `start` on, which has the instance before it.
    fn added(&self, place: usize, start: usize) -> f64 {
        let entries = self.ends[place - 1] as usize..self.ends[place] as usize;
        self.added[entries].iter().filter(|(from, _)| *from as usize <= start).map(|(_, cost)| cost).sum()
    }

    /// Returns the cost of a range, added up as [`ranges`](Self::ranges) does: as a limit, it holds the range exactly.
    fn of(&self, range: &Range<usize>) -> f64 {
        let mut places = range.clone();
        let alone = places.next().map_or(0.0, |first| self.alone[first]);
        places.fold(alone, |cost, place| cost + self.added(place, range.start))
    }

    /// Extends each range as far as `limit` allows. Returns the number of ranges, and passes the end of each.
    fn ranges(&self, part: &Range<usize>, limit: f64, mut end: impl FnMut(usize)) -> usize {
        let (mut start, mut cost, mut count) = (part.start, self.alone[part.start], 1);
        for place in part.start + 1..part.end {
            cost += self.added(place, start);
            if cost > limit {
                end(place);
                (start, cost, count) = (place, self.alone[place], count + 1);
            }
        }
        end(part.end);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::task_graph::TaskReads;

    fn cut(problem: &MergeProblem, graph: &TaskGraph, max: usize) -> Vec<Vec<u32>> {
        let dataflow = Dataflow::build(problem, graph);
        let max = NonZeroUsize::new(max).unwrap();
        let buckets = cut_ranges(problem, &dataflow, &tree_order(problem, graph), max);
        buckets.iter().map(|members| members.iter().map(|member| member.0).collect()).collect()
    }

    /// Two independent tasks of 1 s and 6 s, and a third of 2 s that reads both. The first has six values, the second
    /// two, so the best order begins with the second.
    #[test]
    fn ranges_follow_the_best_order_and_have_even_costs() {
        let reads = |tasks: &[usize], inputs| TaskReads { tasks: tasks.to_vec(), inputs };
        let graph = TaskGraph::new(vec![reads(&[], true), reads(&[], true), reads(&[0, 1], false)]).unwrap();
        let keys: Vec<u32> = (0..6).flat_map(|at| [at, at % 2, 0]).collect();
        let costs = TaskCosts::PerLevel(vec![1.0, 6.0, 2.0]);
        let problem = MergeProblem::new(3, vec![0; 6], keys, costs).unwrap();
        assert_eq!(
            tree_order(&problem, &graph).iter().map(|at| at.0).collect::<Vec<_>>(),
            [0, 2, 4, 1, 3, 5]
        );
        // 15 s each. A cut anywhere else repeats the task of 6 s.
        assert_eq!(cut(&problem, &graph, 2), [[0, 2, 4], [1, 3, 5]]);
        // A third range cannot lower the maximum: two instances each would cost 12, 18 and 12 s. One range is halved.
        assert_eq!(cut(&problem, &graph, 3), [vec![0, 2], vec![4], vec![1, 3, 5]]);
        assert_eq!(cut(&problem, &graph, 4), [vec![0, 2], vec![4], vec![1, 3], vec![5]]);
        assert_eq!(cut(&problem, &graph, 9), [[0], [2], [4], [1], [3], [5]]);
    }

    #[test]
    fn each_input_has_ranges_by_its_cost() {
        let problem = |inputs: Vec<u32>| {
            let keys = (0..inputs.len() as u32).collect();
            MergeProblem::new(1, inputs, keys, TaskCosts::Count).unwrap()
        };
        let graph = TaskGraph::chain(1);
        let two = problem(vec![7, 3, 7, 7, 7, 3]);
        assert_eq!(cut(&two, &graph, 3), [vec![0, 2], vec![3, 4], vec![1, 5]]);
        assert_eq!(cut(&two, &graph, 2), [vec![0, 2, 3, 4], vec![1, 5]]);
        // More inputs than ranges: whole inputs.
        assert_eq!(cut(&problem(vec![0, 1, 2, 2, 3]), &graph, 2), [vec![0, 1], vec![2, 3, 4]]);
        assert!(cut(&problem(vec![]), &graph, 2).is_empty());
    }
}
