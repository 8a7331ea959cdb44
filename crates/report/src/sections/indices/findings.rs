//! Analysis of a response, with the words of its page: of a study of images, or of a model without images.

use crate::Report;
use crate::page::format_number::Rounding;
use crate::page::metric::Metric;
use crate::sections::responses;
use pleach_results::analysis::Analysis;
use pleach_workflow::Parameter;

/// Input of the sections on indices.
#[derive(Debug)]
pub(crate) struct Findings<'a> {
    /// Name and meaning of the response.
    pub(crate) metric: Metric,
    /// All parameters, varying or not.
    pub(crate) parameters: &'a [Parameter],
    pub(crate) analysis: &'a Analysis,
    /// Sentence on the range of the response over the evaluations. `None` without responses.
    pub(crate) range: Option<String>,
    pub(crate) scope: Scope,
}

/// Scope of the conclusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The tiles of the study.
    Tiles,
    /// The model: nothing but the parameters changes its responses.
    Model,
}

impl Scope {
    /// Returns the limits of a conclusion, within a sentence.
    pub(crate) fn limits(self) -> &'static str {
        match self {
            Self::Tiles => "on these tiles and over these ranges",
            Self::Model => "over these ranges",
        }
    }

    /// Returns the conclusion from a response that never changes.
    pub(crate) fn no_change(self) -> &'static str {
        match self {
            Self::Tiles => {
                "Either no parameter has an effect on these tiles and over these ranges, or all results are \
                 empty: inspect the masks before you conclude."
            }
            Self::Model => "No parameter has an effect over these ranges.",
        }
    }

    /// Returns the meaning of an interval, after its definition.
    pub(crate) fn interval(self) -> &'static str {
        match self {
            Self::Tiles => {
                "; it shows the precision of μ* for these tiles, not the difference to other tiles"
            }
            Self::Model => "",
        }
    }
}

impl<'a> Findings<'a> {
    /// Returns the findings of the study's metric.
    pub(crate) fn of(report: &Report<'a>) -> Self {
        Self {
            metric: Metric::of(report.study),
            parameters: &report.study.workflow.parameters,
            analysis: report.analysis,
            range: responses::range(report),
            scope: Scope::Tiles,
        }
    }

    /// Returns the findings of a response of a model. `responses` are the values of all evaluations.
    pub(crate) fn of_model(
        analysis: &'a Analysis,
        parameters: &'a [Parameter],
        responses: &[Option<f64>],
    ) -> Self {
        let known = || responses.iter().copied().flatten();
        let span = known().reduce(f64::min).zip(known().reduce(f64::max));
        let range = span.map(|(smallest, largest)| {
            let rounding = Rounding::brief(largest.abs().max(smallest.abs()));
            format!(
                "Over the evaluations, {} ranged from {} to {}.",
                analysis.response(),
                rounding.show(smallest),
                rounding.show(largest)
            )
        });
        let metric = Metric::of_model(analysis.response());
        Self { metric, parameters, analysis, range, scope: Scope::Model }
    }
}
