//! Runs whose mask and reference are both empty. By convention they agree completely, whatever the parameters
//! are.
//!
//! A column beside the metrics marks them ([`both_empty_column`]). The study determines whether they count in
//! the mean over tiles ([`BothEmpty`]).

use super::CollectedResponses;
use crate::analysis::RunResponse;
use pleach_pathology::both_empty_column;
use pleach_regions::Table;
use pleach_study::PreparedStudy;
use pleach_workflow::{Aggregate, BothEmpty, Workflow, split_label};
use serde::Serialize;

/// Runs of a response whose mask and reference are both empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BothEmptyRuns {
    /// Name of the response.
    pub response: String,
    /// Number of runs whose mask and reference are both empty, without those at the defaults (evaluation 0).
    pub runs: usize,
    /// Runs with a response.
    pub of: usize,
    /// Tiles with such runs.
    pub tiles: Vec<String>,
    /// Whether the mean over tiles excludes them.
    pub left_out: bool,
}

/// Returns for each metric whether mask and reference are both empty. Empty if that holds for no metric.
pub(super) fn of_table(table: &Table, workflow: &Workflow) -> Vec<bool> {
    let is_empty = |(name, _): &(String, Aggregate)| {
        // The column has the label of its metrics.
        let (label, metric) = split_label(name);
        let column = both_empty_column(metric).map(|column| format!("{label}{column}"));
        column.and_then(|column| table.get(&column)).is_some_and(|flag| flag == 1.0)
    };
    let of_metrics: Vec<bool> = workflow.response.metrics.iter().map(is_empty).collect();
    if of_metrics.contains(&true) { of_metrics } else { Vec::new() }
}

impl RunResponse {
    /// Returns whether mask and reference are both empty for a metric.
    pub(super) fn is_both_empty(&self, metric: usize) -> bool {
        self.both_empty.get(metric).is_some_and(|is_empty| *is_empty)
    }
}

impl CollectedResponses {
    /// Returns the runs with mask and reference both empty, one entry per response that has any.
    pub fn both_empty(&self, prepared: &PreparedStudy) -> Vec<BothEmptyRuns> {
        let study = &prepared.study;
        let of_metric = |metric: usize| {
            let of = self.runs.iter().filter(|run| run.result.is_ok()).count();
            let empty = || self.runs.iter().filter(move |run| run.is_both_empty(metric));
            let mut has_some = vec![false; study.tiles.len()];
            empty().for_each(|run| has_some[run.tile] = true);
            let tiles = study.tiles.iter().zip(has_some).filter(|(_, some)| *some);
            let (name, over_tiles) = &study.workflow.response.metrics[metric];
            BothEmptyRuns {
                response: name.clone(),
                runs: empty().count(),
                of,
                tiles: tiles.map(|(tile, _)| tile.name.clone()).collect(),
                left_out: study.both_empty == BothEmpty::LeaveOut && *over_tiles == Aggregate::Mean,
            }
        };
        study.metrics().map(of_metric).filter(|found| found.runs > 0).collect()
    }
}
