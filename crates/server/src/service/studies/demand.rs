//! Demand of the running studies: the scaling decision and the deadline margins.

use super::{StudyContext, now_seconds};
use crate::service::scaling::{Scaler, StudyNeed};
use pleach_actors::manager::{GetView, ManagerView};
use pleach_api::schema::ScalingStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// 5 s between two scaling decisions: a fraction of the start-up time of any worker.
const SCALE_EVERY: Duration = Duration::from_secs(5);

impl StudyContext {
    /// Decides how many workers are desired now.
    pub(crate) fn scale(&self, view: &ManagerView) -> ScalingStatus {
        self.scaler.step(view, &self.needs(), now_seconds())
    }

    /// Returns the deadline margins of all running studies, as [`Scaler::margins`] defines them.
    pub(super) fn deadline_margins(&self, view: &ManagerView) -> BTreeMap<u32, f64> {
        Scaler::margins(view, &self.needs(), now_seconds())
    }

    /// Returns whether the remaining work of a study is known.
    pub(crate) fn has_known_work(&self) -> bool {
        !self.needs().is_empty()
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
            let Ok(view) = self.manager.send(GetView).await else { return };
            self.scale(&view);
        }
    }
}
