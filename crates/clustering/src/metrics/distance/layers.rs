//! Counts pairs of tasks of a level by the step that makes their successors meet.

use std::collections::HashMap;

use super::bits;
use super::classes::Classes;
use super::lanes;
use crate::workflow::Workflow;

/// Visits of elements below which a walk is always fast enough: some milliseconds.
const MIN_VISITS: usize = 1 << 21;

/// Largest number of unresolved pairs of groups that are listed: 8 MB.
const MAX_PAIRS: usize = 1 << 20;

/// Largest number of unresolved pairs per group that are listed. A test of a pair takes longer than counting it.
const MAX_PAIRS_PER_GROUP: usize = 16;

const UNKNOWN: u32 = u32::MAX;

/// Returns for each step, from 1, the number of pairs of tasks whose successors after that number of edges have a task in common for
/// the first time, and of those that had none in common before one of them ran out of successors.
///
/// Groups of equal successors make a walk fast in regular graphs. In others, lanes take each of the `edges` from this level on twice
/// for 64 classes: a walk ends after as many visits.
pub(super) fn meetings(graph: &Workflow, level: usize, edges: usize) -> Vec<(u64, u64)> {
    let classes = Classes::new(graph, &graph.levels()[level]);
    let max_visits = (2 * classes.len().div_ceil(bits::BITS)).saturating_mul(edges).max(MIN_VISITS);
    let walk = |max_visits| meetings_with(graph, &classes, MAX_PAIRS, max_visits);
    walk(max_visits)
        .or_else(|| bits::by_step(graph, level, &classes).map(|pairs| by_step(&pairs)))
        .or_else(|| lanes::by_step(graph, &classes).map(|pairs| by_step(&pairs)))
        .or_else(|| walk(usize::MAX))
        .expect("a walk without a limit")
}

/// Returns pairs that meet beside pairs that have not met before one of them runs out of successors, by step from 1.
fn by_step(pairs: &lanes::Pairs) -> Vec<(u64, u64)> {
    let mut steps: Vec<(u64, u64)> =
        pairs.met.iter().skip(1).copied().zip(pairs.apart.iter().copied()).collect();
    let last = steps.iter().rposition(|counts| *counts != (0, 0)).map_or(0, |last| last + 1);
    steps.truncate(last);
    steps
}

/// Lists each unresolved pair once there are at most `max_pairs`. Returns `None` after more than `max_visits`.
fn meetings_with(
    graph: &Workflow,
    classes: &Classes<'_>,
    max_pairs: usize,
    max_visits: usize,
) -> Option<Vec<(u64, u64)>> {
    let tasks: u64 = classes.weights.iter().sum();
    let mut unresolved = tasks * tasks.saturating_sub(1) / 2;
    let mut walk = Walk::new(graph, classes, max_pairs, max_visits);
    let mut steps = Vec::new();
    while unresolved > 0 {
        let unmet = walk.resolve()?;
        steps.push((unresolved - unmet.all, unmet.all - unmet.live));
        unresolved = unmet.live;
        if unresolved > 0 {
            walk.advance()?;
        }
    }
    Some(steps)
}

/// Pairs of tasks that have not met: all of them, and those whose tasks both have successors.
#[derive(Default)]
struct Unmet {
    all: u64,
    live: u64,
}

/// Tasks with the same elements.
struct Group {
    /// Successors after the present number of steps, as indices of [`Walk::elements`], ascending.
    ///
    /// A task without children stays as an element of its own that names task and step: two groups that have met stay
    /// together, so that pairs met so far are those with an element in common.
    elements: Vec<u32>,
    weight: u64,
}

/// The successors of all tasks of a level after some number of steps. Groups whose pairs are all resolved are dropped.
struct Walk<'a> {
    graph: &'a Workflow,
    /// Task of each element. `None` for a task without children that was reached at an earlier step.
    elements: Vec<Option<u32>>,
    /// Element of each task, or [`UNKNOWN`].
    element_of: Vec<u32>,
    groups: Vec<Group>,
    /// Unresolved pairs of groups. `None` if they are too many: any pair may be unresolved.
    pairs: Option<Vec<(u32, u32)>>,
    max_pairs: usize,
    /// Visits of elements and of their holders that remain.
    remaining_visits: usize,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a Workflow, classes: &Classes<'_>, max_pairs: usize, max_visits: usize) -> Self {
        let mut walk = Self {
            graph,
            elements: vec![],
            element_of: vec![UNKNOWN; graph.tasks().len()],
            groups: vec![],
            pairs: None,
            max_pairs,
            remaining_visits: max_visits,
        };
        for (children, weight) in classes.children.iter().zip(&classes.weights) {
            let mut elements: Vec<u32> = children.iter().map(|child| walk.element(*child)).collect();
            elements.sort_unstable();
            walk.groups.push(Group { elements, weight: *weight });
        }
        walk
    }

    fn element(&mut self, task: u32) -> u32 {
        let element = &mut self.element_of[task as usize];
        if *element == UNKNOWN {
            *element = self.elements.len() as u32;
            self.elements.push(Some(task));
        }
        *element
    }

    /// Counts visits. Returns `None` if too few remain.
    fn visit(&mut self, count: usize) -> Option<()> {
        self.remaining_visits = self.remaining_visits.checked_sub(count)?;
        Some(())
    }

    /// Takes one step. Groups with the same elements become one. Returns `None` after too many visits.
    fn advance(&mut self) -> Option<()> {
        let graph = self.graph;
        let mut is_used = vec![false; self.elements.len()];
        for element in self.groups.iter().flat_map(|group| &group.elements) {
            is_used[*element as usize] = true;
        }
        let elements = std::mem::take(&mut self.elements);
        for task in elements.iter().flatten() {
            self.element_of[*task as usize] = UNKNOWN;
        }
        let mut successors = vec![Vec::new(); elements.len()];
        for (element, list) in
            elements.iter().zip(&mut successors).zip(is_used).filter(|(_, used)| *used).map(|of| of.0)
        {
            let children = element.map_or(&[][..], |task| graph.children(task));
            if children.is_empty() {
                list.push(self.elements.len() as u32);
                self.elements.push(None);
            } else {
                list.extend(children.iter().map(|child| self.element(*child)));
            }
        }
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut group_of = Vec::with_capacity(self.groups.len());
        let mut weights: Vec<u64> = Vec::new();
        for group in std::mem::take(&mut self.groups) {
            let lists = group.elements.iter().map(|element| &successors[*element as usize]);
            let mut elements: Vec<u32> = lists.flatten().copied().collect();
            // Sorting takes longer than a visit, and each element takes memory.
            self.visit(8 * elements.len())?;
            elements.sort_unstable();
            elements.dedup();
            let number = *numbers.entry(elements).or_insert(weights.len() as u32);
            if number as usize == weights.len() {
                weights.push(0);
            }
            weights[number as usize] += group.weight;
            group_of.push(number);
        }
        self.groups = weights.into_iter().map(|weight| Group { elements: vec![], weight }).collect();
        for (elements, number) in numbers {
            self.groups[number as usize].elements = elements;
        }
        if let Some(pairs) = &mut self.pairs {
            for (first, second) in pairs.iter_mut() {
                let (a, b) = (group_of[*first as usize], group_of[*second as usize]);
                (*first, *second) = (a.min(b), a.max(b));
            }
            pairs.retain(|(first, second)| first != second);
            pairs.sort_unstable();
            pairs.dedup();
        }
        Some(())
    }

    /// Counts the pairs that have not met, and drops groups without an unresolved pair. Returns `None` after too many visits.
    fn resolve(&mut self) -> Option<Unmet> {
        let is_live = |group: &Group| group.elements.iter().any(|of| self.elements[*of as usize].is_some());
        let live: Vec<bool> = self.groups.iter().map(is_live).collect();
        let (unmet, keeps) = match self.pairs.take() {
            Some(pairs) => self.check_pairs(pairs, &live)?,
            None => self.check_all(&live)?,
        };
        let mut number = 0;
        let numbers: Vec<u32> = keeps
            .iter()
            .map(|keep| {
                number += u32::from(*keep);
                number.wrapping_sub(1)
            })
            .collect();
        let mut keeps = keeps.iter();
        self.groups.retain(|_| keeps.next().is_some_and(|keep| *keep));
        for (first, second) in self.pairs.iter_mut().flatten() {
            (*first, *second) = (numbers[*first as usize], numbers[*second as usize]);
        }
        Some(unmet)
    }

    fn check_pairs(&mut self, mut pairs: Vec<(u32, u32)>, live: &[bool]) -> Option<(Unmet, Vec<bool>)> {
        let length = |group: u32| self.groups[group as usize].elements.len();
        self.visit(pairs.iter().map(|(first, second)| length(*first).min(length(*second))).sum())?;
        let mut unmet = Unmet::default();
        let mut keeps = vec![false; live.len()];
        pairs.retain(|(first, second)| {
            let (a, b) = (*first as usize, *second as usize);
            if have_common(&self.groups[a].elements, &self.groups[b].elements) {
                return false;
            }
            let count = self.groups[a].weight * self.groups[b].weight;
            unmet.all += count;
            if !(live[a] && live[b]) {
                return false;
            }
            unmet.live += count;
            (keeps[a], keeps[b]) = (true, true);
            true
        });
        self.pairs = Some(pairs);
        Some((unmet, keeps))
    }

    fn check_all(&mut self, live: &[bool]) -> Option<(Unmet, Vec<bool>)> {
        let mut holders = vec![Vec::new(); self.elements.len()];
        for (number, group) in (0_u32..).zip(&self.groups) {
            for element in &group.elements {
                holders[*element as usize].push(number);
            }
        }
        let all: u64 = self.groups.iter().map(|group| group.weight).sum();
        let all_live: u64 =
            self.groups.iter().zip(live).filter(|(_, live)| **live).map(|of| of.0.weight).sum();
        let mut unmet = Unmet::default();
        let mut keeps = vec![false; live.len()];
        let mut within = 0;
        let mut last_seen = vec![UNKNOWN; live.len()];
        let mut pairs = Some(Vec::new());
        let max_pairs = self.max_pairs.min(MAX_PAIRS_PER_GROUP * live.len());
        let mut visits = 0;
        for (number, group) in (0_u32..).zip(&self.groups) {
            let index = number as usize;
            if group.elements.is_empty() {
                within += group.weight * (group.weight - 1) / 2;
            }
            if group.elements.iter().any(|element| holders[*element as usize].len() == live.len()) {
                continue;
            }
            let met = self.met(number, &holders, live, &mut last_seen, all);
            visits += group.elements.iter().map(|element| holders[*element as usize].len()).sum::<usize>();
            if visits > self.remaining_visits {
                return None;
            }
            unmet.all += group.weight * (all - met.all);
            if live[index] && met.live < all_live {
                unmet.live += group.weight * (all_live - met.live);
                keeps[index] = true;
                list_unseen(number, live, &last_seen, max_pairs, &mut pairs);
            }
        }
        unmet.all = unmet.all / 2 + within;
        unmet.live /= 2;
        self.pairs = pairs;
        self.visit(visits)?;
        Some((unmet, keeps))
    }

    /// Returns the weight of the groups that have met a group, itself among them, and marks them.
    fn met(
        &self,
        number: u32,
        holders: &[Vec<u32>],
        live: &[bool],
        last_seen: &mut [u32],
        all: u64,
    ) -> Unmet {
        let mut met = Unmet::default();
        let mut mark = |other: u32| {
            let index = other as usize;
            if last_seen[index] != number {
                last_seen[index] = number;
                met.all += self.groups[index].weight;
                met.live += if live[index] { self.groups[index].weight } else { 0 };
            }
            met.all
        };
        mark(number);
        for element in &self.groups[number as usize].elements {
            for other in &holders[*element as usize] {
                if mark(*other) == all {
                    return met;
                }
            }
        }
        met
    }
}

/// Adds the pairs of a group with later live groups that it has not met. Discards the list if it becomes too long.
fn list_unseen(
    number: u32,
    live: &[bool],
    last_seen: &[u32],
    max_pairs: usize,
    pairs: &mut Option<Vec<(u32, u32)>>,
) {
    let Some(list) = pairs else { return };
    let later = (number + 1..).zip(live.iter().zip(last_seen).skip(number as usize + 1));
    for (other, (live, seen)) in later {
        if *live && *seen != number {
            list.push((number, other));
        }
    }
    if list.len() > max_pairs {
        *pairs = None;
    }
}

/// Returns whether two ascending lists have an element in common.
fn have_common(first: &[u32], second: &[u32]) -> bool {
    let (short, mut long) = if first.len() < second.len() { (first, second) } else { (second, first) };
    short.iter().any(|element| {
        let position = long.partition_point(|other| other < element);
        long = &long[position..];
        long.first() == Some(element)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::fixture;

    /// Five levels of twelve tasks with two or three children in the next level each.
    fn layered() -> Workflow {
        let children = |task: u32| {
            [task * 5 + 1, task * 7 + 3, task * task].map(|of| (task, (task / 12 + 1) * 12 + of % 12))
        };
        let edges: Vec<_> = (0..48).flat_map(children).collect();
        fixture::workflow(&[1.0; 60], &edges)
    }

    #[test]
    fn walks_and_lanes_agree() {
        // With edges over two levels, and with edges to the next level only.
        let long: Vec<_> = layered().edges().chain((0..36).map(|task| (task, task + 24))).collect();
        for graph in [layered(), layered().with_edges(&long).unwrap()] {
            for level in 0..5 {
                let classes = Classes::new(&graph, &graph.levels()[level]);
                let walk = |max_pairs| meetings_with(&graph, &classes, max_pairs, usize::MAX).unwrap();
                let counted = walk(0);
                assert_eq!(counted, walk(20));
                assert_eq!(counted, walk(usize::MAX));
                let lanes = lanes::by_step(&graph, &classes).unwrap();
                assert_eq!(by_step(&lanes), counted, "level {level}");
                let bits = bits::by_step(&graph, level, &classes).unwrap();
                assert_eq!(by_step(&bits), counted, "level {level}");
                assert_eq!(meetings(&graph, level, 0), counted);
                let tasks = graph.levels()[level].len() as u64;
                let pairs = counted.iter().map(|(met, apart)| met + apart).sum::<u64>();
                assert_eq!(pairs, tasks * (tasks - 1) / 2);
            }
            let classes = Classes::new(&graph, &graph.levels()[0]);
            assert!(meetings_with(&graph, &classes, 0, usize::MAX).unwrap().len() > 1);
            assert_eq!(meetings_with(&graph, &classes, 0, 10), None);
        }
    }

    #[test]
    fn ascending_lists_have_common_elements() {
        for (first, second, expected) in
            [(&[1, 4, 9][..], &[2, 9][..], true), (&[1, 4], &[2, 5, 6], false), (&[], &[1], false)]
        {
            assert_eq!(have_common(first, second), expected);
            assert_eq!(have_common(second, first), expected);
        }
    }
}
