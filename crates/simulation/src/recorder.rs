//! A manager that is watched: everything that it is told is timed, written down where somebody wants to read it, and what
//! follows is audited where somebody wants to know.

use crate::audit::{Audit, Violation};
use crate::event::{Event, ManagerReply};
use pleach_dispatch::manager::{Effect, Manager};
use pleach_dispatch::plan::ExecutionPlan;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// An event, and when it was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Microseconds since the beginning.
    pub at_us: u64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// See the module.
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
    /// A manager that knows these plans by number; with an audit of all it does, and a record of all it is told, or
    /// without.
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

    /// Says something to the manager, at a time that never goes back. Returns its answer and what it wants done.
    ///
    /// # Errors
    /// The first rule that was broken by it, if there is an audit. What has been done by then stays done.
    pub fn apply(&mut self, at_us: u64, event: Event) -> Result<(ManagerReply, Vec<Effect>), Violation> {
        let now = Duration::from_micros(at_us);
        let begun = Instant::now();
        let answer = event.apply(&mut self.manager, &self.plans, now);
        let effects: Vec<Effect> = std::iter::from_fn(|| self.manager.poll_effect()).collect();
        // Taking up a plan is work by the instance, not by the event.
        if !matches!(event, Event::Submit { .. } | Event::Start { .. }) {
            // What was run is said with a report, in one message.
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

    /// The manager, to look at.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Events so far but for submissions, and the time that the manager took for them.
    #[must_use]
    pub fn work(&self) -> (u64, Duration) {
        (self.events, self.busy)
    }

    /// All that was said, if it was recorded.
    #[must_use]
    pub fn record(&self) -> &[RecordedEvent] {
        self.record.as_deref().unwrap_or_default()
    }
}
