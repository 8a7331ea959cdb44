//! Transfer or recompute: inputs of a task that other workers have, and that are computed again where that is faster.
//!
//! A chain of tasks may be computed again for one input: those that this worker lacks, each in the faster way.

use super::BucketExecution;
use super::graph::NodeState;
use super::interface::OutputId;
use crate::ids::NodeId;
use pleach_reuse::is_recompute_cheaper;
use std::collections::BTreeMap;

/// Longest chain of tasks that run again for one input.
const MAX_DEPTH: u32 = 32;

/// Place of an output of a done task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutputPlace {
    /// On this worker.
    Local,
    /// On another worker, with the expected seconds of its transfer.
    Remote(f64),
    /// Dropped, since no task was to read it any longer.
    Dropped,
}

impl BucketExecution {
    /// Returns the tasks to run again before `reader`, because that is faster than to transfer their outputs. `place`
    /// returns the place of an output, `seconds` the predicted time of a task.
    pub fn cheaper_again(
        &self,
        reader: NodeId,
        place: impl Fn(OutputId) -> OutputPlace,
        seconds: impl Fn(NodeId) -> f64,
    ) -> Vec<NodeId> {
        let mut search = Search { run: self, place, seconds, known: BTreeMap::new() };
        // An output of its own inputs that is nowhere is that of a skipped task, which has none.
        let lacking = search.transfers(reader).into_iter().filter(|(_, transfer)| transfer.is_finite());
        let again = lacking.filter(|&(node, transfer)| {
            // The task alone is a lower bound, so that most outputs need no search.
            is_recompute_cheaper(transfer, (search.seconds)(node))
                && is_recompute_cheaper(transfer, search.recompute_seconds(node, MAX_DEPTH))
        });
        again.map(|(node, _)| node).collect()
    }
}

struct Search<'a, P, S> {
    run: &'a BucketExecution,
    place: P,
    seconds: S,
    known: BTreeMap<NodeId, f64>,
}

impl<P: Fn(OutputId) -> OutputPlace, S: Fn(NodeId) -> f64> Search<'_, P, S> {
    /// Returns the done tasks whose outputs a task reads and this worker lacks, with the seconds of their transfer.
    fn transfers(&self, reader: NodeId) -> BTreeMap<NodeId, f64> {
        let mut reads = self.run.graph.nodes[reader.index()].reads.clone();
        reads.sort_unstable();
        reads.dedup();
        let mut transfers = BTreeMap::new();
        for read in reads {
            let seconds = match (self.run.graph.nodes[read.node.index()].state, (self.place)(read)) {
                // It runs, or will run, whatever is decided.
                (NodeState::Open, _) | (NodeState::Done, OutputPlace::Local) => continue,
                (NodeState::Done, OutputPlace::Remote(seconds)) => seconds,
                (NodeState::Done, OutputPlace::Dropped) | (NodeState::Failed, _) => f64::INFINITY,
            };
            *transfers.entry(read.node).or_insert(0.0) += seconds;
        }
        transfers
    }

    /// Returns the seconds of a task, and of obtaining the inputs that this worker lacks, each in the faster way. Infinite if
    /// a chain of more than `depth` tasks would run again.
    fn recompute_seconds(&mut self, node: NodeId, depth: u32) -> f64 {
        if let Some(seconds) = self.known.get(&node) {
            return *seconds;
        }
        if depth == 0 {
            return f64::INFINITY;
        }
        let mut seconds = (self.seconds)(node);
        for (input, transfer) in self.transfers(node) {
            let again = self.recompute_seconds(input, depth - 1);
            seconds += if is_recompute_cheaper(transfer, again) { again } else { transfer };
        }
        self.known.insert(node, seconds);
        seconds
    }
}
