//! Running studies of a worker, and the study of each region that is, or may come to be, in storage.
//!
//! Invariants:
//! - A study begins and ends with all its state: stages, durability, label and span.
//! - After a study has ended and its regions are released, no region belongs to it.
//!
//! A region may belong to a study that this worker does not run: the manager has it fetched before a worker leaves.

use crate::stage::ResolvedStage;
use pleach_cache::StudyLabel;
use pleach_dispatch::PlanId;
use pleach_regions::RegionKey;
use pleach_workflow::{Durability, Operation, Stage};
use std::collections::HashMap;
use std::sync::Arc;
use tracing::{Span, info_span, span};

struct RunningStudy {
    stages: Vec<ResolvedStage>,
    durability: Durability,
    /// Label of its entries in the task cache.
    label: Arc<StudyLabel>,
    /// Parent span of the study's log events.
    span: Span,
}

/// Running studies and the regions of studies.
#[derive(Default)]
pub(crate) struct RunningStudies {
    studies: HashMap<PlanId, RunningStudy>,
    study_of: HashMap<RegionKey, PlanId>,
}

impl RunningStudies {
    /// Begins a study. A repeated begin replaces its state.
    pub(crate) fn begin(
        &mut self,
        study: PlanId,
        stages: Vec<ResolvedStage>,
        durability: Durability,
        label: Arc<StudyLabel>,
    ) {
        let span = info_span!("study", study = study.study);
        self.studies.insert(study, RunningStudy { stages, durability, label, span });
    }

    /// Links the stages of all studies again: the worker has further operations.
    pub(crate) fn resolve_again(&mut self, mut resolve: impl FnMut(PlanId, &[Stage]) -> Vec<ResolvedStage>) {
        for (study, running) in &mut self.studies {
            let stages: Vec<Stage> = running.stages.iter().map(|stage| (*stage.stage).clone()).collect();
            running.stages = resolve(*study, &stages);
        }
    }

    /// Returns the label of a study's entries in the task cache.
    pub(crate) fn label(&self, study: PlanId) -> Option<Arc<StudyLabel>> {
        self.studies.get(&study).map(|running| Arc::clone(&running.label))
    }

    /// Ends a study. Returns its regions, which belong to it until they are released.
    pub(crate) fn end(&mut self, study: PlanId) -> Vec<RegionKey> {
        self.studies.remove(&study);
        self.study_of.iter().filter(|(_, of)| **of == study).map(|(key, _)| *key).collect()
    }

    /// Returns whether the study runs.
    pub(crate) fn contains(&self, study: PlanId) -> bool {
        self.studies.contains_key(&study)
    }

    /// Returns whether no study runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.studies.is_empty()
    }

    pub(crate) fn ids(&self) -> Vec<PlanId> {
        self.studies.keys().copied().collect()
    }

    /// Returns a stage of a study, if the manager has sent it.
    pub(crate) fn stage(&self, study: PlanId, stage: u32) -> Option<&ResolvedStage> {
        self.studies.get(&study)?.stages.get(stage as usize)
    }

    /// Iterates over the operations of all studies, with repetitions.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Arc<dyn Operation>> {
        self.studies.values().flat_map(|running| &running.stages).flat_map(|stage| &stage.operations)
    }

    /// Returns the durability of a study's outputs.
    pub(crate) fn durability(&self, study: PlanId) -> Durability {
        self.studies.get(&study).map(|running| running.durability).unwrap_or_default()
    }

    /// Returns the parent span of a study's log events.
    pub(crate) fn span_id(&self, study: PlanId) -> Option<span::Id> {
        self.studies.get(&study)?.span.id()
    }

    /// Records the study of regions that are about to be fetched or computed.
    pub(crate) fn add_regions(&mut self, study: PlanId, keys: impl IntoIterator<Item = RegionKey>) {
        self.study_of.extend(keys.into_iter().map(|key| (key, study)));
    }

    /// Removes a released region.
    pub(crate) fn release(&mut self, key: RegionKey) {
        self.study_of.remove(&key);
    }

    /// Returns whether a study still reads the region. Released regions have no readers.
    pub(crate) fn has_region(&self, key: RegionKey) -> bool {
        self.study_of.contains_key(&key)
    }

    /// Returns whether a region belongs to the study. Looks at every region.
    pub(crate) fn has_regions_of(&self, study: PlanId) -> bool {
        self.study_of.values().any(|of| *of == study)
    }

    /// Iterates over the regions, each with its study.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (RegionKey, PlanId)> {
        self.study_of.iter().map(|(key, study)| (*key, *study))
    }
}
