//! Demand of the running studies: the scaling decision, the deadline margins and the costs.

use super::entry::{Entry, Phase};
use super::{StudyContext, events, now_seconds};
use crate::service::scaling::StudyNeed;
use crate::service::state::record;
use pleach_actors::manager::{GetManagerMetrics, GetView, ManagerView};
use pleach_api::schema::{PoolCost, ScalingStatus, StudyState, StudyStatus};
use pleach_results::checksum;
use pleach_results::folder::publish;
use pleach_results::record::CostRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// 5 s between two scaling decisions: a fraction of the start-up time of any worker.
const SCALE_EVERY: Duration = Duration::from_secs(5);

impl StudyContext {
    /// Decides how many workers are desired now.
    pub(crate) fn scale(&self, view: &ManagerView) -> ScalingStatus {
        self.scaler.step(view, &self.needs(), &self.running(), now_seconds())
    }

    /// Returns the studies that run, and those that a restarted manager continues.
    fn running(&self) -> BTreeSet<u32> {
        let has_account = |id: &u32| self.scaler.cost(*id).is_some();
        let runs = |(id, entry): (&u32, &Entry)| match entry.phase {
            Phase::Running { .. } => Some(*id),
            Phase::Queued if has_account(id) => Some(*id),
            _ => None,
        };
        self.studies.lock().iter().filter_map(runs).collect()
    }

    /// Charges the workers until now.
    pub(super) fn charge(&self, view: &ManagerView) {
        self.scaler.charge(view, &self.running(), now_seconds());
    }

    /// Returns a status with the cost of its study.
    pub(super) fn with_cost(&self, mut status: StudyStatus) -> StudyStatus {
        if let Ok(id) = status.id.parse() {
            status.cost = self.scaler.cost(id).or(status.cost);
        }
        status
    }

    /// Returns the cost of a running study until now for its results. `None` without pools.
    pub(crate) fn cost_record(&self, id: u32) -> Option<CostRecord> {
        // As of the last step if the manager actor has ended.
        if let Ok(view) = self.network.block_on(self.manager.send(GetView)) {
            self.charge(&view);
        }
        let cost = self.scaler.cost(id)?;
        let sum = |of: fn(&PoolCost) -> f64| cost.pools.iter().fold(0.0, |sum, pool| sum + of(pool));
        Some(CostRecord {
            predicted_seconds: cost.predicted_seconds,
            predicted_cost: cost.predicted_cost,
            seconds: cost.seconds,
            cost: cost.cost,
            egress_cost: sum(|pool| pool.egress_cost),
            paid_seconds: sum(|pool| pool.paid_seconds),
            starting_seconds: sum(|pool| pool.starting_seconds),
            workers_started: cost.workers_started,
            workers_lost: cost.workers_lost,
            workers_replaced: cost.workers_replaced,
        })
    }

    /// Writes the costs of ended studies into their folders, and closes the final ones. Blocks for the disk.
    fn settle(&self) {
        for (id, cost) in self.scaler.ended() {
            let folder = self.state.study(id);
            let before = self.studies.lock().get(&id).and_then(|entry| entry.cost.clone());
            // A removed study has no folder, and its account ends with it.
            if before.as_ref() != Some(&cost) && folder.is_dir() {
                let file = folder.join(record::COST);
                let written = checksum::encode(&cost).map_err(io::Error::from);
                if let Err(cause) = written.and_then(|text| publish(&file, &text)) {
                    warn!(study = id, "{}: {cause}; the cost of study {id} is written later", file.display());
                    continue;
                }
                if let Some(entry) = self.studies.lock().get_mut(&id) {
                    entry.cost = Some(cost.clone());
                }
            }
            // The next start of the manager tries a failed study again, on the same account.
            if cost.is_final && !self.has_failed(id) {
                events::paid(id, &cost);
                self.scaler.close(id);
                self.scaler.store(now_seconds());
            }
        }
        self.scaler.store_sometimes(now_seconds());
    }

    fn has_failed(&self, id: u32) -> bool {
        let studies = self.studies.lock();
        let phase = studies.get(&id).map(|entry| &entry.phase);
        matches!(phase, Some(Phase::Ended(ended)) if ended.state == StudyState::Failed)
    }

    /// Returns the deadline margins of all running studies, as `Scaler::margins` defines them.
    pub(super) fn deadline_margins(&self, view: &ManagerView) -> BTreeMap<u32, f64> {
        self.scaler.margins(view, &self.needs(), now_seconds())
    }

    /// Returns whether the remaining work of a study is known.
    pub(crate) fn has_known_work(&self) -> bool {
        !self.needs().is_empty()
    }

    /// Returns the remaining seconds of work of a running study. `None` until it is known.
    pub(crate) fn work_seconds(&self, id: u32) -> Option<f64> {
        Some(self.studies.lock().get(&id)?.need(id)?.work_seconds)
    }

    fn needs(&self) -> Vec<StudyNeed> {
        self.studies.lock().iter().filter_map(|(id, entry)| entry.need(*id)).collect()
    }

    /// Makes a scaling decision every `SCALE_EVERY`, so that decisions and costs do not depend on how often clients
    /// ask.
    pub async fn run_scaler(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(SCALE_EVERY);
        // After a delay, one decision is enough. The default would make up for each missed one.
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let figures = self.manager.send(GetManagerMetrics).await;
            if let Ok(figures) = &figures {
                self.scale(&figures.view);
                let received = figures.links.iter();
                self.scaler.count_egress(received.map(|(name, link)| (name.as_str(), link.received_bytes)));
            }
            let shared = Arc::clone(&self);
            // On a blocking thread, because a network file system may be slow.
            let settled = tokio::task::spawn_blocking(move || shared.settle()).await;
            if figures.is_err() || settled.is_err() {
                // The manager actor has ended, or a panic ends the process.
                self.scaler.store(now_seconds());
                return;
            }
        }
    }
}
