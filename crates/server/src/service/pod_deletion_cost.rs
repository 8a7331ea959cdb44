//! Deletion costs of pods. A Kubernetes cluster that scales down removes the pods with the lowest costs first.
//!
//! Surplus workers get negative costs, in the order of their removal. All other pods have the default cost 0. The
//! name of a worker is the name of its pod. The manager sends a cost only when it changes. It does not wait for the
//! cluster, which is free to choose other pods. `super::scaling` decides which workers are surplus.

use super::state::record;
use super::studies::StudyContext;
use crate::kubernetes::{ClusterError, Namespace};
use parking_lot::Mutex;
use pleach_actors::manager::{GetView, WorkerState, WorkerView};
use pleach_results::checksum;
use pleach_results::folder::publish;
use pleach_telemetry::catalog as of;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Annotation that replica sets read when they choose pods to remove.
const ANNOTATION: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Cost of the pod to be removed first. The range below 0 has room for as many workers as a manager can have.
const LEAST: i32 = -1_000_000;

/// 10 s between two rounds: far below the stabilization window of minutes before the manager desires fewer workers.
const EVERY: Duration = Duration::from_secs(10);

/// A worker that is disconnected for 60 s does not merely reconnect after a restart of the manager or a lost link.
const AWAY: Duration = Duration::from_secs(60);

/// State of a pod whose cost differs, or may differ, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sent {
    /// `None` if only an earlier start of the manager knew the cost.
    cost: Option<i32>,
    /// Time since which its worker has been disconnected.
    unreachable_since: Option<Instant>,
}

/// Costs that the cluster has received, by pod.
#[derive(Debug, Default)]
struct Costs(BTreeMap<String, Sent>);

impl Costs {
    /// Returns the costs to be sent now. A draining worker keeps its cost, because it is about to leave. So does a
    /// worker that has been disconnected for less than [`AWAY`], because it may reconnect.
    fn changes(&mut self, leave: &[String], workers: &[WorkerView], now: Instant) -> Vec<(String, i32)> {
        let mut wanted = Vec::new();
        for (cost, name) in (LEAST..).zip(leave) {
            if self.0.get(name).is_none_or(|sent| sent.cost != Some(cost)) {
                wanted.push((name.clone(), cost));
            }
        }
        for (name, sent) in self.0.iter_mut().filter(|(name, _)| !leave.contains(name)) {
            let state = workers.iter().find(|worker| worker.name == **name).map(|worker| worker.state);
            sent.unreachable_since =
                if state.is_some() { None } else { sent.unreachable_since.or(Some(now)) };
            let is_away =
                sent.unreachable_since.is_some_and(|since| now.saturating_duration_since(since) >= AWAY);
            if state == Some(WorkerState::Active) || is_away {
                wanted.push((name.clone(), 0));
            }
        }
        wanted
    }

    /// Records a cost that the cluster has stored, or that concerns a pod that no longer exists.
    fn record(&mut self, name: &str, cost: i32) {
        match cost {
            0 => _ = self.0.remove(name),
            cost => _ = self.0.insert(name.to_owned(), Sent { cost: Some(cost), unreachable_since: None }),
        }
    }

    /// Returns the names that the next start of the manager has to know.
    fn names_with(&self, wanted: &[(String, i32)]) -> Vec<String> {
        let new = wanted.iter().map(|(name, _)| name);
        let mut names: Vec<String> = self.0.keys().chain(new).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Sender of deletion costs to the cluster.
struct CostSender {
    namespace: Namespace,
    costs: Costs,
    /// File with the names of the pods whose cost may differ from 0.
    file: PathBuf,
    /// Names in the file.
    kept: Vec<String>,
    /// Error of the last round.
    trouble: Option<String>,
}

/// Costs of the pods of a namespace, as this manager sends them.
#[derive(Clone)]
pub struct PodCosts(Arc<Mutex<CostSender>>);

impl PodCosts {
    /// Creates the costs with the pods whose cost an earlier start of the manager may have set.
    #[must_use]
    pub fn new(namespace: Namespace, shared: &StudyContext) -> Self {
        Self(Arc::new(Mutex::new(CostSender::new(namespace, shared.state.pod_costs()))))
    }

    /// Sends the changed costs. Blocks until the cluster has answered.
    pub(super) fn send(&self, leave: &[String], workers: &[WorkerView]) {
        self.0.lock().round(leave, workers, Instant::now());
    }
}

/// Sends changed costs to the cluster every `EVERY` until the manager ends.
pub async fn run(shared: Arc<StudyContext>, costs: PodCosts) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Ok(view) = shared.manager.send(GetView).await else { return };
        let leave = shared.scale(&view).drain_order;
        let costs = costs.clone();
        // A blocking thread of its own: an API that does not answer delays no other task.
        let round = tokio::task::spawn_blocking(move || costs.send(&leave, &view.workers));
        // A panic has already ended the process.
        if round.await.is_err() {
            return;
        }
    }
}

impl CostSender {
    fn new(namespace: Namespace, file: PathBuf) -> Self {
        let kept = kept(&file);
        let costs = Costs(kept.iter().map(|name| (name.clone(), Sent::default())).collect());
        Self { namespace, costs, file, kept, trouble: None }
    }

    /// Sends the changed costs. Stops at the first error that does not concern a single pod.
    fn round(&mut self, leave: &[String], workers: &[WorkerView], now: Instant) {
        let wanted = self.costs.changes(leave, workers, now);
        if wanted.is_empty() {
            return;
        }
        // Write the names before the request: after a crash, the next start must know each cost that may have been
        // set.
        self.keep(self.costs.names_with(&wanted));
        let mut trouble = None;
        match self.namespace.round() {
            Err(error) => trouble = Some(failed(&error)),
            Ok(round) => {
                for (name, cost) in wanted {
                    match round.annotate(&name, ANNOTATION, &cost.to_string()) {
                        Ok(()) => {
                            of::POD_DELETION_COSTS.with(["set"]).increment(1);
                            self.costs.record(&name, cost);
                        }
                        Err(error) => {
                            let message = failed(&error);
                            if error.is_not_found() {
                                self.costs.record(&name, cost);
                                // A pod whose cost is reset to 0 is often gone already, which is no error.
                                trouble = trouble.or((cost != 0).then_some(message));
                            } else {
                                trouble = trouble.or(Some(message));
                            }
                            if error.is_general() {
                                break;
                            }
                        }
                    }
                }
            }
        }
        // After the requests: pods with a cost of 0 need no reset by the next start.
        self.keep(self.costs.names_with(&[]));
        self.log(trouble);
    }

    /// Logs an error once, and once more when it is over.
    fn log(&mut self, trouble: Option<String>) {
        match &trouble {
            Some(what) if self.trouble.is_none() => {
                warn!(
                    "failed to set pod deletion costs: {what}; the manager retries and logs the next success"
                );
            }
            None if self.trouble.is_some() => info!("pod deletion costs are set again"),
            _ => {}
        }
        self.trouble = trouble;
    }

    fn keep(&mut self, names: Vec<String>) {
        if names == self.kept {
            return;
        }
        // Names that cannot be written do not keep the costs from being sent. A full disk is reported elsewhere.
        let _ = checksum::encode(&names).map(|text| publish(&self.file, &text));
        self.kept = names;
    }
}

/// Reads the names in a file. A missing or corrupt file counts as empty.
fn kept(file: &Path) -> Vec<String> {
    let lost = |why: &dyn Display| {
        warn!("{}: {why}; pods of an earlier start may keep their deletion costs", file.display());
    };
    record::read(file).or_default(lost)
}

/// Counts a failure and returns its message.
fn failed(error: &ClusterError) -> String {
    of::POD_DELETION_COSTS.with([error.outcome()]).increment(1);
    error.to_string()
}

#[cfg(test)]
mod tests;
