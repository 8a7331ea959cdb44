//! `report.html`: one page that explains a study's results, self-contained.

use crate::command::Analysis;
use crate::output::record::{Plan, Run};
use crate::output::tables::RunResponse;
use pleach_sensitivity::moat::{MoatIndices, MoatParameter};
use pleach_workflow::Study;

/// What the report tells about.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) study: &'a Study,
    pub(crate) plan: &'a Plan,
    pub(crate) run: &'a Run,
    pub(crate) analysis: &'a Analysis,
    pub(crate) runs: &'a [RunResponse],
}

/// Parameters, the most influential first.
pub(crate) fn ranked(indices: &MoatIndices) -> Vec<&MoatParameter> {
    let mut ranked: Vec<_> = indices.parameters.iter().collect();
    ranked.sort_by(|a, b| b.mu_star.total_cmp(&a.mu_star));
    ranked
}

/// The page.
pub(crate) fn html(_report: &Report<'_>) -> String {
    String::new()
}
