//! Correlations of a response with each parameter: four kinds in one table. The papers call them importance
//! measures.

use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::correlation::{self, Coefficient, Correlations};
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::warnings::Warning;
use pleach_study::Defect;
use serde::Serialize;

/// Coefficients of all parameters.
#[derive(Clone, Debug, Serialize)]
pub struct CorrelationTable {
    /// Name of the response.
    pub response: String,
    /// Number of evaluations that the coefficients are computed from.
    pub evaluations_used: usize,
    /// Number of evaluations left out because they have no response.
    pub evaluations_dropped: usize,
    /// Whether the response has the same value in all evaluations, so that no coefficient is defined.
    pub no_variation: bool,
    /// Number of bootstrap resamples of the confidence intervals.
    pub resamples: u32,
    /// Coefficients of the varying parameters, in the order of the parameters.
    pub parameters: Vec<ParameterCorrelation>,
    /// Reasons for missing partial coefficients.
    pub notes: Vec<String>,
}

/// Coefficients of one parameter, each in −1 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct ParameterCorrelation {
    /// Name of the parameter.
    pub name: String,
    pub(crate) pearson: Estimate,
    /// Spearman's rank correlation with the response.
    pub spearman: Estimate,
    pub(crate) pcc: Estimate,
    /// Partial rank correlation with the response. Absent if the partial coefficients cannot be computed.
    pub prcc: Estimate,
}

impl ParameterCorrelation {
    /// Names of the coefficients, in their order.
    pub const KINDS: [&'static str; 4] = ["pearson", "spearman", "pcc", "prcc"];

    /// Returns the four coefficients in the order of [`Self::KINDS`].
    pub fn each(&self) -> [&Estimate; 4] {
        [&self.pearson, &self.spearman, &self.pcc, &self.prcc]
    }

    /// Returns the value that ranks the parameter: its absolute partial rank correlation, or else its
    /// absolute rank correlation.
    fn size(&self) -> f64 {
        self.prcc.value.or(self.spearman.value).unwrap_or(0.0).abs()
    }
}

impl CorrelationTable {
    /// Computes the correlations of one response, one value per row. Includes partial coefficients if there
    /// are enough rows.
    ///
    /// # Errors
    /// [`AnalysisError`] if not even the plain correlations can be computed.
    pub(crate) fn of(
        columns: &Columns,
        response: Response<'_>,
        bootstrap: Bootstrap,
    ) -> Result<Self, AnalysisError> {
        let one = |found: Vec<Correlations>| found.into_iter().next();
        let responses = [response];
        let pearson = one(correlation::pearson(columns, &responses, bootstrap)?);
        let spearman = one(correlation::spearman(columns, &responses, bootstrap)?);
        let mut notes = Vec::new();
        let mut partial = |found: Result<Vec<Correlations>, AnalysisError>| match found {
            Ok(found) => one(found),
            Err(error) => {
                notes.push(error.to_string());
                None
            }
        };
        let pcc = partial(correlation::pcc(columns, &responses, bootstrap));
        let prcc = partial(correlation::prcc(columns, &responses, bootstrap));
        let of = |found: &Option<Correlations>, place: usize| {
            let found = found.as_ref().and_then(|found| found.parameters.get(place));
            found.map_or(Estimate::ABSENT, |found| found.coefficient)
        };
        let parameters = columns.names().iter().enumerate().map(|(place, name)| ParameterCorrelation {
            name: name.clone(),
            pearson: of(&pearson, place),
            spearman: of(&spearman, place),
            pcc: of(&pcc, place),
            prcc: of(&prcc, place),
        });
        let count = |of: fn(&Correlations) -> usize| pearson.as_ref().map_or(0, of);
        Ok(Self {
            response: response.name.to_owned(),
            evaluations_used: count(|found| found.evaluations_used),
            evaluations_dropped: count(|found| found.evaluations_dropped),
            no_variation: pearson.as_ref().is_some_and(|found| found.no_variation),
            resamples: bootstrap.resamples,
            parameters: parameters.collect(),
            notes,
        })
    }

    /// Returns the parameters in descending order of their coefficients.
    pub fn ranked(&self) -> Vec<&ParameterCorrelation> {
        let mut ranked: Vec<_> = self.parameters.iter().collect();
        ranked.sort_by(|a, b| b.size().total_cmp(&a.size()));
        ranked
    }

    /// Returns the warnings of the partial rank correlations, or of the rank correlations if there are no
    /// partial ones.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let partial = self.parameters.iter().any(|parameter| parameter.prcc.value.is_some());
        let of = |p: &ParameterCorrelation| Coefficient {
            name: p.name.clone(),
            coefficient: if partial { p.prcc } else { p.spearman },
        };
        let shown = Correlations {
            response: self.response.clone(),
            evaluations_used: self.evaluations_used,
            evaluations_dropped: self.evaluations_dropped,
            no_variation: self.no_variation,
            resamples: self.resamples,
            parameters: self.parameters.iter().map(of).collect(),
        };
        if partial { Indices::Prcc(shown).warnings() } else { Indices::Spearman(shown).warnings() }
    }

    /// Returns the document of `indices.json`.
    pub(super) fn json(&self) -> Result<serde_json::Value, Defect> {
        let mut document = serde_json::to_value(self).map_err(Defect::new)?;
        document["method"] = "correlation".into();
        Ok(document)
    }
}
