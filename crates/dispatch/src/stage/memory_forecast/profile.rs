//! Memory profile of a bucket: the bytes that its waiting tasks add and release, in order of execution.
//!
//! A segment tree over the task instances. A task that starts, ends or is suspended changes its own step, and those of the tasks
//! that read an output last then. Both this and a forecast with one more started task take logarithmic time.

use super::super::graph::{BucketGraph, NodeState};
use super::super::interface::OutputId;
use super::{TaskSizes, signed};
use crate::ids::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// No reader waits.
const NO_READER: u32 = u32::MAX;

/// Bytes of consecutive tasks, run one at a time, relative to those held before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Bytes held after them.
    sum: i64,
    /// Maximum up to the first task that ends instances, until their outputs are read.
    until_end: i64,
    /// Maximum after that task. The remainder of readers adds to it.
    after_end: i64,
    /// Whether a task ends instances.
    ends: bool,
}

impl Span {
    const EMPTY: Self = Self { sum: 0, until_end: i64::MIN, after_end: i64::MIN, ends: false };

    /// Returns these tasks followed by others.
    fn then(self, next: Self) -> Self {
        let after = |bytes: i64| self.sum.saturating_add(bytes);
        let sum = after(next.sum);
        if self.ends {
            let after_end = self.after_end.max(after(next.until_end.max(next.after_end)));
            return Self { sum, after_end, ..self };
        }
        let until_end = self.until_end.max(after(next.until_end));
        Self { sum, until_end, after_end: after(next.after_end), ends: next.ends }
    }

    /// Returns the maximum if readers leave `rest_bytes` after the first task that ends instances.
    pub(super) fn most(self, rest_bytes: u64) -> i64 {
        self.until_end.max(self.after_end.saturating_add(signed(rest_bytes)))
    }
}

#[derive(Debug)]
pub(super) struct Profile {
    /// Number of leaves of the tree, a power of two.
    width: usize,
    /// The root is at 1, the children of each inner node at twice its index and one more, and the tasks from `width` on.
    spans: Vec<Span>,
    /// By task: it is open and does not run.
    waits: Vec<bool>,
    /// By output: index of its first entry in `readers`.
    first_reader: Vec<u32>,
    /// The open tasks that read an output, in order.
    readers: Vec<NodeId>,
    /// By output: index in `readers` of the last task that waits.
    last_reader: Vec<u32>,
}

impl Profile {
    pub(super) fn new(graph: &BucketGraph, sizes: &TaskSizes, running: &BTreeSet<NodeId>) -> Self {
        let nodes = || (0u32..).map(NodeId).zip(&graph.nodes);
        let open: Vec<NodeId> =
            nodes().filter(|(_, at)| at.state == NodeState::Open).map(|(node, _)| node).collect();
        let mut first_reader = vec![0; graph.readers.len() + 1];
        for &node in &open {
            distinct_reads(graph, node).iter().for_each(|read| first_reader[graph.place(*read) + 1] += 1);
        }
        for place in 1..first_reader.len() {
            first_reader[place] += first_reader[place - 1];
        }
        let mut next = first_reader.clone();
        let mut readers = vec![NodeId(0); next.last().map_or(0, |all| *all as usize)];
        for &node in &open {
            for read in distinct_reads(graph, node) {
                let entry = &mut next[graph.place(read)];
                readers[*entry as usize] = node;
                *entry += 1;
            }
        }
        let mut waits = vec![false; graph.nodes.len()];
        open.iter().for_each(|node| waits[node.index()] = !running.contains(node));
        let width = graph.nodes.len().next_power_of_two();
        let last_reader = vec![NO_READER; graph.readers.len()];
        let spans = vec![Span::EMPTY; 2 * width];
        let mut profile = Self { width, spans, waits, first_reader, readers, last_reader };
        for place in 0..graph.readers.len() {
            profile.last_reader[place] = profile.last_before(place, profile.first_reader[place + 1]);
        }
        for node in open {
            profile.spans[width + node.index()] = profile.step(graph, sizes, node, 0);
        }
        for index in (1..width).rev() {
            profile.unite(index);
        }
        profile
    }

    /// Records whether a task waits: it is open and does not run.
    pub(super) fn set_waiting(&mut self, graph: &BucketGraph, sizes: &TaskSizes, node: NodeId, waits: bool) {
        if std::mem::replace(&mut self.waits[node.index()], waits) == waits {
            return;
        }
        let mut changed = vec![node];
        for read in distinct_reads(graph, node) {
            let place = graph.place(read);
            let before = self.last_reader[place];
            let is_last = self.reader(before) == Some(node);
            self.last_reader[place] = match (waits, self.reader(before)) {
                (true, Some(last)) if last > node => continue,
                (true, _) => self.entry(place, node),
                (false, _) if is_last => self.last_before(place, before),
                (false, _) => continue,
            };
            changed.extend(self.reader(before));
            changed.extend(self.reader(self.last_reader[place]));
            // It keeps an output only for readers that wait.
            changed.push(read.node);
        }
        changed.sort_unstable();
        changed.dedup();
        for node in changed {
            self.refresh(graph, sizes, node);
        }
    }

    /// Returns all waiting tasks.
    pub(super) fn all(&self) -> Span {
        self.spans[1]
    }

    /// Returns all waiting tasks except one, as if it had started.
    pub(super) fn without(&self, graph: &BucketGraph, sizes: &TaskSizes, node: NodeId) -> Span {
        if !self.waits[node.index()] {
            return self.all();
        }
        // The outputs that it reads last are released by the reader before, or as soon as it ends itself.
        let mut steps = BTreeMap::from([(node, Span::EMPTY)]);
        let mut released: BTreeMap<NodeId, i64> = BTreeMap::new();
        for read in distinct_reads(graph, node) {
            let place = graph.place(read);
            let last = self.last_reader[place];
            if self.reader(last) != Some(node) {
                continue;
            }
            if let Some(before) = self.reader(self.last_before(place, last)) {
                *released.entry(before).or_insert(0) += signed(sizes.of(graph, read));
            }
        }
        for (before, bytes) in released {
            steps.insert(before, self.step(graph, sizes, before, bytes));
        }
        let (mut all, mut from) = (Span::EMPTY, 0);
        for (changed, step) in steps {
            all = all.then(self.over(from..changed.index())).then(step);
            from = changed.index() + 1;
        }
        all.then(self.over(from..self.width))
    }

    /// Returns the span of one task. `more` bytes of further outputs are released by it.
    fn step(&self, graph: &BucketGraph, sizes: &TaskSizes, node: NodeId, more: i64) -> Span {
        if !self.waits[node.index()] {
            return Span::EMPTY;
        }
        let at = &graph.nodes[node.index()];
        let has_reader = |output: &OutputId| self.last_reader[graph.place(*output)] != NO_READER;
        let kept: i64 =
            graph.outputs(node).filter(has_reader).map(|output| signed(sizes.of(graph, output))).sum();
        let is_last = |read: &OutputId| self.reader(self.last_reader[graph.place(*read)]) == Some(node);
        let reads = distinct_reads(graph, node).into_iter().filter(is_last);
        let released: i64 = reads.map(|read| signed(sizes.of(graph, read))).sum();
        let (running, after) = (signed(sizes.running(at.level)), kept - released - more);
        if at.leaves.is_empty() {
            return Span { sum: after, until_end: running, after_end: i64::MIN, ends: false };
        }
        let read = after.saturating_add(signed(sizes.drain.bytes.max(sizes.left(graph, node))));
        let sum = after.saturating_add(signed(sizes.store_bytes.saturating_mul(at.staying)));
        Span { sum, until_end: running.max(read), after_end: i64::MIN, ends: true }
    }

    /// Computes the step of a task again, and all spans with it.
    fn refresh(&mut self, graph: &BucketGraph, sizes: &TaskSizes, node: NodeId) {
        let mut index = self.width + node.index();
        self.spans[index] = self.step(graph, sizes, node, 0);
        while index > 1 {
            index /= 2;
            self.unite(index);
        }
    }

    fn unite(&mut self, index: usize) {
        self.spans[index] = self.spans[2 * index].then(self.spans[2 * index + 1]);
    }

    /// Returns the span of consecutive tasks.
    fn over(&self, nodes: Range<usize>) -> Span {
        let (mut start, mut end) = (nodes.start + self.width, nodes.end + self.width);
        let (mut before, mut after) = (Span::EMPTY, Span::EMPTY);
        while start < end {
            if start % 2 == 1 {
                before = before.then(self.spans[start]);
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                after = self.spans[end].then(after);
            }
            (start, end) = (start / 2, end / 2);
        }
        before.then(after)
    }

    fn reader(&self, entry: u32) -> Option<NodeId> {
        self.readers.get(entry as usize).copied()
    }

    /// Returns the entry of a reader of an output.
    fn entry(&self, place: usize, reader: NodeId) -> u32 {
        let entries = self.first_reader[place]..self.first_reader[place + 1];
        let before =
            self.readers[entries.start as usize..entries.end as usize].partition_point(|it| *it < reader);
        entries.start + before as u32
    }

    /// Returns the entry of the last waiting reader of an output before another entry.
    fn last_before(&self, place: usize, entry: u32) -> u32 {
        let waits = |entry: &u32| self.waits[self.readers[*entry as usize].index()];
        (self.first_reader[place]..entry).rev().find(waits).unwrap_or(NO_READER)
    }
}

/// Returns the outputs that a task and the instances ending with it read, each once.
fn distinct_reads(graph: &BucketGraph, node: NodeId) -> Vec<OutputId> {
    let at = &graph.nodes[node.index()];
    let gives = if at.leaves.is_empty() { &[][..] } else { &at.gives };
    let mut reads = [at.reads.as_slice(), gives].concat();
    reads.sort_unstable();
    reads.dedup();
    reads
}
