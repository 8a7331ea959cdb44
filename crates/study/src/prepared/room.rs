//! Memory of a study's parameter sets, estimated before they are drawn.

use super::method_section;
use crate::PrepareError;
use pleach_planner::memory_limit;
use pleach_sensitivity::sampling::{MAX_EVALUATIONS, footprint};
use pleach_workflow::{Method, Study};
use std::path::Path;

/// Rejects a study whose parameter sets do not fit into memory. They are held twice: as drawn, and with the
/// defaults added. Table files are limited when they are read.
pub(super) fn check(file: &Path, study: &Study, table: Option<&Path>) -> Result<(), PrepareError> {
    let parameters = &study.workflow.parameters;
    let varied = parameters.iter().filter(|parameter| parameter.domain.varies()).count();
    let rows = study.method.evaluations(varied) as u64;
    if table.is_some() || matches!(study.method, Method::Table { .. }) || rows > MAX_EVALUATIONS {
        return Ok(());
    }
    let sets = footprint::rows_bytes(rows, parameters.len());
    let drawn = match study.method {
        Method::Moat { trajectories, candidates, .. } => {
            footprint::trajectories_bytes(parameters, varied, trajectories as u32, candidates)
        }
        Method::Vbd { samples, .. } => {
            sets.saturating_add(footprint::points_bytes(samples as u64, 2 * varied))
        }
        Method::Correlation { samples, .. } => {
            sets.saturating_add(footprint::points_bytes(samples as u64, varied))
        }
        Method::Fast { .. } | Method::Table { .. } => sets,
    };
    let work = format!("{rows} evaluations of {} parameters", parameters.len());
    let advice = "fewer samples or trajectories, or more memory, are needed";
    memory_limit::check_room(drawn.saturating_add(sets), &work, advice).map_err(|cause| {
        PrepareError::Memory { file: file.to_owned(), section: method_section(study), cause: Box::new(cause) }
    })
}
