//! Something to do for workers that are idle while others are not: a part of what those have not begun, or the same once
//! more where one of them is far behind.

use super::{Effect, Manager};
use crate::study::{RebalanceCandidates, StragglerPolicy, Study};
use crate::{PlanId, WorkerId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// A lease is far behind when it has been silent for four times what an instance of its stage takes: estimates are off by a
/// factor of two where tiles differ, so that a smaller one would run much for nothing. Nothing is tried twice that has been
/// silent for less than seconds: moving it would take as long.
pub(super) const BEHIND: StragglerPolicy = StragglerPolicy { factor: 4, least: Duration::from_secs(3) };

/// Idle workers that are helped at one moment: as many as find something new before others have answered.
const MAX_AT_ONCE: usize = 32;

/// What has been found in a study at one moment: each is looked through once.
type Found = BTreeMap<PlanId, RebalanceCandidates>;

impl Manager {
    /// Time has passed: `now` is the time since whatever the shell counts from.
    pub fn handle_tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.studies.values_mut().for_each(|study| study.handle_time(self.now));
        if self.stopping || self.holding {
            return;
        }
        self.reserve_isolation_workers();
        if self.studies.values().any(Study::has_ready) {
            return;
        }
        let idle: Vec<WorkerId> = self.queue.any().take(MAX_AT_ONCE).collect();
        let mut found = BTreeMap::new();
        for worker in idle {
            if !self.share(worker, &mut found) && !self.try_twice(worker, &mut found) {
                break;
            }
        }
    }

    /// Asks some other worker to hand back a part of what it has; the study with most leases first.
    fn share(&mut self, idle: WorkerId, found: &mut Found) -> bool {
        for id in self.busiest() {
            let Some(runs) = self.can_get(idle, id).map(Cow::into_owned) else { continue };
            let suits = |stage: usize| runs.get(stage).copied().unwrap_or(true);
            let now = self.now;
            let Some(study) = self.studies.get_mut(&id) else { continue };
            let helpable = found.entry(id).or_insert_with(|| study.helpable(now, BEHIND));
            if let Some((worker, lease)) = study.request_steal(helpable, idle, suits) {
                self.effects.push_back(Effect::Share { worker, study: id, lease });
                return true;
            }
        }
        false
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
            let Some(work) = work else { continue };
            self.queue.take(idle);
            if let Some(member) = self.members.get_mut(&idle) {
                member.wanted -= 1;
                if member.wanted > 0 {
                    self.queue.push(idle);
                }
            }
            self.send_study(idle, id);
            self.effects.push_back(Effect::Assign { worker: idle, study: id, lease, work, later: false });
            return true;
        }
        false
    }

    /// By stage, what a worker can run of a study; `None`: it can get nothing of it now.
    fn can_get(&self, worker: WorkerId, id: PlanId) -> Option<Cow<'_, [bool]>> {
        let member = self.members.get(&worker)?;
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
