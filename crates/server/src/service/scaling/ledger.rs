//! Costs of studies: the paid time and the egress of workers, shared between the studies that run at the same time.
//!
//! - A worker is paid from its request to its end, in whole billing periods. Workers that an autoscaler starts are paid from
//!   the time at which they connect.
//! - A started period belongs in equal parts to the studies that run then. Time after the last study belongs to it if the
//!   worker ends before the next study starts, and to no study otherwise.
//! - Accounts of ended studies become final when no worker can add to them.
//! - The time from the end of all work to the end of a worker is measured for each pool, because predictions need it.
//!
//! A pure state machine, which is stored as a whole. Workers of a driver keep the time of their request, so that a restarted
//! manager charges the time in between.

use pleach_api::schema::{PoolCost, StudyCost};
use pleach_dispatch::scaling::billed_seconds;
use pleach_provision::{ProvisionJournal, ProvisionRecord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const SECONDS_PER_HOUR: f64 = 3600.0;

/// Half of each measured end of a worker counts: ends vary little, and drivers and idle times change rarely.
const ENDING_WEIGHT: f64 = 0.5;

/// Bytes of the unit of egress prices, as clouds bill it.
const BYTES_PER_GB: f64 = 1e9;

/// Prices of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PoolPrices {
    pub(crate) per_hour: f64,
    pub(crate) billing_seconds: f64,
    pub(crate) egress_per_gb: f64,
    /// Workers that stay without a study.
    pub(crate) min: u32,
    /// Time from the end of all work to the end of a worker, until it has been measured.
    pub(crate) ending_seconds: f64,
}

/// Connected worker of a pool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PoolWorker {
    pub(crate) name: String,
    pub(crate) pool: String,
    pub(crate) is_draining: bool,
}

/// Worker whose time is paid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaidWorker {
    pool: String,
    /// Time of its request, in seconds since 1970.
    since: f64,
    /// Whether the manager has started it. Only records of the provisioner end it then.
    is_owned: bool,
    /// Whether a driver has returned a handle, so that it is paid.
    exists: bool,
    has_joined: bool,
    is_leaving: bool,
    billed_seconds: f64,
    /// Time up to which its start is counted.
    started_until: f64,
    /// Billed seconds since the last study ended, until a study gets them.
    tail_seconds: f64,
    /// Bytes that the present connection has received from it.
    sent_bytes: u64,
}

/// Account of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    /// Time at which it started, in seconds since 1970.
    begun: f64,
    is_over: bool,
    cost: StudyCost,
    /// Cost that an earlier version has recorded, without its parts.
    earlier_cost: f64,
}

/// Accounts of all studies that have no final cost, and the workers that are paid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostLedger {
    workers: BTreeMap<String, PaidWorker>,
    accounts: BTreeMap<u32, Account>,
    /// Studies that run, or those that ran last.
    payers: BTreeSet<u32>,
    /// Whether a study runs.
    is_busy: bool,
    /// Time of the last change, in seconds since 1970.
    at: f64,
    /// Time at which the last work of all studies was done. `None` while work remains.
    #[serde(default)]
    work_done: Option<f64>,
    /// Measured seconds from the end of all work to the end of a worker, by pool.
    #[serde(default)]
    ending_seconds: BTreeMap<String, f64>,
    /// Paid cost by pool since the start of the manager, workers and egress.
    #[serde(skip)]
    totals: BTreeMap<String, [f64; 2]>,
    #[serde(skip)]
    prices: BTreeMap<String, PoolPrices>,
}

/// Stored ledger, or the costs by study that earlier versions have stored.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub struct StoredLedger(pub(super) CostLedger);

impl TryFrom<serde_json::Value> for StoredLedger {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let ledger: CostLedger = if value.get("accounts").is_some() {
            serde_json::from_value(value).map_err(|error| error.to_string())?
        } else {
            let costs: BTreeMap<u32, f64> =
                serde_json::from_value(value).map_err(|error| error.to_string())?;
            let account = |(id, cost)| (id, Account::new(0.0, cost));
            CostLedger { accounts: costs.into_iter().map(account).collect(), ..CostLedger::default() }
        };
        if !ledger.is_plausible() {
            return Err("a negative time or cost".to_owned());
        }
        Ok(Self(ledger))
    }
}

impl Account {
    fn new(begun: f64, earlier_cost: f64) -> Self {
        let cost = StudyCost { cost: earlier_cost, ..StudyCost::default() };
        Self { begun, is_over: false, cost, earlier_cost }
    }
}

impl CostLedger {
    /// Continues a stored ledger. Workers that no driver has started begin with their next connection, because nothing is known
    /// of the time in between.
    pub(super) fn resume(mut self, prices: BTreeMap<String, PoolPrices>) -> Self {
        self.workers.retain(|_, worker| worker.is_owned);
        self.workers.values_mut().for_each(|worker| worker.sent_bytes = 0);
        Self { prices, ..self }
    }

    /// Returns whether all stored numbers are possible.
    fn is_plausible(&self) -> bool {
        let is_valid = |number: f64| number.is_finite() && number >= 0.0;
        let costs = self.accounts.values().map(|account| account.cost.cost);
        let workers = self.workers.values().flat_map(|worker| [worker.since, worker.billed_seconds]);
        let times = self.ending_seconds.values().copied().chain(self.work_done).chain([self.at]);
        costs.chain(workers).chain(times).all(is_valid)
    }

    /// Adds the workers of the provisioner's journal, and ends those that it lacks.
    pub(super) fn adopt(&mut self, journal: &ProvisionJournal, now: f64) {
        let gone = |(name, worker): (&String, &PaidWorker)| {
            (worker.is_owned && !journal.workers().contains_key(name)).then(|| name.clone())
        };
        let gone: Vec<String> = self.workers.iter().filter_map(gone).collect();
        // The record of their end was the last one before the manager ended.
        gone.iter().for_each(|name| self.end(name, self.at));
        for (name, worker) in journal.workers() {
            if !self.workers.contains_key(name) {
                let since = worker.requested_ms.map_or(now, |ms| ms as f64 / 1e3);
                self.request(name, &worker.pool, since);
                if worker.handle.is_some() {
                    self.start(name);
                }
            }
        }
    }

    /// Takes a record of the provisioner with its time in seconds since 1970.
    pub(super) fn record(&mut self, record: &ProvisionRecord, at: f64) {
        match record {
            ProvisionRecord::Intended { name, pool } => self.request(name, pool, at),
            ProvisionRecord::Started { name, .. } => self.start(name),
            ProvisionRecord::Ended { name } => self.end(name, at),
        }
    }

    /// Marks a worker whose end is planned.
    pub(super) fn leave(&mut self, name: &str) {
        if let Some(worker) = self.workers.get_mut(name) {
            worker.is_leaving = true;
        }
    }

    fn request(&mut self, name: &str, pool: &str, at: f64) {
        let worker = PaidWorker {
            pool: pool.to_owned(),
            since: at,
            is_owned: true,
            exists: false,
            has_joined: false,
            is_leaving: false,
            billed_seconds: 0.0,
            started_until: at,
            tail_seconds: 0.0,
            sent_bytes: 0,
        };
        self.workers.insert(name.to_owned(), worker);
    }

    fn start(&mut self, name: &str) {
        let Some(worker) = self.workers.get_mut(name).filter(|worker| !worker.exists) else { return };
        worker.exists = true;
        self.each_running(|cost| {
            cost.workers_started += 1;
            cost.workers_replaced += u32::from(cost.workers_replaced < cost.workers_lost);
        });
    }

    fn end(&mut self, name: &str, at: f64) {
        self.charge(name, at);
        self.measure_end(name, at);
        let Some(worker) = self.workers.remove(name) else { return };
        if !self.is_busy {
            self.pay(&worker.pool, worker.tail_seconds);
        }
        if worker.exists && !worker.is_leaving {
            self.each_running(|cost| cost.workers_lost += 1);
        }
    }

    /// Notes whether work remains.
    pub(super) fn note_work(&mut self, now: f64, remains: bool) {
        self.work_done = if remains { None } else { self.work_done.or(Some(now)) };
    }

    /// Measures the end of a worker after the work. A worker of the minimum ends for another reason.
    fn measure_end(&mut self, name: &str, at: f64) {
        let Some(worker) = self.workers.get(name).filter(|worker| worker.has_joined) else { return };
        let (Some(done), Some(prices)) = (self.work_done, self.prices.get(&worker.pool)) else { return };
        let present = self.workers.values().filter(|other| other.pool == worker.pool).count();
        if present > prices.min as usize {
            let taken = (at - done.max(worker.since)).max(0.0);
            let mean = self.ending_seconds.entry(worker.pool.clone()).or_insert(taken);
            *mean += ENDING_WEIGHT * (taken - *mean);
        }
    }

    /// Returns the seconds from the end of all work to the end of a worker of a pool.
    pub(super) fn ending_seconds(&self, pool: &str) -> f64 {
        let expected = || self.prices.get(pool).map_or(0.0, |prices| prices.ending_seconds);
        self.ending_seconds.get(pool).copied().unwrap_or_else(expected)
    }

    fn each_running(&mut self, mut change: impl FnMut(&mut StudyCost)) {
        if self.is_busy {
            let running = self.accounts.iter_mut().filter(|(id, _)| self.payers.contains(id));
            running.for_each(|(_, account)| change(&mut account.cost));
        }
    }

    /// Charges all workers until now, and then takes the running studies and the connected workers.
    pub(super) fn advance(&mut self, now: f64, running: &BTreeSet<u32>, connected: &[PoolWorker]) {
        // A clock that is set back must not reduce costs.
        self.at = self.at.max(now);
        let names: Vec<String> = self.workers.keys().cloned().collect();
        names.iter().for_each(|name| self.charge(name, now));
        self.run(now, running);
        self.connect(now, connected);
        let has_workers = self.workers.values().any(|worker| worker.exists);
        for (id, account) in &mut self.accounts {
            if !account.is_over {
                account.cost.seconds = (self.at - account.begun).max(0.0);
            }
            let may_pay = !self.is_busy && has_workers && self.payers.contains(id);
            account.cost.is_final = account.is_over && !may_pay;
        }
    }

    fn run(&mut self, now: f64, running: &BTreeSet<u32>) {
        for (id, account) in &mut self.accounts {
            if !running.contains(id) && !account.is_over {
                account.is_over = true;
                account.cost.seconds = (now - account.begun).max(0.0);
            }
        }
        if !running.is_empty() {
            if !self.is_busy {
                // Workers that waited for the next study waited for no study before.
                self.workers.values_mut().for_each(|worker| worker.tail_seconds = 0.0);
            }
            self.payers.clone_from(running);
        }
        self.is_busy = !running.is_empty();
        for id in running {
            // A failed study that runs again continues its account.
            self.accounts.entry(*id).or_insert_with(|| Account::new(now, 0.0)).is_over = false;
        }
    }

    fn connect(&mut self, now: f64, connected: &[PoolWorker]) {
        for found in connected {
            if !self.workers.contains_key(&found.name) {
                self.request(&found.name, &found.pool, now);
                self.start(&found.name);
                if let Some(worker) = self.workers.get_mut(&found.name) {
                    worker.is_owned = false;
                }
            }
            if let Some(worker) = self.workers.get_mut(&found.name) {
                worker.has_joined = true;
                worker.is_leaving |= found.is_draining;
            }
        }
        let is_connected = |name: &str| connected.iter().any(|found| found.name == name);
        let gone = |(name, worker): (&String, &PaidWorker)| {
            (!worker.is_owned && !is_connected(name)).then(|| name.clone())
        };
        let gone: Vec<String> = self.workers.iter().filter_map(gone).collect();
        gone.iter().for_each(|name| self.end(name, now));
    }

    /// Counts the bytes that the connections of workers have received from them.
    pub(super) fn count_egress<'a>(&mut self, received: impl Iterator<Item = (&'a str, u64)>) {
        for (name, bytes) in received {
            let Some(worker) = self.workers.get_mut(name) else { continue };
            // A new connection counts from 0.
            let new = bytes.checked_sub(worker.sent_bytes).unwrap_or(bytes);
            worker.sent_bytes = bytes;
            let pool = worker.pool.clone();
            self.send(&pool, new);
        }
    }

    /// Sets the prediction of a study, unless it has one. `seconds` and `cost` are from now on.
    pub(super) fn predict(&mut self, study: u32, seconds: f64, cost: f64) {
        let Some(account) = self.accounts.get_mut(&study) else { return };
        if account.cost.predicted_seconds.is_none() && seconds.is_finite() && cost.is_finite() {
            account.cost.predicted_seconds = Some((self.at - account.begun).max(0.0) + seconds);
            account.cost.predicted_cost = Some(account.cost.cost + cost);
        }
    }

    /// Charges a worker until a time.
    fn charge(&mut self, name: &str, now: f64) {
        let is_busy = self.is_busy;
        let Some(worker) = self.workers.get_mut(name).filter(|worker| worker.exists) else { return };
        let Some(prices) = self.prices.get(&worker.pool) else { return };
        let due = billed_seconds(now - worker.since, prices.billing_seconds);
        let new = (due - worker.billed_seconds).max(0.0);
        worker.billed_seconds += new;
        let starting = if worker.has_joined { 0.0 } else { (now - worker.started_until).max(0.0) };
        worker.started_until += starting;
        let pool = worker.pool.clone();
        if is_busy {
            self.pay(&pool, new);
        } else {
            worker.tail_seconds += new;
        }
        self.each_part(&pool, |part, payers| part.starting_seconds += starting / payers);
    }

    /// Shares paid seconds of a pool.
    fn pay(&mut self, pool: &str, seconds: f64) {
        let price = self.prices.get(pool).map_or(0.0, |prices| prices.per_hour / SECONDS_PER_HOUR);
        if seconds > 0.0 {
            self.totals.entry(pool.to_owned()).or_default()[0] += seconds * price;
            self.each_part(pool, |part, payers| {
                part.paid_seconds += seconds / payers;
                part.worker_cost += seconds * price / payers;
            });
        }
    }

    /// Shares bytes that workers of a pool have sent.
    fn send(&mut self, pool: &str, bytes: u64) {
        let price = self.prices.get(pool).map_or(0.0, |prices| prices.egress_per_gb / BYTES_PER_GB);
        if bytes > 0 {
            self.totals.entry(pool.to_owned()).or_default()[1] += bytes as f64 * price;
            self.each_part(pool, |part, payers| {
                part.sent_bytes += (bytes as f64 / payers).round() as u64;
                part.egress_cost += bytes as f64 * price / payers;
            });
        }
    }

    /// Changes the part of a pool in the accounts of all payers, given their number.
    fn each_part(&mut self, pool: &str, mut change: impl FnMut(&mut PoolCost, f64)) {
        let payers = self.payers.len() as f64;
        for (_, account) in self.accounts.iter_mut().filter(|(id, _)| self.payers.contains(id)) {
            let pools = &mut account.cost.pools;
            let place = pools.binary_search_by(|part| part.name.as_str().cmp(pool)).unwrap_or_else(|place| {
                pools.insert(place, PoolCost { name: pool.to_owned(), ..PoolCost::default() });
                place
            });
            change(&mut pools[place], payers);
            let parts = pools.iter().map(|part| part.worker_cost + part.egress_cost);
            account.cost.cost = account.earlier_cost + parts.sum::<f64>();
        }
    }

    /// Returns the cost of a study so far. `None` without an account.
    pub(super) fn cost(&self, study: u32) -> Option<&StudyCost> {
        self.accounts.get(&study).map(|account| &account.cost)
    }

    /// Returns the cost so far of all studies that run.
    pub(super) fn open_cost(&self) -> f64 {
        let open = self.accounts.values().filter(|account| !account.is_over);
        // Folded from 0: the sum of no costs is -0.
        open.fold(0.0, |sum, account| sum + account.cost.cost)
    }

    /// Returns the accounts of ended studies.
    pub(super) fn ended(&self) -> Vec<(u32, StudyCost)> {
        let ended = self.accounts.iter().filter(|(_, account)| account.is_over);
        ended.map(|(id, account)| (*id, account.cost.clone())).collect()
    }

    /// Closes the account of a study.
    pub(super) fn close(&mut self, study: u32) {
        self.accounts.remove(&study);
    }

    /// Returns the paid cost by pool since the start of the manager: of workers, and of egress.
    pub(super) fn totals(&self) -> &BTreeMap<String, [f64; 2]> {
        &self.totals
    }
}

#[cfg(test)]
mod tests;
