//! Adjustment of ranges to another number, or to other costs.
//!
//! As few instances as possible change their range. For more ranges, the most expensive one is split, again and again. For
//! fewer, the two neighbors are joined that cost least together. Each step changes one or two ranges, so the others keep
//! their instances, and a study merges the new ranges in small parts. Other costs are evened out within groups of neighbors.

use super::{MarginalCosts, cut_ranges, lowest};
use crate::buckets::Buckets;
use crate::cost::dataflow::Dataflow;
use crate::merge_problem::{Member, MergeProblem};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Adjusts ranges to the number `count`. `present` has them in the order of the sequence, each with instances of one input.
///
/// Ranges of different inputs are not joined, and neither are ranges with more than twice the mean number of instances, so more
/// than `count` may remain. Fewer remain if there are fewer instances.
#[must_use]
pub fn adjust_ranges(
    problem: &MergeProblem,
    dataflow: &Dataflow,
    present: &Buckets,
    count: NonZeroUsize,
) -> Buckets {
    let mut adjustment = Adjustment::new(problem, dataflow, present, count);
    while adjustment.ranges.len() < count.get() && adjustment.split() {}
    if adjustment.ranges.len() > count.get() {
        adjustment.list_pairs();
        while adjustment.ranges.len() > count.get() && adjustment.join() {}
    }
    adjustment.buckets()
}

/// Cuts ranges again for other costs: about `count` ones, as [`cut_ranges`] does, but within groups of neighbors. A group has
/// at most `max_grouped` instances, or one range, and gets ranges in proportion to its cost.
#[must_use]
pub fn even_out_ranges(
    problem: &MergeProblem,
    dataflow: &Dataflow,
    present: &Buckets,
    count: NonZeroUsize,
    max_grouped: usize,
) -> Buckets {
    let sequence: Vec<Member> = present.iter().flatten().copied().collect();
    let costs = MarginalCosts::new(dataflow, &sequence);
    let mut groups: Vec<(Range<usize>, f64)> = Vec::new();
    let mut start = 0;
    for range in present.iter().map(|members| members.len()) {
        let (next, cost) = (start + range, costs.of(&(start..start + range)));
        match groups.last_mut().filter(|(group, _)| next - group.start <= max_grouped) {
            Some((group, sum)) => (group.end, *sum) = (next, *sum + cost),
            None => groups.push((start..next, cost)),
        }
        start = next;
    }
    let all: f64 = groups.iter().map(|(_, cost)| cost).sum();
    let mut evened = Buckets::default();
    for (group, cost) in groups {
        let share = if all > 0.0 { cost / all } else { 1.0 };
        let ranges = NonZeroUsize::new((share * count.get() as f64).round() as usize);
        let cut = cut_ranges(problem, dataflow, &sequence[group], ranges.unwrap_or(NonZeroUsize::MIN));
        cut.iter().for_each(|members| evened.push(members.iter().copied()));
    }
    evened
}

/// Two neighbors of one input: cost of both together, start, middle and end. The cheapest pair is the largest.
type Pair = Reverse<(u64, usize, usize, usize)>;

/// Ranges that are being adjusted. Entries of the heaps for ranges that have changed since are skipped.
struct Adjustment<'a> {
    problem: &'a MergeProblem,
    sequence: Vec<Member>,
    costs: MarginalCosts,
    /// Ends of the ranges, by start.
    ranges: BTreeMap<usize, usize>,
    /// Ranges by cost.
    expensive: BinaryHeap<(u64, Reverse<usize>, usize)>,
    /// `None` until a junction is possible.
    pairs: Option<BinaryHeap<Pair>>,
    max_joined: usize,
}

impl<'a> Adjustment<'a> {
    fn new(problem: &'a MergeProblem, dataflow: &Dataflow, present: &Buckets, count: NonZeroUsize) -> Self {
        let sequence: Vec<Member> = present.iter().flatten().copied().collect();
        let costs = MarginalCosts::new(dataflow, &sequence);
        let max_joined = 2 * sequence.len().div_ceil(count.get());
        let (ranges, expensive) = (BTreeMap::new(), BinaryHeap::new());
        let mut own = Self { problem, sequence, costs, ranges, expensive, pairs: None, max_joined };
        let mut start = 0;
        for members in present.iter() {
            own.add(start..start + members.len());
            start += members.len();
        }
        own
    }

    fn add(&mut self, range: Range<usize>) {
        self.expensive.push((bits(self.costs.of(&range)), Reverse(range.start), range.end));
        let before = self.ranges.insert(range.start, range.end);
        assert!(before.is_none(), "a range from {} exists, to {before:?}", range.start);
        if self.pairs.is_some() {
            let previous = self.ranges.range(..range.start).next_back().map(|(start, _)| *start);
            previous.into_iter().for_each(|start| self.add_pair(start));
            self.add_pair(range.start);
        }
    }

    /// Lists the range from `start` and its successor, if they can be joined.
    fn add_pair(&mut self, start: usize) {
        let Some(&middle) = self.ranges.get(&start) else { return };
        let Some(&end) = self.ranges.get(&middle) else { return };
        let input = |place: usize| self.problem.inputs(self.sequence[place]);
        if input(start) == input(middle) && end - start <= self.max_joined {
            let cost = bits(self.costs.of(&(start..end)));
            self.pairs.get_or_insert_default().push(Reverse((cost, start, middle, end)));
        }
    }

    fn list_pairs(&mut self) {
        self.pairs = Some(BinaryHeap::new());
        let starts: Vec<usize> = self.ranges.keys().copied().collect();
        starts.into_iter().for_each(|start| self.add_pair(start));
    }

    /// Splits the most expensive range that has several instances. Returns whether there is one.
    fn split(&mut self) -> bool {
        while let Some((_, Reverse(start), end)) = self.expensive.pop() {
            if self.ranges.get(&start) == Some(&end) && end - start > 1 {
                let middle = self.middle(&(start..end));
                self.ranges.remove(&start);
                self.add(start..middle);
                self.add(middle..end);
                return true;
            }
        }
        false
    }

    /// Returns the place that splits a range into two parts of costs as even as possible.
    fn middle(&self, range: &Range<usize>) -> usize {
        let alone = self.costs.alone[range.clone()].iter().copied().fold(0.0, f64::max);
        let fits = |limit: f64| self.costs.ranges(range, limit, |_| ()) <= 2;
        let limit = lowest(alone, self.costs.of(range).max(alone), fits);
        let mut ends = Vec::new();
        self.costs.ranges(range, limit, |end| ends.push(end));
        match ends[..] {
            [middle, _] => middle,
            // Each instance alone has the cost of the range.
            _ => range.start + range.len().div_ceil(2),
        }
    }

    /// Joins the two neighbors that cost least together. Returns whether there are two.
    fn join(&mut self) -> bool {
        while let Some(Reverse((_, start, middle, end))) = self.pairs.as_mut().and_then(BinaryHeap::pop) {
            if self.ranges.get(&start) == Some(&middle) && self.ranges.get(&middle) == Some(&end) {
                self.ranges.remove(&start);
                self.ranges.remove(&middle);
                self.add(start..end);
                return true;
            }
        }
        false
    }

    fn buckets(self) -> Buckets {
        let mut buckets = Buckets::default();
        let mut next = 0;
        for (&start, &end) in &self.ranges {
            assert!(start == next, "a range begins at {start}, the one before it ends at {next}");
            buckets.push(self.sequence[start..end].iter().copied());
            next = end;
        }
        assert!(next == self.sequence.len(), "ranges end at {next} of {} instances", self.sequence.len());
        buckets
    }
}

/// Returns a number in the order of costs, which are not negative.
fn bits(cost: f64) -> u64 {
    debug_assert!(cost >= 0.0, "a range costs {cost}");
    cost.to_bits()
}
