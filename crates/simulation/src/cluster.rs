//! A simulated cluster around the real manager: clock, network, workers and incidents.
//!
//! Workers request buckets as the real one does, one for each slot, fetch missing inputs from each other, execute a bucket's
//! instances one after the other in the order of its reuse tree, and report each. A message takes the latency of the
//! network, plus one retransmission for each loss. If that or a partition takes longer than the idle timeout of a
//! connection, the connection and its worker are lost, and the worker reattaches. Transfers do not slow each
//! other down, and nodes of one machine may share its processors. A bucket may take an overhead on its slot before its first
//! task, which the manager learns. The same scenario gives the same simulation, event by event.

mod incidents;
mod interactive;
mod manager_side;
mod node;
mod processors;
mod replanning;
mod shared_results;
mod worker_side;

use crate::audit::Violation;
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::recorder::RecordedManager;
use crate::scenario::Scenario;
use crate::workload::Workload;
pub use interactive::{SiteLink, SlotSpan};
use node::Node;
use parking_lot::Mutex;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::manager::WorkerInfo;
use pleach_dispatch::message::{GrantReason, RemoteRegion, TaskReport};
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use pleach_reuse::{Dataflow, SharingSchedule};
pub use processors::SharedMachine;
use processors::SharedProcessors;
use replanning::StudyReplans;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// Idle timeout of a connection, as in the transport.
const IDLE_US: u64 = 2_100_000;

/// Minimum delay before a lost message is sent again. Doubled each time.
const RETRANSMIT_US: u64 = 25_000;

/// Mean time between two attempts to connect.
const BACKOFF_US: u64 = 200_000;

/// Grace period after a restart of the manager: workers reattach before it grants their instances again.
const HOLD_US: u64 = 2_000_000;

/// Delay of a replan, so that workers that join together cause only one.
const REPLAN_AFTER_US: u64 = 100_000;

/// Message to the manager.
#[derive(Debug)]
enum WorkerMessage {
    Join,
    Request(u32),
    Done(PlanId, LeaseId, InstanceId, Vec<TaskReport>),
    Lacking(PlanId, LeaseId, InstanceId, Vec<RegionKey>),
    Back(PlanId, LeaseId, Vec<InstanceId>),
    Copied(PlanId, RegionKey),
    Adopt(PlanId, LeaseId, Vec<InstanceId>),
    Holds(PlanId, Vec<RegionKey>),
    Drain,
    Leave,
}

/// Message to a worker.
#[derive(Debug)]
enum ManagerMessage {
    Assign(PlanId, LeaseId, GrantReason, Vec<InstanceId>, Vec<RemoteRegion>),
    Revoke(LeaseId),
    Share(LeaseId),
    Copy(PlanId, RegionKey, WorkerId),
    Kept(LeaseId, BTreeSet<InstanceId>),
    Drain,
    Dismiss,
}

/// A scheduled event.
#[derive(Debug)]
enum DueEvent {
    Submit(usize),
    Incident(usize),
    Tick,
    ToManager(usize, u32, WorkerMessage),
    ToNode(usize, u32, ManagerMessage),
    Connect(usize),
    LinkLost(usize, u32),
    /// A node reaches its time limit, if the limit is still the same.
    LeaseEnd(usize, u64),
    /// A bucket's inputs have been fetched, except for these keys. Ignored if the bucket has begun something else since.
    Fetched(usize, LeaseId, u64, Vec<RegionKey>),
    Copied(usize, u32, PlanId, RegionKey),
    /// An instance is finished. Ignored if the bucket has begun something else since.
    Worked(usize, LeaseId, u64),
    ManagerUp,
    Resume,
    Replan(PlanId),
    /// A replan by the manager of this epoch has these buckets.
    Replanned(PlanId, u32, Vec<BucketPlan>),
}

/// Cause of an aborted simulation.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Aborted {
    /// The manager broke a rule.
    #[error(transparent)]
    Breach(#[from] Violation),
    /// The simulation exceeds its time limit.
    #[error("after {seconds} s, {open} instances are open")]
    Late {
        /// The scenario's limit.
        seconds: f64,
        /// Open instances of all studies.
        open: usize,
    },
}

/// Statistics of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClusterStats {
    /// Time from the first submission to the end of the last study.
    pub makespan_seconds: f64,
    /// Busy seconds of all slots, converted to a worker of speed 1.
    pub work_seconds: f64,
    /// Instances executed to their end, some more than once.
    pub executed: u64,
    /// Instances that the manager counts as finished. Reopened ones count again.
    pub finished: u64,
    /// Instances that failed.
    pub failed: u64,
    /// Messages to and from the manager.
    pub messages: u64,
    /// Bytes of regions and shared task results moved between workers.
    pub bytes_moved: u64,
    /// Tasks whose outputs a worker received from another.
    pub transfers: u64,
    /// Tasks executed again, because a transfer takes longer.
    pub recomputed_tasks: u64,
    /// Buckets granted to workers, some more than once.
    pub leases: u64,
    /// Tasks that workers began.
    pub tasks: u64,
    /// Number of replans.
    pub replans: u64,
    /// Instances that replans moved to another bucket.
    pub instances_moved: u64,
    /// Leases revoked because another lease of the same instances was faster, or the study was canceled.
    pub twins: u64,
    /// Leases that returned instances.
    pub shared: u64,
    /// Workers that were lost.
    pub lost: u64,
    /// Predicted seconds of all started tasks on a worker of speed 1.
    pub foreseen_seconds: f64,
    /// Seconds at speed 1 spent on instances that were unfinished when their node was lost.
    pub lost_seconds: f64,
    /// Instances that were running at their worker's time limit, although the limit was known when they started.
    pub begun_in_vain: u64,
    /// Events handled by the manager.
    pub events: u64,
    /// Wall seconds of the manager for these events.
    pub manager_seconds: f64,
}

/// The simulated cluster.
#[derive(Debug)]
pub struct Cluster {
    schedule: Scenario,
    workloads: Vec<Workload>,
    observed: RecordedManager,
    random: Random,
    now_us: u64,
    queue: EventQueue<DueEvent>,
    nodes: Vec<Node>,
    /// Nodes of the connected workers.
    workers: BTreeMap<WorkerId, usize>,
    /// Submitted studies, and those that are complete or canceled.
    submitted: BTreeSet<usize>,
    ended: BTreeSet<usize>,
    /// Finished instances by study: the only state that a restarted manager finds.
    journal: Vec<BTreeSet<InstanceId>>,
    epoch: u32,
    is_up: bool,
    /// Number of buckets of the first plan of each study.
    initial_buckets: usize,
    replans: Vec<StudyReplans>,
    poison: BTreeSet<(usize, InstanceId)>,
    /// Whether workers report task timings.
    tells_times: bool,
    /// Links of the nodes to other sites and files. Nodes beyond the end have the default link.
    links: Vec<SiteLink>,
    /// Bytes sent from each site to others.
    egress_bytes: BTreeMap<u32, u64>,
    /// Work of the slots, if recorded.
    spans: Option<Vec<SlotSpan>>,
    replan_after_us: u64,
    /// Processors that the first nodes share.
    processors: Option<SharedProcessors>,
    /// Time of each bucket on its slot before it fetches inputs.
    bucket_overhead_us: u64,
    /// Costs that the manager learns from leases: the overhead of a bucket.
    costs: Arc<Mutex<CostModel>>,
    /// By study and stage: task results that all workers share. Empty for studies with the tree scope.
    shared: Vec<Vec<SharingSchedule<Arc<Dataflow>>>>,
    figures: ClusterStats,
}

impl Cluster {
    /// Creates a cluster for a scenario. Optionally audits every event and records all events.
    #[must_use]
    pub fn new(schedule: Scenario, audit: bool, record: bool) -> Self {
        let workloads = workloads(&schedule);
        Self::with_workloads(schedule, workloads, audit, record)
    }

    /// Creates a cluster like [`new`](Self::new), with given workloads instead of synthetic ones. The scenario has
    /// their submission times.
    #[must_use]
    pub fn with_workloads(
        schedule: Scenario,
        mut workloads: Vec<Workload>,
        audit: bool,
        record: bool,
    ) -> Self {
        let slots: u32 = schedule.nodes.iter().map(|node| node.slots).sum();
        let plans = workloads.iter_mut().map(|workload| std::mem::take(&mut workload.plan)).collect();
        let mut cluster = Self {
            observed: RecordedManager::new(plans, audit, record),
            random: Random::new(schedule.seed),
            now_us: 0,
            queue: EventQueue::default(),
            nodes: schedule.nodes.iter().map(|spec| Node::new(*spec)).collect(),
            workers: BTreeMap::new(),
            submitted: BTreeSet::new(),
            ended: BTreeSet::new(),
            journal: vec![BTreeSet::new(); workloads.len()],
            epoch: 0,
            is_up: true,
            initial_buckets: 3 * slots as usize,
            replans: workloads.iter().map(|_| StudyReplans::default()).collect(),
            poison: BTreeSet::new(),
            tells_times: true,
            links: Vec::new(),
            egress_bytes: BTreeMap::new(),
            spans: None,
            replan_after_us: REPLAN_AFTER_US,
            processors: None,
            bucket_overhead_us: 0,
            costs: Arc::default(),
            shared: workloads.iter().map(Workload::schedules).collect(),
            figures: ClusterStats::default(),
            workloads,
            schedule,
        };
        for node in 0..cluster.nodes.len() {
            cluster.at(0, DueEvent::Connect(node));
        }
        for number in 0..cluster.schedule.studies.len() {
            cluster.at(1000 * cluster.schedule.studies[number].0, DueEvent::Submit(number));
        }
        for number in 0..cluster.schedule.incidents.len() {
            cluster.at(1000 * cluster.schedule.incidents[number].0, DueEvent::Incident(number));
        }
        cluster.at(0, DueEvent::Tick);
        cluster
    }

    /// Disables task timings: all workers have equal speed for the manager.
    #[must_use]
    pub fn without_times(mut self) -> Self {
        self.tells_times = false;
        self
    }

    /// Runs until all studies have ended.
    ///
    /// # Errors
    /// Returns [`Aborted`] if the manager violates a rule or the simulation exceeds the scenario's time limit.
    pub fn run(&mut self) -> Result<ClusterStats, Aborted> {
        let limit_us = (self.schedule.limit_seconds * 1e6) as u64;
        while !self.is_complete() {
            let next = self.queue.pop().filter(|(at_us, _)| *at_us <= limit_us);
            let Some((at_us, due)) = next else {
                let studies = (0..self.workloads.len() as u32).map(PlanId::first_round);
                let open = |study| self.observed.manager().study(study).map_or(0, |study| study.unfinished());
                let open = studies.map(open).sum();
                return Err(Aborted::Late { seconds: self.schedule.limit_seconds, open });
            };
            self.now_us = self.now_us.max(at_us);
            self.happen(due)?;
            self.share_processors();
        }
        Ok(self.figures())
    }

    /// Returns the statistics so far.
    #[must_use]
    pub fn figures(&mut self) -> ClusterStats {
        let first = self.schedule.studies.iter().map(|(at, _)| *at).min().unwrap_or(0);
        let (events, busy) = self.observed.work();
        self.figures.makespan_seconds = (self.now_us - 1000 * first) as f64 / 1e6;
        (self.figures.events, self.figures.manager_seconds) = (events, busy.as_secs_f64());
        self.figures
    }

    /// Returns the manager and its recorded events.
    #[must_use]
    pub fn observed(&self) -> &RecordedManager {
        &self.observed
    }

    fn at(&mut self, at_us: u64, due: DueEvent) {
        self.queue.push(at_us, due);
    }

    fn happen(&mut self, due: DueEvent) -> Result<(), Violation> {
        match due {
            DueEvent::Submit(number) => self.submit(number),
            DueEvent::Incident(number) => self.incident(self.schedule.incidents[number].1),
            DueEvent::Tick => {
                self.at(self.now_us + 1000 * self.schedule.tick_ms.max(1), DueEvent::Tick);
                if self.is_up { self.apply(Event::Tick) } else { Ok(()) }
            }
            DueEvent::ToManager(node, link, say) => self.arrives(node, link, say),
            DueEvent::ToNode(node, link, hear) => {
                // A message of an earlier connection is lost with it.
                if self.nodes[node].up && self.nodes[node].link == link && self.nodes[node].connected {
                    self.hears(node, hear);
                }
                Ok(())
            }
            DueEvent::Connect(node) => {
                self.connect(node);
                Ok(())
            }
            DueEvent::LinkLost(node, link) => self.link_lost(node, link),
            DueEvent::LeaseEnd(node, end_us) => {
                self.lease_ends(node, end_us);
                Ok(())
            }
            DueEvent::Fetched(node, lease, step, missing) => {
                self.fetched(node, lease, step, missing);
                Ok(())
            }
            DueEvent::Copied(node, link, study, key) => {
                if self.nodes[node].up {
                    self.nodes[node].regions.insert((study, key));
                    if self.nodes[node].link == link {
                        self.say(node, WorkerMessage::Copied(study, key));
                    }
                }
                Ok(())
            }
            DueEvent::Worked(node, lease, step) => {
                self.worked(node, lease, step);
                Ok(())
            }
            DueEvent::ManagerUp => self.manager_up(),
            DueEvent::Resume => self.apply(Event::Resume),
            DueEvent::Replan(study) => {
                self.replan(study);
                Ok(())
            }
            DueEvent::Replanned(study, epoch, buckets) => self.replanned(study, epoch, buckets),
        }
    }

    /// Returns the microseconds that a message takes. `None` if that exceeds the idle timeout.
    fn latency_us(&mut self) -> Option<u64> {
        let network = self.schedule.network;
        let mut latency = network.latency_us + self.random.exponential(network.jitter_us as f64) as u64;
        let mut again = RETRANSMIT_US;
        while network.loss > 0.0 && self.random.unit() < network.loss {
            latency += again;
            again *= 2;
        }
        (latency < IDLE_US).then_some(latency)
    }

    /// Returns the arrival time of a message sent now. `None` if the connection is lost first.
    fn arrival_us(&mut self, node: usize, direction: usize) -> Option<u64> {
        self.figures.messages += 1;
        let latency = self.latency_us();
        let Some(latency) = latency else {
            let link = self.nodes[node].link;
            self.at(self.now_us + IDLE_US, DueEvent::LinkLost(node, link));
            return None;
        };
        let node = &mut self.nodes[node];
        // A connection delivers in order: no message overtakes an earlier one.
        let at = (self.now_us.max(node.cut_until_us) + latency).max(node.last_us[direction]);
        node.last_us[direction] = at;
        Some(at)
    }

    fn say(&mut self, node: usize, say: WorkerMessage) {
        if !self.nodes[node].connected {
            return;
        }
        if let Some(at) = self.arrival_us(node, 0) {
            self.at(at, DueEvent::ToManager(node, self.nodes[node].link, say));
        }
    }

    fn send(&mut self, node: usize, hear: ManagerMessage) {
        if let Some(at) = self.arrival_us(node, 1) {
            self.at(at, DueEvent::ToNode(node, self.nodes[node].link, hear));
        }
    }

    fn facts(&self, node: usize) -> WorkerInfo {
        WorkerInfo { slots: self.nodes[node].spec.slots, ..WorkerInfo::ANY }
    }
}

/// Returns the workloads of a scenario.
#[must_use]
pub fn workloads(schedule: &Scenario) -> Vec<Workload> {
    let recipes = (0..).map(PlanId::first_round).zip(&schedule.studies);
    recipes.map(|(study, (_, recipe))| Workload::new(study, recipe.design())).collect()
}
