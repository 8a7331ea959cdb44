//! How a worker's process stands with its manager, from its start to its end: what it answers to whoever asks whether it is
//! ready, and what it measures once there is a worker.
//!
//! Nothing is decided here: whether there is a link, and whether the worker drains, the worker itself is asked.

use super::metrics::WorkerSampler;
use crate::exporter::{MetricSource, Readiness, SampleFuture};
use pleach_actors::worker::GetWorkerMetrics;
use pleach_telemetry::catalog as of;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What the process has come to by now.
#[derive(Debug)]
struct JoinState {
    /// Whether it was connected at some time.
    has_joined: bool,
    /// Why the last attempt failed, as long as none has succeeded since.
    refusal: Option<String>,
}

struct ReadinessState {
    manager: SocketAddr,
    reached: Mutex<JoinState>,
    /// As soon as there is a worker.
    figures: OnceLock<Arc<WorkerSampler>>,
}

/// See the module. Clones are of the same process.
#[derive(Clone)]
pub(super) struct WorkerReadiness(Arc<ReadinessState>);

impl WorkerReadiness {
    pub(super) fn new(manager: SocketAddr) -> Self {
        let reached = Mutex::new(JoinState { has_joined: false, refusal: None });
        Self(Arc::new(ReadinessState { manager, reached, figures: OnceLock::new() }))
    }

    /// There is a worker now.
    pub(super) fn begin(&self, figures: WorkerSampler) {
        // There is one worker in a process.
        let _ = self.0.figures.set(Arc::new(figures));
    }

    /// The manager could not be reached, or did not give what it was asked for.
    pub(super) fn failed(&self, why: &str) {
        self.reached().refusal = Some(why.to_owned());
    }

    /// The manager has taken the worker.
    pub(super) fn joined(&self) {
        *self.reached() = JoinState { has_joined: true, refusal: None };
    }

    fn reached(&self) -> MutexGuard<'_, JoinState> {
        self.0.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nobody is there to work for.
    fn unconnected(&self) -> String {
        let (manager, reached) = (self.0.manager, self.reached());
        let what = match reached.has_joined {
            true => format!("the manager at {manager} is lost"),
            false => format!("the worker has not joined the manager at {manager} yet"),
        };
        reached.refusal.as_ref().map_or_else(|| what.clone(), |why| format!("{what}: {why}"))
    }
}

impl MetricSource for WorkerReadiness {
    fn look(&self) -> SampleFuture<'_> {
        Box::pin(async move {
            let sample: Box<dyn FnOnce() + Send> = match self.0.figures.get() {
                None => Box::new(|| of::MANAGER_CONNECTED.with([]).set(0.0)),
                Some(figures) => {
                    let (figures, worker) = (Arc::clone(figures), figures.query().await?);
                    Box::new(move || figures.record(&worker))
                }
            };
            Some(sample)
        })
    }

    fn ready(&self) -> Readiness<'_> {
        Box::pin(async move {
            let Some(figures) = self.0.figures.get() else { return Err(self.unconnected()) };
            match figures.worker.send(GetWorkerMetrics).await {
                Err(_) => Err("the worker has left".to_owned()),
                Ok(worker) if worker.is_draining => Err("the worker leaves".to_owned()),
                Ok(worker) if !worker.is_connected => Err(self.unconnected()),
                Ok(_) => Ok(()),
            }
        })
    }
}
