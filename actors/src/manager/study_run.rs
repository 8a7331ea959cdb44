//! One study of the manager's while it runs.

use super::outcome::{Observer, StudyOutcome};
use pleach_dispatch::manager::Manager;
use pleach_dispatch::message::InputFile;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan};
use pleach_dispatch::study::Study;
use pleach_dispatch::{InstanceId, PlanId};
use pleach_regions::RegionKey;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::{Span, info_span};

/// Cuts what nobody has begun into buckets for another number of processors.
pub trait Replanner: Send {
    /// The new buckets of some of what is [`unstarted`](Study::unstarted), or `None` where all can stay as it is.
    fn replan(&mut self, study: &Study, slots: u32) -> Option<Vec<BucketPlan>>;
}

/// A study to be run.
pub struct StudyRequest {
    /// What to execute.
    pub plan: ExecutionPlan,
    /// Instances that have reported their results before.
    pub finished: BTreeSet<InstanceId>,
    /// The files it reads, by the keys of what is read from them.
    pub inputs: HashMap<RegionKey, InputFile>,
    /// Follows the study. It is told of every report; what it does not say is durable ([`RecordDurable`](super::RecordDurable)) is
    /// not forgotten by the worker that has reported it.
    pub observer: Observer,
    /// Cuts buckets anew when workers come and go.
    pub replanner: Option<Box<dyn Replanner>>,
    /// It is a part of a study, and another one may follow: workers keep what tasks have computed, until they are told to
    /// [`Forget`](super::DropStudyResults) it.
    pub keeps: bool,
    /// Is told what the study came to.
    pub done: oneshot::Sender<StudyOutcome>,
}

impl fmt::Debug for StudyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StudyRequest").field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}

pub(super) struct RunningStudy {
    pub(super) outcome: StudyOutcome,
    pub(super) done: Option<oneshot::Sender<StudyOutcome>>,
    pub(super) observer: Observer,
    pub(super) inputs: HashMap<RegionKey, InputFile>,
    pub(super) replanner: Option<Box<dyn Replanner>>,
    pub(super) keeps: bool,
    pub(super) all_instances: usize,
    /// Tasks reported.
    pub(super) tasks: u64,
    /// Results reported, and how many of them are on disk.
    pub(super) records: u64,
    pub(super) durable: u64,
    /// Nothing that is reported is kept: it can no longer be.
    pub(super) is_halted: bool,
    pub(super) begun: Instant,
    /// Workers lost since then.
    pub(super) lost_workers: u64,
    /// What is said of it.
    pub(super) span: Span,
}

impl RunningStudy {
    pub(super) fn new(
        core: &Manager,
        id: PlanId,
        done: oneshot::Sender<StudyOutcome>,
        observer: Observer,
    ) -> Self {
        Self {
            outcome: StudyOutcome::default(),
            done: Some(done),
            observer,
            inputs: HashMap::new(),
            replanner: None,
            keeps: false,
            all_instances: core.study(id).map_or(0, Study::unfinished),
            tasks: 0,
            records: 0,
            durable: 0,
            is_halted: false,
            begun: Instant::now(),
            lost_workers: 0,
            span: info_span!("study", study = id.study),
        }
    }

    pub(super) fn end(&mut self) {
        if let Some(done) = self.done.take() {
            // Whoever wanted to know may have given up.
            let _ = done.send(std::mem::take(&mut self.outcome));
        }
    }
}
