//! Messages between manager and workers, the same over QUIC and within a process.

mod bucket_work;
mod code;
pub mod content_digest;
mod query;
mod region_tiers;
mod task_report;

use crate::directory::MemberChange;
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
pub use bucket_work::{BucketWork, GrantReason, InstanceWork, RemoteRegion};
pub use code::{CodePackage, ExternalOperation};
use pleach_regions::{ElementType, RegionKey, Table};
use pleach_workflow::{AnnotationPart, AnnotationRules, Durability, SlideTile, Stage, VolumeBlock};
pub use query::{ObjectsFound, RegionAnswer, RegionQueries};
pub use region_tiers::{MAX_REGION_TIERS, RegionTiers};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
pub use task_report::{ReuseSource, TaskFailure, TaskOutcome, TaskProvenance, TaskReport, TaskSource};

/// Message from a worker to the manager.
///
/// Each connection numbers the messages with [`Reports`](Self::Reports) from 1 in sending order. A worker keeps each until it
/// is acknowledged ([`AckReports`](ToWorker::AckReports)), to send it again over the next connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToManager {
    /// The worker joins and can run this many tasks at once.
    Join {
        /// Its slots.
        slots: u32,
        /// Accelerators among its slots.
        accelerators: u32,
        /// Memory of its smallest accelerator in bytes.
        device_bytes: u64,
        /// The worker process: a different number for each start.
        incarnation: u64,
        /// Port for peers that fetch regions from it. `None` if they cannot.
        exchange_port: Option<u16>,
        /// Leases and regions of an earlier connection.
        before: Option<ReattachState>,
    },
    /// Slots are free: send up to this many buckets, now or as soon as some are ready.
    Request {
        /// Buckets wanted beyond those already asked for.
        buckets: u32,
        /// Only of later stages than this one. Replaces an earlier such request that has not been answered.
        after: Option<u32>,
    },
    /// Asks for a [`SyncAck`](ToWorker::SyncAck).
    Sync {
        /// The sync's number.
        call: u64,
    },
    /// Instances of one study have ended, in this order. A worker collects the reports of a few milliseconds.
    Reports {
        /// The study.
        study: PlanId,
        /// At least one.
        reports: Vec<Report>,
    },
    /// An instance misses an input region.
    MissingInput(MissingInput),
    /// Unstarted instances go back to the manager.
    ReturnInstances {
        /// The study.
        study: PlanId,
        /// The lease they were granted under.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
    },
    /// An instance's outputs are stored and need a replica on another worker before the instance is
    /// reported. Answered by [`Replicated`](ToWorker::Replicated).
    AwaitReplica {
        /// The study.
        study: PlanId,
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// The regions and their bytes.
        regions: Vec<(RegionKey, u64)>,
    },
    /// A region has been fetched from a peer, as the manager requested.
    RegionFetched {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A region could not be fetched from a peer, or memory has no room for it.
    FetchFailed {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A replica was dropped under memory pressure.
    ReplicaDropped {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// Asks for the content of an input file. The file arrives like a region, under the first half of the digest.
    File {
        /// BLAKE3 of the content.
        digest: [u8; 32],
    },
    /// Bytes in the worker's storage. Sent after a change, at a limited rate.
    StorageUsage {
        /// Bytes of regions.
        bytes: u64,
    },
    /// External operations of the worker, for clients whose code or environment differs. Follows the join, and each code package
    /// that the worker has loaded.
    ExternalOperations {
        /// All of them.
        operations: Vec<ExternalOperation>,
        /// Whether the worker loads code packages of clients.
        accepts_code: bool,
    },
    /// The worker cannot run the operations of a code package.
    CodeRefused {
        /// BLAKE3 of its manifest.
        package: [u8; 32],
        /// The cause, such as a distribution of another version.
        cause: String,
    },
    /// The worker was asked to leave and requests nothing more.
    Drain,
    /// The worker leaves. Its unreported instances are free for other workers.
    Leave,
    /// The worker is about to run a last task of an instance. Asks for an instance with a longer path. Answered by
    /// [`QueryAnswer`](ToWorker::QueryAnswer), after the bucket if there is one.
    Query {
        /// Predicted path from the start of that task to the end of its instance.
        longer_than: Duration,
    },
    /// Begun instances that other workers can continue go back to the manager, as it has asked.
    ReturnSpare {
        /// The study.
        study: PlanId,
        /// The lease they were granted under.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
        /// Predicted path from the start of the next task of each to its end.
        path: Duration,
    },
    /// Cost of transfers from other workers to this one, as measured so far. Sent every few seconds.
    MeasuredLink {
        /// Above 0. Infinite if size does not matter.
        bytes_per_second: f64,
        /// Seconds for each region, independent of its size.
        latency_seconds: f64,
    },
    /// A bucket is over, and has done tasks since its last report: for instances that went back to the manager.
    UnreportedTasks {
        /// The study.
        study: PlanId,
        /// The lease of the bucket.
        lease: LeaseId,
        /// The tasks, at least one.
        tasks: Vec<TaskReport>,
    },
    /// Answer to a query over a region.
    ObjectsFound(ObjectsFound),
    /// Slots of accelerators have closed after errors of their devices. Replaces an earlier message.
    ClosedSlots {
        /// Name and error of each device.
        remarks: Vec<String>,
    },
    /// Tiers of the worker's regions have changed.
    RegionTiers(RegionTiers),
}

/// Report on an instance that has ended under a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The lease it was granted under.
    pub lease: LeaseId,
    /// The instance.
    pub instance: InstanceId,
    /// Its end.
    pub end: ReportedEnd,
    /// Tasks run since the last report of the bucket.
    pub tasks: Vec<TaskReport>,
}

/// An instance misses an input region: no peer that has it could send it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingInput {
    /// The study.
    pub study: PlanId,
    /// The lease it was granted under.
    pub lease: LeaseId,
    /// The instance.
    pub instance: InstanceId,
    /// The region.
    pub key: RegionKey,
    /// Tasks run since the last report of the bucket.
    pub tasks: Vec<TaskReport>,
}

/// End of a reported instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReportedEnd {
    /// The instance is finished, and its outputs with readers are stored.
    Done {
        /// Outputs that are results of the study, in the stage's order.
        results: Vec<Table>,
        /// Its outputs with readers that are in a tier shared by all workers.
        shared: Vec<RegionKey>,
    },
    /// The instance cannot be finished.
    Failed(TaskFailure),
}

/// Leases and regions of a worker that reattaches over a new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReattachState {
    /// Number of the state of the manager that granted the leases. A manager with another state ignores them.
    pub manager: u64,
    /// Leases and regions, by study.
    pub studies: Vec<StudyReattach>,
    /// Studies with retained task results, for a possible next round.
    pub retained_studies: Vec<u32>,
}

/// Leases and regions of one study on a worker that reattaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyReattach {
    /// The study.
    pub study: PlanId,
    /// Whether the worker still has the facts of [`ToWorker::StartStudy`]. It dropped them if the earlier manager ended the
    /// study before the reports of these leases were on its disk.
    pub introduced: bool,
    /// Leases, with the instances that are running or unacknowledged.
    pub leases: Vec<(LeaseId, Vec<InstanceId>)>,
    /// Regions in its storage.
    pub regions: Vec<RegionKey>,
}

/// Message from the manager to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// The worker has joined.
    Welcome {
        /// The number of the manager's state.
        manager: u64,
    },
    /// Starts a study. Precedes all other messages about it.
    StartStudy {
        /// Its number.
        study: PlanId,
        /// Its stages, in the plan's order.
        stages: Vec<Stage>,
        /// Minimum memory of the study, one task at a time.
        min_bytes: u64,
        /// Data that must survive the worker.
        durable: Durability,
        /// Another round of the same study may follow: task results are retained for it, within the memory limit.
        retains_results: bool,
        /// Name of the study. Its worker labels entries of the task cache with it and with the user.
        name: String,
        /// User that submitted it. Empty if unknown.
        user: String,
        /// Stages and outputs whose regions workers retain for queries, as far as their memory allows.
        retained: Vec<(u32, u32)>,
    },
    /// Load a code package. The worker fetches its files like input files, and answers with its operations or with the cause of a
    /// refusal.
    LoadCode {
        /// The code package.
        package: CodePackage,
    },
    /// A bucket to execute.
    Assign {
        /// The study.
        study: PlanId,
        /// The lease to report under.
        lease: LeaseId,
        /// The bucket.
        work: BucketWork,
        /// Which request it answers, if any.
        reason: GrantReason,
        /// Inputs that come from files.
        inputs: Vec<InputFile>,
        /// Addresses of the workers named in the bucket.
        peers: Vec<(WorkerId, SocketAddr)>,
    },
    /// Continues only these instances of a lease granted before. If empty, other workers have them.
    ResumeLease {
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
    },
    /// Another worker gets a bucket of a tile that was this worker's own.
    TileShared {
        /// The tile, as named in its buckets.
        tile: RegionKey,
    },
    /// A lease can be abandoned: other workers were faster, or its study was canceled.
    Revoke {
        /// The lease.
        lease: LeaseId,
    },
    /// Other workers are idle: return a part of the unstarted instances of this lease.
    StealRequest {
        /// The lease.
        lease: LeaseId,
        /// Near the end of the bucket: only instances with a longer path, now or once there are some.
        longer_than: Duration,
    },
    /// Fetch a region from a worker that leaves, or that may be lost, and report the result.
    FetchRegion {
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
        /// Address of the worker that has it.
        from: SocketAddr,
        /// Set for a replica, with its bytes: fetched only if it fits into memory that nothing else needs.
        replica: Option<u64>,
    },
    /// An instance's stored outputs have been replicated as far as possible: it may be reported.
    Replicated {
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// Regions without a further reader.
    Release {
        /// Their keys.
        keys: Vec<RegionKey>,
    },
    /// The study needs nothing more from this worker.
    StudyFinished {
        /// The study.
        study: PlanId,
    },
    /// No further round of a study follows: its retained task results can be dropped.
    DropRetained {
        /// The study.
        study: u32,
    },
    /// Acknowledges that this many of the connection's messages with reports, from the first one on, are on disk.
    AckReports {
        /// Messages.
        messages: u64,
    },
    /// The manager does not have a requested file.
    FileMissing {
        /// BLAKE3 of the content.
        digest: [u8; 32],
    },
    /// The answer to a [`Sync`](ToManager::Sync): all messages pending before it have been sent.
    SyncAck {
        /// The sync's number.
        call: u64,
    },
    /// Drain: start nothing more, return unstarted instances, and request nothing.
    Drain,
    /// The worker may leave: other workers hold its referenced regions, or cannot fetch them.
    DrainComplete,
    /// Start nothing more, and leave when no task runs.
    Stop,
    /// All studies have ended: exit.
    Shutdown,
    /// Workers of the result directory have joined or left.
    Members(MemberChange),
    /// Answer to a [`Query`](ToManager::Query).
    QueryAnswer {
        /// Whether a bucket has been granted. Its message precedes this one.
        found: bool,
    },
    /// Answer queries over regions, each with [`ObjectsFound`](ToManager::ObjectsFound).
    FindObjects(RegionQueries),
    /// The regions of a study that are retained for queries can be dropped.
    DropRegions {
        /// The study.
        study: u32,
    },
}

/// A region that is read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputFile {
    /// The region's key.
    pub key: RegionKey,
    /// The file.
    pub file: FileContent,
    /// For a reference: its element type and the tile's file or slide.
    pub reference: Option<(ElementType, FileContent)>,
    /// For a slide: the part to read, which is the pixels of the tile, its core as a table, or the reference in it.
    pub slide: Option<(ElementType, SlideTile)>,
    /// For an image of more dimensions: the block to read.
    pub block: Option<VolumeBlock>,
    /// For a reference with annotations that are selected: the selection, and what to read.
    pub annotations: Option<(AnnotationRules, AnnotationPart)>,
    /// The region itself, if it is a table that travels with the study. The file is not read.
    pub table: Option<Table>,
}

/// Input file: path on the submitting host, content digest, length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileContent {
    /// Path on the submitting host.
    pub path: String,
    /// BLAKE3 of its content.
    pub digest: [u8; 32],
    /// Its length in bytes.
    pub bytes: u64,
    /// Further files of a multi-file slide, in the order of their names. Empty for any other file.
    pub companions: Vec<Companion>,
}

/// A further file of a slide. The slide's main file cannot be read without it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Companion {
    /// Path below the folder of the slide's main file: a file's name, or a folder's and a file's.
    pub name: String,
    /// BLAKE3 of its content.
    pub digest: [u8; 32],
    /// Its length in bytes.
    pub bytes: u64,
}

impl FileContent {
    /// Returns all files of this input, each by itself: this one, then its companions.
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
