//! Given-data methods: computes their indices from points without a design.

use super::{Analysis, CorrelationTable, Regressions};
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::{delta, pawn, rbd_fast};
use pleach_workflow::GivenDataMethod;

/// Given-data method with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenDataAnalysis {
    /// Correlations of values and of ranks, plain and partial.
    Correlation,
    /// Standardized regression of values and of ranks.
    Regression,
    /// PAWN: shift of the response's distribution within slices of a parameter's values.
    Pawn {
        /// Number of slices of a parameter with more distinct values than that.
        slices: u32,
    },
    /// Delta: moment-independent indices, and first-order indices.
    Delta,
    /// RBD-FAST: first-order indices from the low frequencies of the response along each parameter.
    RbdFast {
        /// Number of harmonics whose variance counts as the effect of a parameter.
        harmonics: u32,
    },
}

impl From<GivenDataMethod> for GivenDataAnalysis {
    /// Converts a method with SALib's default settings.
    fn from(of: GivenDataMethod) -> Self {
        match of {
            GivenDataMethod::Correlation => Self::Correlation,
            GivenDataMethod::Regression => Self::Regression,
            GivenDataMethod::Pawn => Self::Pawn { slices: pawn::SLICES as u32 },
            GivenDataMethod::Delta => Self::Delta,
            GivenDataMethod::RbdFast => Self::RbdFast { harmonics: rbd_fast::HARMONICS as u32 },
        }
    }
}

/// Computes the indices of each response from the values of the parameters, one row per evaluation.
///
/// # Errors
/// [`AnalysisError`] if there are too few responses or the method cannot handle them.
pub fn of_points(
    columns: &Columns,
    method: GivenDataAnalysis,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Analysis>, AnalysisError> {
    Ok(match method {
        GivenDataAnalysis::Correlation => responses
            .iter()
            .map(|response| CorrelationTable::of(columns, *response, bootstrap).map(Analysis::Correlations))
            .collect::<Result<_, _>>()?,
        GivenDataAnalysis::Regression => {
            Regressions::of(columns, responses, bootstrap)?.into_iter().map(Analysis::Regression).collect()
        }
        GivenDataAnalysis::Pawn { slices } => Analysis::of_each(
            pawn::indices(columns, responses, slices as usize, None, bootstrap)?,
            Indices::Pawn,
        ),
        GivenDataAnalysis::Delta => {
            Analysis::of_each(delta::indices(columns, responses, bootstrap)?, Indices::Delta)
        }
        GivenDataAnalysis::RbdFast { harmonics } => Analysis::of_each(
            rbd_fast::indices(columns, responses, harmonics as usize, bootstrap)?,
            Indices::RbdFast,
        ),
    })
}

impl Analysis {
    /// Converts the indices of several responses. `indices` is the variant of their method.
    pub fn of_each<T>(found: Vec<T>, indices: fn(T) -> Indices) -> Vec<Self> {
        found.into_iter().map(|found| Self::Indices(indices(found))).collect()
    }
}
