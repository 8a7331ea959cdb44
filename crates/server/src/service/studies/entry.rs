//! State of one study on the manager.

use super::remarks;
use crate::service::metrics::{PlannedReuse, StudySample};
use crate::service::scaling::StudyNeed;
use crate::service::state::{StoredSubmission, StudyEnd};
use pleach_actors::manager::ManagerView;
use pleach_api::digest::InputDigest;
use pleach_api::schema::{StudyCost, StudyState, StudyStatus};
use pleach_execution::progress::{Progress, ProgressCounts};
use pleach_workflow::plain_name;
use time::OffsetDateTime;

fn moment(seconds: u64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()
}

/// State of a study.
pub(super) enum Phase {
    /// Waits for these missing files.
    Waiting(Vec<InputDigest>),
    /// Ready to start.
    Queued,
    /// Planned or executed by a thread.
    Running {
        /// Set once the study is planned.
        progress: Option<StudyProgress>,
    },
    Ended(StudyEnd),
}

/// Progress of a running study, and the tasks that its plan saves.
pub(crate) struct StudyProgress {
    pub(crate) progress: Progress,
    /// Tasks saved by merging equal stage instances.
    pub(crate) stage: u64,
    /// Tasks saved by reuse trees.
    pub(crate) tree: u64,
    /// Number of the running phase, from 1.
    pub(crate) phase: usize,
    /// Evaluations of this phase in the present sample, which may grow.
    pub(crate) evaluations: usize,
    /// Counts of the finished phases, and of tasks that this phase ran for a smaller sample.
    pub(crate) before: ProgressCounts,
}

/// A study with its submission and state.
pub(super) struct Entry {
    pub(super) kept: StoredSubmission,
    pub(super) phase: Phase,
    /// Reason why it waits. `None` if it waits for files that were never sent.
    pub(super) why: Option<String>,
    /// Whether a thread works on the study and may write to its folder.
    pub(super) is_busy: bool,
    /// Bytes of its folder, set when they are first counted after its end.
    pub(super) bytes: Option<u64>,
    /// Stored cost, after its end.
    pub(super) cost: Option<StudyCost>,
}

impl Entry {
    pub(super) fn new(kept: StoredSubmission, phase: Phase) -> Self {
        Self { kept, phase, why: None, is_busy: false, bytes: None, cost: None }
    }

    pub(super) fn missing(&self) -> Vec<InputDigest> {
        match &self.phase {
            Phase::Waiting(missing) => missing.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn measured(&self, id: u32) -> StudySample {
        let reuse = match &self.phase {
            Phase::Running { progress: Some(followed) } => {
                let (dataflow, cache) = followed.progress.spared();
                Some(PlannedReuse { stage: followed.stage, tree: followed.tree, dataflow, cache })
            }
            _ => None,
        };
        StudySample { view: self.view(id), reuse, deadline_margin_seconds: None }
    }

    /// Returns the remaining work of a running study, otherwise `None`.
    pub(super) fn need(&self, id: u32) -> Option<StudyNeed> {
        let Phase::Running { progress: Some(followed) } = &self.phase else { return None };
        let counts = followed.progress.counts();
        let submission = &self.kept.submission;
        Some(StudyNeed {
            id,
            work_seconds: counts.work_seconds,
            run_seconds: counts.run_seconds,
            deadline: submission.deadline.map(|seconds| seconds as f64),
            budget: submission.budget,
        })
    }

    /// Returns the status with remarks on the conditions that keep the study waiting.
    pub(super) fn with_remarks(&self, id: u32, view: &ManagerView) -> StudyStatus {
        let operations = self.kept.submission.operations.iter();
        let on_accelerators: Vec<&str> = operations
            .filter(|operation| operation.needs_accelerator())
            .map(|operation| plain_name(&operation.name))
            .collect();
        remarks::with(self.view(id), id, &on_accelerators, view)
    }

    pub(super) fn view(&self, id: u32) -> StudyStatus {
        let submission = &self.kept.submission;
        let phases = submission.study.phases.len() as u64;
        let (mut counts, mut evaluations, mut phase) =
            (ProgressCounts::default(), submission.evaluations.len() as u64, None);
        if let Phase::Running { progress: Some(followed) } = &self.phase {
            let StudyProgress { progress, before, .. } = followed;
            counts = progress.counts();
            counts.evaluations += before.evaluations;
            counts.failed_runs += before.failed_runs;
            counts.tasks_run += before.tasks_run;
            evaluations = (before.evaluations + followed.evaluations) as u64;
            phase = (phases > 0).then_some(followed.phase as u64);
        }
        let (state, message) = match &self.phase {
            Phase::Waiting(missing) => {
                let lacking = || format!("{} input files are missing", missing.len());
                (StudyState::Waiting, Some(self.why.clone().unwrap_or_else(lacking)))
            }
            Phase::Queued => (StudyState::Queued, None),
            Phase::Running { progress: None } => (StudyState::Running, Some("planning".to_owned())),
            Phase::Running { .. } => (StudyState::Running, None),
            Phase::Ended(ended) => (ended.state, ended.message.clone()),
        };
        let mut study = StudyStatus {
            id: id.to_string(),
            name: submission.name.clone(),
            state,
            evaluations_done: counts.evaluations as u64,
            evaluations,
            tasks_executed: counts.tasks_run,
            remaining_tasks: counts.remaining_tasks,
            remaining_seconds: counts.remaining_seconds(),
            failed: counts.failed_runs as u64,
            submitted: self.kept.submitted,
            message,
            deadline: submission.deadline.and_then(moment),
            budget: submission.budget,
            remaining_work_seconds: matches!(self.phase, Phase::Running { progress: Some(_) })
                .then_some(counts.work_seconds),
            phase,
            phases: (phases > 0).then_some(phases),
            progress: counts.share,
            remarks: Vec::new(),
            cost: self.cost.clone(),
        };
        if let Phase::Ended(ended) = &self.phase {
            study.evaluations_done = ended.evaluations_done;
            // Samples of later phases and growing samples were unknown at submission.
            study.evaluations = study.evaluations.max(ended.evaluations_done);
            study.tasks_executed = ended.tasks_executed;
            study.failed = ended.failed;
            study.remaining_seconds = None;
            study.progress = (ended.state == StudyState::Complete).then_some(1.0);
        }
        study
    }
}
