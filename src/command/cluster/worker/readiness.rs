//! Connection state of a worker process, for its readiness probe and its metrics.
//!
//! The worker actor decides whether it is connected and whether it drains. This module only queries it.

use super::metrics::WorkerSampler;
use parking_lot::Mutex;
use pleach_actors::worker::GetWorkerMetrics;
use pleach_server::exporter::{MetricSource, Readiness, SampleFuture};
use pleach_telemetry::catalog as of;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// Progress of joining a manager.
#[derive(Debug)]
struct JoinState {
    /// Whether the process was connected at least once.
    has_joined: bool,
    /// Cause of the last failed attempt since the last success.
    refusal: Option<String>,
}

struct ReadinessState {
    manager: SocketAddr,
    reached: Mutex<JoinState>,
    /// Set once the worker actor exists.
    figures: OnceLock<Arc<WorkerSampler>>,
}

/// Readiness of a worker process. Clones share the state.
#[derive(Clone)]
pub(super) struct WorkerReadiness(Arc<ReadinessState>);

impl WorkerReadiness {
    pub(super) fn new(manager: SocketAddr) -> Self {
        let reached = Mutex::new(JoinState { has_joined: false, refusal: None });
        Self(Arc::new(ReadinessState { manager, reached, figures: OnceLock::new() }))
    }

    /// Registers the worker actor.
    pub(super) fn begin(&self, figures: WorkerSampler) {
        // A process has one worker, so the cell is empty.
        let _ = self.0.figures.set(Arc::new(figures));
    }

    /// Records a failed attempt to join the manager.
    pub(super) fn failed(&self, why: &str) {
        self.0.reached.lock().refusal = Some(why.to_owned());
    }

    /// Records that the manager accepted the worker.
    pub(super) fn joined(&self) {
        *self.0.reached.lock() = JoinState { has_joined: true, refusal: None };
    }

    /// Returns why the worker is not connected.
    fn unconnected(&self) -> String {
        let (manager, reached) = (self.0.manager, self.0.reached.lock());
        let what = match reached.has_joined {
            true => format!("lost the connection to the manager at {manager}"),
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
            // The actor starts after the certificate has arrived. Until then the process is alive but not ready.
            let Some(figures) = self.0.figures.get() else { return Err(self.unconnected()) };
            match figures.worker.send(GetWorkerMetrics).await {
                Err(_) => Err("the worker has left".to_owned()),
                Ok(worker) if worker.is_draining => Err("the worker is draining".to_owned()),
                Ok(worker) if !worker.is_connected => Err(self.unconnected()),
                Ok(_) => Ok(()),
            }
        })
    }
}
