//! Handles messages from the manager.

use super::WorkerActor;
use super::bucket::resolve_stages;
use crate::storage::{CountRegions, ReleaseRegions, ShareInputs};
use crate::transport::{Frame, codec};
use actix::prelude::*;
use pleach_cache::{Cache, StudyLabel};
use pleach_dispatch::PlanId;
use pleach_dispatch::message::ToWorker;
use pleach_regions::RegionKey;
use pleach_workflow::{Durability, Stage};
use std::sync::Arc;
use std::thread::Builder;
use std::time::SystemTime;
use tracing::warn;

impl StreamHandler<Frame> for WorkerActor {
    fn handle(&mut self, frame: Frame, ctx: &mut Self::Context) {
        // An unreadable frame means that the two ends use different protocols, so the worker leaves.
        let message = match codec::decode(&frame) {
            Ok(message) => message,
            Err(error) => {
                self.connection.refuse(&error);
                return ctx.stop();
            }
        };
        // The state machine decides on each message with the present storage and time.
        self.observe_storage();
        self.handle_message(message, ctx);
        self.apply_effects(ctx);
    }

    fn finished(&mut self, ctx: &mut Self::Context) {
        self.handle_disconnect(ctx);
    }
}

impl WorkerActor {
    fn handle_message(&mut self, message: ToWorker, ctx: &mut Context<Self>) {
        match message {
            ToWorker::Welcome { manager } => self.handle_welcome(manager, ctx),
            ToWorker::StartStudy {
                study,
                stages,
                min_bytes,
                durable,
                retains_results,
                name,
                user,
                retained,
            } => {
                self.begin_study(study, &stages, durable, (name, user));
                self.retained.begin(study, retained);
                self.begin_round(study.study, retains_results);
                self.core.handle_study(study, stages.len() as u32, min_bytes);
            }
            ToWorker::LoadCode { package } => self.load_code(package, ctx),
            ToWorker::Assign { study, lease, work, reason, inputs, peers } => {
                // Origins first: the prefetch and the tasks of the bucket request these inputs from storage.
                self.register_origins(&work, &inputs, &peers);
                self.start_bucket((study, lease), work, reason, ctx);
            }
            ToWorker::ResumeLease { lease, instances, .. } => self.resume_lease(lease, instances, ctx),
            ToWorker::TileShared { tile } => {
                if let Some(directory) = self.tasks.directory() {
                    directory.share_tile(tile);
                }
            }
            ToWorker::Revoke { lease } => self.revoke(lease, ctx),
            ToWorker::StealRequest { lease, longer_than } => {
                self.core.handle_steal_request(lease, longer_than);
            }
            ToWorker::QueryAnswer { found } => self.core.handle_query_answer(found),
            ToWorker::FetchRegion { study, key, from, replica } => {
                self.fetch_copy(study, key, from, replica, ctx)
            }
            ToWorker::Replicated { study, lease, instance } => {
                self.report_replicated((study, lease, instance), ctx);
            }
            ToWorker::Release { keys } => self.release(keys, None, ctx),
            ToWorker::StudyFinished { study } => self.end_study(study, ctx),
            ToWorker::DropRetained { study } => self.drop_retained(study),
            ToWorker::FindObjects(queries) => self.find_objects(queries, ctx),
            ToWorker::DropRegions { study } => self.drop_regions(study),
            ToWorker::AckReports { messages } => {
                // An acknowledged instance is on the manager's disk, so no reattachment needs to claim it.
                for (lease, instance) in self.connection.acknowledge(messages) {
                    self.leases.close(lease, &[instance]);
                }
            }
            ToWorker::FileMissing { digest } => {
                if let Some(remote) = &self.setup.remote {
                    remote.files.refused(&digest);
                }
            }
            ToWorker::SyncAck { call } => self.release(Vec::new(), Some(call), ctx),
            ToWorker::Drain => self.drain(ctx),
            ToWorker::DrainComplete => self.departure.dismiss(),
            ToWorker::Stop => self.core.handle_stop(),
            ToWorker::Shutdown => ctx.stop(),
            ToWorker::Members(change) => {
                if let Some(directory) = self.tasks.directory() {
                    directory.set_members(change);
                }
            }
        }
    }

    /// Begins a study: links its operations, and starts to share inputs if all its regions must be durable.
    fn begin_study(
        &mut self,
        study: PlanId,
        stages: &[Stage],
        durability: Durability,
        (name, user): (String, String),
    ) {
        if durability == Durability::All {
            self.setup.storage.do_send(ShareInputs);
        }
        // Other workers have extended the cache since.
        self.with_cache(|cache| cache.refresh(SystemTime::now()));
        self.counters.begin(study, stages, &self.setup.registry);
        let label = Arc::new(StudyLabel { study: name, id: Some(study.study), user });
        // A run in one process knows its label, which is no part of its plans.
        let label = self.setup.prior.label.clone().unwrap_or(label);
        self.studies.begin(study, resolve_stages(stages, &self.setup.registry), durability, label);
    }

    /// Calls the task cache of a worker process, and logs the cache's warnings. A run in one process calls its cache itself.
    pub(super) fn with_cache(&self, call: impl FnOnce(&Cache) + Send + 'static) {
        if let Some(cache) = self.setup.prior.cache.clone().filter(|_| self.setup.remote.is_some()) {
            // Neither this thread nor one that runs tasks may wait for a disk or for the network.
            let work = move || {
                call(&cache);
                cache.take_reports().into_iter().for_each(|report| warn!("--cache: {report}"));
            };
            if let Err(error) = Builder::new().name("cache".to_owned()).spawn(work) {
                warn!("--cache: {error}");
            }
        }
    }

    /// Releases regions and continues once they are removed. Then it answers the sync `call`.
    pub(super) fn release(&mut self, keys: Vec<RegionKey>, call: Option<u64>, ctx: &mut Context<Self>) {
        // Regions for queries stay in storage. Nothing else of the worker needs them.
        let (keys, released) = (self.retained.release(&keys), keys);
        let mut results = self.tasks.results();
        let dropped: Vec<RegionKey> = released.iter().flat_map(|key| results.released(key)).collect();
        drop(results);
        self.remove_spilled(dropped);
        self.announce_dropped();
        for key in &released {
            self.studies.release(*key);
            self.tasks.input_identities().lock().remove(key);
            self.replication.remove_replica(*key);
        }
        debug_assert!(
            self.replication.replicas().all(|key| self.studies.has_region(key)),
            "every replica belongs to a study"
        );
        self.setup.storage.do_send(ReleaseRegions(keys));
        // The storage actor handles messages in order, so the count follows the removal.
        let removed = self.setup.storage.send(CountRegions).into_actor(self);
        ctx.spawn(removed.map(move |_, actor, ctx| {
            actor.observe_storage();
            if let Some(call) = call {
                actor.core.handle_sync_ack(call);
            }
            actor.apply_effects(ctx);
        }));
    }
}
