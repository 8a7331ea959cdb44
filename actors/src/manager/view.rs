//! What operators are shown: studies and workers, as they are at one moment.

use super::ManagerActor;
use pleach_dispatch::PlanId;
use pleach_dispatch::study::Study;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// All that there is to see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagerView {
    /// Studies that run.
    pub studies: Vec<StudyView>,
    /// Workers that are connected.
    pub workers: Vec<WorkerView>,
    /// How often buckets were cut anew.
    pub replans: u64,
    /// Instances that were in those buckets.
    pub replanned_instances: u64,
}

/// A study that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyView {
    /// Its number.
    pub id: PlanId,
    /// Stage instances finished or failed since it was begun here.
    pub instances: usize,
    /// Stage instances that there were to do.
    pub all_instances: usize,
    /// Tasks reported.
    pub tasks: u64,
    /// Stage instances failed.
    pub failed: usize,
    /// Results on disk.
    pub durable: u64,
    /// Buckets at workers.
    pub leases: usize,
    /// Since it was begun here.
    pub age: Duration,
    /// Workers that can run some stage of it and do not leave.
    pub able_workers: usize,
    /// Workers lost since it was begun here.
    pub lost_workers: u64,
    /// The memory that a worker needs for it at least.
    pub least_bytes: u64,
    /// The same where as much can be stored below memory.
    pub least_bytes_with_spill: u64,
}

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It works, or waits for work.
    Active,
    /// It is to leave.
    Draining,
}

/// A worker that is connected.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub host: Option<IpAddr>,
    /// How it is.
    pub state: WorkerState,
    /// Tasks it can run at once.
    pub slots: u32,
    /// Buckets it has.
    pub leases: usize,
    /// Bytes of regions that it has in storage, as it said last.
    pub bytes: u64,
    /// Bytes that it may hold.
    pub memory_bytes: u64,
    /// Bytes that it can store in slower tiers besides.
    pub below_bytes: u64,
    /// Operations that it lacks for the studies there are.
    pub lacking: Vec<(String, u32)>,
    /// When it has to end, in seconds since 1970, if it has to.
    pub lease_end_seconds: Option<u64>,
    /// Another process with its certificate that was refused a short time ago.
    pub duplicate: Option<Duplicate>,
}

/// A process that was refused since its name is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Where it is: host name, address and port, as far as they are known.
    pub location: String,
    /// Attempts to join, those of all processes of this name.
    pub attempts: u64,
}

impl ManagerActor {
    pub(super) fn look(&self) -> ManagerView {
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
                age: running.begun.elapsed(),
                able_workers: self.core.able_workers(*id),
                lost_workers: running.lost_workers,
                least_bytes: study.map_or(0, |study| study.plan().needs.least_bytes),
                least_bytes_with_spill: study.map_or(0, |study| study.plan().needs.busy_bytes),
            }
        });
        let workers = self.connections.values().filter_map(|connection| {
            let worker = connection.worker?;
            let (leases, draining) = self.core.worker(worker)?;
            Some(WorkerView {
                name: connection.newcomer.name.clone(),
                host: connection.newcomer.host,
                state: if draining { WorkerState::Draining } else { WorkerState::Active },
                slots: self.core.worker_info(worker)?.slots,
                leases,
                bytes: connection.bytes,
                memory_bytes: connection.newcomer.facts.memory_bytes,
                below_bytes: connection.newcomer.facts.below_bytes,
                lacking: self.core.missing_operations(worker),
                lease_end_seconds: connection.newcomer.lease_end_seconds,
                duplicate: self.duplicates.recent(&connection.newcomer.name, Instant::now()),
            })
        });
        ManagerView {
            studies: studies.collect(),
            workers: workers.collect(),
            replans: self.replanned.0,
            replanned_instances: self.replanned.1,
        }
    }
}
