//! State shown to operators: a snapshot of studies and workers.

use super::ManagerActor;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::ExternalOperation;
use pleach_dispatch::storage::TransferCost;
use pleach_dispatch::study::Study;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Snapshot of a manager.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagerView {
    /// Running studies.
    pub studies: Vec<StudyView>,
    /// Connected workers.
    pub workers: Vec<WorkerView>,
    /// Names of the last workers that have announced their end.
    pub left: Vec<String>,
    /// Replans so far.
    pub replans: u64,
    /// Instances moved by those replans.
    pub replanned_instances: u64,
}

/// A running study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyView {
    /// Plan id.
    pub id: PlanId,
    /// Stage instances finished or failed since this manager started the study.
    pub instances: usize,
    /// Stage instances unfinished at that start.
    pub all_instances: usize,
    /// Tasks reported.
    pub tasks: u64,
    /// Stage instances failed.
    pub failed: usize,
    /// Results on disk.
    pub durable: u64,
    /// Leased buckets.
    pub leases: usize,
    /// Time since this manager started the study.
    pub age: Duration,
    /// Workers that can run some stage of the study and are not draining.
    pub able_workers: usize,
    /// Workers lost since this manager started the study.
    pub lost_workers: u64,
    /// Minimum memory of a worker for the study.
    pub min_bytes: u64,
    /// Minimum memory if as much can be spilled.
    pub min_bytes_with_spill: u64,
    /// Overhead of a bucket that its plan counts, in seconds. 0 without one.
    pub bucket_overhead_seconds: f64,
}

/// State of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// The worker works, or waits for work.
    Active,
    /// The worker is draining.
    Draining,
}

/// A connected worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerView {
    /// Name of the worker.
    pub name: String,
    /// Address of a remote worker.
    pub host: Option<IpAddr>,
    /// State of the worker.
    pub state: WorkerState,
    /// Maximum number of concurrent tasks on cores.
    pub slots: u32,
    /// Slots of accelerators.
    pub accelerators: u32,
    /// Remarks on closed slots of accelerators: name and error of each device.
    pub closed_slots: Vec<String>,
    /// Buckets leased to the worker.
    pub leases: usize,
    /// Bytes of regions in its storage, as last reported.
    pub bytes: u64,
    /// Cost of transfers from other workers, as the worker has measured it.
    pub transfers: Option<TransferCost>,
    /// Memory limit in bytes.
    pub memory_bytes: u64,
    /// Capacity of its spill tiers in bytes.
    pub spill_bytes: u64,
    /// Operations of present studies that the worker lacks.
    pub lacking: Vec<(String, u32)>,
    /// Its external operations, and the code that it loads.
    pub code: CodeView,
    /// Time limit of the worker, in seconds since 1970, if any.
    pub lease_end_seconds: Option<u64>,
    /// Recently refused process with the worker's certificate.
    pub duplicate: Option<Duplicate>,
}

/// External operations of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeView {
    /// Its external operations.
    pub operations: Vec<ExternalOperation>,
    /// Whether it loads code packages of clients.
    pub accepts_code: bool,
    /// Why it has refused the code of present studies.
    pub refusals: Vec<String>,
}

/// Process refused because its name is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Location: host name, address and port, as far as known.
    pub location: String,
    /// Join attempts of all processes of this name.
    pub attempts: u64,
}

impl ManagerActor {
    pub(super) fn snapshot(&self) -> ManagerView {
        let studies = self.studies.iter().map(|(id, running)| {
            let study = self.core.study(*id);
            StudyView {
                id: *id,
                instances: running.all_instances - study.map_or(0, Study::unfinished),
                all_instances: running.all_instances,
                tasks: running.tasks,
                failed: running.outcome.failures.len(),
                durable: running.durable,
                leases: study.map_or(0, Study::leases),
                age: running.started.elapsed(),
                able_workers: self.core.able_workers(*id),
                lost_workers: running.lost_workers,
                min_bytes: study.map_or(0, |study| study.plan().needs.min_bytes),
                min_bytes_with_spill: study.map_or(0, |study| study.plan().needs.busy_bytes),
                bucket_overhead_seconds: study.map_or(0.0, |study| study.plan().bucket_overhead_seconds),
            }
        });
        let workers = self.connections.iter().filter_map(|(_, connection)| {
            let worker = connection.worker()?;
            let (leases, draining) = self.core.worker(worker)?;
            let info = self.core.worker_info(worker)?;
            Some(WorkerView {
                name: connection.newcomer.name.clone(),
                host: connection.newcomer.host,
                state: if draining { WorkerState::Draining } else { WorkerState::Active },
                slots: info.slots.saturating_sub(info.accelerators),
                accelerators: info.accelerators,
                closed_slots: connection.closed_slots.clone(),
                leases,
                bytes: connection.bytes,
                transfers: connection.transfers,
                memory_bytes: connection.newcomer.facts.memory_bytes,
                spill_bytes: connection.newcomer.facts.spill_bytes,
                lacking: self.core.missing_operations(worker),
                code: self.code_view(&connection.code),
                lease_end_seconds: connection.newcomer.lease_end_seconds,
                duplicate: self.names.recent_duplicate(&connection.newcomer.name, Instant::now()),
            })
        });
        ManagerView {
            studies: studies.collect(),
            workers: workers.collect(),
            left: self.left.iter().cloned().collect(),
            replans: self.replanning.replans(),
            replanned_instances: self.replanning.moved_instances(),
        }
    }
}
