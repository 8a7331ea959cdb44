//! Counts of the instances by stage and state. The manager's clients ask for them several times a second, so they are
//! kept up to date by each transition instead of being counted.

use super::{InstanceState, Instances};
use crate::plan::ExecutionPlan;
use crate::{InstanceId, study::InstanceCounts};

/// Counts of instances. The counts of all stages add up to the number of instances.
#[derive(Debug)]
pub(super) struct Census {
    /// By instance.
    stage_of: Vec<u16>,
    /// By stage.
    counts: Vec<InstanceCounts>,
}

impl Census {
    /// Counts the instances of a plan in their first states.
    pub(super) fn of(plan: &ExecutionPlan, states: &[InstanceState]) -> Self {
        let (stages, most) = (plan.stages.len(), usize::from(u16::MAX));
        assert!(stages <= most, "a workflow has {stages} stages, more than {most}");
        let mut counts = vec![InstanceCounts::default(); stages];
        for (instance, state) in plan.instances.iter().zip(states) {
            *counts[instance.stage].of(*state) += 1;
        }
        let stage_of = plan.instances.iter().map(|instance| instance.stage as u16).collect();
        Self { stage_of, counts }
    }

    /// Counts a transition.
    pub(super) fn record(&mut self, id: InstanceId, before: InstanceState, after: InstanceState) {
        let counts = &mut self.counts[usize::from(self.stage_of[id.index()])];
        let from = counts.of(before);
        assert!(*from > 0, "{id} was {before:?}, and its stage counts no such instance");
        *from -= 1;
        *counts.of(after) += 1;
    }
}

impl InstanceCounts {
    /// Returns the count that an instance in this state belongs to.
    fn of(&mut self, state: InstanceState) -> &mut usize {
        match state {
            InstanceState::Waiting(_) | InstanceState::Reopened => &mut self.waiting,
            InstanceState::Ready => &mut self.ready,
            InstanceState::Leased(_) => &mut self.leased,
            InstanceState::Done => &mut self.finished,
            InstanceState::Failed => &mut self.failed,
        }
    }

    /// Counts the instances that are neither finished nor failed.
    #[must_use]
    pub fn open(&self) -> usize {
        self.waiting + self.ready + self.leased
    }
}

impl Instances {
    /// Returns the counts of each stage.
    pub(crate) fn census(&self) -> &[InstanceCounts] {
        &self.census.counts
    }

    /// Compares the counts with a recount.
    pub(super) fn check_census(&self) -> Result<(), String> {
        let mut counts = vec![InstanceCounts::default(); self.census.counts.len()];
        for (stage, state) in self.census.stage_of.iter().zip(&self.states) {
            *counts[usize::from(*stage)].of(*state) += 1;
        }
        if counts == self.census.counts {
            Ok(())
        } else {
            Err(format!("instances by stage and state: {counts:?}, counted {:?}", self.census.counts))
        }
    }
}
