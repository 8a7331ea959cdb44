//! One study as the manager knows it.

use crate::api::view::{Study, StudyState};
use crate::progress::{Counts, Progress};
use crate::service::inputs::InputDigest;
use crate::service::state::{Ended, Kept};

/// How far a study is.
pub(super) enum Phase {
    /// Files are missing.
    Waiting(Vec<InputDigest>),
    /// It can begin.
    Queued,
    /// It is executed.
    Running {
        /// As soon as there is something to see.
        progress: Option<Progress>,
    },
    Ended(Ended),
}

/// See the module.
pub(super) struct Entry {
    pub(super) kept: Kept,
    pub(super) phase: Phase,
}

impl Entry {
    pub(super) fn new(kept: Kept, phase: Phase) -> Self {
        Self { kept, phase }
    }

    pub(super) fn missing(&self) -> Vec<InputDigest> {
        match &self.phase {
            Phase::Waiting(missing) => missing.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn view(&self, id: u32) -> Study {
        let submission = &self.kept.submission;
        let counts = match &self.phase {
            Phase::Running { progress: Some(progress) } => progress.counts(),
            _ => Counts::default(),
        };
        let (state, message) = match &self.phase {
            Phase::Waiting(missing) => {
                (StudyState::Waiting, Some(format!("{} files that it reads are missing", missing.len())))
            }
            Phase::Queued => (StudyState::Queued, None),
            Phase::Running { progress: None } => {
                (StudyState::Running, Some("it is being planned".to_owned()))
            }
            Phase::Running { .. } => (StudyState::Running, None),
            Phase::Ended(ended) => (ended.state, ended.message.clone()),
        };
        let mut study = Study {
            id: id.to_string(),
            name: submission.name.clone(),
            state,
            evaluations_done: counts.evaluations as u64,
            evaluations: submission.evaluations.len() as u64,
            tasks_executed: counts.tasks_run,
            tasks_left: counts.tasks_left,
            seconds_left: counts.seconds_left(),
            failed: counts.failed_runs as u64,
            submitted: self.kept.submitted,
            message,
        };
        if let Phase::Ended(ended) = &self.phase {
            study.evaluations_done = ended.evaluations_done;
            study.tasks_executed = ended.tasks_executed;
            study.failed = ended.failed;
            study.seconds_left = None;
        }
        study
    }
}
