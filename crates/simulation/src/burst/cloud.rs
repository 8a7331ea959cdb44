//! Workers of the pools: requests, start-up, interruption, drain, and billing.

use super::{Burst, CloudPool};
use crate::cluster::{Aborted, Cluster};
use crate::random::Random;
use pleach_dispatch::scaling::{WorkerLoad, removal_order};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Expected remaining start-up of an overdue worker, as a part of the usual start-up time.
const OVERDUE: f64 = 0.1;

/// A requested worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker {
    pub(super) site: usize,
    pub(super) requested_us: u64,
    /// Time of its arrival.
    pub(super) ready_us: u64,
    /// Node in the cluster, after its arrival.
    pub(super) node: Option<usize>,
    /// Time of its departure, or of the cancellation before its arrival.
    pub(super) ended_us: Option<u64>,
    pub(super) was_taken: bool,
    is_drained: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    There(usize),
    Taken(usize),
}

/// All workers of the pools, and their pending events.
#[derive(Debug)]
pub(super) struct Cloud<'a> {
    sites: &'a [CloudPool],
    seed: u64,
    pub(super) workers: Vec<Worker>,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    pub(super) interruptions: u64,
    /// Times of changes, with the number of present workers by site.
    pub(super) counts: Vec<(u64, Vec<u32>)>,
}

impl<'a> Cloud<'a> {
    pub(super) fn new(burst: &'a Burst) -> Self {
        Self {
            sites: &burst.sites,
            seed: burst.seed,
            workers: Vec::new(),
            due: BinaryHeap::new(),
            interruptions: 0,
            counts: vec![(0, vec![0; burst.sites.len()])],
        }
    }

    /// Returns the running and the starting workers of a site, and the mean of the seconds until the starting ones
    /// arrive. The prediction uses the usual start-up time, since the requester does not know the actual one.
    pub(super) fn running_and_starting(&self, site: usize, cluster: &Cluster) -> (u32, u32, f64) {
        let (mut running, mut starting, mut left) = (0, 0, 0.0);
        let startup = self.sites[site].pool.startup_seconds;
        for worker in self.workers.iter().filter(|worker| worker.site == site && worker.ended_us.is_none()) {
            match worker.node {
                Some(node) => running += u32::from(!worker.is_drained && !cluster.is_leaving(node)),
                None => {
                    let waited = (cluster.now_us() - worker.requested_us) as f64 / 1e6;
                    starting += 1;
                    left += (startup - waited).max(OVERDUE * startup);
                }
            }
        }
        (running, starting, left / f64::from(starting.max(1)))
    }

    /// Returns the cost of egress from the pools so far.
    pub(super) fn egress_cost(&self, cluster: &Cluster) -> f64 {
        let of = |(site, of): (usize, &CloudPool)| {
            cluster.egress_bytes(1 + site as u32) as f64 / 1e9 * of.egress_price_per_gb
        };
        self.sites.iter().enumerate().map(of).sum()
    }

    /// Returns the cost of all workers of the pools so far.
    pub(super) fn cost(&self, now_us: u64) -> f64 {
        let of = |worker: &Worker| {
            let until_us = worker.ended_us.unwrap_or(now_us).min(now_us);
            self.sites[worker.site].pool.cost(until_us.saturating_sub(worker.requested_us) as f64 / 1e6)
        };
        self.workers.iter().map(of).sum()
    }

    /// Requests more workers, or removes surplus ones: first those that have not arrived, the latest first, then
    /// present ones in the removal order.
    pub(super) fn follow(&mut self, wanted: &[u32], cluster: &mut Cluster) -> Result<(), Aborted> {
        for site in 0..self.sites.len() {
            let (running, starting, _) = self.running_and_starting(site, cluster);
            let (wanted, there) = (wanted[site], running + starting);
            (there..wanted).for_each(|_| self.ask(site, cluster.now_us()));
            let surplus = there.saturating_sub(wanted);
            self.cancel(site, surplus.min(starting), cluster.now_us());
            self.drain(site, surplus.saturating_sub(starting), cluster)?;
        }
        Ok(())
    }

    fn ask(&mut self, site: usize, now_us: u64) {
        let number = self.workers.len();
        let of = &self.sites[site];
        let factor = Random::of(self.seed, &[3, number as u64]).factor(of.startup_variation);
        let ready_us = now_us + (of.pool.startup_seconds * factor * 1e6) as u64;
        let (node, ended_us) = (None, None);
        let worker = Worker {
            site,
            requested_us: now_us,
            ready_us,
            node,
            ended_us,
            was_taken: false,
            is_drained: false,
        };
        self.workers.push(worker);
        self.due.push(Reverse((ready_us, Due::There(number))));
    }

    fn cancel(&mut self, site: usize, count: u32, now_us: u64) {
        let waits =
            |worker: &&mut Worker| worker.site == site && worker.node.is_none() && worker.ended_us.is_none();
        // The latest requests are canceled first: earlier ones are closer to their arrival.
        let workers = self.workers.iter_mut().rev().filter(waits).take(count as usize);
        workers.for_each(|worker| worker.ended_us = Some(now_us));
    }

    fn drain(&mut self, site: usize, count: u32, cluster: &mut Cluster) -> Result<(), Aborted> {
        if count == 0 {
            return Ok(());
        }
        let there = self
            .workers
            .iter()
            .enumerate()
            .filter(|(_, worker)| worker.site == site && worker.ended_us.is_none() && !worker.is_drained);
        let load = |(number, worker): (usize, &Worker)| {
            let node = worker.node.filter(|node| cluster.is_known(*node) && !cluster.is_leaving(*node))?;
            let (leases, bytes) = cluster.load(node);
            Some(WorkerLoad { name: number, leases, bytes, came: worker.ready_us })
        };
        let order = removal_order(there.filter_map(load).collect());
        for WorkerLoad { name, .. } in order.into_iter().take(count as usize) {
            self.workers[name].is_drained = true;
            if let Some(node) = self.workers[name].node {
                cluster.drain(node)?;
            }
        }
        Ok(())
    }

    /// Runs until `at_us`, or until the study is over.
    pub(super) fn run_until(&mut self, at_us: u64, cluster: &mut Cluster) -> Result<(), Aborted> {
        while !cluster.is_complete() {
            let next = self.due.peek().map(|Reverse(next)| *next).filter(|(due_us, _)| *due_us <= at_us);
            let Some((due_us, due)) = next else {
                cluster.run_until(at_us)?;
                break;
            };
            // The cluster catches up before the cloud acts, so both have one clock.
            cluster.run_until(due_us)?;
            if cluster.is_complete() {
                break;
            }
            self.due.pop();
            match due {
                Due::There(number) => self.there(number, cluster),
                Due::Taken(number) => self.taken(number, cluster)?,
            }
        }
        self.look(cluster);
        Ok(())
    }

    fn there(&mut self, number: usize, cluster: &mut Cluster) {
        let worker = &mut self.workers[number];
        if worker.ended_us.is_some() {
            return;
        }
        let site = &self.sites[worker.site];
        worker.node = Some(cluster.join(site.spec(), site.link(worker.site)));
        if site.interruptions_per_hour > 0.0 {
            let mean_us = 3600.0 / site.interruptions_per_hour * 1e6;
            let lives_us = Random::of(self.seed, &[4, number as u64]).exponential(mean_us) as u64;
            // Saturates: a life shorter than the notice begins with it.
            let told_us = lives_us.saturating_sub((site.notice_seconds * 1e6) as u64);
            self.due.push(Reverse((worker.ready_us + told_us, Due::Taken(number))));
        }
        self.look(cluster);
    }

    fn taken(&mut self, number: usize, cluster: &mut Cluster) -> Result<(), Aborted> {
        self.look(cluster);
        let worker = &mut self.workers[number];
        let Some(node) = worker.node.filter(|_| worker.ended_us.is_none()) else { return Ok(()) };
        worker.was_taken = true;
        self.interruptions += 1;
        cluster.interrupt(node, self.sites[worker.site].notice_seconds)?;
        self.look(cluster);
        Ok(())
    }

    /// Updates the workers that have left and the counts by site.
    fn look(&mut self, cluster: &Cluster) {
        let mut counts = vec![0; self.sites.len()];
        for worker in self.workers.iter_mut().filter(|worker| worker.ended_us.is_none()) {
            let Some(node) = worker.node else { continue };
            worker.ended_us = cluster.ended_us(node);
            counts[worker.site] += u32::from(worker.ended_us.is_none());
        }
        if self.counts.last().is_none_or(|(_, last)| *last != counts) {
            self.counts.push((cluster.now_us(), counts));
        }
    }
}
