//! Indices of growing parts of a sample, which show whether more evaluations would change them.
//!
//! Each step analyzes the first evaluations, trajectories or base samples, so steps are nested and the last
//! one is the whole sample. The beginning of a sampler's design is itself a design, except for eFAST curves.

use crate::design::columns::Columns;
use crate::design::saltelli_blocks::RowBlocks;
use crate::design::trajectory::Trajectories;
use crate::methods::indices::Indices;
use crate::methods::moat::{self, MoatError};
use crate::methods::vbd::{self, Estimator};
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::error::AnalysisError;
use crate::statistics::responses::Response;
use serde::{Deserialize, Serialize};

/// Indices of the beginning of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrefixIndices {
    /// Rows of that beginning, failed evaluations included.
    pub evaluations: usize,
    /// Indices of these rows.
    pub indices: Indices,
}

/// Returns the sizes of nested parts of `whole` units: halved `steps − 1` times, ascending, `whole` last.
/// Parts of 0 units are omitted.
///
/// Halving suits both kinds of samples: errors shrink with the root of the size, and Sobol' points are even
/// in powers of two.
#[must_use]
pub fn halves(whole: usize, steps: u32) -> Vec<usize> {
    let mut sizes: Vec<usize> = (0..steps).map(|step| whole.checked_shr(step).unwrap_or(0)).collect();
    sizes.retain(|&size| size > 0);
    sizes.reverse();
    sizes.dedup();
    sizes
}

/// Computes Sobol' indices of the first base samples, one step per size. Sizes beyond the design count as its
/// size.
///
/// A size with too few complete base samples gives no step.
///
/// # Errors
/// [`AnalysisError`] as [`vbd::indices`], of the responses as a whole.
pub fn vbd(
    blocks: &RowBlocks,
    response: Response<'_>,
    estimator: Estimator,
    bootstrap: Bootstrap,
    sizes: &[usize],
) -> Result<Vec<PrefixIndices>, AnalysisError> {
    response.check(blocks.rows())?;
    let mut steps = Vec::new();
    for &size in sizes {
        let samples = size.min(blocks.samples());
        let part = RowBlocks::new(blocks.names().to_vec(), samples, blocks.has_second_order());
        let beginning = Response { values: &response.values[..part.rows()], ..response };
        let found = vbd::indices(&part, &[beginning], estimator, bootstrap);
        push(&mut steps, part.rows(), found.map(|found| found.into_iter().map(Indices::Vbd).collect()))?;
    }
    Ok(steps)
}

/// Computes MOAT indices of the first complete trajectories, one step per size. A size without a usable
/// trajectory gives no step.
///
/// # Errors
/// [`MoatError`] as [`moat::indices`], of the responses as a whole.
pub fn moat(
    trajectories: &Trajectories,
    response: Response<'_>,
    seed: u64,
    sizes: &[usize],
) -> Result<Vec<PrefixIndices>, MoatError> {
    if response.values.len() != trajectories.rows() {
        let (responses, evaluations) = (response.values.len(), trajectories.rows());
        return Err(MoatError::ResponseCount { responses, evaluations });
    }
    let mut steps = Vec::new();
    for &size in sizes {
        let complete = &trajectories.complete()[..size.min(trajectories.complete().len())];
        let Some(last) = complete.last() else { continue };
        let rows = last.first_row + last.steps.len() + 1;
        let part = Trajectories::new(trajectories.names().to_vec(), complete.to_vec(), rows, false);
        match moat::indices(&part, response.name, &response.values[..rows], seed) {
            Ok(found) => steps.push(PrefixIndices { evaluations: rows, indices: Indices::Moat(found) }),
            // A short beginning may hold failed trajectories only. Later steps can still have indices.
            Err(MoatError::NoTrajectoryLeft { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(steps)
}

/// Computes indices of the first evaluations by any `method` on columns, one step per size. Larger sizes use
/// all evaluations.
///
/// A size that is too small for the method gives no step: it has too few evaluations, or a parameter does not
/// vary yet.
///
/// # Errors
/// [`AnalysisError`] as the method, of the responses as a whole.
pub fn columns(
    columns: &Columns,
    response: Response<'_>,
    sizes: &[usize],
    method: impl Fn(&Columns, Response<'_>) -> Result<Vec<Indices>, AnalysisError>,
) -> Result<Vec<PrefixIndices>, AnalysisError> {
    response.check(columns.rows())?;
    let mut steps = Vec::new();
    for &size in sizes {
        let part = columns.prefix(size);
        let beginning = Response { values: &response.values[..part.rows()], ..response };
        push(&mut steps, part.rows(), method(&part, beginning))?;
    }
    Ok(steps)
}

fn push(
    steps: &mut Vec<PrefixIndices>,
    evaluations: usize,
    found: Result<Vec<Indices>, AnalysisError>,
) -> Result<(), AnalysisError> {
    match found {
        Ok(found) => {
            steps.extend(found.into_iter().map(|indices| PrefixIndices { evaluations, indices }));
            Ok(())
        }
        Err(
            AnalysisError::TooFew { .. }
            | AnalysisError::OneValue { .. }
            | AnalysisError::Dependent { .. }
            | AnalysisError::Setting { .. },
        ) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_sizes_are_halved() {
        assert_eq!(halves(1000, 4), [125, 250, 500, 1000]);
        assert_eq!(halves(3, 5), [1, 3]);
        assert_eq!(halves(0, 5), [0; 0]);
        assert_eq!(halves(8, 100), [1, 2, 4, 8]);
    }
}
