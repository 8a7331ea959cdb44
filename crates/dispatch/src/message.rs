//! What manager and workers say to each other; the same over QUIC as within a process.

use crate::memory_model::OutputConsumption;
use crate::plan::{OutputPlan, ReuseScope};
use crate::{BucketId, InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::{ElementType, RegionKey, Table};
use pleach_workflow::{Durability, SlideTile, Stage, Value};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::Path;

/// From a worker to the manager.
///
/// [`Done`](Self::Done) and [`Failed`](Self::Failed) are reports: they are numbered from 1 in the order in which they are
/// sent over one connection, and a worker keeps each until it is [`AckReports`](ToWorker::AckReports), to send it again over
/// the next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToManager {
    /// The worker is there and can run this many tasks at once.
    Join {
        /// Its slots.
        slots: u32,
        /// The process: another one each time it is started.
        incarnation: u64,
        /// The port at which others fetch regions from it, if they can.
        exchange_port: Option<u16>,
        /// What it has from before.
        before: Option<ReattachState>,
    },
    /// Slots are free: send up to this many buckets, now or when there are any.
    Request {
        /// Buckets wanted beyond those already asked for.
        buckets: u32,
        /// Only of later stages than this one; takes the place of such a request that has not been answered.
        after: Option<u32>,
    },
    /// Asks for an [`SyncAck`](ToWorker::SyncAck).
    Sync {
        /// The call's number.
        call: u64,
    },
    /// An instance is finished, and what others read of it is stored.
    Done {
        /// The study.
        study: PlanId,
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// Outputs that are results of the study, in the stage's order.
        results: Vec<Table>,
        /// Tasks run since the last report.
        tasks: Vec<TaskReport>,
        /// What others read of it and is in a tier that all workers share.
        shared: Vec<RegionKey>,
    },
    /// An instance cannot be finished.
    Failed {
        /// The study.
        study: PlanId,
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// Why.
        cause: TaskFailure,
        /// Tasks run since the last report.
        tasks: Vec<TaskReport>,
    },
    /// An instance lacks a region that it reads: whoever has it could not give it.
    MissingInput {
        /// The study.
        study: PlanId,
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// The region.
        key: RegionKey,
        /// Tasks run since the last report.
        tasks: Vec<TaskReport>,
    },
    /// Instances that the worker has not begun, for others.
    ReturnInstances {
        /// The study.
        study: PlanId,
        /// The lease they were granted under.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
    },
    /// What an instance is to leave is stored, and is to have a second copy with another worker before the instance is
    /// reported: answered by [`Replicated`](ToWorker::Replicated).
    AwaitReplica {
        /// The study.
        study: PlanId,
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// The regions, and their bytes.
        regions: Vec<(RegionKey, u64)>,
    },
    /// A region has been fetched from another worker, as it was told to.
    RegionFetched {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A region could not be fetched from another worker, or there is no room for it.
    FetchFailed {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A second copy had to make room.
    ReplicaDropped {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// Asks for the content of an input file, which comes as a region does, under the first half of the digest.
    File {
        /// BLAKE3 of the content.
        digest: [u8; 32],
    },
    /// What is in the worker's storage now; said when that has changed, and not more often than it is worth.
    StorageUsage {
        /// Bytes of regions.
        bytes: u64,
    },
    /// The worker has been asked to leave: it wants nothing more.
    Drain,
    /// The worker leaves; what it has not reported is free for others.
    Leave,
}

/// What a worker has of studies that it was told of over an earlier connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReattachState {
    /// The manager that told it, by the number of its state: of another one it has nothing.
    pub manager: u64,
    /// By study.
    pub studies: Vec<StudyReattach>,
    /// Studies of which it has kept what tasks have computed, for a part that follows.
    pub kept: Vec<u32>,
}

/// What a worker has of one study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyReattach {
    /// The study.
    pub study: PlanId,
    /// Leases, with the instances that it executes or has not been told are durable.
    pub leases: Vec<(LeaseId, Vec<InstanceId>)>,
    /// Regions in its storage.
    pub held: Vec<RegionKey>,
}

/// From the manager to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// The worker has joined.
    Welcome {
        /// The number of the manager's state.
        manager: u64,
    },
    /// A study, before anything else of it.
    StartStudy {
        /// Its number.
        study: PlanId,
        /// Its stages, in the plan's order.
        stages: Vec<Stage>,
        /// What the study takes, one task at a time.
        least_bytes: u64,
        /// What has to survive the worker.
        durable: Durability,
        /// Another part of the same study may follow: what tasks compute is kept for it, as far as there is room.
        keeps: bool,
    },
    /// A bucket to execute.
    Assign {
        /// The study.
        study: PlanId,
        /// The lease to report under.
        lease: LeaseId,
        /// The bucket.
        work: BucketWork,
        /// It answers the request that was made with `after`, not one for any bucket.
        later: bool,
        /// What it reads that comes from files.
        inputs: Vec<InputFile>,
        /// Where the workers are that it names.
        peers: Vec<(WorkerId, SocketAddr)>,
    },
    /// Of a lease from before, only these instances are to be gone on with; none: others have them.
    ResumeLease {
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
    },
    /// A lease need not be gone on with: others were faster, or nobody wants it any more.
    Revoke {
        /// The lease.
        lease: LeaseId,
    },
    /// Others are idle: hand back a part of what has not been begun of this lease.
    StealRequest {
        /// The lease.
        lease: LeaseId,
    },
    /// Fetch a region from a worker that leaves, or that may be lost, and say what came of it.
    FetchRegion {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
        /// Where it is.
        from: SocketAddr,
        /// It is to be a second copy, of so many bytes, only where there is room that nothing else needs.
        replica: Option<u64>,
    },
    /// What an instance has stored has been copied, as far as anybody could: it may be reported.
    Replicated {
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// Nobody will read these regions again.
    Release {
        /// Their keys.
        keys: Vec<RegionKey>,
    },
    /// There is nothing more to do for a study.
    StudyFinished {
        /// The study.
        study: PlanId,
    },
    /// No part of a study follows any more: nothing that was kept of it is wanted.
    DropRetained {
        /// The study.
        study: u32,
    },
    /// So many of the connection's reports, from the first one on, are on disk.
    AckReports {
        /// Reports.
        reports: u64,
    },
    /// The manager does not have a file that was asked for.
    FileMissing {
        /// BLAKE3 of the content.
        digest: [u8; 32],
    },
    /// The answer to a [`Call`](ToManager::Sync): all that there was to say before it has been said.
    SyncAck {
        /// The call's number.
        call: u64,
    },
    /// Begin nothing more, hand back what can be, and ask for nothing.
    Drain,
    /// Nothing that the worker holds is needed: it may leave.
    DrainComplete,
    /// Start nothing more, and leave when nothing runs any more.
    Stop,
    /// There is nothing more to do.
    Shutdown,
}

/// A region that comes from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// The region's key.
    pub key: RegionKey,
    /// The file.
    pub file: FileContent,
    /// What the file is read as, and for which tile, where it is a reference.
    pub reference: Option<(ElementType, FileContent)>,
    /// Which part of it, where it is a slide: the pixels of the tile, or its core as a table.
    pub slide: Option<(ElementType, SlideTile)>,
}

/// A file: where it may lie, and what it holds wherever it lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileContent {
    /// Where it lies at whoever submitted the study.
    pub path: String,
    /// BLAKE3 of its content.
    pub digest: [u8; 32],
    /// Its length.
    pub bytes: u64,
    /// The further files of a slide in several files, in the order of their names; none of any other file.
    pub companions: Vec<Companion>,
}

/// A further file of a slide, without which the one that it is named by cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Companion {
    /// Its path below the folder of the file that the slide is named by: a file's name, or a folder's and a file's.
    pub name: String,
    /// BLAKE3 of its content.
    pub digest: [u8; 32],
    /// Its length.
    pub bytes: u64,
}

impl FileContent {
    /// All files that there are to it, each by itself: this one, then its companions.
    pub fn parts(&self) -> impl Iterator<Item = FileContent> {
        let own = Self { companions: Vec::new(), ..self.clone() };
        std::iter::once(own).chain(self.companions.iter().map(|companion| Self {
            path: Path::new(&self.path).with_file_name(&companion.name).to_string_lossy().into_owned(),
            digest: companion.digest,
            bytes: companion.bytes,
            companions: Vec::new(),
        }))
    }
}

/// A bucket as a worker gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketWork {
    /// Which bucket of the plan: those of one stage have their turns in this order.
    pub bucket: BucketId,
    /// Index into the study's stages.
    pub stage: u32,
    /// Size of the images it works on, from which operations estimate what they take.
    pub pixels: u64,
    /// What it takes to have one finished instance's outputs read.
    pub drain: OutputConsumption,
    /// What its tasks share.
    pub sharing: ReuseScope,
    /// The instances to execute.
    pub instances: Vec<InstanceWork>,
    /// What they read that this worker does not hold, and others do: it is fetched from one of them.
    pub elsewhere: Vec<RemoteRegion>,
}

impl BucketWork {
    /// The same for a worker that has room below its memory: what is stored, and not read by anything under way, leaves it.
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
    /// Those that hold it; at least one where it is not shared.
    pub workers: Vec<WorkerId>,
    /// It is in a tier that all workers share.
    pub shared: bool,
}

/// A stage instance as a worker gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceWork {
    /// Its id, for the reports.
    pub id: InstanceId,
    /// Values of the stage's parameters.
    pub parameters: Vec<Value>,
    /// Keys of the stage's inputs.
    pub inputs: Vec<RegionKey>,
    /// What becomes of the stage's outputs.
    pub outputs: Vec<OutputPlan>,
    /// Not all that read them can run as soon as this instance is finished: they stay for longer.
    pub stays: bool,
}

/// One task that is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Index into the stage's tasks.
    pub task: u32,
    /// Index into the study's stages.
    pub stage: u32,
    /// How it was done.
    pub done: TaskOutcome,
    /// Wall seconds of finding and keeping it among what earlier studies have computed.
    pub cache_seconds: f64,
}

/// How a task was done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// It was run.
    Ran {
        /// Wall seconds it took.
        seconds: f64,
        /// Wall seconds that it was believed to take.
        predicted_seconds: f64,
        /// Outputs of which the digest was taken.
        digests: u32,
        /// Wall seconds that took.
        digest_seconds: f64,
    },
    /// Its outputs were there, since somebody had run the same before.
    Reused(ReuseSource),
}

/// Why a task need not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReuseSource {
    /// Another bucket has run the same operation with the same values on regions that came about in the same way.
    Dataflow,
    /// The same operation has been run with the same values on regions that turned out to be equal.
    Value,
    /// An earlier study has run it.
    Cache,
    /// An earlier plan of the same study has run it, in the same process.
    Before,
}

/// Why a task gave no result, in words that can travel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskFailure {
    /// The task, such as `t6`, or the input that could not be read.
    pub at: String,
    /// What went wrong, as a fragment that fits after a colon.
    pub cause: String,
}
