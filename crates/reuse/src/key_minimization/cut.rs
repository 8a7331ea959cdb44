//! Minimum cuts of small networks: shortest augmenting paths (Edmonds and Karp).
//!
//! The caller defines the meaning of nodes.

use std::collections::VecDeque;

/// Node numbers of the two ends and the inner nodes of a network.
pub(super) mod ends {
    /// Source of the flow. A cut separates it from [`FAR`].
    pub(in super::super) const NEAR: usize = 0;
    /// Sink of the flow.
    pub(in super::super) const FAR: usize = 1;

    /// Returns an inner node, counted from 0.
    pub(in super::super) fn inner(number: usize) -> usize {
        number + 2
    }
}

/// Capacity of arcs that no minimum cut may cross. Sums of 64-bit costs stay far below.
const BOUND: u128 = u128::MAX / 4;

/// Arcs with their cut costs.
#[derive(Debug)]
pub(super) struct FlowNetwork {
    /// Arcs by the node they leave. The arc back of arc `i` is `i ^ 1`.
    leaving: Vec<Vec<usize>>,
    to: Vec<usize>,
    /// Residual capacities.
    rest: Vec<u128>,
}

impl FlowNetwork {
    /// Creates a network of two ends and `inner` nodes, without arcs.
    pub(super) fn new(inner: usize) -> Self {
        Self { leaving: vec![Vec::new(); inner + 2], to: Vec::new(), rest: Vec::new() }
    }

    /// Requires `to` on the near side if `from` is on it.
    pub(super) fn bind(&mut self, from: usize, to: usize) {
        self.arc(from, to, BOUND);
    }

    /// Charges `cost` for cuts with `from` on the near side and `to` on the far side.
    pub(super) fn pay(&mut self, from: usize, to: usize, cost: u64) {
        self.arc(from, to, u128::from(cost));
    }

    fn arc(&mut self, from: usize, to: usize, cost: u128) {
        for (from, to, cost) in [(from, to, cost), (to, from, 0)] {
            self.leaving[from].push(self.to.len());
            self.to.push(to);
            self.rest.push(cost);
        }
    }

    /// Returns the nodes on the near side of the cheapest cut, on ties of the cut with the fewest nodes there.
    pub(super) fn source_side_of_minimum_cut(mut self) -> Vec<bool> {
        loop {
            let arrived_by = self.search();
            if arrived_by[ends::FAR].is_none() {
                let mut near: Vec<bool> = arrived_by.iter().map(Option::is_some).collect();
                // The search records no arc for its own start.
                near[ends::NEAR] = true;
                return near;
            }
            let path = || std::iter::successors(arrived_by[ends::FAR], |arc| arrived_by[self.to[*arc ^ 1]]);
            let path: Vec<usize> = path().collect();
            let flow = path.iter().map(|arc| self.rest[*arc]).min().unwrap_or(0);
            for arc in path {
                self.rest[arc] -= flow;
                self.rest[arc ^ 1] += flow;
            }
        }
    }

    /// Returns for each node the arc on which the search first reaches it. `None` for the near end and
    /// unreachable nodes.
    fn search(&self) -> Vec<Option<usize>> {
        let mut arrived_by = vec![None; self.leaving.len()];
        // Breadth first: shortest paths bound the number of augmentations independently of the capacities.
        let mut queue = VecDeque::from([ends::NEAR]);
        while let Some(node) = queue.pop_front() {
            for &arc in &self.leaving[node] {
                let to = self.to[arc];
                if self.rest[arc] > 0 && to != ends::NEAR && arrived_by[to].is_none() {
                    arrived_by[to] = Some(arc);
                    queue.push_back(to);
                }
            }
        }
        arrived_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_of_two_arcs_in_a_row_is_cut() {
        for (first, second, near) in [(3, 5, false), (5, 3, true), (4, 4, false)] {
            let mut network = FlowNetwork::new(1);
            network.pay(ends::NEAR, ends::inner(0), first);
            network.pay(ends::inner(0), ends::FAR, second);
            assert_eq!(network.source_side_of_minimum_cut()[ends::inner(0)], near);
        }
    }

    #[test]
    fn flow_that_went_the_wrong_way_is_taken_back() {
        // The shortest path is augmented first, but the best cut separates the far end from both nodes.
        let mut network = FlowNetwork::new(2);
        let [a, b] = [0, 1].map(ends::inner);
        network.pay(ends::NEAR, a, 10);
        network.pay(ends::NEAR, b, 10);
        network.pay(a, b, 1);
        network.pay(a, ends::FAR, 4);
        network.pay(b, ends::FAR, 9);
        assert_eq!(network.source_side_of_minimum_cut(), [true, false, true, true]);
    }
}
