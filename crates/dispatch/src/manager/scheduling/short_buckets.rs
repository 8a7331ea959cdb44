//! Short buckets: one answer brings several of them.
//!
//! A bucket whose tasks take less time than a message costs its worker the time of the message. Where the worker has all inputs
//! in memory, it gets such buckets along with one that it has requested.

use crate::manager::Manager;
use crate::message::GrantReason;
use crate::plan::GrantOrder;
use crate::storage::ReadCost;
use crate::{BucketId, PlanId, WorkerId};

impl Manager {
    /// 4 ms: maximum of the expected time of the buckets of one answer, a few times that of a message from a worker to the
    /// manager and back. Another worker does not wait longer for them.
    pub const SHORT_SECONDS: f64 = 4e-3;

    /// Maximum number of leases of a worker that gets short buckets. Admission looks at each of them.
    pub const MAX_SHORT_LEASES: usize = 64;

    /// Grants more buckets of the stage of `granted`. The worker has just got that one, with `instances`, for its request for any
    /// bucket or for one `after` a stage.
    ///
    /// They are the buckets that its next requests would get. The grant ends with the first one of another stage or study,
    /// with an input that the worker does not have in memory, or beyond [`SHORT_SECONDS`](Self::SHORT_SECONDS) by the measured
    /// time of the stage.
    pub(super) fn grant_short(
        &mut self,
        worker: WorkerId,
        granted: (PlanId, BucketId),
        instances: usize,
        after: Option<usize>,
    ) {
        let Some((stage, seconds)) = self.short_stage(granted) else { return };
        let per_instance = seconds / self.speed_of(worker);
        let mut total = instances as f64 * per_instance;
        // A worker that requests many buckets in advance would get this many for each request.
        for _ in self.leases_of(worker)..Self::MAX_SHORT_LEASES {
            if total >= Self::SHORT_SECONDS || self.has_more_grants() {
                return;
            }
            let Some((id, bucket)) = self.choose_from(worker, after, false) else { return };
            let Some(study) = self.studies.get(&id).filter(|_| id == granted.0) else { return };
            total += study.open_in(bucket) as f64 * per_instance;
            let is_alike = study.stage_of_bucket(bucket) == stage && total <= Self::SHORT_SECONDS;
            if !is_alike || self.read_cost(worker, (id, bucket)) != ReadCost::NONE {
                return;
            }
            self.grant(worker, id, bucket, GrantReason::Short);
        }
    }

    /// Returns the stage of a bucket and the measured seconds of one of its instances. `None` if they are not known, or if buckets
    /// are not granted by the place of their inputs.
    fn short_stage(&self, (id, bucket): (PlanId, BucketId)) -> Option<(usize, f64)> {
        let study = self.studies.get(&id)?;
        let stage = study.stage_of_bucket(bucket);
        let by_place = self.by_data && study.plan().order != GrantOrder::Release;
        study.seconds_per_instance(stage).filter(|_| by_place).map(|seconds| (stage, seconds))
    }
}
