//! Standardized regression of a response on the parameters: of values and of ranks.

use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::regression::{self, Regression};
use pleach_sensitivity::responses::Response;
use serde::Serialize;

/// The two models of one response.
#[derive(Clone, Debug, Serialize)]
pub struct Regressions {
    pub(crate) response: String,
    /// Standardized regression coefficients, of values.
    pub(crate) src: Regression,
    /// Standardized rank regression coefficients, of ranks.
    pub(crate) srrc: Regression,
}

impl Regressions {
    /// Computes both regressions of each response, one row per evaluation.
    ///
    /// # Errors
    /// [`AnalysisError`] as [`regression::src()`].
    pub(crate) fn of(
        columns: &Columns,
        responses: &[Response<'_>],
        bootstrap: Bootstrap,
    ) -> Result<Vec<Self>, AnalysisError> {
        let values = regression::src(columns, responses, bootstrap)?;
        let ranks = regression::srrc(columns, responses, bootstrap)?;
        let both = values.into_iter().zip(ranks);
        Ok(both.map(|(src, srrc)| Self { response: src.response.clone(), src, srrc }).collect())
    }
}
