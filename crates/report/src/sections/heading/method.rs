//! Fact of the heading: the method, its design and the number of evaluations.

use crate::Report;
use crate::page::format_number::counted;
use crate::page::html::{Html, html, strong};
use pleach_results::analysis::Analysis;
use pleach_sensitivity::indices::Indices;
use pleach_workflow::{BasePoints, GivenDataMethod, Method};

/// Describes the method and its design.
pub(super) fn method(report: &Report<'_>) -> Html {
    let (study, run) = (report.study, report.run);
    let total = format!(
        "{} (parameter sets) on {} = {}.",
        counted(run.evaluations, "evaluation", "evaluations"),
        counted(study.tiles.len(), "tile", "tiles"),
        counted(run.runs, "run", "runs"),
    );
    let varied = study.workflow.parameters.iter().filter(|parameter| parameter.domain.varies()).count();
    let parameters = counted(varied, "parameter", "parameters");
    match (&study.method, report.analysis) {
        (&Method::Moat { trajectories, base, candidates, .. }, _)
            if trajectories * (varied + 1) == run.evaluations =>
        {
            morris(trajectories, base, candidates, &parameters, &total)
        }
        (
            &Method::Vbd { samples, second_order, base },
            Analysis::None { method: "vbd", .. } | Analysis::Indices(Indices::Vbd(_)),
        ) => html![
            strong("Saltelli’s design for variance-based decomposition"),
            format!(
                ": {}, each {} points of {parameters} = {total} {}",
                counted(samples, "base sample", "base samples"),
                run.evaluations / samples.max(1),
                saltelli(second_order, base),
            ),
        ],
        (&Method::Correlation { samples, base, of }, _) if samples == run.evaluations => html![
            strong(name(of)),
            format!(": {} points of {parameters}, {}: {total}", run.evaluations, drawn(base)),
        ],
        (
            &Method::Fast { samples },
            Analysis::None { method: "fast", .. } | Analysis::Indices(Indices::Efast(_)),
        ) => html![
            strong("eFAST"),
            format!(
                ": search curves of {parameters}, {} each = {total} On the curve of a parameter, that \
                 parameter oscillates at a high frequency and all others at low ones.",
                counted(samples, "point", "points"),
            ),
        ],
        (_, analysis) => table(analysis, &total),
    }
}

/// Describes a design of trajectories.
fn morris(
    trajectories: usize,
    base: Option<BasePoints>,
    candidates: Option<u32>,
    parameters: &str,
    total: &str,
) -> Html {
    html![
        strong("Morris one-at-a-time"),
        format!(
            ": {} of {parameters} = {total} Each trajectory changes one parameter after the other and \
             measures every parameter’s effect once, each time at other values of the others.",
            counted(trajectories, "trajectory", "trajectories"),
        ),
        match base {
            Some(base) => format!(" They start from {}.", drawn(base)),
            None => String::new(),
        },
        match candidates {
            Some(among) => format!(
                " They were selected from {among} candidates for the largest distances \
                                    between them."
            ),
            None => String::new(),
        },
    ]
}

/// Describes parameter sets from a table, by the analysis that they allow.
fn table(analysis: &Analysis, total: &str) -> Html {
    match analysis {
        Analysis::Correlations(_) => {
            html![strong("Correlations"), format!(", on parameter sets from a table: {total}")]
        }
        Analysis::Regression(_) => {
            html![strong("Standardized regression"), format!(", on parameter sets from a table: {total}")]
        }
        Analysis::Indices(_) => html![
            strong("Morris one-at-a-time"),
            format!(", on parameter sets from a table that holds trajectories: {total}"),
        ],
        Analysis::None { .. } => html![strong("Parameter sets from a table"), format!(": {total}")],
    }
}

/// Returns the name of a given-data method.
fn name(method: GivenDataMethod) -> &'static str {
    match method {
        GivenDataMethod::Correlation => "Correlations",
        GivenDataMethod::Regression => "Standardized regression",
        GivenDataMethod::Pawn => "PAWN",
        GivenDataMethod::Delta => "Borgonovo’s delta",
        GivenDataMethod::RbdFast => "RBD-FAST",
    }
}

/// Describes the sampling of points.
fn drawn(base: BasePoints) -> &'static str {
    match base {
        BasePoints::Sobol => "scrambled Sobol’ points",
        BasePoints::MonteCarlo => "independent random points",
        BasePoints::LatinHypercube => "points of a Latin hypercube",
        BasePoints::Halton => "scrambled Halton points",
        BasePoints::Hammersley => "scrambled Hammersley points",
    }
}

/// Describes a base sample.
fn saltelli(second_order: bool, base: BasePoints) -> String {
    let drawn = drawn(base);
    let back = if second_order { ", and the second with the value from the first" } else { "" };
    format!(
        "A base sample consists of two points ({drawn}) and, for each parameter, the first point with that \
         parameter’s value from the second{back}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn method_is_described_in_words() {
        let fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        let text = method(&fixture.report()).into_string();
        assert!(text.contains("10 trajectories of 15 parameters = 160 evaluations"), "{text}");
    }
}
