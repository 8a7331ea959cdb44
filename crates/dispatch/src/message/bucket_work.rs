//! A bucket as sent to a worker.

use crate::memory_model::OutputConsumption;
use crate::plan::{OutputPlan, ReuseScope};
use crate::{BucketId, InstanceId, WorkerId};
use pleach_regions::RegionKey;
use pleach_workflow::Value;
use serde::{Deserialize, Serialize};

/// Why the manager grants a bucket to a worker. The worker counts its requests by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantReason {
    /// It answers the request for buckets of any stage.
    Request,
    /// It answers the request for a bucket of a later stage.
    LaterRequest,
    /// It answers no request: it is short, and comes along with a bucket of its stage, so that it waits for no message.
    Short,
}

/// A bucket as sent to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketWork {
    /// The plan's bucket. The buckets of one stage are admitted in this order.
    pub bucket: BucketId,
    /// Index into the study's stages.
    pub stage: u32,
    /// Size of its images, the basis of the operations' memory estimates.
    pub pixels: u64,
    /// Memory to consume one finished instance's outputs.
    pub drain: OutputConsumption,
    /// Reuse scope of its tasks.
    pub sharing: ReuseScope,
    /// Its tile, if no other worker has got a bucket of it: look-ups would find nothing. The key of its content, the same in
    /// every study, as far as that is known.
    pub own_tile: Option<RegionKey>,
    /// The instances to execute.
    pub instances: Vec<InstanceWork>,
    /// Inputs that only peers hold. The worker fetches each from one of them.
    pub elsewhere: Vec<RemoteRegion>,
}

impl BucketWork {
    /// Adapts the bucket to a worker with a spill tier: stored regions that no running bucket reads leave memory.
    #[must_use]
    pub fn with_spill(mut self) -> Self {
        self.drain = OutputConsumption { bytes: self.drain.busy_bytes, rest_bytes: 0, ..self.drain };
        self.instances.iter_mut().for_each(|instance| instance.stays = false);
        self
    }
}

/// A region that other workers hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRegion {
    /// Its key.
    pub key: RegionKey,
    /// Workers that hold it: at least one, unless the region is shared.
    pub workers: Vec<WorkerId>,
    /// Whether it is in a tier shared by all workers.
    pub shared: bool,
}

/// A stage instance as sent to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceWork {
    /// Its id, for the reports.
    pub id: InstanceId,
    /// Values of the stage's parameters.
    pub parameters: Vec<Value>,
    /// Keys of the stage's inputs.
    pub inputs: Vec<RegionKey>,
    /// Destinations of the stage's outputs.
    pub outputs: Vec<OutputPlan>,
    /// Whether some readers cannot run as soon as this instance is finished: its outputs stay longer.
    pub stays: bool,
}
