//! Sampled metrics of a manager: its studies, their instances, its workers and its links to them.
//!
//! Counters of events are updated where the events occur. This module sets the values that are sampled at a scrape.
//! The catalog defines names and meanings.

use pleach_actors::manager::{ManagerMetrics, StudyMetrics, WorkerState};
use pleach_actors::transport::LinkStats;
use pleach_actors::transport::certs::Credentials;
use pleach_api::schema::{ScalingStatus, StudyState, StudyStatus};
use pleach_telemetry::catalog as of;
use std::collections::BTreeMap;
use std::path::Path;

/// Tasks that the plan of a study saves from execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedReuse {
    pub(crate) stage: u64,
    pub(crate) tree: u64,
    /// Tasks shared within buckets.
    pub(crate) dataflow: u64,
    /// Tasks found in a cache before the execution begins.
    pub(crate) cache: u64,
}

/// Metrics of one study.
#[derive(Clone, Debug)]
pub(crate) struct StudySample {
    pub(crate) view: StudyStatus,
    /// `None` until the study is planned.
    pub(crate) reuse: Option<PlannedReuse>,
    /// For a running study with a deadline: seconds from its predicted end to the deadline.
    pub(crate) deadline_margin_seconds: Option<f64>,
}

/// Free space and size of the file system of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    free_bytes: u64,
    size_bytes: u64,
}

impl Disk {
    /// Reads both from the operating system. `None` if it returns an error.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize.max(1));
        Some(Self { free_bytes: bytes(found.f_bavail), size_bytes: bytes(found.f_blocks) })
    }
}

/// Sets the expiry of this process's certificates, which the process reads once.
pub fn record_expiry(credentials: &Credentials) {
    for (name, expiry) in ["node", "authority"].into_iter().zip(credentials.expiry()) {
        if let Some(expiry) = expiry {
            of::CERTIFICATE_EXPIRY.with([name]).set(expiry.as_secs_f64());
        }
    }
}

/// Converts a count to the value of a gauge. Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no count reaches 2^53")]
pub fn number(count: u64) -> f64 {
    count as f64
}

/// Sets all sampled metrics. `costs` are the paid costs of workers and of egress by pool. A series that is not set is not exported.
pub(crate) fn sample(
    figures: &ManagerMetrics,
    studies: &[StudySample],
    scaling: &ScalingStatus,
    costs: &BTreeMap<String, [f64; 2]>,
    disk: Option<Disk>,
) {
    use StudyState::{Canceled, Complete, Failed, Queued, Running, Waiting};
    for state in [Waiting, Queued, Running, Complete, Canceled, Failed] {
        let count = studies.iter().filter(|study| study.view.state == state).count();
        of::STUDIES.with([&state.to_string()]).set(number(count as u64));
    }
    // Ended studies have no series, because their number grows as long as the operator keeps them.
    for study in studies.iter().filter(|study| !study.view.state.is_over()) {
        let running = figures.studies.iter().find(|figures| figures.id.study.to_string() == study.view.id);
        let age = figures.view.studies.iter().find(|view| view.id.study.to_string() == study.view.id);
        sample_study(study, running);
        if let Some(view) = age {
            let id = study.view.id.as_str();
            of::STUDY_AGE.with([id]).set(view.age.as_secs_f64());
            of::BUCKETS.with([id, "leased"]).set(number(view.leases as u64));
        }
    }
    for pool in &scaling.pools {
        of::WORKERS_WANTED.with([&pool.name]).set(f64::from(pool.desired));
    }
    if let Some(cost) = scaling.predicted_cost {
        of::PREDICTED_COST.with([]).set(cost);
    }
    for (pool, parts) in costs {
        for (part, cost) in ["workers", "egress"].into_iter().zip(parts) {
            of::STUDIES_COST.with([pool.as_str(), part]).set(*cost);
        }
    }
    if let Some(disk) = disk {
        of::STATE_DISK_FREE.with([]).set(number(disk.free_bytes));
        of::STATE_DISK_SIZE.with([]).set(number(disk.size_bytes));
    }
    sample_workers(figures);
}

fn sample_study(measured: &StudySample, running: Option<&StudyMetrics>) {
    let StudySample { view, reuse, deadline_margin_seconds } = measured;
    let id = view.id.as_str();
    of::STUDY_INFO.with([id, &view.name]).set(1.0);
    of::STUDY_EVALUATIONS.with([id]).set(number(view.evaluations));
    of::STUDY_EVALUATIONS_DONE.with([id]).set(number(view.evaluations_done));
    of::STUDY_RUNS_FAILED.with([id]).set(number(view.failed));
    of::STUDY_TASKS_LEFT.with([id]).set(number(view.remaining_tasks));
    of::STUDY_TASKS_EXECUTED.with([id]).absolute(view.tasks_executed);
    if let Some(deadline) = view.deadline {
        of::STUDY_DEADLINE.with([id]).set(deadline.unix_timestamp() as f64);
    }
    if let Some(seconds) = deadline_margin_seconds {
        of::STUDY_DEADLINE_MARGIN.with([id]).set(*seconds);
    }
    if let Some(cost) = &view.cost {
        of::STUDY_COST.with([id]).set(cost.cost);
    }
    let Some(running) = running else { return };
    let planned = reuse.unwrap_or_default();
    for (level, tasks) in [
        ("stage", planned.stage),
        ("tree", planned.tree),
        ("dataflow", planned.dataflow + running.tasks.reused_by_dataflow),
        ("value", running.tasks.reused_by_value),
        ("cache", planned.cache + running.tasks.reused_by_cache),
        ("earlier_round", running.tasks.reused_from_before),
        ("peer", running.tasks.reused_from_peers),
    ] {
        of::STUDY_TASKS_REUSED.with([id, level]).absolute(tasks);
    }
    let census = running.census;
    for (state, instances) in [
        ("waiting", census.waiting),
        ("ready", census.ready),
        ("leased", census.leased),
        ("finished", census.finished),
        ("failed", census.failed),
    ] {
        of::INSTANCES.with([id, state]).set(number(instances as u64));
    }
    of::BUCKETS.with([id, "ready"]).set(number(running.ready_buckets as u64));
    if let Some(seconds) = running.remaining_seconds {
        of::PREDICTED_SECONDS_LEFT.with([id]).set(seconds);
    }
}

fn sample_workers(figures: &ManagerMetrics) {
    let workers = &figures.view.workers;
    for (name, state) in [("active", WorkerState::Active), ("draining", WorkerState::Draining)] {
        let count = workers.iter().filter(|worker| worker.state == state).count();
        of::WORKERS.with([name]).set(number(count as u64));
    }
    let active = workers.iter().filter(|worker| worker.state == WorkerState::Active);
    of::SLOTS.with([]).set(number(active.map(|worker| u64::from(worker.slots)).sum()));
    for worker in workers {
        let name = worker.name.as_str();
        of::WORKER_SLOTS.with([name]).set(f64::from(worker.slots));
        of::WORKER_LEASES.with([name]).set(number(worker.leases as u64));
        of::WORKER_STORED.with([name]).set(number(worker.bytes));
    }
    of::QUIC_CONNECTIONS.with([]).set(number(figures.links.len() as u64));
    figures.links.iter().for_each(|(name, link)| sample_link(name, link));
}

/// Sets the counters of a link to a peer.
pub fn sample_link(peer: &str, link: &LinkStats) {
    of::QUIC_RTT.with([peer]).set(link.round_trip.as_secs_f64());
    of::QUIC_SENT.with([peer]).absolute(link.sent_packets);
    of::QUIC_LOST.with([peer]).absolute(link.lost_packets);
    of::QUIC_BYTES.with([peer, "out"]).absolute(link.sent_bytes);
    of::QUIC_BYTES.with([peer, "in"]).absolute(link.received_bytes);
}
