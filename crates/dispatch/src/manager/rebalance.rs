//! Work for idle workers: the manager steals unstarted instances from busy workers, or grants the lease of a straggler
//! twice.

use super::{Effect, Manager};
use crate::message::GrantReason;
use crate::plan::ReuseScope;
use crate::study::{RebalanceCandidates, StragglerPolicy, Study};
use crate::{PlanId, WorkerId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// A lease is a straggler after four times the time of an instance of its stage without a report: estimates are off by a
/// factor of 2 where tiles differ, so a smaller factor would waste much speculative execution. At least 3 s, since moving
/// an instance takes as long.
pub(super) const BEHIND: StragglerPolicy = StragglerPolicy { factor: 4, min_time: Duration::from_secs(3) };

/// Maximum of idle workers served at one tick: about as many as find work before the asked workers have answered.
const MAX_AT_ONCE: usize = 32;

/// Maximum of steal requests at one tick: 2,560 messages a second. Workers answer most of them later, if ever.
const MAX_ASKS: usize = 256;

/// Steal requests for one idle worker at one tick: not every asked worker has an instance to give.
const ASKS_OF_IDLE: usize = 4;

/// Candidates found in each study at one tick. Each study is searched once.
type Found = BTreeMap<PlanId, RebalanceCandidates>;

/// Leases whose workers were asked for instances.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    leases: usize,
    /// One of them has several open instances.
    has_more: bool,
}

impl Manager {
    /// Advances the time without a decision. The shell calls it before each message, so that leases are measured more
    /// precisely than by ticks. `now` is on the shell's clock.
    pub fn handle_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.studies.values_mut().for_each(|study| study.handle_time(self.now));
    }

    /// Handles the passage of time. `now` is on the shell's clock.
    pub fn handle_tick(&mut self, now: Duration) {
        self.handle_time(now);
        if self.stopping || self.holding {
            return;
        }
        self.reserve_isolation_workers();
        if self.has_more_grants() {
            return;
        }
        let has_ready = self.studies.values().any(Study::has_ready);
        // A waiting worker may be unable to run what is ready. A busy one may get a bucket of another's tile once it is idle.
        let gets_ready = |worker: &WorkerId| has_ready && self.choose_from(*worker, None, true).is_some();
        let waiting =
            self.queue.any().filter(|worker| !self.reserved.contains(worker) && !gets_ready(worker));
        let idle: Vec<WorkerId> = waiting.take(MAX_AT_ONCE).collect();
        let mut found = BTreeMap::new();
        let mut asks = MAX_ASKS;
        // Abilities of workers that found nothing. Others with the same ones would search in vain.
        let mut in_vain: Vec<Vec<Option<Vec<bool>>>> = Vec::new();
        for worker in idle {
            let abilities = self.abilities(worker);
            if in_vain.contains(&abilities) {
                continue;
            }
            let Asked { leases, has_more } =
                self.ask_for(worker, Duration::ZERO, ASKS_OF_IDLE.min(asks), &mut found);
            asks -= leases;
            // Stealing first: it executes nothing twice. But a lease of one instance may never give it.
            if !has_more && !self.try_twice(worker, &mut found) && leases == 0 {
                in_vain.push(abilities);
            }
        }
        // The next query gets a ready bucket, if it has a longer path.
        if has_ready {
            return;
        }
        let refused = std::mem::take(&mut self.refused);
        // Any worker may answer the next queries. Shorter paths first: a lease that cannot give these cannot give the others.
        let mut refused: Vec<(WorkerId, Duration)> = refused.into_iter().collect();
        refused.sort_by_key(|(worker, path)| (*path, *worker));
        for (worker, path) in refused {
            asks -= self.ask_for(worker, path, asks, &mut found).leases;
        }
    }

    /// Returns for each study the stages that a worker can run now.
    fn abilities(&self, worker: WorkerId) -> Vec<Option<Vec<bool>>> {
        self.studies.keys().map(|id| self.can_get(worker, *id).map(Cow::into_owned)).collect()
    }

    /// Asks busy workers on behalf of one.
    fn ask_for(&mut self, worker: WorkerId, longer_than: Duration, asks: usize, found: &mut Found) -> Asked {
        // Without reuse between workers, an instance that another worker continues begins again.
        let is_shared = |study: &Study| study.plan().sharing != ReuseScope::Tree;
        let most = if self.studies.values().any(is_shared) { asks } else { asks.min(1) };
        let mut asked = Asked::default();
        while asked.leases < most
            && let Some(instances) = self.share(worker, longer_than, found)
        {
            asked.leases += 1;
            asked.has_more |= instances > 1;
        }
        asked
    }

    /// Asks a busy worker to return a part of its unstarted instances. The study with most leases comes first. Returns the
    /// number of open instances of the asked lease.
    fn share(&mut self, idle: WorkerId, longer_than: Duration, found: &mut Found) -> Option<usize> {
        for id in self.busiest() {
            let Some(runs) = self.can_get(idle, id).map(Cow::into_owned) else { continue };
            let suits = |stage: usize| runs.get(stage).copied().unwrap_or(true);
            let now = self.now;
            let Some(study) = self.studies.get_mut(&id) else { continue };
            let helpable = found.entry(id).or_insert_with(|| study.helpable(now, BEHIND));
            if let Some((worker, lease)) = study.request_steal(helpable, idle, longer_than, suits) {
                self.effects.push_back(Effect::Share { worker, study: id, lease, longer_than });
                return study.leased(lease).map(|(_, open)| open.len());
            }
        }
        None
    }

    fn try_twice(&mut self, idle: WorkerId, found: &mut Found) -> bool {
        for id in self.busiest() {
            let (Some(study), Some(runs)) = (self.studies.get(&id), self.can_get(idle, id)) else { continue };
            let suits = |stage: usize| runs.get(stage).copied().unwrap_or(true);
            let helpable = found.entry(id).or_insert_with(|| study.helpable(self.now, BEHIND));
            let Some(late) = study.straggler(helpable, idle, suits) else { continue };
            let lease = self.next_lease();
            let now = self.now;
            let work =
                self.studies.get_mut(&id).and_then(|study| study.grant_speculative(late, idle, lease, now));
            let Some(mut work) = work else { continue };
            self.use_tile(idle, id, &mut work);
            self.answer_request(idle);
            // The facts of a study must precede its first bucket.
            self.send_study(idle, id);
            let reason = GrantReason::Request;
            self.effects.push_back(Effect::Assign { worker: idle, study: id, lease, work, reason });
            return true;
        }
        false
    }

    /// Returns by stage whether a worker can run a study. `None` if it can get nothing of the study now.
    fn can_get(&self, worker: WorkerId, id: PlanId) -> Option<Cow<'_, [bool]>> {
        let member = self.members.get(worker)?;
        let is_alone = self.studies.values().any(|study| study.runs_isolated(worker));
        self.runs(worker, member, id).filter(|_| !is_alone && self.has_room(worker, id))
    }

    fn busiest(&self) -> Vec<PlanId> {
        let open = self.studies.iter().filter(|(_, study)| !study.is_halted());
        let mut ids: Vec<(usize, PlanId)> = open.map(|(id, study)| (study.leases(), *id)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.into_iter().map(|(_, id)| id).collect()
    }
}
