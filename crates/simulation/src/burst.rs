//! Cloud bursts: a study on a base cluster, pools of workers that can be had for money, and a policy that says how many.
//!
//! The manager, its plans and the scaling step are the real ones; simulated are the nodes, the network, and the cloud: how
//! long workers take to come, when they are taken away, and what is paid for. The same seed gives the same burst.
//!
//! - [`Burst`], [`CloudPool`], [`Policy`]: what there is, and who decides;
//! - [`run`]: one study under one policy;
//! - [`Outcome`]: what it took and cost.
//!
//! Results and control messages count no bytes, and a pool has always as many workers to give as it says.

mod cloud;
mod outcome;
mod policy;

use crate::cluster::{Aborted, Cluster, SiteLink};
use crate::scenario::{NetworkModel, NodeSpec, Scenario};
use crate::workload::{SyntheticWorkload, Workload};
use cloud::Cloud;
pub use outcome::{Outcome, Timeline, WorkerInterval};
use pleach_dispatch::PlanId;
use pleach_dispatch::scaling::WorkerPool;
use policy::Decider;

/// The one study.
const STUDY: PlanId = PlanId::whole(0);

/// Buckets are cut anew so long after workers have come or gone: a cloud's come one by one.
const REPLAN_AFTER_SECONDS: f64 = 10.0;

/// Ticks of the manager: it looks for idle workers then.
const TICK_MS: u64 = 500;

/// A pool of a cloud, and how it behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudPool {
    /// What the scaling step knows of it; nobody is there.
    pub pool: WorkerPool,
    /// Buckets that a worker runs at once.
    pub cores: u32,
    /// How many seconds' work a core does in a second.
    pub speed: f64,
    /// Coefficient of variation of the start-up time.
    pub startup_variation: f64,
    /// How often a worker is taken away, on average.
    pub interruptions_per_hour: f64,
    /// How long before it is told.
    pub notice_seconds: f64,
    /// Bytes a second from another site.
    pub wide_bytes_per_second: f64,
    /// Bytes a second from where the study's files are kept.
    pub store_bytes_per_second: f64,
    /// Price of 10^9 bytes that leave it.
    pub egress_price_per_gb: f64,
}

/// The nodes that are there anyway.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseCluster {
    /// How many.
    pub nodes: u32,
    /// Buckets that each runs at once.
    pub cores: u32,
    /// How many seconds' work a core does in a second.
    pub speed: f64,
}

/// Everything but the study and who decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    /// The base cluster.
    pub base: BaseCluster,
    /// The pools.
    pub sites: Vec<CloudPool>,
    /// Between two decisions.
    pub step_seconds: f64,
    /// Of everything random.
    pub seed: u64,
    /// Simulated seconds after which it has to be over.
    pub limit_seconds: f64,
}

/// How it is decided how many workers there should be.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyKind {
    /// So many of each pool, from beginning to end.
    Fixed(Vec<u32>),
    /// As few as meet the deadline, by the work that is left as it is cut.
    Deadline,
    /// As fast as the budget allows.
    Budget,
    /// So that each slot has at most so many buckets that wait; cheapest pools first.
    QueueLength(f64),
    /// As few as meet the deadline, with what more slots cost in reuse: it is known what can still be cut.
    Trtma,
}

impl PolicyKind {
    /// A word for it.
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

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// How it decides.
    pub rule: PolicyKind,
    /// When the study should be over, from its submission.
    pub deadline_seconds: Option<f64>,
    /// What may be spent on it.
    pub budget: Option<f64>,
}

/// Runs a study under a policy; `record`: with what each slot did when.
///
/// # Errors
/// [`Aborted`] when it takes longer than the limit.
pub fn run(burst: &Burst, policy: &Policy, workload: Workload, record: bool) -> Result<Outcome, Aborted> {
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
    };
    let mut cluster = Cluster::with_workloads(schedule, vec![workload], false, false);
    cluster = cluster.replanning_after(REPLAN_AFTER_SECONDS);
    if record {
        cluster = cluster.with_spans();
    }
    // The study is there, and the base nodes have said so.
    cluster.run_until(10_000)?;
    let mut cloud = Cloud::new(burst);
    let mut decider = Decider::new(burst, policy, &cluster);
    let mut first = None;
    let limit_us = (burst.limit_seconds * 1e6) as u64;
    while !cluster.is_over() {
        let (now_us, step_us) = (cluster.now_us(), (burst.step_seconds * 1e6) as u64);
        if now_us >= limit_us {
            let open = cluster.observed().manager().study(STUDY).map_or(0, |study| study.unfinished());
            return Err(Aborted::Late { seconds: burst.limit_seconds, open });
        }
        let answer = decider.decide(&cluster, &cloud);
        cloud.follow(&answer.wanted, &mut cluster)?;
        first.get_or_insert(answer);
        cloud.run_until(now_us + step_us, &mut cluster)?;
    }
    Ok(Outcome::new(burst, policy, cluster, cloud, first, shared))
}

/// What could be shared of the workload.
#[derive(Clone, Copy, Debug)]
struct Shared {
    alone_and_unique_seconds: Option<(f64, f64)>,
    instances: u64,
}

impl CloudPool {
    fn spec(&self) -> NodeSpec {
        NodeSpec { slots: self.cores, speed: self.speed }
    }

    fn link(&self, site: usize) -> SiteLink {
        SiteLink {
            // The base is site 0.
            site: 1 + site as u32,
            wide_bytes_per_second: self.wide_bytes_per_second,
            store_bytes_per_second: self.store_bytes_per_second,
        }
    }
}
