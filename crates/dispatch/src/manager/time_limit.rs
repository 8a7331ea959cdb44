//! Workers with a time limit: they get no instance that they are not expected to finish.
//!
//! The time of an instance is its measured mean, corrected by the worker's speed. Unmeasured stages may be granted. The
//! worker has a better estimate of its next task and returns instances that it cannot finish (`worker/time_limit`). It then
//! gets nothing more of that stage of the study, since its remaining time only shrinks.

use super::{Manager, WorkerEntry};
use crate::{LeaseId, PlanId, WorkerId};
use std::borrow::Cow;
use std::time::Duration;

impl Manager {
    /// Sets the time limit of a worker, on the shell's clock. Of several limits the first applies.
    pub fn handle_time_limit(&mut self, worker: WorkerId, end: Duration) {
        self.members.limit(worker, end);
    }

    /// Returns by stage whether a worker can run a study now.
    pub(super) fn runs<'a>(
        &'a self,
        worker: WorkerId,
        member: &'a WorkerEntry,
        id: PlanId,
    ) -> Option<Cow<'a, [bool]>> {
        let suited = member.studies.get(&id)?;
        if member.end().is_none() {
            return Some(Cow::Borrowed(&suited.runs));
        }
        let runs = suited.runs.iter().zip(&suited.late).enumerate();
        let in_time =
            |stage| self.instances_before_limit(worker, id, stage).is_none_or(|instances| instances > 0);
        Some(runs.map(|(stage, (runs, late))| *runs && !late && in_time(stage)).collect())
    }

    /// Returns the number of instances of a stage that a worker is expected to finish in one slot before its time limit.
    /// `None` if it has no limit, or the time of the stage is unknown.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and saturates"
    )]
    pub(super) fn instances_before_limit(&self, worker: WorkerId, id: PlanId, stage: usize) -> Option<usize> {
        let end = self.members.get(worker)?.end()?;
        let left = end.saturating_sub(self.now).as_secs_f64();
        // Before the estimate, whose `None` allows grants of an unmeasured stage.
        if left <= 0.0 {
            return Some(0);
        }
        let takes = self.studies.get(&id)?.seconds_per_instance(stage)? / self.speed_of(worker);
        Some((left / takes) as usize)
    }

    /// Records instances that a worker returns without a steal request: it lacks the time for their stage.
    pub(super) fn note_late(&mut self, worker: WorkerId, id: PlanId, lease: LeaseId) {
        let Some(study) = self.studies.get(&id).filter(|study| !study.has_steal_request(lease)) else {
            return;
        };
        let own = study.leased(lease).is_some_and(|(of, _)| of == worker);
        let Some(stage) = study.stage_of(lease).filter(|_| own) else { return };
        let ending =
            self.members.get_mut(worker).filter(|member| member.end().is_some() && !member.is_draining());
        let late = ending.and_then(|member| member.studies.get_mut(&id)?.late.get_mut(stage));
        if let Some(late) = late {
            *late = true;
        }
    }
}
