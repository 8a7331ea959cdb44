//! Forecasts of a running plan's work for other numbers of slots.
//!
//! Each one is a replan on paper for a few numbers of slots and takes seconds for a large plan. It runs on a thread of its
//! own, so that neither the manager actor nor the end of the study waits for it. A plan has at most one at a time.

use super::error::StudyRunError;
use crate::service::studies::StudyContext;
use pleach_actors::manager::GetSnapshot;
use pleach_dispatch::PlanId;
use pleach_dispatch::scaling::PartitionForecast;
use pleach_planner::ReplanForecaster;
use pleach_study::Defect;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Instant;
use tracing::{debug, warn};

/// Name of the threads that forecast.
const THREAD: &str = "pleach-forecast";

/// Forecasts of one plan. The scaling decision forgets them when this value is dropped.
pub(super) struct ReplanForecasts<'a> {
    shared: &'a Arc<StudyContext>,
    id: PlanId,
    /// `None` if the plan is not replanned, so that more slots cost no reuse.
    forecaster: Option<ReplanForecaster>,
    /// Numbers of slots of the last attempt.
    slots: Vec<u32>,
    /// Remaining seconds of work at the last attempt, and its forecast.
    left: f64,
    forecast: Option<PartitionForecast>,
    running: Option<Receiver<Option<PartitionForecast>>>,
}

impl<'a> ReplanForecasts<'a> {
    pub(super) fn new(
        shared: &'a Arc<StudyContext>,
        id: PlanId,
        forecaster: Option<ReplanForecaster>,
    ) -> Self {
        if forecaster.is_some() {
            shared.scaler.partitions.expect(id.study);
        }
        Self { shared, id, forecaster, slots: Vec::new(), left: f64::INFINITY, forecast: None, running: None }
    }

    /// Follows another plan of the same instances.
    pub(super) fn replace(&mut self, forecaster: Option<ReplanForecaster>) {
        *self = Self::new(self.shared, self.id, forecaster);
    }

    /// Takes a finished forecast, and starts one if the present one is outdated.
    ///
    /// # Errors
    /// [`StudyRunError`] if the manager actor has ended.
    pub(super) fn update(&mut self) -> Result<(), StudyRunError> {
        if let Some(running) = &self.running {
            match running.try_recv() {
                Ok(forecast) => self.set(forecast),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => {}
            }
            self.running = None;
        }
        let Some(forecaster) = &self.forecaster else { return Ok(()) };
        let slots = self.shared.scaler.partitions.slots();
        let Some(left) = self.shared.work_seconds(self.id.study).filter(|left| *left > 0.0) else {
            return Ok(());
        };
        // A plan whose instances all have a lease has no forecast. It may get one when instances are returned.
        let unchanged = PartitionForecast::new([(1, 1.0)], 1.0, self.left);
        let is_current =
            self.slots == slots && !self.forecast.as_ref().unwrap_or(&unchanged).is_outdated(left);
        if slots.is_empty() || is_current {
            return Ok(());
        }
        let snapshot = self.shared.manager.send(GetSnapshot(self.id));
        let Some(snapshot) = self.shared.network.block_on(snapshot).map_err(Defect::new)? else {
            // The plan has ended meanwhile.
            return Ok(());
        };
        (self.slots, self.left) = (slots.clone(), left);
        let (forecaster, id) = (forecaster.clone(), self.id);
        let (sender, receiver) = channel();
        let work = move || {
            let start = Instant::now();
            let forecast = forecaster.forecast(&snapshot, &slots, left);
            let (count, seconds) = (slots.len(), start.elapsed().as_secs_f64());
            debug!(study = id.study, seconds, "{id}: replanned on paper for {count} numbers of slots");
            // The plan may have ended meanwhile.
            let _ = sender.send(forecast);
        };
        match thread::Builder::new().name(THREAD.to_owned()).spawn(work) {
            Ok(_) => self.running = Some(receiver),
            Err(cause) => warn!(study = self.id.study, "{}: no forecast by slots: {cause}", self.id),
        }
        Ok(())
    }

    fn set(&mut self, forecast: Option<PartitionForecast>) {
        self.shared.scaler.partitions.set(self.id.study, forecast.clone());
        self.forecast = forecast;
    }
}

impl Drop for ReplanForecasts<'_> {
    fn drop(&mut self) {
        self.shared.scaler.partitions.set(self.id.study, None);
    }
}
