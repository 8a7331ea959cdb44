//! Distances from one class of tasks to all others.

use std::collections::{BTreeMap, HashMap};

use super::bits;
use super::classes::Classes;
use super::lanes;
use crate::workflow::Workflow;

/// Entries of an index above which distances are computed without one: an entry and its inverse take 16 bytes, so an index
/// has at most 320 MB.
const MAX_ENTRIES: usize = 20_000_000;

/// Visits of index entries below which an index is always fast enough: some milliseconds.
const MIN_VISITS: usize = 1 << 20;

/// Longest path to a successor of all classes that is looked for.
const MAX_TRIED_LENGTH: u32 = 8;

/// Successors that are tried at each length: each try walks the edges above one.
const MAX_TRIES: usize = 3;

/// Classes whose rows are computed together without an index.
const LANES: usize = 64;

/// Rows of blocks that are kept: 256 MB, which is all of a level of 11,000 classes.
const MAX_LANES: usize = 1 << 21;

/// Lengths of paths from the classes of a block. 16 bits: a graph that is deeper than [`FAR`] has too few tasks a level to
/// need a search without an index.
type Lanes = [i16; LANES];

/// No path.
const FAR: i16 = i16::MAX / 2;

/// Distances between tasks of one class and the tasks of the nearest classes.
#[derive(Debug)]
pub(crate) struct Row {
    /// Distance and class, by distance, where the distance is less than that of all other classes. The own class is among them if it
    /// has a second task.
    pub(crate) near: Vec<(u32, u32)>,
}

/// Distances between the tasks of a level, row by row: the length of the shortest path from one task to a common successor and
/// from there back to the other task (paper 002, section 4.1).
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    graph: &'a Workflow,
    level: usize,
    classes: &'a Classes<'a>,
    index: Option<Index>,
    /// Rows of blocks that were computed without an index, at most [`MAX_LANES`].
    blocks: HashMap<usize, Vec<Lanes>>,
    /// Least distance per class in the present row, `u32::MAX` if unknown.
    best: Vec<u32>,
    /// Classes in the present row.
    touched: Vec<u32>,
}

/// Successors of classes, and classes of successors. Successors with one parent are left out: that parent is nearer.
#[derive(Debug)]
struct Index {
    /// Successor and length of the shortest path to it.
    successors: Vec<Vec<(u32, u32)>>,
    /// Length and class for each task, by length.
    classes: Vec<Vec<(u32, u32)>>,
    /// Distance of all pairs of classes without a nearer common successor.
    rest: u32,
}

impl<'a> Rows<'a> {
    /// Creates the rows of a level.
    pub(crate) fn new(graph: &'a Workflow, level: usize, classes: &'a Classes<'a>) -> Self {
        let below = graph.levels()[level + 1..].iter().flatten();
        let edges: usize = below.map(|task| graph.children(*task).len()).sum();
        // A search takes each edge twice for each block, in about the time of four visits.
        Self::with_visits(graph, level, classes, classes.len().div_ceil(LANES) * edges * 8)
    }

    /// Creates the rows of a level, with an index if all rows together visit at most `max_visits` of its entries.
    fn with_visits(graph: &'a Workflow, level: usize, classes: &'a Classes<'a>, max_visits: usize) -> Self {
        let index = Index::new(graph, level, classes, max_visits.max(MIN_VISITS));
        let (blocks, best, touched) = (HashMap::new(), vec![u32::MAX; classes.len()], Vec::new());
        Self { graph, level, classes, index, blocks, best, touched }
    }

    /// Returns the row of a class.
    pub(crate) fn row(&mut self, class: u32) -> Row {
        let mut near = Vec::new();
        self.visit(class, |distance, other| near.push((distance, other)));
        near.sort_unstable();
        Row { near }
    }

    /// Calls a function with the distance of each class in the row of a class that is nearer than the rest. Returns the distance of
    /// the rest.
    fn visit(&mut self, class: u32, mut near: impl FnMut(u32, u32)) -> u32 {
        let rest;
        if let Some(index) = &self.index {
            rest = index.rest;
            for (successor, to) in &index.successors[class as usize] {
                for (from, other) in &index.classes[*successor as usize] {
                    let distance = to + from;
                    if distance >= rest {
                        break;
                    }
                    let best = &mut self.best[*other as usize];
                    if *best == u32::MAX {
                        self.touched.push(*other);
                    }
                    *best = distance.min(*best);
                }
            }
        } else {
            rest = super::max_distance(self.graph, self.level);
            self.search(class);
            self.touched.extend(0..self.classes.len() as u32);
        }
        for other in self.touched.drain(..) {
            let distance = std::mem::replace(&mut self.best[other as usize], u32::MAX);
            let is_other_task = other != class || self.classes.weights[class as usize] > 1;
            if distance < rest && is_other_task {
                near(distance, other);
            }
        }
        rest
    }

    /// Writes the row of a class that is computed without an index.
    fn search(&mut self, class: u32) {
        let (number, lane) = (class as usize / LANES, class as usize % LANES);
        if !self.blocks.contains_key(&number) {
            // Classes in ascending order, as for a count, need no block twice.
            if (self.blocks.len() + 1) * self.classes.len() > MAX_LANES {
                self.blocks.clear();
            }
            self.blocks.insert(number, self.search_block(number));
        }
        for (best, lanes) in self.best.iter_mut().zip(&self.blocks[&number]) {
            *best = if lanes[lane] < FAR { lanes[lane] as u32 } else { u32::MAX };
        }
    }

    /// Returns the distances of all classes to those of a block: paths to successors downward, paths from them upward.
    fn search_block(&self, number: usize) -> Vec<Lanes> {
        let mut nearest = vec![[FAR; LANES]; self.graph.tasks().len()];
        for (lane, children) in self.classes.children.iter().skip(number * LANES).take(LANES).enumerate() {
            for child in *children {
                nearest[*child as usize][lane] = 1;
            }
        }
        let below = &self.graph.levels()[self.level + 1..];
        for task in below.iter().flatten() {
            let own = nearest[*task as usize];
            for child in self.graph.children(*task) {
                extend(&mut nearest[*child as usize], &own);
            }
        }
        for task in below.iter().rev().flatten() {
            let mut own = nearest[*task as usize];
            for child in self.graph.children(*task) {
                extend(&mut own, &nearest[*child as usize]);
            }
            nearest[*task as usize] = own;
        }
        let row = |children: &&[u32]| {
            let mut row = [FAR; LANES];
            for child in *children {
                extend(&mut row, &nearest[*child as usize]);
            }
            row
        };
        self.classes.children.iter().map(row).collect()
    }
}

/// Replaces each length by that of the way over another task, an edge away, if it is shorter.
fn extend(own: &mut Lanes, other: &Lanes) {
    for (own, other) in own.iter_mut().zip(other) {
        *own = (*own).min(other + 1);
    }
}

impl Index {
    /// Creates the index of a level. `None` if it would have more than [`MAX_ENTRIES`], or if all rows together would visit
    /// more than `max_visits`.
    fn new(graph: &Workflow, level: usize, classes: &Classes<'_>, max_visits: usize) -> Option<Self> {
        let mut search = Search::new(graph);
        let rest = rest(graph, level, classes, &mut search);
        // The longer of two paths shorter than `rest` together. Without edges over several levels, both have the same length.
        let max_length = if super::has_long_edges(graph, level) { rest - 2 } else { (rest - 1) / 2 };
        let (mut entries, mut visits) = (0, 0);
        let mut lists = Vec::with_capacity(classes.len());
        let mut inverse = vec![Vec::new(); graph.tasks().len()];
        for (class, children) in (0..).zip(&classes.children) {
            let mut list = search.successors(children, max_length);
            list.retain(|(successor, _)| graph.parents(*successor).len() > 1);
            entries += list.len();
            if entries > MAX_ENTRIES {
                return None;
            }
            for (successor, length) in &list {
                let inverse: &mut Vec<_> = &mut inverse[*successor as usize];
                // The square of the list's length, from that of the shorter list.
                visits += 2 * inverse.len() + 1;
                inverse.push((*length, class));
            }
            if visits > max_visits {
                return None;
            }
            lists.push(list);
        }
        for list in &mut inverse {
            list.sort_unstable();
        }
        Some(Self { successors: lists, classes: inverse, rest })
    }
}

/// Returns a distance that no pair of classes exceeds and that all pairs have that are not nearer: that of a successor at the
/// same length from all classes, or else the largest.
fn rest(graph: &Workflow, level: usize, classes: &Classes<'_>, search: &mut Search<'_>) -> u32 {
    let mut tries = [0; MAX_TRIED_LENGTH as usize + 1];
    for (successor, length) in search.successors(classes.children[0], MAX_TRIED_LENGTH) {
        tries[length as usize] += 1;
        if tries[length as usize] <= MAX_TRIES
            && is_at_length_from_all(graph, level, classes, successor, length)
        {
            return 2 * length;
        }
    }
    super::max_distance(graph, level)
}

/// Returns whether the shortest path from all classes to a task has this length.
fn is_at_length_from_all(
    graph: &Workflow,
    level: usize,
    classes: &Classes<'_>,
    task: u32,
    length: u32,
) -> bool {
    let mut lengths = vec![u32::MAX; graph.tasks().len()];
    lengths[task as usize] = 0;
    let mut reached = vec![task];
    let mut position = 0;
    while let Some(task) = reached.get(position).copied() {
        position += 1;
        for parent in graph.parents(task) {
            if lengths[*parent as usize] == u32::MAX && graph.level_of(*parent) > level {
                lengths[*parent as usize] = lengths[task as usize] + 1;
                reached.push(*parent);
            }
        }
    }
    let nearest = |children: &&[u32]| children.iter().map(|child| lengths[*child as usize]).min();
    classes.children.iter().all(|children| nearest(children) == Some(length - 1))
}

/// Breadth-first search with marks that serve many searches.
struct Search<'a> {
    graph: &'a Workflow,
    marks: Vec<u32>,
    number: u32,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Workflow) -> Self {
        Self { graph, marks: vec![0; graph.tasks().len()], number: 0 }
    }

    /// Returns the successors of tasks with these children up to a length, and the length of the shortest path to each,
    /// by length.
    fn successors(&mut self, children: &[u32], max_length: u32) -> Vec<(u32, u32)> {
        self.number += 1;
        let mut list = Vec::new();
        self.extend(&mut list, children, 1, max_length);
        let mut position = 0;
        while let Some((task, length)) = list.get(position).copied() {
            position += 1;
            self.extend(&mut list, self.graph.children(task), length + 1, max_length);
        }
        list
    }

    fn extend(&mut self, list: &mut Vec<(u32, u32)>, children: &[u32], length: u32, max_length: u32) {
        if length > max_length {
            return;
        }
        for child in children {
            let mark = &mut self.marks[*child as usize];
            if *mark != self.number {
                *mark = self.number;
                list.push((*child, length));
            }
        }
    }
}

/// Adds the number of pairs by distance. `edges` are those from the level on.
///
/// An index makes rows fast in graphs where few tasks share successors. In others, lanes take each edge twice for 64 classes.
pub(super) fn count(graph: &Workflow, level: usize, edges: usize, pairs: &mut BTreeMap<u32, u64>) {
    let classes = Classes::new(graph, &graph.levels()[level]);
    let max_visits = 2 * classes.len().div_ceil(bits::BITS) * edges;
    let mut rows = Rows::with_visits(graph, level, &classes, max_visits);
    let counted = if rows.index.is_none() {
        bits::by_distance(graph, level, &classes).or_else(|| lanes::by_distance(graph, level, &classes))
    } else {
        None
    };
    match counted {
        Some(counted) => {
            for (distance, count) in (0..).zip(&counted.met).filter(|(_, count)| **count > 0) {
                *pairs.entry(distance).or_default() += count;
            }
            *pairs.entry(super::max_distance(graph, level)).or_default() += counted.apart.iter().sum::<u64>();
        }
        None => count_rows(&mut rows, pairs),
    }
}

fn count_rows(rows: &mut Rows<'_>, pairs: &mut BTreeMap<u32, u64>) {
    let classes = rows.classes;
    let tasks: u64 = classes.weights.iter().sum();
    let mut counts: Vec<u64> = Vec::new();
    for (class, weight) in (0..).zip(&classes.weights) {
        let mut remaining = tasks - 1;
        let rest = rows.visit(class, |distance, other| {
            let others = classes.weights[other as usize] - u64::from(other == class);
            remaining -= others;
            let distance = distance as usize;
            if counts.len() <= distance {
                counts.resize(distance + 1, 0);
            }
            counts[distance] += weight * others;
        });
        *pairs.entry(rest).or_default() += weight * remaining;
    }
    for (distance, count) in (0..).zip(counts) {
        *pairs.entry(distance).or_default() += count;
    }
    // Each pair is in the rows of both of its tasks.
    for count in pairs.values_mut() {
        *count /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::fixture;

    #[test]
    fn rows_with_and_without_an_index_agree() {
        // Edges over one to three levels of ten tasks. Tasks 0 and 1 have the same children, and so have 8 and 9: none.
        let child =
            |task: u32, of: u32| (task, (task / 10 + 1 + of % 3) * 10 + (task.max(1) * 7 + of * 3) % 10);
        let edges: Vec<_> =
            (0..20).filter(|of| of % 10 < 8).flat_map(|task| [child(task, 0), child(task, 4)]).collect();
        let graph = fixture::workflow(&[1.0; 50], &edges);
        let classes = Classes::new(&graph, &graph.levels()[0]);
        let mut rows = Rows::new(&graph, 0, &classes);
        let indexed: Vec<Row> = (0..classes.len() as u32).map(|class| rows.row(class)).collect();
        let rest = rows.index.take().unwrap().rest;
        for (class, row) in (0..).zip(&indexed) {
            let searched = rows.row(class);
            let near: Vec<_> = searched.near.into_iter().filter(|(distance, _)| *distance < rest).collect();
            assert_eq!(near, row.near);
        }
        assert!(indexed.iter().any(|row| !row.near.is_empty()));
        let mut counted = BTreeMap::new();
        count_rows(&mut rows, &mut counted);
        counted.retain(|_, count| *count > 0);
        let by_bits = bits::by_distance(&graph, 0, &classes).unwrap();
        for pairs in [by_bits, lanes::by_distance(&graph, 0, &classes).unwrap()] {
            let apart: u64 = pairs.apart.iter().sum();
            let mut met: BTreeMap<u32, u64> = (0..).zip(pairs.met).filter(|(_, count)| *count > 0).collect();
            *met.entry(super::super::max_distance(&graph, 0)).or_default() += apart;
            met.retain(|_, count| *count > 0);
            assert_eq!(met, counted);
        }
    }
}
