//! Cloud bursts: a study on a base cluster, pools of rented workers, and a policy that sets their number.
//!
//! The manager, its plans and the scaling step are the real ones. The nodes, the network and the cloud are simulated:
//! the start-up of workers, their interruptions, and their billing. The same seed gives the same burst.
//!
//! - [`Burst`], [`CloudPool`], [`Policy`]: the resources and the policy.
//! - [`run`]: runs one study under one policy.
//! - [`Outcome`]: the time and cost of the study.
//!
//! Responses and control messages have no size, and a pool always has workers up to its maximum.

mod cloud;
mod outcome;
mod policy;

use crate::cluster::{Aborted, Cluster, SharedMachine, SiteLink};
use crate::scenario::{NetworkModel, NodeSpec, Scenario};
use crate::workload::{MakespanBound, SyntheticWorkload, Workload};
use cloud::Cloud;
pub use outcome::{Outcome, Timeline, WorkerInterval};
use pleach_dispatch::PlanId;
use pleach_dispatch::scaling::WorkerPool;
use policy::PolicyRun;

/// The only study of a burst.
const STUDY: PlanId = PlanId::first_round(0);

/// Delay of a replan after workers have joined or left: a cloud's workers arrive one by one.
const REPLAN_AFTER_SECONDS: f64 = 10.0;

/// Milliseconds between ticks of the manager, which serve idle workers.
const TICK_MS: u64 = 500;

/// A pool of a cloud, and its behavior.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudPool {
    /// The pool as known to the scaling step, without workers.
    pub pool: WorkerPool,
    /// Buckets that a worker runs at once.
    pub cores: u32,
    /// Seconds of work that a core does in 1 s.
    pub speed: f64,
    /// Coefficient of variation of the start-up time.
    pub startup_variation: f64,
    /// Mean number of interruptions of a worker per hour.
    pub interruptions_per_hour: f64,
    /// Notice before an interruption.
    pub notice_seconds: f64,
    /// Bytes per second from another site.
    pub wide_bytes_per_second: f64,
    /// Bytes per second from the storage of the study's files.
    pub store_bytes_per_second: f64,
    /// Price of 10^9 bytes of egress.
    pub egress_price_per_gb: f64,
}

/// The permanent nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseCluster {
    /// Number of nodes.
    pub nodes: u32,
    /// Buckets that each runs at once.
    pub cores: u32,
    /// Seconds of work that a core does in 1 s.
    pub speed: f64,
    /// The one machine that all nodes run on. `None`: each core has its own processor.
    pub machine: Option<SharedMachine>,
}

impl BaseCluster {
    /// Returns the speed of each core while all of them work.
    #[must_use]
    pub fn busy_speed(&self) -> f64 {
        let cores = f64::from(self.nodes * self.cores);
        let part = |machine: SharedMachine| (f64::from(machine.processors) / cores).min(1.0);
        self.speed * self.machine.map_or(1.0, part)
    }
}

/// Parameters of a burst, except the study and the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    /// The base cluster.
    pub base: BaseCluster,
    /// The pools.
    pub sites: Vec<CloudPool>,
    /// Time of each bucket on its slot before it fetches inputs.
    pub bucket_overhead_seconds: f64,
    /// Buckets that the first plan has for a stage. `None`: 3 for each slot.
    pub planned_buckets: Option<usize>,
    /// Time between two decisions.
    pub step_seconds: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Maximum of simulated seconds.
    pub limit_seconds: f64,
}

/// Kind of a scaling policy.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyKind {
    /// A fixed number of workers in each pool.
    Fixed(Vec<u32>),
    /// The fewest workers that meet the deadline, for the remaining work in its current buckets.
    Deadline,
    /// The fastest execution that the budget allows.
    Budget,
    /// At most this many waiting buckets for each slot. The cheapest pools come first.
    QueueLength(f64),
    /// The fewest workers that meet the deadline, including the reuse lost with more slots.
    Trtma,
}

impl PolicyKind {
    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "fixed",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
            Self::QueueLength(_) => "queue-length",
            Self::Trtma => "trtma",
        }
    }
}

/// A scaling policy with its goals.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Name.
    pub name: String,
    /// Kind.
    pub rule: PolicyKind,
    /// Deadline of the study, from its submission.
    pub deadline_seconds: Option<f64>,
    /// Maximum cost of the study.
    pub budget: Option<f64>,
}

/// Runs a study under a policy. `record` adds the timeline of each slot to the outcome.
///
/// # Errors
/// Returns [`Aborted`] if the study takes longer than the limit.
pub fn run(burst: &Burst, policy: &Policy, mut workload: Workload, record: bool) -> Result<Outcome, Aborted> {
    workload.plan.bucket_overhead_seconds = burst.bucket_overhead_seconds;
    let base = NodeSpec { slots: burst.base.cores, speed: burst.base.speed };
    let schedule = Scenario {
        seed: burst.seed,
        nodes: vec![base; burst.base.nodes as usize],
        studies: vec![(0, SyntheticWorkload::UNUSED)],
        incidents: Vec::new(),
        network: NetworkModel::default(),
        tick_ms: TICK_MS,
        replan: true,
        limit_seconds: burst.limit_seconds,
    };
    let shared = Shared {
        alone_and_unique_seconds: workload.total_and_unique_seconds(),
        instances: workload.plan.instances.len() as u64,
        bound: workload.makespan_bound(),
    };
    let mut cluster = Cluster::with_workloads(schedule, vec![workload], false, false);
    cluster =
        cluster.replanning_after(REPLAN_AFTER_SECONDS).with_bucket_overhead(burst.bucket_overhead_seconds);
    if let Some(buckets) = burst.planned_buckets {
        cluster = cluster.with_planned_buckets(buckets);
    }
    if let Some(machine) = burst.base.machine {
        cluster = cluster.with_machine(machine, burst.base.nodes as usize);
    }
    if record {
        cluster = cluster.with_spans();
    }
    // After 10 ms the study is submitted and the base nodes have joined.
    cluster.run_until(10_000)?;
    let mut cloud = Cloud::new(burst);
    let mut decider = PolicyRun::new(burst, policy, &cluster);
    let mut first = None;
    let limit_us = (burst.limit_seconds * 1e6) as u64;
    while !cluster.is_complete() {
        let (now_us, step_us) = (cluster.now_us(), (burst.step_seconds * 1e6) as u64);
        if now_us >= limit_us {
            let open = cluster.observed().manager().study(STUDY).map_or(0, |study| study.unfinished());
            return Err(Aborted::Late { seconds: burst.limit_seconds, open });
        }
        let answer = decider.decide(&cluster, &cloud);
        cloud.follow(&answer.desired, &mut cluster)?;
        // The outcome compares the forecast of the first decision with the result.
        first.get_or_insert(answer);
        cloud.run_until(now_us + step_us, &mut cluster)?;
    }
    Ok(Outcome::new(burst, policy, cluster, cloud, first, shared))
}

/// Reuse potential of the workload.
#[derive(Clone, Copy, Debug)]
struct Shared {
    alone_and_unique_seconds: Option<(f64, f64)>,
    instances: u64,
    bound: Option<MakespanBound>,
}

impl CloudPool {
    fn spec(&self) -> NodeSpec {
        NodeSpec { slots: self.cores, speed: self.speed }
    }

    fn link(&self, site: usize) -> SiteLink {
        SiteLink {
            // Site 0 is the base cluster.
            site: 1 + site as u32,
            wide_bytes_per_second: self.wide_bytes_per_second,
            store_bytes_per_second: self.store_bytes_per_second,
        }
    }
}
