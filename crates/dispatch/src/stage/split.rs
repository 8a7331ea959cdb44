//! Split of a bucket between its worker and an idle one that does not have its task results.
//!
//! The bucket keeps the first of its unstarted instances. The other worker runs all tasks of the others: also those that have
//! run here, and those that the kept instances need as well.

use super::BucketExecution;
use super::graph::NodeState;
use crate::InstanceId;
use crate::ids::NodeId;
use pleach_workflow::Value;

/// Unstarted instances below a node, by their positions.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    /// The first and the last one.
    positions: Option<(usize, usize)>,
    /// A started instance is below the node too.
    started: bool,
}

impl Below {
    fn add(&mut self, other: Self) {
        self.started |= other.started;
        self.positions = match (self.positions, other.positions) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (own, others) => own.or(others),
        };
    }
}

impl BucketExecution {
    /// Returns how many of the unstarted instances to keep, at least `least` of them, so that the slower of both parts ends
    /// first. `unstarted` has them in order with their leaves. Keeps as many as possible at equal times, and all where every
    /// split takes longer than none.
    pub(super) fn shortest_split(
        &self,
        unstarted: &[(NodeId, InstanceId)],
        least: usize,
        seconds: impl Fn(usize, &[Value]) -> f64,
    ) -> usize {
        // By number of kept instances: change of the seconds of both parts.
        let (mut kept, mut given) = (vec![0.0; unstarted.len() + 2], vec![0.0; unstarted.len() + 2]);
        for (node, below) in self.graph.nodes.iter().zip(self.below(unstarted)) {
            let seconds = seconds(node.level, &node.arguments);
            let is_open = node.state == NodeState::Open;
            let Some((first, last)) = below.positions else {
                kept[0] += if is_open && below.started { seconds } else { 0.0 };
                continue;
            };
            if is_open {
                kept[if below.started { 0 } else { first + 1 }] += seconds;
            }
            given[0] += seconds;
            given[last + 1] -= seconds;
        }
        let (mut own, mut others) = (0.0, 0.0);
        let slower = kept.iter().zip(&given).take(unstarted.len() + 1).map(|(kept, given)| {
            own += kept;
            others += given;
            f64::max(own, others)
        });
        let splits = slower.enumerate().skip(least.min(unstarted.len()));
        splits.reduce(|best, next| if next.1 <= best.1 { next } else { best }).map_or(0, |(kept, _)| kept)
    }

    /// Returns the unstarted instances below each node.
    fn below(&self, unstarted: &[(NodeId, InstanceId)]) -> Vec<Below> {
        let nodes = self.graph.nodes.iter();
        let mut below: Vec<Below> = nodes
            .map(|node| {
                let started = node.state == NodeState::Open && !node.leaves.is_empty();
                Below { positions: None, started }
            })
            .collect();
        // A leaf has only unstarted instances, or a started one with its equals.
        for (position, (leaf, _)) in unstarted.iter().enumerate() {
            below[leaf.index()].add(Below { positions: Some((position, position)), started: false });
            below[leaf.index()].started = false;
        }
        // Children have higher numbers than their parents, so one backward pass suffices.
        for index in (0..below.len()).rev() {
            let mut all = below[index];
            self.graph.nodes[index].children.iter().for_each(|child| all.add(below[child.index()]));
            below[index] = all;
        }
        below
    }
}
