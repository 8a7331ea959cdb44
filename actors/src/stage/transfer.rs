//! Transfer or recompute: a task whose inputs other workers have runs the tasks that wrote them again, where the measured link
//! takes clearly longer than the tasks.

use super::StageActor;
use super::execution::TaskKeys;
use pleach_dispatch::SlotId;
use pleach_dispatch::stage::{NodeId, OutputId, OutputPlace, TaskRequest};
use std::net::SocketAddr;

impl StageActor {
    /// Reopens the tasks that are faster run again than their outputs transferred, and has `call` wait for them. Returns
    /// whether there are any: the slot is free then, and the claim of `call` given up, since a claimer waits for bytes only.
    pub(super) fn recompute_inputs(
        &mut self,
        slot: SlotId,
        call: &TaskRequest,
        claimed: Option<TaskKeys>,
    ) -> bool {
        let again = self.inputs_to_recompute(call);
        let Some(directory) = self.around.directory.as_ref().filter(|_| !again.is_empty()) else {
            return false;
        };
        directory.exchange.count_recomputed(again.len() as u64);
        claimed.iter().for_each(|keys| self.abandon(keys.key));
        self.run.suspend(call.node);
        for node in again {
            self.recomputed.insert(node);
            self.run.reopen(node);
        }
        self.run.resume(call.node);
        self.follow();
        self.report_slot_free(slot);
        true
    }

    fn inputs_to_recompute(&self, call: &TaskRequest) -> Vec<NodeId> {
        let fetches = self.fetches(call);
        let Some(directory) = self.around.directory.as_ref().filter(|_| !fetches.is_empty()) else {
            return Vec::new();
        };
        let links = directory.exchange.links();
        let place = |output: OutputId| match (self.outputs.region(output), self.outputs.remote(output)) {
            (Some(_), _) => OutputPlace::Local,
            (None, None) => OutputPlace::Dropped,
            (None, Some(remote)) => {
                let holders: Vec<SocketAddr> =
                    remote.task.holders.iter().map(|holder| holder.address).collect();
                // Nothing is known of the link until it has been used.
                let seconds = links.transfer_seconds(&holders, self.outputs.bytes_of(output));
                seconds.map_or(OutputPlace::Local, OutputPlace::Remote)
            }
        };
        let seconds = |node: NodeId| self.predict(&self.run.request(&self.stage, node));
        let mut again = self.run.cheaper_again(call.node, place, seconds);
        // Once for each task: a prediction that is too low must not repeat it without end.
        again.retain(|node| !self.recomputed.contains(node));
        again
    }
}
