//! A recorded manager: times all events, and optionally records them and audits their effects.

use crate::audit::{Audit, Violation};
use crate::event::{Event, ManagerReply};
use pleach_dispatch::PlanId;
use pleach_dispatch::manager::{Effect, Manager};
use pleach_dispatch::plan::ExecutionPlan;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// An event and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Microseconds since the beginning.
    pub at_us: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// A manager with an optional audit and an optional record.
#[derive(Debug)]
pub struct RecordedManager {
    manager: Manager,
    plans: Vec<ExecutionPlan>,
    audit: Option<Audit>,
    record: Option<Vec<RecordedEvent>>,
    events: u64,
    busy: Duration,
}

impl RecordedManager {
    /// Creates a manager with these plans. Optionally audits all its effects and records all its events.
    #[must_use]
    pub fn new(plans: Vec<ExecutionPlan>, audit: bool, record: bool) -> Self {
        Self {
            manager: Manager::new(0),
            plans,
            audit: audit.then(Audit::default),
            record: record.then(Vec::new),
            events: 0,
            busy: Duration::ZERO,
        }
    }

    /// Applies an event at a monotonic time. Returns the manager's reply and its effects.
    ///
    /// # Errors
    /// Returns the first violation, under audit. The manager stays in the state after the event.
    pub fn apply(&mut self, at_us: u64, event: Event) -> Result<(ManagerReply, Vec<Effect>), Violation> {
        let now = Duration::from_micros(at_us);
        let begun = Instant::now();
        let answer = event.apply(&mut self.manager, &self.plans, now);
        let effects: Vec<Effect> = std::iter::from_fn(|| self.manager.poll_effect()).collect();
        // Submissions are excluded from the timing: their cost depends on the instances of the plan.
        if !matches!(event, Event::Submit { .. } | Event::Start { .. }) {
            // Task timings travel in the message of a report and are not counted separately.
            self.events += u64::from(!matches!(event, Event::Ran { .. }));
            self.busy += begun.elapsed();
        }
        let checked = match &mut self.audit {
            Some(audit) => audit.check(now, &event, &answer, &effects, &self.plans, &self.manager),
            None => Ok(()),
        };
        if let Some(record) = &mut self.record {
            record.push(RecordedEvent { at_us, event });
        }
        checked.map(|()| (answer, effects))
    }

    /// Takes the overheads of buckets of a study that reports have measured, in seconds.
    pub fn take_bucket_overheads(&mut self, study: PlanId) -> Vec<f64> {
        self.manager.take_bucket_overheads(study)
    }

    /// Returns the manager, for inspection.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Returns the number of events, without submissions and starts, and the time that the manager took for them.
    #[must_use]
    pub fn work(&self) -> (u64, Duration) {
        (self.events, self.busy)
    }

    /// Returns the recorded events, if recording is enabled.
    #[must_use]
    pub fn record(&self) -> &[RecordedEvent] {
        self.record.as_deref().unwrap_or_default()
    }
}
