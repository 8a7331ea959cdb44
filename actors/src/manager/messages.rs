//! Handles messages from workers.

use super::connection::{Connection, ConnectionId};
use super::study_run::RunningStudy;
use super::{MAX_LEFT, ManagerActor, StudyEvent, agree, named};
use crate::transport::{Frame, codec};
use actix::prelude::*;
use pleach_dispatch::manager::WorkerInfo;
use pleach_dispatch::message::{
    MissingInput, ReattachState, Report, ReportedEnd, TaskReport, ToManager, ToWorker,
};
use pleach_dispatch::storage::TransferCost;
use pleach_dispatch::study::{InstanceEnd, InstanceReport, WorkerReports};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::{info, warn};

/// 300 letters show the name of a device, an operation and an error in one line of a table.
const MAX_REMARK_LETTERS: usize = 300;

/// Record number that is never on disk.
const NEVER: u64 = u64::MAX;

impl ManagerActor {
    pub(super) fn receive(&mut self, id: ConnectionId, frame: Frame, ctx: &mut Context<Self>) {
        // Kept until the liveness of the name's holder is known.
        let Some(frame) = self.names.keep_frame(id, frame) else { return };
        let message = match codec::decode::<ToManager>(&frame) {
            Ok(message) => message,
            Err(error) => return self.refuse(id, &error, ctx),
        };
        let worker = self.connections.get(id).and_then(Connection::worker);
        if worker.is_some() && self.is_left_with_worker(id, &message) {
            return;
        }
        match (message, worker) {
            (join @ ToManager::Join { .. }, None) => self.receive_join(id, frame, join, ctx),
            (ToManager::Request { buckets, after }, Some(worker)) => {
                self.core.handle_request(worker, buckets, after);
            }
            (ToManager::Query { longer_than }, Some(worker)) => self.core.handle_query(worker, longer_than),
            (ToManager::ReturnSpare { study, lease, instances, path }, Some(worker)) => {
                self.core.handle_spare(worker, study, lease, &instances, path);
            }
            (ToManager::Sync { call }, Some(worker)) => self.syncs.push((worker, call)),
            (ToManager::Reports { study, reports }, Some(worker)) => {
                let record = self.receive_reports(worker, study, reports);
                self.note_reports(id, record);
            }
            (ToManager::MissingInput(missing), Some(worker)) => self.receive_missing(worker, &missing),
            (ToManager::UnreportedTasks { study, lease, tasks }, Some(worker)) => {
                self.receive_unreported(worker, study, lease, &tasks);
            }
            (ToManager::ReturnInstances { study, lease, instances }, Some(worker)) => {
                self.core.handle_returned(worker, study, lease, &instances);
            }
            (ToManager::AwaitReplica { study, lease, instance, regions }, Some(worker)) => {
                self.core.handle_replicate(worker, study, lease, instance, &regions);
            }
            (ToManager::RegionFetched { study, key }, Some(worker)) => {
                self.core.handle_region_fetched(worker, study, key)
            }
            (ToManager::FetchFailed { study, key }, Some(worker)) => {
                self.core.handle_fetch_failed(worker, study, key);
            }
            (ToManager::ReplicaDropped { study, key }, Some(worker)) => {
                self.core.handle_dropped(worker, study, key)
            }
            (ToManager::File { digest }, Some(worker)) => self.send_file(worker, digest, ctx),
            (ToManager::StorageUsage { bytes }, Some(_)) => self.set_storage(id, bytes),
            (ToManager::MeasuredLink { bytes_per_second, latency_seconds }, Some(worker)) => {
                self.set_transfers((id, worker), TransferCost { bytes_per_second, latency_seconds });
            }
            (ToManager::ExternalOperations { operations, accepts_code }, Some(worker)) => {
                self.receive_operations((id, worker), operations, accepts_code);
            }
            (ToManager::CodeRefused { package, cause }, Some(_)) => self.receive_refusal(id, package, cause),
            (ToManager::ObjectsFound(found), Some(worker)) => self.receive_found(worker, found, frame.len()),
            (ToManager::RegionTiers(tiers), Some(worker)) => self.core.handle_region_tiers(worker, &tiers),
            (ToManager::ClosedSlots { remarks }, Some(worker)) => {
                self.set_closed_slots((id, worker), remarks);
            }
            (ToManager::Drain, Some(worker)) => self.core.handle_drain(worker),
            (ToManager::Leave, Some(_)) => self.close(id, false, ctx),
            // A second join, or a message before the join, violates the protocol.
            (ToManager::Join { .. }, Some(_)) => self.refuse(id, &"a worker joins once", ctx),
            (_, None) => self.refuse(id, &"a worker must join before other messages", ctx),
        }
        self.check_costs(ctx);
        self.apply_effects(ctx);
    }

    fn set_storage(&mut self, id: ConnectionId, bytes: u64) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.bytes = bytes;
        }
    }

    fn receive_join(&mut self, id: ConnectionId, frame: Frame, join: ToManager, ctx: &mut Context<Self>) {
        let ToManager::Join { slots, accelerators, device_bytes, incarnation, exchange_port, before } = join
        else {
            return;
        };
        // The claim stores the frame, so that the join is handled once the holder of the name is found dead.
        if let Some(holder) = self.name_holder(id, incarnation, ctx) {
            return self.names.claim(id, holder, frame);
        }
        let slots = WorkerInfo { slots, accelerators, device_bytes, ..WorkerInfo::ANY };
        self.join(id, &slots, incarnation, exchange_port, before);
    }

    /// Records the remarks on the closed slots of a worker, for display.
    fn set_closed_slots(&mut self, (id, worker): (ConnectionId, WorkerId), mut remarks: Vec<String>) {
        let accelerators = self.core.worker_info(worker).map_or(0, |info| info.accelerators);
        if let Some(connection) = self.connections.get_mut(id) {
            // The texts come from the worker, so their size has a limit.
            remarks.truncate(accelerators as usize);
            remarks.iter_mut().for_each(|remark| *remark = remark.chars().take(MAX_REMARK_LETTERS).collect());
            connection.closed_slots = remarks;
        }
    }

    /// Records the measured links of a worker. Ignores costs that no transfer has.
    fn set_transfers(&mut self, (id, worker): (ConnectionId, WorkerId), cost: TransferCost) {
        let is_cost =
            cost.bytes_per_second > 0.0 && cost.latency_seconds >= 0.0 && cost.latency_seconds.is_finite();
        if let Some(connection) = self.connections.get_mut(id).filter(|_| is_cost) {
            connection.transfers = Some(cost);
            self.core.handle_measured_link(worker, cost);
        }
    }

    fn join(
        &mut self,
        id: ConnectionId,
        joining: &WorkerInfo,
        incarnation: u64,
        exchange_port: Option<u16>,
        before: Option<ReattachState>,
    ) {
        let newcomer = self.connections.get(id).map(|connection| connection.newcomer.clone());
        let Some(newcomer) = newcomer else { return };
        let WorkerInfo { slots, accelerators, device_bytes, .. } = *joining;
        let host = newcomer.host;
        let facts = WorkerInfo { slots, accelerators, device_bytes, host, ..newcomer.facts.clone() };
        let worker = self.core.handle_join(facts);
        self.counters.joins.increment(1);
        if let (Some(end), Some(service)) = (newcomer.lease_end_seconds, &self.service) {
            // The clocks of a cluster agree within about 1 s. Time limits are not that precise.
            let left = Duration::from_secs(end).saturating_sub(service.clock.now());
            self.core.handle_time_limit(worker, self.start.elapsed().saturating_add(left));
        }
        // Before any message: effects of the join look up the connection by its worker.
        self.connections.join(id, worker);
        let number = self.service.as_ref().map_or(0, |service| service.number);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.incarnation = incarnation;
            let port = newcomer.host.zip(exchange_port);
            connection.exchange = port.map(|(host, port)| SocketAddr::new(host, port));
            if self.service.is_some() {
                connection.send(&ToWorker::Welcome { manager: number });
            }
        }
        self.announce_member(id);
        info!(worker = newcomer.name, slots, "worker {} joined with {slots} slots", newcomer.name);
        // A worker of another manager drops its studies on the welcome, so their leases and regions do not count.
        if let Some(before) = before.filter(|before| before.manager == number) {
            self.take_up(worker, before);
        }
        let lacking = self.core.missing_operations(worker);
        if !lacking.is_empty() {
            let names: Vec<String> =
                lacking.iter().map(|(name, version)| format!("{name} {version}")).collect();
            let (name, names) = (&newcomer.name, names.join(", "));
            warn!(
                worker = name,
                "worker {name} does not have the operations {names}; it gets only stages \
                                  without them"
            );
        }
    }

    /// Reattaches a worker: resumes the leases and retains the regions that are still useful.
    fn take_up(&mut self, worker: WorkerId, before: ReattachState) {
        for study in before.retained_studies {
            if !self.retained.contains(&study) {
                self.send(worker, &ToWorker::DropRetained { study });
            }
        }
        for had in before.studies {
            let study = had.study;
            // Looked up first: the reports below may complete the study, whose end is then sent as an effect.
            let is_known = self.core.study(study).is_some();
            // Otherwise its first grant introduces the study again.
            if had.introduced {
                self.core.handle_introduced(worker, study);
            }
            // Regions before leases: an instance with all its outputs stored is done and needs no lease.
            let needless = self.core.handle_holds(worker, study, &had.regions);
            if !needless.is_empty() {
                self.send(worker, &ToWorker::Release { keys: needless });
            }
            for (lease, instances) in had.leases {
                let kept = self.core.handle_adopt(worker, study, lease, &instances);
                let instances = kept.into_iter().collect();
                // An empty list is sent as well: the worker then abandons the whole lease.
                self.send(worker, &ToWorker::ResumeLease { study, lease, instances });
            }
            if !is_known {
                self.send(worker, &ToWorker::StudyFinished { study });
            }
        }
    }

    /// Handles reports on instances of a study. Returns the last record of them.
    fn receive_reports(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        reports: Vec<Report>,
    ) -> Option<(PlanId, u64)> {
        let counted = self.core.handle_reports(worker, study, &reports);
        let name = self.name_of(worker);
        let Some(running) = self.studies.get_mut(&study) else {
            // Tasks of late reports count too, because they ran.
            self.counters.count(reports.iter().flat_map(|report| &report.tasks));
            return None;
        };
        let (mut record, mut finished, mut ended) = (None, 0, Vec::with_capacity(reports.len()));
        for (report, counted) in reports.into_iter().zip(counted) {
            let Report { lease, instance, end, tasks } = report;
            let end = match end {
                ReportedEnd::Failed(_) => InstanceEnd::Failed,
                ReportedEnd::Done { results, .. } if counted => {
                    finished += 1;
                    record = running.finish(instance, results).map(|record| (study, record)).or(record);
                    InstanceEnd::Finished
                }
                ReportedEnd::Done { results, .. } => {
                    // A repetition over a new link: the first report may not be on disk yet.
                    record = Some((study, running.records));
                    if !agree(running.outcome.results.get(instance), &results) {
                        warn_of_difference(&name, study, instance);
                    }
                    InstanceEnd::Late
                }
            };
            ended.push((lease, instance, end, tasks));
        }
        self.counters.finished.increment(finished);
        let ended = ended.iter().map(|(lease, instance, end, tasks): &(_, _, _, Vec<TaskReport>)| {
            InstanceReport { lease: *lease, instance: *instance, end: *end, tasks }
        });
        let reports: Vec<InstanceReport<'_>> = ended.collect();
        self.observe_overheads(study);
        self.count(study, &name, &reports);
        record
    }

    /// Lets the study's observer know the overheads of buckets that reports have measured. Work stealing uses what its replanner
    /// knows by then.
    fn observe_overheads(&mut self, study: PlanId) {
        let overheads = self.core.take_bucket_overheads(study);
        if overheads.is_empty() || self.service.is_none() {
            return;
        }
        overheads.iter().for_each(|seconds| self.counters.overhead.record(*seconds));
        if let Some(running) = self.studies.get_mut(&study) {
            (running.observer)(StudyEvent::BucketOverheads(&overheads));
            let replanner = running.replanner.as_ref();
            if let Some(seconds) = replanner.and_then(|replanner| replanner.bucket_overhead_seconds()) {
                self.core.handle_bucket_overhead(study, seconds);
            }
        }
    }

    fn receive_missing(&mut self, worker: WorkerId, missing: &MissingInput) {
        let MissingInput { study, lease, instance, key, tasks } = missing;
        self.core.handle_missing_input(worker, *study, *lease, *instance, &[*key]);
        self.core.handle_task_timings(worker, *study, *instance, tasks);
        let (lease, instance, end) = (*lease, *instance, InstanceEnd::MissingInput);
        let name = self.name_of(worker);
        self.count(*study, &name, &[InstanceReport { lease, instance, end, tasks }]);
    }

    /// Counts tasks of instances that a worker has returned. Others use their results.
    fn receive_unreported(&mut self, worker: WorkerId, study: PlanId, lease: LeaseId, tasks: &[TaskReport]) {
        let Some(first) = tasks.first() else { return };
        let instance = InstanceId(first.provenance.instance);
        self.core.handle_task_timings(worker, study, instance, tasks);
        let name = self.name_of(worker);
        let end = InstanceEnd::Returned;
        self.count(study, &name, &[InstanceReport { lease, instance, end, tasks }]);
    }

    /// Returns whether a message belongs to a suspended study. Its reports are never acknowledged, so the worker
    /// repeats them to the study's next manager. Acknowledgments are in order, so later reports of other studies also
    /// stay unacknowledged. Their records are on the same disk.
    fn is_left_with_worker(&mut self, id: ConnectionId, message: &ToManager) -> bool {
        let (study, is_report) = match message {
            ToManager::Reports { study, .. } => (*study, true),
            ToManager::MissingInput(MissingInput { study, .. })
            | ToManager::ReturnInstances { study, .. }
            | ToManager::ReturnSpare { study, .. }
            | ToManager::UnreportedTasks { study, .. } => (*study, false),
            _ => return false,
        };
        let is_halted = self.studies.get(&study).is_some_and(|running| running.is_halted);
        if is_halted && is_report {
            self.note_reports(id, Some((study, NEVER)));
        }
        is_halted
    }

    /// Acknowledges a message with reports once their last record is on disk. Failures have no record to wait for: their
    /// acknowledgment only follows those of earlier messages.
    fn note_reports(&mut self, id: ConnectionId, record: Option<(PlanId, u64)>) {
        if self.service.is_none() {
            return;
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.queue_ack(record);
        }
        if record.is_none() {
            self.send_acks(id);
        }
    }

    /// Acknowledges the reports of a worker whose records are on disk.
    fn send_acks(&mut self, id: ConnectionId) {
        let studies = &self.studies;
        if let Some(connection) = self.connections.get_mut(id) {
            connection.send_acks(|study, record| is_durable(studies, study, record));
        }
    }

    /// Acknowledges the reports of all workers whose records are on disk.
    pub(super) fn send_all_acks(&mut self) {
        let studies = &self.studies;
        for connection in self.connections.values_mut() {
            connection.send_acks(|study, record| is_durable(studies, study, record));
        }
    }

    /// Counts the tasks of reports, and tells the study's observer. Tasks of late reports count too, because they ran.
    fn count(&mut self, study: PlanId, worker: &str, reports: &[InstanceReport<'_>]) {
        let reports = WorkerReports { worker, members: &self.member_names, reports };
        self.counters.count(reports.tasks());
        let Some(running) = self.studies.get_mut(&study) else { return };
        running.outcome.count(reports.tasks());
        (running.observer)(StudyEvent::Done(reports));
        let tasks = reports.tasks().count() as u64;
        running.tasks += tasks;
        if running.cost_checks.count(reports.tasks()) {
            self.replanning.request_cost_check(study);
        }
    }

    /// Ends a connection that violates the protocol.
    pub(super) fn refuse(&mut self, id: ConnectionId, why: &dyn fmt::Display, ctx: &mut Context<Self>) {
        if let Some(connection) = self.connections.get(id) {
            connection.link.refuse(why);
        }
        self.close(id, true, ctx);
    }

    /// Handles the end of a connection. `lost` means that the worker did not announce it.
    pub(super) fn close(&mut self, id: ConnectionId, lost: bool, ctx: &mut Context<Self>) {
        let Some(connection) = self.connections.remove(id) else { return };
        self.names.remove(id);
        if let Some(worker) = connection.worker() {
            self.announce_departure(&connection);
            self.observe_lost(worker, &connection.newcomer.name);
            self.core.handle_leave(worker, lost);
            self.ask_again(worker);
            self.counters.record_departure(lost);
            if !lost {
                self.left.truncate(MAX_LEFT - 1);
                self.left.push_front(connection.newcomer.name.clone());
            }
            if lost {
                self.studies.values_mut().for_each(|running| running.lost_workers += 1);
            }
            let name = &connection.newcomer.name;
            let how = if lost { "is lost" } else { "has left" };
            info!(worker = name, lost, "worker {name} {how}");
            self.apply_effects(ctx);
        }
    }
}

impl ManagerActor {
    /// Lets the observers know the unreported instances of a worker whose connection ends.
    fn observe_lost(&mut self, gone: WorkerId, worker: &str) {
        for (id, running) in &mut self.studies {
            for (lease, instances) in
                self.core.study(*id).into_iter().flat_map(|study| study.unreported_of(gone))
            {
                (running.observer)(StudyEvent::Lost { worker, lease, instances });
            }
        }
    }
}

fn warn_of_difference(worker: &str, study: PlanId, instance: InstanceId) {
    let of = named(study, instance);
    warn!(
        worker,
        study = study.study,
        instance = instance.0,
        "worker {worker} reported different results for {of} after the first ones; rejected"
    );
}

/// Returns whether a record of a study is on disk. Records of a finished study are on disk or no longer needed.
fn is_durable(studies: &BTreeMap<PlanId, RunningStudy>, study: PlanId, record: u64) -> bool {
    studies.get(&study).is_none_or(|running| running.durable >= record)
}
