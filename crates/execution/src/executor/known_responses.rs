//! Responses known before an execution: from the journal, from earlier rounds of this process, and from the task cache.

use crate::progress::Run;
use crate::session::Session;
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_dispatch::study::ReportedResults;
use pleach_planner::PlannedStudy;
use pleach_results::cache_walk;
use pleach_results::journal::JournaledResponse;
use pleach_results::provenance::KnownSource;
use pleach_study::PreparedStudy;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Known responses of a plan. Those of the journal take precedence over those of earlier rounds, and these over those of
/// the task cache.
pub(super) struct KnownResponses<'a> {
    by_instance: HashMap<InstanceId, Cow<'a, JournaledResponse>>,
    sources: Vec<(InstanceId, KnownSource)>,
    /// Instances to execute if only the responses of the journal were known.
    pub(super) open_after_journal: Vec<bool>,
    /// Instances to execute if no response of the task cache were known.
    pub(super) open_before_recall: Vec<bool>,
    /// Wall seconds of the walk through the task cache.
    pub(super) recall_seconds: f64,
}

impl<'a> KnownResponses<'a> {
    /// Gathers the responses. Ignores those of the session that the study does not have.
    pub(super) fn gather(
        prepared: &PreparedStudy,
        planned: &PlannedStudy,
        session: &'a Session,
        prior: &PriorResults,
    ) -> Self {
        let stage = prepared.study.workflow.response.stage;
        let (evaluations, tiles) = (prepared.design.evaluations.len(), prepared.study.tiles.len());
        let within = |known: &&JournaledResponse| known.evaluation <= evaluations && known.tile < tiles;
        let instance = |known: &JournaledResponse| planned.instance(known.evaluation, known.tile, stage);
        let unfinished = |known: &HashMap<InstanceId, Cow<'_, JournaledResponse>>| {
            planned.plan.unfinished(&known.keys().copied().collect())
        };
        let of_journal = session.known.iter().filter(within);
        let mut by_instance: HashMap<_, _> =
            of_journal.map(|known| (instance(known), Cow::Borrowed(known))).collect();
        let mut sources: Vec<_> = by_instance.keys().map(|id| (*id, KnownSource::Journal)).collect();
        let open_after_journal = unfinished(&by_instance);
        for known in session.local.iter().filter(within) {
            by_instance.entry(instance(known)).or_insert_with(|| {
                sources.push((instance(known), KnownSource::Earlier));
                Cow::Borrowed(known)
            });
        }
        // Before the cache is read: the difference afterwards is the number of tasks that it saves.
        let open_before_recall = unfinished(&by_instance);
        let start = Instant::now();
        let recalled = cache_walk::known_responses(prepared, prior);
        let recall_seconds = start.elapsed().as_secs_f64();
        for known in recalled {
            let id = instance(&known);
            by_instance.entry(id).or_insert_with(|| {
                sources.push((id, KnownSource::Cache));
                Cow::Owned(known)
            });
        }
        Self { by_instance, sources, open_after_journal, open_before_recall, recall_seconds }
    }

    /// Returns the instances with a known response.
    pub(super) fn instances(&self) -> BTreeSet<InstanceId> {
        self.by_instance.keys().copied().collect()
    }

    /// Returns the instances with a known response, and the source of each response.
    pub(super) fn sources(&self) -> impl Iterator<Item = (InstanceId, KnownSource)> {
        self.sources.iter().copied()
    }

    /// Returns the runs of the known responses, one for each instance.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.by_instance.values().map(|known| (known.evaluation, known.tile))
    }

    /// Adds the known responses to the results of an execution. Results of the execution take precedence.
    pub(super) fn add_to(self, results: &mut ReportedResults) {
        for (instance, known) in self.by_instance {
            if !results.contains(instance) {
                results.insert(instance, &known.results);
            }
        }
    }
}
