//! Figures of the sample: convergence of the indices over growing parts, and the response over each
//! parameter.

use crate::Report;
use crate::charts::scatter::ScatterColumn;
use crate::drawings::plots::{self, ResponsePlots};
use crate::page::format_number::capital;
use crate::page::html::{Html, figure, html, strong};
use crate::page::metric::Metric;
use pleach_interop::analysis::{DesignForm, convergence};
use pleach_interop::method::ExternalMethod;
use pleach_interop::responses::ResponseColumn;
use pleach_results::analysis::{self, CollectedResponses};
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::fast::HARMONICS;
use pleach_sensitivity::sampling::{Design, Structure};
use pleach_sensitivity::vbd::Estimator;
use pleach_workflow::{BasePoints, Method, Parameter};

/// Parameter sets of a study and their responses.
#[derive(Clone, Copy, Debug)]
pub struct SampleResponses<'a> {
    /// Parameter sets of evaluations 1, 2, … and their structure, which determines the analysis.
    pub design: &'a Design,
    /// Responses of all runs of these parameter sets, failed runs included.
    pub collected: &'a CollectedResponses,
}

/// Returns the figures of the study's metric. `None` without a sample or without a form that the analysis
/// supports.
pub(crate) fn section(report: &Report<'_>) -> Option<Html> {
    let SampleResponses { design, collected } = report.sampled?;
    let study = report.study;
    let (name, over_tiles) = &study.workflow.response.metrics[study.metric];
    let measured =
        ResponseColumn { name: name.clone(), values: collected.responses(study.metric, *over_tiles) };
    let varying = study.workflow.parameters.iter().enumerate().filter(|(_, p)| p.domain.varies());
    let columns: Vec<(&Parameter, Vec<f64>)> = varying
        .map(|(column, parameter)| {
            (parameter, design.evaluations.iter().map(|set| set[column].as_f64()).collect())
        })
        .collect();
    let (form, way) = form(report, design)?;
    let bootstrap = analysis::bootstrap(study.seed);
    let along = columns
        .iter()
        .map(|(Parameter { name, domain, .. }, values)| ScatterColumn { name, values, domain })
        .collect();
    let steps = convergence(&form, way, &measured, bootstrap);
    let drawn = ResponsePlots {
        analysis: report.analysis,
        steps,
        along,
        responses: &measured.values,
        independent: form.independent(),
    };
    Some(figures(&drawn, &Metric::of(study).name))
}

/// Returns the figures of a response. Empty without indices.
pub(crate) fn figures(drawn: &ResponsePlots<'_>, response: &str) -> Html {
    let mut text = Html::default();
    if let Some((drawing, index)) = plots::settling(drawn) {
        let caption = html![
            strong("Convergence."),
            format!(
                " {} of growing prefixes of the sample, with 95 % intervals, for the most influential \
                 parameters. A line that is level at the right has converged.",
                capital(&index)
            ),
        ];
        text.push(figure(drawing.finish(), caption));
    }
    if let Some(drawing) = plots::scattered(drawn, response) {
        let caption = html![
            strong(capital(&format!("{response} over each parameter."))),
            " Dots: evaluations; line, with enough evaluations: their mean along the parameter.",
        ];
        text.push(figure(drawing.finish(), caption));
    }
    text
}

/// Returns the form of the study's design and the method that analyzes it. `None` for designs without a
/// method.
fn form(report: &Report<'_>, design: &Design) -> Option<(DesignForm, ExternalMethod)> {
    Some(match (&design.structure, &report.study.method) {
        (Structure::Trajectories(found), _) => {
            let way = ExternalMethod::Moat { trajectories: 0, levels: 0, base: None, candidates: None };
            (DesignForm::Trajectories(found.clone()), way)
        }
        (Structure::Saltelli(found), _) => {
            let (base, estimator) = (BasePoints::default(), Estimator::default());
            (DesignForm::Blocks(found.clone()), ExternalMethod::Vbd { second_order: None, base, estimator })
        }
        (Structure::Curves(found), _) => {
            (DesignForm::Curves(found.clone()), ExternalMethod::Fast { harmonics: HARMONICS as u32 })
        }
        (_, &Method::Correlation { of, .. }) => {
            let columns = Columns::of(&report.study.workflow.parameters, &design.evaluations).ok()?;
            (DesignForm::Columns(columns), ExternalMethod::Columns(of.into()))
        }
        _ => return None,
    })
}
