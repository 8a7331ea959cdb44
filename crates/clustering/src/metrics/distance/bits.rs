//! Counts pairs of tasks of a level by their distance or meeting, 512 classes of tasks at a time.
//!
//! Each successor has a bit for each class of a block, in as many bits as a cache line has. Whether two tasks meet within some number
//! of edges is a matter of such bits, so a search with one more edge is an "or" over the children of each task. Nearly all pairs of
//! irregular graphs meet after few edges: the search of a block ends with its last pair, and looks at no deeper levels. A pair that
//! never meets needs all edges. After some steps, [`lanes`](super::lanes) are faster, and the search gives up.

use std::ops::Range;

use super::classes::Classes;
use super::lanes::Pairs;
use crate::workflow::Workflow;
use crate::workflow::lists::Lists;

/// Classes of a block: their bits fill a cache line.
pub(super) const BITS: usize = 512;

/// A bit for each class of a block.
type Bits = [u64; BITS / 64];

const NO_BITS: Bits = [0; BITS / 64];

/// Most steps until all pairs have met. The search for each step takes the edges of all layers above it once, half as often as there are
/// steps in the mean, and lanes take them twice for each of eight blocks: 16 times.
const MAX_STEPS: usize = 32;

/// Most edges between two tasks. A search by bits takes each edge once downward, and upward once for each distance that is open yet.
/// Measured on random layers, it is faster than lanes up to some 20.
const MAX_DISTANCE: usize = 20;

/// Returns the pairs by the least number of steps after which their successors have a task in common. `None` if some pairs have not
/// met after [`MAX_STEPS`]. `level` counts from 0.
pub(super) fn by_step(graph: &Workflow, level: usize, classes: &Classes<'_>) -> Option<Pairs> {
    let below = Below::new(graph, level, classes);
    let mut search = StepSearch::new(&below);
    below.pairs(classes, 1, |block, rows| search.meet(block, rows))
}

/// Returns the pairs by the length of the shortest path from one task to a common successor and back to the other task. `None` if
/// there may be a distance above [`MAX_DISTANCE`]. `level` counts from 0.
pub(super) fn by_distance(graph: &Workflow, level: usize, classes: &Classes<'_>) -> Option<Pairs> {
    let below = Below::new(graph, level, classes);
    let mut search = DistanceSearch::new(&below);
    below.pairs(classes, 2, |block, rows| search.meet(block, rows))
}

/// Successors of a level in the order of their levels, so that parents come before their children.
struct Below {
    /// Children of each class.
    classes: Lists,
    /// Children of each successor.
    children: Lists,
    /// First successor of each level, and the number of all successors.
    starts: Vec<usize>,
    /// Successors that some class may reach by each number of edges, from 1: those of some levels.
    layers: Vec<Range<usize>>,
    /// Length of the longest path from each class.
    heights: Vec<usize>,
}

impl Below {
    fn new(graph: &Workflow, level: usize, classes: &Classes<'_>) -> Self {
        let levels = &graph.levels()[level + 1..];
        let mut number_of = vec![u32::MAX; graph.tasks().len()];
        for (number, task) in (0..).zip(levels.iter().flatten()) {
            number_of[*task as usize] = number;
        }
        let numbered = |lists: &mut dyn Iterator<Item = &[u32]>| {
            let mut numbered = Lists::default();
            for list in lists {
                list.iter().for_each(|task| numbered.push(number_of[*task as usize]));
                numbered.close();
            }
            numbered
        };
        let mut starts = vec![0];
        starts.extend(levels.iter().scan(0, |end, tasks| {
            *end += tasks.len();
            Some(*end)
        }));
        let of_classes = numbered(&mut classes.children.iter().copied());
        let children = numbered(&mut levels.iter().flatten().map(|task| graph.children(*task)));
        let heights = heights(&of_classes, &children);
        let mut below = Self { classes: of_classes, children, starts, layers: vec![], heights };
        below.layers = below.layers();
        below
    }

    fn layers(&self) -> Vec<Range<usize>> {
        let last = |lists: &mut dyn Iterator<Item = &[u32]>| lists.flatten().max().copied();
        let level_end = |task: u32| {
            let level = self.starts.partition_point(|start| *start <= task as usize);
            self.starts[level]
        };
        let mut layers = Vec::new();
        let mut next = last(&mut self.classes.iter());
        // Each edge leads one level further at least.
        while let Some(task) = next {
            let layer = self.starts[layers.len()]..level_end(task);
            next = last(&mut layer.clone().map(|task| self.children.get(task as u32)));
            layers.push(layer);
        }
        layers
    }

    /// Counts all pairs. `meet` searches for a block of classes. `first` is the number of edges after which children meet.
    fn pairs(
        &self,
        classes: &Classes<'_>,
        first: usize,
        mut meet: impl FnMut(&Block<'_>, &mut Rows<'_>) -> Option<()>,
    ) -> Option<Pairs> {
        let key = |class: &u32| (classes.weights[*class as usize], self.heights[*class as usize]);
        let mut order: Vec<u32> = (0..classes.len() as u32).collect();
        order.sort_by_key(key);
        let most = MAX_DISTANCE.max(self.starts.len()) + 1;
        let mut pairs = Pairs { met: vec![0; most], apart: vec![0; most] };
        let mut rows = Rows { below: self, weights: &classes.weights, met: vec![], counts: vec![], unmet: 0 };
        for block in order.chunks(BITS) {
            let runs = block.chunk_by(|one, other| key(one) == key(other)).scan(0, |start, run| {
                let (weight, height) = key(&run[0]);
                let bits = bits(*start..*start + run.len());
                *start += run.len();
                Some(Run { bits, weight, height })
            });
            let block = Block { classes: block, all: bits(0..block.len()), runs: runs.collect() };
            rows.clear();
            meet(&block, &mut rows)?;
            rows.add_to(&block, &mut pairs);
        }
        // Each pair is in two blocks, and each task is beside itself: over a child, unless it has none.
        for (class, weight) in (0..).zip(&classes.weights) {
            let is_exit = self.classes.get(class).is_empty();
            *(if is_exit { &mut pairs.apart[0] } else { &mut pairs.met[first] }) -= weight;
        }
        pairs.met.iter_mut().chain(&mut pairs.apart).for_each(|count| *count /= 2);
        Some(pairs)
    }

    /// Sets the bits of the children of a block, and clears all others. Returns the end of the children.
    fn start(&self, block: &Block<'_>, reached: &mut [Bits]) -> usize {
        reached.fill(NO_BITS);
        let mut end = 0;
        for (bit, class) in block.classes.iter().enumerate() {
            for child in self.classes.get(*class) {
                reached[*child as usize][bit / 64] |= 1 << (bit % 64);
                end = end.max(*child as usize + 1);
            }
        }
        end
    }
}

/// Returns the length of the longest path from each class.
fn heights(classes: &Lists, children: &Lists) -> Vec<usize> {
    let mut below = vec![0; children.len()];
    let height = |children: &[u32], below: &[usize]| {
        children.iter().map(|child| below[*child as usize] + 1).max().unwrap_or(0)
    };
    for task in (0..children.len()).rev() {
        below[task] = height(children.get(task as u32), &below);
    }
    classes.iter().map(|children| height(children, &below)).collect()
}

/// Classes that are searched for together.
struct Block<'a> {
    classes: &'a [u32],
    /// The bits of all classes of the block.
    all: Bits,
    runs: Vec<Run>,
}

impl Block<'_> {
    /// Returns the length of the longest path from a class of the block.
    fn height(&self) -> usize {
        self.runs.iter().map(|run| run.height).max().unwrap_or(0)
    }
}

/// Classes of a block with the same weight and height, so that a count of bits is a count of pairs.
struct Run {
    bits: Bits,
    weight: u64,
    height: usize,
}

/// Classes beside those of a block.
struct Rows<'a> {
    below: &'a Below,
    weights: &'a [u64],
    /// Classes of the block that each class has met.
    met: Vec<Bits>,
    /// Pairs by the number of edges after which they met.
    counts: Vec<u64>,
    /// Rows that have not met all classes of the block.
    unmet: usize,
}

impl Rows<'_> {
    fn clear(&mut self) {
        self.met.clear();
        self.met.resize(self.weights.len(), NO_BITS);
        self.counts.clear();
        self.unmet = self.weights.len();
    }

    /// Adds the pairs that meet over bits of children after a number of edges. Returns whether all pairs have met.
    fn meet(&mut self, block: &Block<'_>, edges: usize, joined: &[Bits]) -> bool {
        let mut count = 0;
        for ((class, met), weight) in (0..).zip(&mut self.met).zip(self.weights) {
            if same(met, &block.all) {
                continue;
            }
            let mut row = *met;
            add_all(&mut row, self.below.classes.get(class), joined);
            for run in &block.runs {
                count += weight * run.weight * (number(&row, &run.bits) - number(met, &run.bits));
            }
            *met = row;
            self.unmet -= usize::from(same(&row, &block.all));
        }
        self.counts.resize(self.counts.len().max(edges + 1), 0);
        self.counts[edges] = count;
        self.unmet == 0
    }

    /// Adds the counts of a block, and the pairs that have not met.
    fn add_to(&self, block: &Block<'_>, pairs: &mut Pairs) {
        pairs.met.iter_mut().zip(&self.counts).for_each(|(sum, count)| *sum += count);
        for ((met, weight), height) in self.met.iter().zip(self.weights).zip(&self.below.heights) {
            if !same(met, &block.all) {
                for run in &block.runs {
                    let apart = number(&run.bits, &run.bits) - number(met, &run.bits);
                    pairs.apart[run.height.min(*height)] += apart * weight * run.weight;
                }
            }
        }
    }
}

/// Search by steps. Successors after each number of steps form a layer.
struct StepSearch<'a> {
    below: &'a Below,
    /// Classes of the block that reach a successor by the present number of edges.
    reached: Vec<Bits>,
    /// The same for one more edge.
    next: Vec<Bits>,
    /// Classes that a successor meets after the edges from its layer to the present one.
    joined: Vec<Bits>,
}

impl<'a> StepSearch<'a> {
    fn new(below: &'a Below) -> Self {
        let none = || vec![NO_BITS; below.children.len()];
        Self { below, reached: none(), next: none(), joined: none() }
    }

    fn meet(&mut self, block: &Block<'_>, rows: &mut Rows<'_>) -> Option<()> {
        let below = self.below;
        // No task from here on reaches a successor of the block in the present layer.
        let mut end = below.start(block, &mut self.reached);
        for (index, layer) in below.layers.iter().enumerate() {
            self.joined[layer.clone()].copy_from_slice(&self.reached[layer.clone()]);
            for above in below.layers[..index].iter().rev() {
                let middle = end.clamp(above.start, above.end);
                // Parents come first, so that children still have the bits of the next layer.
                for task in above.start..middle {
                    let mut joined = NO_BITS;
                    add_all(&mut joined, below.children.get(task as u32), &self.joined);
                    self.joined[task] = joined;
                }
                self.joined[middle..above.end].fill(NO_BITS);
            }
            if rows.meet(block, index + 1, &self.joined) || index + 1 == block.height() {
                return Some(());
            }
            if index + 1 == MAX_STEPS {
                return None;
            }
            if let Some(next) = below.layers.get(index + 1) {
                self.next[next.clone()].fill(NO_BITS);
                let tasks = layer.start..end.clamp(layer.start, layer.end);
                for task in tasks {
                    let reached = self.reached[task];
                    if !same(&reached, &NO_BITS) {
                        for child in below.children.get(task as u32) {
                            add(&mut self.next[*child as usize], &reached);
                            end = end.max(*child as usize + 1);
                        }
                    }
                }
                std::mem::swap(&mut self.reached, &mut self.next);
            }
        }
        Some(())
    }
}

/// Search by the length of the shortest path to a common successor and back.
struct DistanceSearch<'a> {
    below: &'a Below,
    /// Length of the shortest path to each successor from any class.
    nearest: Vec<usize>,
    /// Classes of the block that reach a successor by at most the present number of edges.
    reached: Vec<Bits>,
    /// Classes that are at most at the present number of edges from a successor, by way of a common successor.
    joined: Vec<Bits>,
    /// Largest distance of the blocks so far. `None` before the first block, and once pairs have no common successor.
    largest: Option<usize>,
}

impl<'a> DistanceSearch<'a> {
    fn new(below: &'a Below) -> Self {
        let mut nearest = vec![usize::MAX; below.children.len()];
        below.classes.iter().flatten().for_each(|child| nearest[*child as usize] = 1);
        for task in 0..nearest.len() {
            let length = nearest[task].saturating_add(1);
            for child in below.children.get(task as u32) {
                nearest[*child as usize] = nearest[*child as usize].min(length);
            }
        }
        let none = || vec![NO_BITS; below.children.len()];
        Self { below, nearest, reached: none(), joined: none(), largest: None }
    }

    fn meet(&mut self, block: &Block<'_>, rows: &mut Rows<'_>) -> Option<()> {
        if let Some(largest) = self.largest {
            // Most blocks have the same largest distance: the search leaves out the lengths that only larger ones need.
            self.search(block, rows, largest)?;
            if rows.unmet == 0 {
                return Some(());
            }
            rows.clear();
        }
        let distance = self.search(block, rows, usize::MAX)?;
        self.largest = (rows.unmet == 0).then(|| self.largest.unwrap_or(0).max(distance));
        Some(())
    }

    /// Adds the pairs at distances of up to `largest`. Returns the last one.
    fn search(&mut self, block: &Block<'_>, rows: &mut Rows<'_>, largest: usize) -> Option<usize> {
        let below = self.below;
        // No task from here on reaches a successor of the block.
        let mut end = below.start(block, &mut self.reached);
        self.joined.fill(NO_BITS);
        for length in 1.. {
            let layer = below.layers.get(length - 1);
            let mut has_changed = false;
            // Parents come first, so that children still have the bits of one edge less.
            for task in 0..end {
                let old = self.joined[task];
                if same(&old, &block.all) || length.saturating_add(self.nearest[task]) > largest {
                    continue;
                }
                let mut joined = old;
                add(&mut joined, &self.reached[task]);
                add_all(&mut joined, below.children.get(task as u32), &self.joined);
                has_changed |= !same(&joined, &old);
                self.joined[task] = joined;
            }
            let distance = length + 1;
            if rows.meet(block, distance, &self.joined) || distance == largest {
                return Some(distance);
            }
            if !has_changed && layer.is_none() {
                return Some(distance);
            }
            if distance == MAX_DISTANCE {
                return None;
            }
            // Children come first, so that a path gets one edge longer. Levels above this layer have got all paths.
            let layer = layer.cloned().unwrap_or_default();
            for task in (layer.start..end.min(layer.end)).rev() {
                let reached = self.reached[task];
                if !same(&reached, &NO_BITS) {
                    for child in below.children.get(task as u32) {
                        add(&mut self.reached[*child as usize], &reached);
                        end = end.max(*child as usize + 1);
                    }
                }
            }
        }
        None
    }
}

fn bits(range: Range<usize>) -> Bits {
    let mut bits = NO_BITS;
    range.for_each(|bit| bits[bit / 64] |= 1 << (bit % 64));
    bits
}

/// Compares without a call, which takes longer than the comparison.
fn same(bits: &Bits, other: &Bits) -> bool {
    bits.iter().zip(other).fold(0, |difference, (word, other)| difference | (word ^ other)) == 0
}

fn add(bits: &mut Bits, more: &Bits) {
    bits.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
}

fn add_all(bits: &mut Bits, tasks: &[u32], of: &[Bits]) {
    tasks.iter().for_each(|task| add(bits, &of[*task as usize]));
}

/// Returns the number of bits that are in a mask.
fn number(bits: &Bits, mask: &Bits) -> u64 {
    bits.iter().zip(mask).map(|(word, mask)| u64::from((word & mask).count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::super::lanes;
    use super::*;
    use crate::workflow::fixture;

    /// Levels of 700 tasks, more than a block, with two children each. Every third task has a child two levels below, and every fifth
    /// none at all. Tasks without a parent are on the first level.
    fn layered(levels: u32) -> Workflow {
        let child = |task: u32, of: u32, below: u32| {
            (task, (task / 700 + below) * 700 + (task.wrapping_mul(2_654_435_761) >> (8 + of)) % 700)
        };
        let tasks = 0..(levels - 1) * 700;
        let next = tasks.clone().filter(|task| task % 5 > 0);
        let long = tasks.filter(|task| task % 3 == 0 && task / 700 + 2 < levels);
        let edges: Vec<_> = next
            .flat_map(|task| [child(task, 0, 1), child(task, 3, 1)])
            .chain(long.map(|task| child(task, 5, 2)))
            .collect();
        fixture::workflow(&vec![1.0; 700 * levels as usize], &edges)
    }

    /// Counts without trailing zeros: both searches have as many as their largest distances.
    fn trimmed(mut pairs: Pairs) -> Pairs {
        for counts in [&mut pairs.met, &mut pairs.apart] {
            counts.truncate(counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        }
        pairs
    }

    #[test]
    fn bits_and_lanes_agree() {
        let graph = layered(7);
        for level in 0..7 {
            let classes = Classes::new(&graph, &graph.levels()[level]);
            let expected = trimmed(lanes::by_step(&graph, &classes).unwrap());
            assert_eq!(trimmed(by_step(&graph, level, &classes).unwrap()), expected, "level {level}");
            let expected = trimmed(lanes::by_distance(&graph, level, &classes).unwrap());
            assert_eq!(trimmed(by_distance(&graph, level, &classes).unwrap()), expected, "level {level}");
            let tasks = graph.levels()[level].len() as u64;
            let pairs = expected.met.iter().chain(&expected.apart).sum::<u64>();
            assert_eq!(pairs, tasks * (tasks - 1) / 2);
        }
        assert!(Classes::new(&graph, &graph.levels()[0]).len() > BITS);
    }

    #[test]
    fn a_search_of_too_many_edges_gives_up() {
        // Two chains without a common successor.
        let chains = |length: u32| {
            let edges: Vec<_> = (0..2 * length - 2).map(|task| (task, task + 2)).collect();
            fixture::workflow(&vec![1.0; 2 * length as usize], &edges)
        };
        let found = |graph: &Workflow| {
            let classes = Classes::new(graph, &graph.levels()[0]);
            (by_step(graph, 0, &classes).map(trimmed), by_distance(graph, 0, &classes).map(trimmed))
        };
        let (steps, distances) = found(&chains(10));
        assert_eq!(steps.unwrap().apart, [vec![0; 9], vec![1]].concat());
        assert_eq!(distances.unwrap().apart, [vec![0; 9], vec![1]].concat());
        assert_eq!(found(&chains(40)), (None, None));
    }
}
