//! Transfer or recompute, by the rules of `actors/src/stage/transfer.rs`. Workers know the link as it is.

use super::SharingCluster;
use super::node::Keys;
use pleach_dispatch::stage::{NodeId, OutputId, OutputPlace, TaskRequest};
use pleach_dispatch::{LeaseId, SlotId};
use pleach_reuse::TransferCost;

impl SharingCluster {
    /// Reopens the tasks that are faster run again than their outputs transferred. Returns whether there are any: `call` waits
    /// for them then, and its slot is free.
    pub(super) fn recompute_inputs(
        &mut self,
        number: usize,
        lease: LeaseId,
        slot: SlotId,
        call: &TaskRequest,
        keys: &Keys,
    ) -> bool {
        let again = self.inputs_to_recompute(number, lease, call.node);
        if again.is_empty() {
            return false;
        }
        self.abandon(number, keys.key);
        if let Some(bucket) = self.nodes[number].buckets.get_mut(&lease) {
            bucket.run.suspend(call.node);
            for node in again {
                bucket.recomputed.insert(node);
                bucket.run.reopen(node);
            }
            bucket.run.resume(call.node);
        }
        self.follow_bucket(number, lease);
        self.slot_free(number, slot, lease);
        true
    }

    fn inputs_to_recompute(&self, number: usize, lease: LeaseId, reader: NodeId) -> Vec<NodeId> {
        let bucket = self.nodes[number].buckets.get(&lease);
        let Some(bucket) = bucket.filter(|_| self.options.recomputes) else { return Vec::new() };
        let (least, most) = self.options.latency_us;
        let link = TransferCost {
            bytes_per_second: self.options.bytes_per_second,
            // A request and its answer take the mean latency each.
            latency_seconds: (least + most) as f64 / 1e6,
        };
        let transfer = link.seconds(self.study.region_bytes);
        let place = |output: OutputId| match bucket.outputs.get(&output) {
            Some(held) if held.remote.is_some() => OutputPlace::Remote(transfer),
            Some(_) => OutputPlace::Local,
            None => OutputPlace::Dropped,
        };
        let seconds = |node| {
            let task = bucket.run.request(&self.study.stage, node).task;
            self.study.tasks[task].seconds
        };
        let mut again = bucket.run.cheaper_again(reader, place, seconds);
        again.retain(|node| !bucket.recomputed.contains(node));
        again
    }
}
