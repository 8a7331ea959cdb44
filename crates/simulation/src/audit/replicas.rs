//! Replicas in the audit's model: pending requests, the workers that may be asked, and a check that every waiting
//! worker is served.

use super::{Audit, Violation, require};
use pleach_dispatch::manager::Effect;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;

/// The asking worker, its instance and its lease.
pub(super) type Asker = (WorkerId, PlanId, LeaseId, InstanceId);

#[derive(Clone, Debug, Default)]
pub(super) struct PendingReplica {
    waiting: BTreeSet<RegionKey>,
    to: Option<WorkerId>,
    /// Regions that `to` has been asked to fetch.
    notified: BTreeSet<RegionKey>,
    refused: BTreeSet<WorkerId>,
}

impl Audit {
    pub(super) fn replication_requested(&mut self, asker: Asker, regions: &[(RegionKey, u64)]) {
        let (worker, study, _, instance) = asker;
        if !self.workers.contains_key(&worker) {
            return;
        }
        let is_single = |key: &RegionKey| {
            self.studies.get(&study).is_some_and(|model| {
                let others = model.holders.get(key).into_iter().flatten().any(|holder| *holder != worker);
                model.is_used(*key) && model.producers.get(key) == Some(&instance) && !others
            })
        };
        let waiting = regions.iter().map(|(key, _)| *key).filter(is_single).collect();
        self.asks.insert(asker, PendingReplica { waiting, ..PendingReplica::default() });
    }

    /// Records that a present worker has fetched a region, for any reason.
    pub(super) fn replica_came(&mut self, worker: WorkerId, study: PlanId, key: RegionKey) {
        for (_, ask) in self.asks.iter_mut().filter(|(asker, ask)| asker.1 == study && ask.to == Some(worker))
        {
            let model = self.studies.get_mut(&study).filter(|_| ask.waiting.remove(&key));
            if let Some(model) = model.filter(|model| model.is_used(key)) {
                model.holders.entry(key).or_default().insert(worker);
            }
        }
    }

    pub(super) fn replica_failed(&mut self, worker: WorkerId, study: PlanId, key: RegionKey) {
        let asked = self
            .copying
            .iter()
            .filter(|((_, of, region), to)| *of == study && *region == key && **to == worker);
        let failed: Vec<_> = asked.map(|(asked, _)| *asked).collect();
        for asked in failed {
            self.copying.remove(&asked);
            self.could_not.insert((asked.0, study, key, worker));
        }
        for (_, ask) in self.asks.iter_mut().filter(|(asker, _)| asker.1 == study) {
            if ask.to == Some(worker) && ask.waiting.contains(&key) {
                ask.give_up(worker);
            }
        }
    }

    pub(super) fn replicas_without(&mut self, worker: WorkerId) {
        self.asks.retain(|asker, _| asker.0 != worker);
        self.asks.values_mut().filter(|ask| ask.to == Some(worker)).for_each(|ask| ask.give_up(worker));
    }

    /// Returns the workers that may be asked: those on other hosts, if there are any.
    fn candidates(&self, from: WorkerId, refused: &BTreeSet<WorkerId>) -> BTreeSet<WorkerId> {
        let may = |worker: &WorkerId| *worker != from && !refused.contains(worker);
        let there = self.workers.iter().filter(|(worker, model)| may(worker) && !model.draining);
        let host = self.workers.get(&from).and_then(|model| model.facts.host);
        let (near, far): (BTreeSet<_>, BTreeSet<_>) = there
            .map(|(worker, model)| (model.facts.host, *worker))
            .partition(|(of, _)| host.is_some() && *of == host);
        // A replica on the same host would be lost with it.
        let best = if far.is_empty() { near } else { far };
        best.into_iter().map(|(_, worker)| worker).collect()
    }

    pub(super) fn follow_replica(
        &mut self,
        (worker, study, key, from): (WorkerId, PlanId, RegionKey, WorkerId),
        effect: &Effect,
    ) -> Result<(), Violation> {
        let mut found = false;
        let asks = self.asks.iter().filter(|(asker, ask)| {
            asker.0 == from && asker.1 == study && ask.waiting.contains(&key) && !ask.notified.contains(&key)
        });
        let asks: Vec<(Asker, BTreeSet<WorkerId>)> =
            asks.map(|(asker, ask)| (*asker, self.candidates(from, &ask.refused))).collect();
        for (asker, candidates) in asks {
            let Some(ask) = self.asks.get_mut(&asker).filter(|ask| ask.to.is_none_or(|to| to == worker))
            else {
                continue;
            };
            require(candidates.contains(&worker), "wrong worker for a replica", effect)?;
            ask.to = Some(worker);
            found |= ask.notified.insert(key);
            if found {
                break;
            }
        }
        require(found, "unrequested replica", effect)
    }

    pub(super) fn is_replicated(&mut self, asker: Asker, effect: &Effect) -> Result<(), Violation> {
        let Some(ask) = self.asks.remove(&asker) else {
            return require(false, "unrequested replication reported", effect);
        };
        let nobody = self.candidates(asker.0, &ask.refused).is_empty();
        let is_over = !self.studies.contains_key(&asker.1);
        require(
            ask.waiting.is_empty() || nobody || is_over,
            "replication reported before it is complete",
            effect,
        )
    }

    /// Checks that each pending request has a worker that fetches its regions.
    pub(super) fn no_stuck_waiter(&self) -> Result<(), Violation> {
        let is_void = |ask: &&PendingReplica| {
            let there = ask.to.is_some_and(|to| self.workers.contains_key(&to));
            !there || ask.waiting.is_empty() || !ask.waiting.is_subset(&ask.notified)
        };
        let void = self.asks.values().find(is_void);
        require(void.is_none(), "replica request without a worker that serves it", &void)
    }
}

impl PendingReplica {
    fn give_up(&mut self, worker: WorkerId) {
        self.refused.insert(worker);
        (self.to, self.notified) = (None, BTreeSet::new());
    }
}
