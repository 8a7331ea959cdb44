//! Which pods the cluster is to take first when there are to be fewer: their deletion costs.
//!
//! Workers that are more than wanted get costs below that of all others, which is 0, in the order in which they should go.
//! A worker's name is its pod's. The cluster is told when a cost changes and otherwise nothing; what it takes or leaves is
//! its own affair, and studies do not wait for it. Who is more than wanted is decided in [`super::scaling`].

use super::state::record::{self, Record};
use super::studies::StudyContext;
use crate::checksum;
use crate::kubernetes::{ClusterError, Pods};
use crate::output::folder::publish;
use pleach_actors::manager::{GetView, WorkerState, WorkerView};
use pleach_telemetry::catalog as of;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// What replica sets look at when they choose.
const ANNOTATION: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Of whoever should go first. Room for as many workers as a manager can have, all below 0.
const LEAST: i32 = -1_000_000;

/// Between two rounds: well below the minutes for which fewer have to be wanted before there are fewer.
const EVERY: Duration = Duration::from_secs(10);

/// Who is away for so long does not only come back from a manager's restart or a lost link.
const AWAY: Duration = Duration::from_secs(60);

/// What is known of a pod that has, or may have, another cost than 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told {
    /// None as long as only an earlier start of the manager knows.
    cost: Option<i32>,
    /// Since when its worker is not connected.
    away: Option<Instant>,
}

/// The costs that the cluster knows.
#[derive(Debug, Default)]
struct Costs(BTreeMap<String, Told>);

impl Costs {
    /// The costs to be told now. A worker that drains keeps its own: it is about to go. So does one that is away, for as
    /// long as it may come back.
    fn changes(&mut self, leave: &[String], workers: &[WorkerView], now: Instant) -> Vec<(String, i32)> {
        let mut wanted = Vec::new();
        for (cost, name) in (LEAST..).zip(leave) {
            if self.0.get(name).is_none_or(|told| told.cost != Some(cost)) {
                wanted.push((name.clone(), cost));
            }
        }
        for (name, told) in self.0.iter_mut().filter(|(name, _)| !leave.contains(name)) {
            let state = workers.iter().find(|worker| worker.name == **name).map(|worker| worker.state);
            told.away = if state.is_some() { None } else { told.away.or(Some(now)) };
            let is_away = told.away.is_some_and(|since| now.saturating_duration_since(since) >= AWAY);
            if state == Some(WorkerState::Active) || is_away {
                wanted.push((name.clone(), 0));
            }
        }
        wanted
    }

    /// The cluster knows, or there is no such pod to know of.
    fn told(&mut self, name: &str, cost: i32) {
        match cost {
            0 => _ = self.0.remove(name),
            cost => _ = self.0.insert(name.to_owned(), Told { cost: Some(cost), away: None }),
        }
    }

    /// The names that another start of the manager has to know.
    fn names_with(&self, wanted: &[(String, i32)]) -> Vec<String> {
        let new = wanted.iter().map(|(name, _)| name);
        let mut names: Vec<String> = self.0.keys().chain(new).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Whoever tells the cluster.
struct Teller {
    pods: Pods,
    costs: Costs,
    /// Where the names are kept of those that may have another cost than 0.
    file: PathBuf,
    /// As in the file.
    kept: Vec<String>,
    /// What was wrong the last time.
    trouble: Option<String>,
}

/// Tells the cluster now and then, as long as there is a manager.
pub(crate) async fn keep_telling(shared: Arc<StudyContext>, pods: Pods) {
    let mut teller = Teller::new(pods, shared.state.pod_costs());
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Ok(view) = shared.manager.send(GetView).await else { return };
        let leave = shared.scale(&view).drain_order;
        // An API that does not answer holds up this thread, and nobody else.
        let round = tokio::task::spawn_blocking(move || {
            teller.round(&leave, &view.workers, Instant::now());
            teller
        });
        match round.await {
            Ok(back) => teller = back,
            // One that has panicked has ended the process.
            Err(_) => return,
        }
    }
}

impl Teller {
    fn new(pods: Pods, file: PathBuf) -> Self {
        let kept = kept(&file);
        let costs = Costs(kept.iter().map(|name| (name.clone(), Told::default())).collect());
        Self { pods, costs, file, kept, trouble: None }
    }

    /// Tells what has changed, until something is wrong that is not about one pod.
    fn round(&mut self, leave: &[String], workers: &[WorkerView], now: Instant) {
        let wanted = self.costs.changes(leave, workers, now);
        if wanted.is_empty() {
            return;
        }
        // Written before it is done: what may have been told is not forgotten.
        self.keep(self.costs.names_with(&wanted));
        let mut trouble = None;
        match self.pods.round() {
            Err(error) => trouble = Some(failed(&error)),
            Ok(round) => {
                for (name, cost) in wanted {
                    match round.annotate(&name, ANNOTATION, &cost.to_string()) {
                        Ok(()) => {
                            of::POD_DELETION_COSTS.with(["set"]).increment(1);
                            self.costs.told(&name, cost);
                        }
                        Err(error) => {
                            let said = failed(&error);
                            if error.is_gone() {
                                self.costs.told(&name, cost);
                                // Whoever is to be forgotten may well be gone.
                                trouble = trouble.or((cost != 0).then_some(said));
                            } else {
                                trouble = trouble.or(Some(said));
                            }
                            if error.is_general() {
                                break;
                            }
                        }
                    }
                }
            }
        }
        self.keep(self.costs.names_with(&[]));
        self.say(trouble);
    }

    /// Once for each trouble, and once that it is over.
    fn say(&mut self, trouble: Option<String>) {
        match &trouble {
            Some(what) if self.trouble.is_none() => {
                warn!(
                    "cannot tell the cluster which workers to take first: {what}; trying again, and saying no more"
                );
            }
            None if self.trouble.is_some() => info!("the cluster knows again which workers to take first"),
            _ => {}
        }
        self.trouble = trouble;
    }

    fn keep(&mut self, names: Vec<String>) {
        if names == self.kept {
            return;
        }
        // Costs that cannot be written down are told all the same; a disk that is full says so elsewhere.
        let _ = checksum::encode(&names).map(|text| publish(&self.file, &text));
        self.kept = names;
    }
}

/// The names of a file; one that is not there, or corrupt, says nothing.
fn kept(file: &Path) -> Vec<String> {
    match record::read(file) {
        Record::Missing => Vec::new(),
        Record::Sound(content) => content.value,
        Record::Corrupt(why) | Record::Unreadable(why) => {
            warn!("{}: {why}; pods of an earlier start may keep their deletion costs", file.display());
            Vec::new()
        }
    }
}

/// Counts a failure, and tells it.
fn failed(error: &ClusterError) -> String {
    of::POD_DELETION_COSTS.with([error.outcome()]).increment(1);
    error.to_string()
}

#[cfg(test)]
mod tests;
