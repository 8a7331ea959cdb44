//! Presents the results of a study: `report.html`, a self-contained page that explains them, drawings as files of their
//! own ([`drawings`]), and a summary as lines of text ([`summary`]).
//!
//! The page needs no script, no network and no clock: equal results give equal pages. Each section has its
//! own module. `page::html` escapes all text and `page::format_number` formats all numbers.

mod charts;
pub mod drawings;
#[cfg(test)]
mod fixture;
pub mod gallery;
pub mod model;
mod page;
pub mod phases;
mod sections;
pub mod summary;
mod verdict;

pub use charts::{raster, scatter::ScatterColumn};
pub use sections::sample_plots::SampleResponses;

use crate::gallery::Gallery;
use page::contents::Sections;
use page::html::{Html, html, p};
use pleach_planner::PlanRecord;
use pleach_results::analysis::RunResponse;
use pleach_results::analysis::best::BestSets;
use pleach_results::analysis::{Analysis, Failures};
use pleach_results::record::RunRecord;
use pleach_sensitivity::indices::Indices;
use pleach_workflow::Study;
use sections::indices::findings::Findings;
use sections::{
    best, compared, extremes, heading, indices, pictures, responses, reuse, sample_growth, sample_plots,
    slides, tile_pictures, time, workflow_diagram,
};

/// Results of a study, as input of the report.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Study, with the analyzed metrics: `metric`, then `further`.
    pub study: &'a Study,
    /// Executed plan. For a growing sample, that of the last round.
    pub plan: &'a PlanRecord,
    /// Content of `run.json`: counts, reuse and times of the execution.
    pub run: &'a RunRecord,
    /// Analysis of the study's first metric.
    pub analysis: &'a Analysis,
    /// Analyses of the study's additional metrics, in their order.
    pub further: &'a [Analysis],
    /// Responses of evaluations 1, 2, … on all tiles, failed runs included.
    pub runs: &'a [RunResponse],
    /// Failed evaluations and their effect on the indices. `None` if every evaluation has a response.
    pub failures: Option<&'a Failures>,
    /// Best parameter sets of each response. Empty without given reference.
    pub best: &'a [BestSets],
    /// Pictures of the tiles, overviews of the slides, and the names of the preview files.
    pub gallery: &'a Gallery,
    /// Design and responses for the figures of the sample. `None` omits these figures.
    pub sampled: Option<sample_plots::SampleResponses<'a>>,
}

/// Written results, for printing.
pub struct WrittenResults {
    /// Content of `run.json`.
    pub run: RunRecord,
    /// One analysis per response.
    pub analyses: Vec<Analysis>,
    /// Best parameter sets of each response. Empty without given reference.
    pub best: Vec<BestSets>,
    /// Pictures of the page, and the names of the written preview files.
    pub gallery: Gallery,
    /// Failed evaluations and their effect on the indices. `None` if every evaluation has a response.
    pub failures: Option<Failures>,
}

/// Returns the page.
pub fn html(report: &Report<'_>) -> String {
    let mut sections = Sections::default();
    add_sections(&mut sections, report, true);
    let (contents, sections) = sections.finish();
    let head = head(&report.study.name);
    page(head, html![heading::title(report), heading::section(report), contents, sections, footer(report)])
}

fn head(study: &str) -> Html {
    let style = Html::element("style", &[], Html::raw(include_str!("page/page.css")));
    let title = Html::element("title", &[], format!("{study} – pleach"));
    Html::element("head", &[], html![Html::raw(META), title, style])
}

fn page(head: Html, body: Html) -> String {
    let page = Html::element("html", &[("lang", "en")], html![head, Html::element("body", &[], body)]);
    html![Html::raw("<!doctype html>\n"), page, Html::raw("\n")].into_string()
}

/// Adds the sections of the results. `pictures` adds the slides, the masks and the workflow. Sections of
/// additional responses are folded.
fn add_sections(sections: &mut Sections, report: &Report<'_>, pictures: bool) {
    let studies = of_each_response(report);
    let each = studies.iter().zip(std::iter::once(report.analysis).chain(report.further));
    let each: Vec<Report<'_>> = each.map(|(study, analysis)| Report { study, analysis, ..*report }).collect();
    let title = |title: &str, of: &Report<'_>| match report.further {
        [] => title.to_owned(),
        _ => format!("{title}: {}", of.study.metric_name()),
    };
    for (place, one) in each.iter().enumerate() {
        let entry = (place == 0).then_some("Summary");
        sections.answer(&title("Summary", one), entry, indices::answer(&Findings::of(one)));
    }
    for (place, one) in each.iter().enumerate() {
        let indices = indices::section(&Findings::of(one), sample_plots::section(one))
            .map(|section| (title("Sensitivity", one), section));
        let own = indices.into_iter().chain([(title("Response", one), responses::section(one))]);
        if place == 0 {
            own.for_each(|(title, section)| sections.add(&title, section));
        } else {
            sections.fold(&title("Additional response", one), own.collect());
        }
    }
    let others = [
        ("Sample growth", report.run.convergence.as_ref().map(sample_growth::section)),
        ("Masks and references", compared::section(report)),
        ("Default, best and worst", extremes::section(report)),
        ("Best parameter sets", best::section(report)),
        ("Slides", slides::section(report).filter(|_| pictures)),
        ("Masks of selected evaluations", pictures.then(|| pictures::section(report))),
        ("Default, best and worst on each tile", tile_pictures::section(report).filter(|_| pictures)),
        ("Workflow", pictures.then(|| workflow_diagram::section(report))),
        ("Reuse", Some(reuse::section(report))),
        ("Execution time", Some(time::section(report))),
    ];
    for (title, section) in others {
        if let Some(section) = section {
            sections.add(title, section);
        }
    }
}

/// Returns one copy of the study per response, with only that response.
fn of_each_response(report: &Report<'_>) -> Vec<Study> {
    let of = |metric| Study { metric, further: Vec::new(), ..report.study.clone() };
    report.study.metrics().map(of).collect()
}

/// Head elements. The content security policy blocks all requests, even if a name in the page contained
/// markup.
const META: &str = "<meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">";

/// Returns the footer: provenance, result files and citations.
fn footer(report: &Report<'_>) -> Html {
    let run = report.run;
    let mut text = html![p(provenance(run)), p(html!["Files with the numbers: ", listed(&FILES), "."])];
    if !report.gallery.previews.is_empty() {
        text.push(p(html!["Images of tasks are in ", Html::element("code", &[], "previews"), "."]));
    }
    text.push(methods(report.analysis));
    Html::element("footer", &[], text)
}

/// Result files in the folder of the page.
const FILES: [&str; 7] =
    ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json", "plan.json", "run.json"];

fn listed(files: &[&str]) -> Html {
    let mut listed = Html::default();
    for (place, file) in files.iter().enumerate() {
        listed.push(if place == 0 { "" } else { ", " });
        listed.push(Html::element("code", &[], *file));
    }
    listed
}

fn provenance(run: &RunRecord) -> String {
    format!(
        "Created by pleach {} with strategy {}{} and seed {}; the same study file, tiles, version and seed \
         give the same responses and indices.",
        run.version,
        run.strategy,
        run.reuse.map_or_else(String::new, |reuse| format!(", {reuse} reuse")),
        run.seed,
    )
}

/// Returns the citations of the methods used.
fn methods(analysis: &Analysis) -> Html {
    let mut text = Html::default();
    if analysis.moat().is_some() {
        text.push(p(
            "Method: M. D. Morris, Factorial sampling plans for preliminary computational experiments, \
             Technometrics 33 (1991) 161–174; μ*: F. Campolongo, J. Cariboni, A. Saltelli, An effective screening \
             design for sensitivity analysis of large models, Environmental Modelling & Software 22 (2007) \
             1509–1518.",
        ));
    }
    if let Analysis::None { method: "vbd", .. } | Analysis::Indices(Indices::Vbd(_)) = analysis {
        text.push(p(
            "Design: A. Saltelli, P. Annoni, I. Azzini, F. Campolongo, M. Ratto, S. Tarantola, Variance based \
             sensitivity analysis of model output, Computer Physics Communications 181 (2010) 259–270.",
        ));
    }
    if let Analysis::Correlations(_) = analysis {
        text.push(p(
            "Method: J. C. Helton, J. D. Johnson, C. J. Sallaberry, C. B. Storlie, Survey of sampling-based methods for \
             uncertainty and sensitivity analysis, Reliability Engineering & System Safety 91 (2006) 1175–1209.",
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::fixture::{self, Fixture};
    use super::*;
    use proptest::prelude::*;

    /// Returns the page, after checks that hold for every page.
    fn page(fixture: &Fixture) -> String {
        let page = html(&fixture.report());
        assert_eq!(page, html(&fixture.report()), "the same results give the same page");
        let (_, body) = page.split_once("</head>").unwrap();
        for forbidden in ["NaN", "inf\"", "inf ", "<script", "http:", "https:", "url("] {
            assert!(!body.contains(forbidden), "{forbidden}");
        }
        assert_balanced(body);
        page
    }

    /// Asserts that every opened element is closed, in order.
    fn assert_balanced(markup: &str) {
        let mut open = vec!["html"];
        for tag in markup.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').unwrap();
            let name = tag.trim_end_matches('/').split_whitespace().next().unwrap();
            if let Some(name) = name.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_usual_study_has_every_section() {
        let page = page(&fixture::moat(&[("G2", 0.41, 0.08), ("G1", 0.2, 0.05), ("B", 0.0, 0.0)]));
        for section in ["Summary", "Sensitivity", "Response", "Reuse", "Execution time"] {
            assert!(page.contains(&format!(">{section}</h2>")), "{section}");
        }
        assert!(page.contains("gbm &lt;moat&gt;") && !page.contains("<moat>"));
    }

    #[test]
    fn edge_case_studies_have_a_page() {
        page(&fixture::moat(&[]));
        page(&fixture::moat(&[("only", 0.2, 0.3)]));
        page(&fixture::moat(&[("a", 0.0, 0.0), ("b", 0.0, 0.0)]));
        page(&fixture::moat(&[("large", 1e300, 1e299), ("small", 1e-300, 0.0)]));
        let mut one = fixture::moat(&[("a", 0.3, 0.0), ("b", 0.1, 0.0)]);
        one.without_spread();
        assert!(page(&one).contains("intervals and σ are not available"));
        let names: Vec<String> = (0..60).map(|n| format!("{}<{n}>", "long-name-".repeat(n))).collect();
        let parameters: Vec<_> = names.iter().map(|name| (name.as_str(), 0.01, 0.02)).collect();
        page(&fixture::moat(&parameters));
    }

    #[test]
    fn page_without_indices_states_the_reason() {
        let mut fixture = fixture::moat(&[]);
        let note = "parameter sets from a <table>".to_owned();
        fixture.analysis = Analysis::None { method: "table", response: "dice".to_owned(), note };
        for run in &mut fixture.runs {
            run.result = Ok(vec![f64::NAN, f64::INFINITY, 0.0]);
        }
        fixture.run.operations.clear();
        let page = page(&fixture);
        assert!(page.contains("Parameter sets from a &lt;table&gt;."));
        assert!(!page.contains("Sensitivity") && page.contains("Reuse"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn page_is_rendered_for_any_numbers_and_names(
            parameters in prop::collection::vec((".{0,40}", 0.0..1e6_f64, 0.0..1e6_f64, -9i32..9), 0..24),
        ) {
            let scaled = |size: f64, power: i32| size * 10_f64.powi(power);
            let parameters: Vec<_> = parameters
                .iter()
                .map(|(name, size, spread, power)| (name.as_str(), scaled(*size, *power), scaled(*spread, *power)))
                .collect();
            let _ = page(&fixture::moat(&parameters));
        }
    }
}
