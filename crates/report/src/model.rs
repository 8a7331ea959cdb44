//! Page of a study of a model without images: composed from parameters, responses and indices alone.
//!
//! The model is a simulation of pleach or a program of the user. The page has the summary in words, the indices with their
//! figures, and the distribution of each response. As the page of a study of images, it needs no script, network or clock.

use crate::drawings::plots::ResponsePlots;
use crate::page::contents::Sections;
use crate::page::html::{Html, html, p};
use crate::sections::heading::{DescriptionList, titled};
use crate::sections::indices::findings::Findings;
use crate::sections::{indices, responses, sample_plots};
use crate::{head, listed, methods, page};
use pleach_workflow::Parameter;

/// Results of a study of a model, as input of its page.
#[derive(Clone, Copy, Debug)]
pub struct ModelReport<'a> {
    /// Name of the study.
    pub name: &'a str,
    /// Kind of the study, in words.
    pub kind: &'a str,
    /// Facts of the heading: name and value.
    pub facts: &'a [(&'static str, String)],
    /// All parameters, varying or not.
    pub parameters: &'a [Parameter],
    /// The responses, the most important one first.
    pub responses: &'a [ResponsePlots<'a>],
    /// Names of the files in the folder of the page.
    pub files: &'a [&'a str],
    /// Sentence on the origin of the page.
    pub provenance: &'a str,
}

/// Returns the page. Sections of further responses are folded.
#[must_use]
pub fn html(report: &ModelReport<'_>) -> String {
    let mut facts = DescriptionList::default();
    report.facts.iter().for_each(|(name, value)| facts.add(name, value));
    let mut sections = Sections::default();
    let of_each = report.responses.iter();
    let of_each = of_each.map(|drawn| Findings::of_model(drawn.analysis, report.parameters, drawn.responses));
    let findings: Vec<Findings<'_>> = of_each.collect();
    let title = |title: &str, response: &str| match report.responses.len() {
        1 => title.to_owned(),
        _ => format!("{title}: {response}"),
    };
    for (place, found) in findings.iter().enumerate() {
        let entry = (place == 0).then_some("Summary");
        sections.answer(&title("Summary", found.analysis.response()), entry, indices::answer(found));
    }
    for (place, (drawn, found)) in report.responses.iter().zip(&findings).enumerate() {
        let response = drawn.analysis.response();
        let indices = indices::section(found, Some(sample_plots::figures(drawn, response)));
        let indices = indices.map(|section| (title("Sensitivity", response), section));
        let values = (title("Response", response), responses::of_model(response, drawn.responses));
        let own = indices.into_iter().chain([values]);
        if place == 0 {
            own.for_each(|(title, section)| sections.add(&title, section));
        } else {
            sections.fold(&title("Additional response", response), own.collect());
        }
    }
    let (contents, sections) = sections.finish();
    let mut foot = p(report.provenance);
    if !report.files.is_empty() {
        foot.push(p(html!["Files with the numbers: ", listed(report.files), "."]));
    }
    foot.push(report.responses.first().map(|drawn| methods(drawn.analysis)).unwrap_or_default());
    let foot = Html::element("footer", &[], foot);
    page(head(report.name), html![titled(report.kind, report.name), facts.finish(), contents, sections, foot])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use pleach_results::analysis::Analysis;

    fn page_of(analyses: &[&Analysis], responses: &[Option<f64>]) -> String {
        let parameters = fixture::moat(&[]).study.workflow.parameters;
        let drawn: Vec<ResponsePlots<'_>> = analyses
            .iter()
            .map(|analysis| ResponsePlots {
                analysis,
                steps: Vec::new(),
                along: Vec::new(),
                responses,
                independent: responses.len(),
            })
            .collect();
        html(&ModelReport {
            name: "a <model>",
            kind: "sensitivity of a simulation",
            facts: &[("Workflow", "montage & more".to_owned())],
            parameters: &parameters,
            responses: &drawn,
            files: &["samples.csv"],
            provenance: "Created by a test.",
        })
    }

    #[test]
    fn the_page_of_a_model_has_no_words_on_images() {
        let analysis = fixture::moat(&[("G2", 0.41, 0.08), ("G1", 0.001, 0.001)]).analysis;
        let page = page_of(&[&analysis], &[Some(613.0), None, Some(4021.0)]);
        for expected in [
            "a &lt;model&gt;",
            "montage &amp; more",
            "<strong>G2</strong> changes the result most.",
            "Over the evaluations, dice ranged from 613 to 4021.",
            "also at the upper end of the interval, over these ranges.",
            ">Sensitivity</h2>",
            ">Response</h2>",
            "<code>samples.csv</code>",
        ] {
            assert!(page.contains(expected), "{expected} in {page}");
        }
        let (_, body) = page.split_once("</head>").unwrap();
        for foreign in [" tile", "mask", "image", "<script"] {
            assert!(!body.contains(foreign), "{foreign} in {body}");
        }
    }

    #[test]
    fn further_responses_are_folded() {
        let analyses = [1, 2].map(|_| fixture::moat(&[("G2", 0.0, 0.0)]).analysis);
        let page = page_of(&[&analyses[0], &analyses[1]], &[Some(1.0), Some(1.0)]);
        assert_eq!(page.matches("<details class=\"fold\"").count(), 1, "{page}");
        assert!(page.contains("No parameter has an effect over these ranges."), "{page}");
    }
}
