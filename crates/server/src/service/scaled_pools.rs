//! Scaled pools: sets the number of workers of pools whose deployments a Kubernetes cluster keeps at it.
//!
//! `pleach_provision` decides from the same scaling status that clients get. This module executes its effects on blocking
//! threads. Before a number is lowered, the surplus pods get their deletion costs, so that the cluster ends those.

use super::pod_deletion_cost::PodCosts;
use super::provision::pool;
use super::scaling::PoolSupply;
use super::studies::StudyContext;
use crate::drivers::ScaleDriver;
use crate::kubernetes::{Namespace, PodChange};
use crate::pools::Pools;
use pleach_actors::manager::{GetView, ManagerView, WorkerState, WorkerView};
use pleach_provision::{ScaleAnswer, ScaleEffect, ScaleInput, ScaledPool};
use pleach_telemetry::catalog as of;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tracing::{info, warn};

/// 2 s between two steps, as for other drivers.
const STEP_EVERY: Duration = Duration::from_secs(2);

/// 12 s to set the minimum with the manager's end: the time limit of a request is 10 s, and a pod of the chart has 15 s.
const END_TIME: Duration = Duration::from_secs(12);

/// Input of a pool besides its steps.
enum Input {
    Answer(ScaleAnswer),
    Pods(PodChange),
}

/// One pool.
struct Member {
    /// Its number in the pool file.
    number: usize,
    driver: Arc<ScaleDriver>,
    machine: ScaledPool,
    /// Last warning. It ends when the number is set.
    warning: Option<String>,
}

/// Scaled pools of one manager.
pub struct ScaledPools {
    shared: Arc<StudyContext>,
    pools: Pools,
    members: Vec<Member>,
    costs: PodCosts,
    /// Surplus workers in removal order, and all workers, as of the last step.
    removal_order: Vec<String>,
    workers: Vec<WorkerView>,
    begun: Instant,
    sender: UnboundedSender<(usize, Input)>,
    inputs: UnboundedReceiver<(usize, Input)>,
}

impl ScaledPools {
    /// Creates the state machines of all pools with the driver `kubernetes`. Returns `None` without one.
    #[must_use]
    pub fn open(
        shared: Arc<StudyContext>,
        pools: &Pools,
        namespace: &Namespace,
        costs: PodCosts,
    ) -> Option<Self> {
        let member = |(number, driver)| {
            let machine = ScaledPool::new(pool(pools, number)?, 0.0);
            Some(Member { number, driver: Arc::new(driver), machine, warning: None })
        };
        let members: Vec<Member> =
            ScaleDriver::of_pools(pools, namespace).into_iter().filter_map(member).collect();
        if members.is_empty() {
            return None;
        }
        let (sender, inputs) = unbounded_channel();
        Some(Self {
            shared,
            pools: pools.clone(),
            members,
            costs,
            removal_order: Vec::new(),
            workers: Vec::new(),
            begun: Instant::now(),
            sender,
            inputs,
        })
    }

    /// Scales the pools until the manager is asked to end. If no study is unfinished, all pools are scaled to their minimum
    /// first. Otherwise the workers keep working, and the next start of the manager continues.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval(STEP_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ends: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = &mut stop, if ends.is_none() => {
                    if self.shared.has_unfinished() {
                        return;
                    }
                    ends = Some(Instant::now());
                    let now = self.now();
                    self.each(|member| member.machine.end(now));
                }
                Some((number, input)) = self.inputs.recv() => {
                    let now = self.now();
                    let effects = self.members[number].take(now, input);
                    self.execute(number, effects);
                }
                _ = ticks.tick() => if !self.step().await { return },
            }
            let supply = |member: &Member| {
                (member.number, PoolSupply { owned: member.machine.counts(), remark: member.warning.clone() })
            };
            self.shared.scaler.supplies.update(self.members.iter().map(supply).collect());
            let Some(since) = ends else { continue };
            if self.members.iter().all(|member| member.machine.has_ended()) {
                info!("all scaled pools have their minimum");
                return;
            }
            if since.elapsed() > END_TIME {
                warn!("scaled pools may have more workers than their minimum; pleach pools lists them");
                return;
            }
        }
    }

    /// Seconds since the start.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Takes a step. Returns `false` once the manager actor has ended.
    async fn step(&mut self) -> bool {
        let Ok(view) = self.shared.manager.send(GetView).await else { return false };
        let status = self.shared.scale(&view);
        // The work of a study is unknown until it is planned, also after a restart. Until then, all workers stay.
        let is_known = self.shared.has_known_work();
        let has_studies = self.shared.has_unfinished();
        let now_seconds = self.now();
        let counts: Vec<(u32, u32)> =
            self.members.iter().map(|member| self.connected(&view, member.number)).collect();
        // First: a number that this step lowers needs the costs of workers that have joined since the last one.
        (self.removal_order, self.workers) = (status.drain_order, view.workers);
        for (number, (serving, draining)) in counts.into_iter().enumerate() {
            let desired = status.pools.get(self.members[number].number).map_or(0, |pool| pool.desired);
            let desired = is_known.then_some(desired);
            let input = ScaleInput { now_seconds, desired, serving, draining, has_studies };
            let effects = self.members[number].machine.step(input);
            self.execute(number, effects);
        }
        true
    }

    /// Returns the connected workers of a pool: those that take work, and those that drain.
    fn connected(&self, view: &ManagerView, number: usize) -> (u32, u32) {
        let own = view.workers.iter().filter(|worker| self.pools.of(&worker.name) == Some(number));
        let (draining, serving): (Vec<_>, Vec<_>) =
            own.partition(|worker| worker.state == WorkerState::Draining);
        (serving.len() as u32, draining.len() as u32)
    }

    fn each(&mut self, effects: impl Fn(&mut Member) -> Vec<ScaleEffect>) {
        for number in 0..self.members.len() {
            let effects = effects(&mut self.members[number]);
            self.execute(number, effects);
        }
    }

    fn execute(&mut self, number: usize, effects: Vec<ScaleEffect>) {
        for effect in effects {
            match effect {
                ScaleEffect::Observe => {
                    let changes = self.sender.clone();
                    // The receiver ends with the manager.
                    let notify = move |change| _ = changes.send((number, Input::Pods(change)));
                    self.call(number, move |driver| match driver.observe(notify) {
                        Ok(observation) => ScaleAnswer::Observed(observation),
                        Err(reason) => ScaleAnswer::NotObserved { reason },
                    });
                }
                ScaleEffect::Set { replicas, is_less } => {
                    // The costs are a hint: pods that the cluster ends without them drain as well.
                    let surplus = is_less.then(|| (self.removal_order.clone(), self.workers.clone()));
                    let costs = self.costs.clone();
                    self.call(number, move |driver| {
                        if let Some((leave, workers)) = surplus {
                            costs.send(&leave, &workers);
                        }
                        match driver.set(replicas) {
                            Ok(before) => ScaleAnswer::Set { before, replicas },
                            Err(reason) => ScaleAnswer::NotSet { reason },
                        }
                    });
                }
                ScaleEffect::Remark(remark) if remark.is_warning() => {
                    self.members[number].warn(remark.to_string());
                }
                ScaleEffect::Remark(remark) => info!("{remark}"),
            }
        }
    }

    /// Calls a driver on a blocking thread, which sends the answer.
    fn call(&self, number: usize, call: impl FnOnce(&ScaleDriver) -> ScaleAnswer + Send + 'static) {
        let (driver, sender) = (Arc::clone(&self.members[number].driver), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            // The receiver ends with the manager, which needs no answer then.
            let _ = sender.send((number, Input::Answer(call(&driver))));
        });
    }
}

impl Member {
    fn take(&mut self, now_seconds: f64, input: Input) -> Vec<ScaleEffect> {
        let pool = &self.driver.pool;
        match input {
            Input::Answer(answer) => return self.answer(now_seconds, answer),
            Input::Pods(PodChange::Changed) => {}
            Input::Pods(PodChange::Failed(what)) => self.warn(format!("pool {pool}: {what}")),
            Input::Pods(PodChange::Unknown(reason)) => self.warn(format!(
                "the pods of pool {pool} are not watched: {reason}; they are listed, and the manager tries again"
            )),
        }
        self.machine.observe_soon(now_seconds).into_iter().collect()
    }

    fn warn(&mut self, warning: String) {
        warn!("{warning}");
        self.warning = Some(warning);
    }

    fn answer(&mut self, now_seconds: f64, answer: ScaleAnswer) -> Vec<ScaleEffect> {
        match &answer {
            ScaleAnswer::Set { before, replicas } => {
                self.warning = None;
                let started = u64::from(replicas.saturating_sub(*before));
                of::WORKER_STARTS.with(["started"]).increment(started);
            }
            ScaleAnswer::NotSet { .. } => of::WORKER_STARTS.with(["refused"]).increment(1),
            ScaleAnswer::Observed(_) | ScaleAnswer::NotObserved { .. } => {}
        }
        self.machine.answer(now_seconds, answer)
    }
}
