//! Something to do for workers that are idle while others are not: a part of what those have not begun, or the same once
//! more where one of them is far behind.

use super::{Effect, Manager};
use crate::study::Study;
use crate::{LeaseId, StudyId, WorkerId};
use std::time::Duration;

/// A lease is far behind when it has been silent for so many times what an instance of its stage takes. Estimates are off
/// by a factor of two where tiles differ, so that a smaller one would run much for nothing.
const BEHIND: u32 = 4;

/// Nothing is tried twice that has been silent for less: moving it would take as long.
const BEHIND_AT_LEAST: Duration = Duration::from_secs(3);

/// Idle workers that are helped at one moment: looking for help goes over all leases.
const MOST_AT_ONCE: usize = 32;

impl Manager {
    /// Time has passed: `now` is the time since whatever the shell counts from.
    pub fn handle_tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if self.stopping || self.holding || self.studies.values().any(Study::has_ready) {
            return;
        }
        let idle: Vec<WorkerId> = self.queue.any().take(MOST_AT_ONCE).collect();
        for worker in idle {
            if !self.share(worker) && !self.try_twice(worker) {
                break;
            }
        }
    }

    /// Asks some other worker to hand back a part of what it has; the study with most leases first.
    fn share(&mut self, idle: WorkerId) -> bool {
        for id in self.busiest() {
            let Some(runs) = self.can_get(idle, id) else { continue };
            let suits = |stage: usize| runs.get(stage).copied().unwrap_or(true);
            let asked = self.studies.get(&id).and_then(|study| study.largest_of_others(idle, suits));
            if let Some((worker, lease)) = asked {
                if let Some(study) = self.studies.get_mut(&id) {
                    study.ask_back(lease);
                }
                self.effects.push_back(Effect::Share { worker, study: id, lease });
                return true;
            }
        }
        false
    }

    fn try_twice(&mut self, idle: WorkerId) -> bool {
        for id in self.busiest() {
            let (Some(study), Some(runs)) = (self.studies.get(&id), self.can_get(idle, id)) else { continue };
            let late = study.straggler(idle, self.now, BEHIND, BEHIND_AT_LEAST);
            let suits = |late: &LeaseId| {
                let stage = study.stage_of(*late);
                stage.is_some_and(|stage| runs.get(stage).copied().unwrap_or(true))
            };
            let Some(late) = late.filter(suits) else { continue };
            let lease = self.next_lease();
            let now = self.now;
            let work = self.studies.get_mut(&id).and_then(|study| study.grant_twin(late, idle, lease, now));
            let Some(work) = work else { continue };
            self.queue.take(idle);
            if let Some(member) = self.members.get_mut(&idle) {
                member.wanted -= 1;
                if member.wanted > 0 {
                    self.queue.push(idle);
                }
            }
            self.introduce(idle, id);
            self.effects.push_back(Effect::Assign { worker: idle, study: id, lease, work, later: false });
            return true;
        }
        false
    }

    /// By stage, what a worker can run of a study; `None`: it can get nothing of it now.
    fn can_get(&self, worker: WorkerId, id: StudyId) -> Option<&[bool]> {
        let suited = self.members.get(&worker)?.studies.get(&id)?;
        let is_alone = self.studies.values().any(|study| study.has_alone(worker));
        (!is_alone && self.has_room(worker, id)).then_some(suited.runs.as_slice())
    }

    fn busiest(&self) -> Vec<StudyId> {
        let open = self.studies.iter().filter(|(_, study)| !study.is_halted());
        let mut ids: Vec<(usize, StudyId)> = open.map(|(id, study)| (study.leases(), *id)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.into_iter().map(|(_, id)| id).collect()
    }
}
