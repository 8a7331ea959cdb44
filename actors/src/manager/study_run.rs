//! One running study of the manager.

use super::replanning::CostChecks;
use super::{Observer, StudyEvent};
use pleach_cache::StudyLabel;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::message::{CodePackage, InputFile};
use pleach_dispatch::study::{Replanner, Study, StudyOutcome};
use pleach_dispatch::{InstanceId, PlanId};
use pleach_regions::{RegionKey, Table};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::{Span, info_span};

/// A study to run.
pub struct StudyRequest {
    /// Initial state: the plan and the instances that have reported their results before. The caller builds it on its own
    /// thread, because that takes seconds for a million instances.
    pub study: Study,
    /// Input files, by the keys of the regions read from them.
    pub inputs: HashMap<RegionKey, InputFile>,
    /// Code of its external operations, for workers that lack them.
    pub code: Vec<CodePackage>,
    /// Follows the study and gets every report. Workers keep a report until the observer's owner confirms it with
    /// [`RecordDurable`](super::RecordDurable).
    pub observer: Observer,
    /// Rebuilds buckets when workers join or leave, and by measured costs.
    pub replanner: Option<Box<dyn Replanner>>,
    /// The study may have a next round. Workers retain task results until the manager sends
    /// [`DropStudyResults`](super::DropStudyResults).
    pub retains_results: bool,
    /// Label of its entries in workers' task caches.
    pub label: Option<Arc<StudyLabel>>,
    /// Receives the outcome of the study.
    pub done: oneshot::Sender<StudyOutcome>,
}

impl fmt::Debug for StudyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StudyRequest").field("instances", &self.study.unfinished()).finish_non_exhaustive()
    }
}

pub(super) struct RunningStudy {
    pub(super) outcome: StudyOutcome,
    pub(super) done: Option<oneshot::Sender<StudyOutcome>>,
    pub(super) observer: Observer,
    pub(super) inputs: HashMap<RegionKey, InputFile>,
    pub(super) code: Vec<CodePackage>,
    pub(super) replanner: Option<Box<dyn Replanner>>,
    pub(super) retains_results: bool,
    pub(super) label: Option<Arc<StudyLabel>>,
    pub(super) all_instances: usize,
    /// Tasks reported.
    pub(super) tasks: u64,
    pub(super) cost_checks: CostChecks,
    /// Results reported, followed by the number of them on disk.
    pub(super) records: u64,
    pub(super) durable: u64,
    /// The study is suspended: its reports can no longer be stored.
    pub(super) is_halted: bool,
    pub(super) started: Instant,
    /// Workers lost since the start.
    pub(super) lost_workers: u64,
    /// Parent span of the study's log events.
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
            code: Vec::new(),
            replanner: None,
            retains_results: false,
            label: None,
            all_instances: core.study(id).map_or(0, Study::unfinished),
            tasks: 0,
            cost_checks: CostChecks::default(),
            records: 0,
            durable: 0,
            is_halted: false,
            started: Instant::now(),
            lost_workers: 0,
            span: info_span!("study", study = id.study),
        }
    }

    /// Counts a finished instance. Returns the number of the record of its results, if it has any.
    pub(super) fn finish(&mut self, instance: InstanceId, results: Vec<Table>) -> Option<u64> {
        self.outcome.finished += 1;
        if results.is_empty() {
            return None;
        }
        self.records += 1;
        self.outcome.results.insert(instance, &results);
        (self.observer)(StudyEvent::Reported { instance, results });
        Some(self.records)
    }

    pub(super) fn end(&mut self) {
        if let Some(done) = self.done.take() {
            // The receiver may have been dropped.
            let _ = done.send(std::mem::take(&mut self.outcome));
        }
    }
}
