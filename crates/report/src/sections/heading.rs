//! Heading of the page: title, facts of the study, and the box of failures.

mod method;

use crate::Report;
use crate::page::format_number::{bytes, capital, count, counted, duration, names};
use crate::page::html::{Html, html, li, p, strong, ul};
use crate::page::metric::Metric;
use crate::sections::failed;
use method::method;
use pleach_study::volumes;
use pleach_workflow::{Domain, ReferenceSource};
use std::collections::{BTreeSet, HashMap};

/// Names listed before "and N more".
const MAX_NAMES: usize = 12;
/// Maximum causes of failure in the list.
const MAX_CAUSES: usize = 5;

/// Returns the kind of the page and the study's name.
pub(crate) fn title(report: &Report<'_>) -> Html {
    titled("sensitivity of results to workflow parameters", &report.study.name)
}

/// Returns the kind of a page and its name.
pub(crate) fn titled(kind: &str, name: &str) -> Html {
    html![Html::of_class("p", "kind", format!("pleach: {kind}")), Html::element("h1", &[], name)]
}

/// Returns the facts and the box of failures.
pub(crate) fn section(report: &Report<'_>) -> Html {
    let (study, run) = (report.study, report.run);
    let workflow = &study.workflow;
    let mut facts = DescriptionList::default();
    facts.add("Workflow", html![strong(&workflow.name), format!(": {}", workflow.description)]);
    if !study.switched_off.is_empty() {
        facts.add("Switched off", names(study.switched_off.iter().map(String::as_str), MAX_NAMES));
    }
    facts.add("Method", method(report));
    facts.add("Response", response(report));
    let tiles = names(study.tiles.iter().map(|tile| tile.name.as_str()), MAX_NAMES);
    facts.add("Tiles", html![format!("{}: ", count(study.tiles.len())), tiles]);
    let images = volumes::notes(study);
    if !images.is_empty() {
        facts.add("Images", names(images.iter().map(String::as_str), MAX_NAMES));
    }
    let fixed = workflow.parameters.iter().filter(|parameter| !parameter.domain.varies());
    let fixed: Vec<String> = fixed
        .map(|parameter| match &parameter.domain {
            Domain::Fixed { value } => format!("{}\u{a0}=\u{a0}{value}", parameter.name),
            _ => parameter.name.clone(),
        })
        .collect();
    if !fixed.is_empty() {
        facts.add("Held fixed", names(fixed.iter().map(String::as_str), 2 * MAX_NAMES));
    }
    facts.add("Seed", run.seed.to_string());
    facts.add("Computed by", computed(report));
    html![facts.finish(), failures(report)]
}

/// List of names and values.
#[derive(Debug, Default)]
pub(crate) struct DescriptionList(Html);

impl DescriptionList {
    pub(crate) fn add(&mut self, name: &str, value: impl Into<Html>) {
        self.0.push(html![Html::element("dt", &[], name), Html::element("dd", &[], value)]);
    }

    pub(crate) fn finish(self) -> Html {
        Html::of_class("dl", "facts", self.0)
    }
}

fn response(report: &Report<'_>) -> Html {
    let mut text = Html::default();
    for (place, metric) in report.study.metrics().enumerate() {
        let metric = Metric::of_one(report.study, metric);
        let meaning = if metric.meaning.is_empty() { String::new() } else { format!(": {}", metric.meaning) };
        text.push(if place == 0 { "" } else { " " });
        text.push(html![strong(capital(&metric.name)), format!("{meaning}; {}.", metric.aggregate_label())]);
    }
    if report.study.workflow.reference.is_some() {
        text.push(match &report.study.reference {
            ReferenceSource::Defaults => {
                " The reference of each tile is the result at the workflow’s default parameters."
            }
            ReferenceSource::Masks(_) => " The reference of each tile is its mask from the study file.",
        });
    }
    text
}

fn computed(report: &Report<'_>) -> String {
    let run = report.run;
    format!(
        "pleach {} on {} ({}, {} {}), {}, in {}; peak memory {} in image regions and {} in total.",
        run.version,
        run.host.name,
        counted(run.host.processors, "processor", "processors"),
        run.host.system,
        run.host.architecture,
        counted(run.workers as usize, "worker", "workers"),
        duration(run.wall_seconds),
        bytes(run.peak_bytes_admitted),
        bytes(run.peak_rss_bytes),
    )
}

/// Returns the box of failures. Empty if no run failed and no tile was excluded.
fn failures(report: &Report<'_>) -> Html {
    let run = report.run;
    if run.failed == 0 && run.excluded_tiles.is_empty() {
        return Html::default();
    }
    let title = format!("{} of {} failed.", count(run.failed), counted(run.runs, "run", "runs"));
    let mut text =
        html![p(html![strong(title), " They have no response; failed.csv lists each with its parameters."])];
    let (causes, kinds) = causes(report);
    text.push(ul(causes));
    if kinds > MAX_CAUSES {
        text.push(p(format!("{} further causes are in failed.csv.", kinds - MAX_CAUSES)));
    }
    if !run.excluded_tiles.is_empty() {
        let one = run.excluded_tiles.len() == 1;
        text.push(p(html![
            if one { "Excluded from the indices: tile " } else { "Excluded from the indices: tiles " },
            names(run.excluded_tiles.iter().map(String::as_str), MAX_NAMES),
            ", because no run has a response there. All sections cover the other tiles only.",
        ]));
    }
    if let Some(failures) = report.failures {
        text.push(failed::counts(failures));
    }
    Html::element("aside", &[("class", "failed")], text)
}

/// Returns the most frequent causes as list items, and the number of all causes.
fn causes(report: &Report<'_>) -> (Html, usize) {
    struct Cause<'a> {
        what: [&'a str; 3],
        runs: usize,
        tiles: BTreeSet<usize>,
    }
    let mut places: HashMap<[&str; 3], usize> = HashMap::new();
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for run in report.runs {
        let Err(failure) = &run.result else { continue };
        let what = [failure.stage.as_str(), &failure.at, &failure.cause];
        let place = *places.entry(what).or_insert_with(|| {
            causes.push(Cause { what, runs: 0, tiles: BTreeSet::new() });
            causes.len() - 1
        });
        causes[place].runs += 1;
        causes[place].tiles.insert(run.tile);
    }
    // The stable sort keeps equal counts in the order of their first run.
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.runs));
    let items = causes.iter().take(MAX_CAUSES).map(|Cause { what: [stage, at, cause], runs, tiles }| {
        let tiles =
            tiles.iter().filter_map(|&tile| report.study.tiles.get(tile)).map(|tile| tile.name.as_str());
        li(html![
            format!("{}, stage {stage}, {at}: {cause} (on ", counted(*runs, "run", "runs")),
            names(tiles, 4),
            ")",
        ])
    });
    (items.collect(), causes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use pleach_results::analysis::RunFailure;

    #[test]
    fn failures_are_grouped_by_cause() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        for run in fixture.runs.iter_mut().take(3) {
            let cause = "truncated <file>".to_owned();
            run.result = Err(RunFailure { stage: "segmentation".to_owned(), at: "t1".to_owned(), cause });
        }
        fixture.run.failed = 3;
        fixture.run.excluded_tiles = vec!["tile & one".to_owned()];
        let text = failures(&fixture.report()).into_string();
        assert_eq!(text.matches("<li>").count(), 1);
        assert!(text.contains("3 runs, stage segmentation, t1: truncated &lt;file&gt;"), "{text}");
        assert!(text.contains("tile <strong>tile &amp; one</strong>, because"), "{text}");
    }
}
