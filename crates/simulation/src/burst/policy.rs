//! Policies: the scaling step, and simpler rules for comparison.

use super::cloud::Cloud;
use super::{Burst, Policy, PolicyKind, STUDY};
use crate::cluster::Cluster;
use pleach_dispatch::scaling::{
    DeadlineGoal, FastestOption, MakespanForecast, PartitionForecast, PreviousDecision, Reason,
    WorkByPartition, WorkDemand, WorkerPool, decide,
};

/// A decision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolicyDecision {
    /// Workers of each pool.
    pub(super) desired: Vec<u32>,
    pub(super) reason: Option<Reason>,
    pub(super) forecast: Option<MakespanForecast>,
    pub(super) fastest: Option<FastestOption>,
    pub(super) without_budget: Option<MakespanForecast>,
}

/// A policy during one burst.
pub(super) struct PolicyRun<'a> {
    burst: &'a Burst,
    policy: &'a Policy,
    previous: Option<PreviousDecision>,
    /// Work by number of slots, at the last planning.
    partition: Option<PartitionForecast>,
    longest_seconds: f64,
}

impl<'a> PolicyRun<'a> {
    pub(super) fn new(burst: &'a Burst, policy: &'a Policy, cluster: &Cluster) -> Self {
        let longest_seconds = cluster.longest_remaining(STUDY);
        Self { burst, policy, previous: None, partition: None, longest_seconds }
    }

    pub(super) fn decide(&mut self, cluster: &Cluster, cloud: &Cloud<'_>) -> PolicyDecision {
        match &self.policy.rule {
            PolicyKind::Fixed(workers) => simple(workers.clone()),
            PolicyKind::QueueLength(a_slot) => simple(self.by_queue(*a_slot, cluster)),
            PolicyKind::Deadline | PolicyKind::Budget | PolicyKind::Trtma => self.by_step(cluster, cloud),
        }
    }

    /// Returns enough workers for the waiting buckets.
    fn by_queue(&self, a_slot: f64, cluster: &Cluster) -> Vec<u32> {
        let waiting = cluster.waiting_buckets(STUDY) as f64;
        let base = f64::from(self.burst.base.nodes * self.burst.base.cores);
        let mut slots = waiting / a_slot - base;
        let mut order: Vec<usize> = (0..self.burst.sites.len()).collect();
        let price = |site: &usize| {
            let pool = &self.burst.sites[*site].pool;
            pool.price_per_hour / pool.slots
        };
        order.sort_by(|a, b| price(a).total_cmp(&price(b)));
        let mut wanted = vec![0; order.len()];
        for site in order {
            let of = &self.burst.sites[site];
            let workers = (slots / f64::from(of.cores)).ceil().max(0.0) as u32;
            wanted[site] = workers.clamp(of.pool.min, of.pool.max);
            // The rest goes to the next cheapest pool. If it is negative, later pools get their minimum only.
            slots -= f64::from(wanted[site] * of.cores);
        }
        wanted
    }

    fn by_step(&mut self, cluster: &Cluster, cloud: &Cloud<'_>) -> PolicyDecision {
        let now = cluster.now_us() as f64 / 1e6;
        let base = self.burst.base;
        let pool = |(site, of): (usize, &super::CloudPool)| {
            let (running, starting, starting_seconds) = cloud.running_and_starting(site, cluster);
            WorkerPool { running, starting, starting_seconds, ..of.pool.clone() }
        };
        let mut pools: Vec<WorkerPool> = self.burst.sites.iter().enumerate().map(pool).collect();
        pools.push(WorkerPool {
            name: "base".to_owned(),
            slots: f64::from(base.cores) * base.busy_speed(),
            price_per_hour: 0.0,
            billing_seconds: 0.0,
            startup_seconds: 0.0,
            min: base.nodes,
            max: base.nodes,
            running: base.nodes,
            starting: 0,
            starting_seconds: 0.0,
            ending_seconds: 0.0,
        });
        let spent = cloud.cost(cluster.now_us()) + cloud.egress_cost(cluster);
        let need = WorkDemand {
            cuts: self.cuts(cluster),
            goals: self.goal(now).into_iter().collect(),
            budget: self.policy.budget.map(|budget| (budget - spent).max(0.0)),
        };
        let answer = decide(&need, &pools, self.previous.as_ref(), now);
        self.previous = Some(answer.previous);
        PolicyDecision {
            desired: answer.desired[..self.burst.sites.len()].to_vec(),
            reason: Some(answer.reason),
            forecast: Some(answer.forecast),
            fastest: answer.fastest,
            without_budget: answer.without_budget,
        }
    }

    fn goal(&self, now: f64) -> Option<DeadlineGoal> {
        let deadline = self.policy.deadline_seconds.filter(|_| self.policy.rule != PolicyKind::Budget)?;
        Some(DeadlineGoal { share: 1.0, deadline_seconds: deadline - now })
    }

    /// Returns the remaining work for ascending numbers of slots, if the policy knows the reuse lost with more slots.
    fn cuts(&mut self, cluster: &Cluster) -> Vec<WorkByPartition> {
        let left = cluster.remaining_work(STUDY);
        let longest_seconds = self.longest_seconds.min(left);
        let as_it_is = WorkByPartition { slots: u32::MAX, work_seconds: left, longest_seconds };
        if self.policy.rule != PolicyKind::Trtma || left <= 0.0 {
            return vec![as_it_is];
        }
        let current = self.partition.take().filter(|partition| !partition.is_outdated(left));
        let plan = || {
            let planned = cluster.cuts(STUDY, &self.slots());
            PartitionForecast::new(planned.iter().map(|cut| (cut.slots, cut.work_seconds)), left, left)
        };
        let partition = current.unwrap_or_else(plan);
        let cuts = partition.cuts(left, longest_seconds);
        self.partition = Some(partition);
        cuts
    }

    /// Returns the numbers of slots to plan for.
    fn slots(&self) -> Vec<u32> {
        let more = self.burst.sites.iter().map(|site| site.pool.max * site.cores).sum();
        PartitionForecast::slots(self.burst.base.nodes * self.burst.base.cores, more)
    }
}

fn simple(desired: Vec<u32>) -> PolicyDecision {
    PolicyDecision { desired, reason: None, forecast: None, fastest: None, without_budget: None }
}
