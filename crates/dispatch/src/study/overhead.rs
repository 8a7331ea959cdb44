//! Overheads of buckets: each grant, report and end of a lease drives the clocks of `state/slot_clocks`.

use super::Study;
use super::state::GrantedLease;
use crate::storage::TransferCost;
use crate::{BucketId, LeaseId, WorkerId};
use std::time::Duration;

impl Study {
    /// Starts to measure the overhead of a bucket that was granted now. `has_slot` means that the worker has an idle slot, `link`
    /// is the measured cost of its transfers.
    ///
    /// A lease is not measured if its worker reads a file of it for the first time, which may take long and has no predicted
    /// time, and if it fetches inputs over a link without a measurement. Isolated leases are not measured either.
    pub(crate) fn measure_overhead(
        &mut self,
        lease: LeaseId,
        (bucket, worker): (BucketId, WorkerId),
        (has_slot, link): (bool, Option<TransferCost>),
        now: Duration,
    ) {
        let bytes = self.remote_bytes(bucket, worker);
        let seconds = if bytes == 0 { Some(0.0) } else { link.map(|link| link.seconds(bytes)) };
        let transfer = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let reads_new_file = self.note_read_files(bucket, worker);
        let is_measured = !reads_new_file && !self.instances.bucket(bucket).is_isolated();
        let transfer = transfer.filter(|_| is_measured);
        let stage = self.stage_of_bucket(bucket);
        self.clocks.grant(lease, GrantedLease { worker, stage, now, has_slot, transfer });
    }

    /// Records that a worker reads the files of a bucket. Returns whether it has not read one of them before.
    fn note_read_files(&mut self, bucket: BucketId, worker: WorkerId) -> bool {
        let first = self.plan.buckets[bucket.index()].instances[0];
        let mut is_new = false;
        for key in self.plan.instances.at(first).inputs {
            is_new |= self.regions.producer(*key).is_none() && self.read_files.insert((worker, *key));
        }
        is_new
    }

    /// Passes the slot of a lease on, if the lease has ended.
    pub(super) fn free_slot(&mut self, worker: WorkerId, lease: LeaseId) {
        if self.leases.get(lease).is_none() {
            self.clocks.end(worker, lease, self.now);
        }
    }

    /// Takes the overheads of buckets measured since the last call, in seconds: from the grant to a worker with an idle slot,
    /// or from the end of the lease before it on that slot, to the first report, without its tasks and transfers of inputs.
    pub fn take_bucket_overheads(&mut self) -> Vec<f64> {
        self.clocks.take_measured()
    }

    /// Updates the overhead of a bucket, in seconds: from now on, work stealing makes no bucket with less work.
    pub fn handle_bucket_overhead(&mut self, seconds: f64) {
        self.plan.bucket_overhead_seconds = seconds;
    }
}
