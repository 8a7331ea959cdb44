//! Section on the default, the best and the worst evaluation of each response, with their parameters.
//!
//! `analysis::extremes` in `pleach-results` selects the evaluations. `pictures` shows their results.

use crate::Report;
use crate::page::format_number::{Rounding, capital, count};
use crate::page::html::{Html, Table, html, strong};
use crate::page::metric::Metric;
use pleach_results::analysis::extremes::{Extreme, Extremes, Role};

/// Maximum parameters of a table. A longer table gives no overview.
const MAX_PARAMETERS: usize = 40;

/// Returns the section. `None` if no evaluation has a response on every tile.
pub(crate) fn section(report: &Report<'_>) -> Option<Html> {
    let tables: Vec<Html> = report
        .run
        .extremes
        .iter()
        .filter(|of| of.evaluations.len() > 1)
        .map(|of| table(report, of))
        .collect();
    if tables.is_empty() {
        return None;
    }
    let lead_in = Html::of_class("p", "lead-in", introduction(&report.run.extremes));
    Some(html![lead_in, tables.into_iter().collect::<Html>()])
}

fn introduction(all: &[Extremes]) -> String {
    let each = || all.iter().flat_map(|of| &of.evaluations);
    let default = each().find(|extreme| extreme.role == Role::Default);
    let mut text = String::from("Bold values differ from the default. ");
    text.push_str(match default.map(|default| default.evaluation) {
        Some(Some(0)) => {
            "The run with default parameters is not part of the sample: no index depends on it, and it is \
             not in responses.csv. "
        }
        Some(Some(_)) => "The default parameters are an evaluation of the sample. ",
        _ => "The default parameters are not among the evaluations, so their response is unknown. ",
    });
    if each().any(|extreme| extreme.role == Role::Nearest) {
        text.push_str(
            "The result at the defaults is the reference, so nearest and farthest show the distance of \
             results from it, not their quality. ",
        );
    }
    if each().any(|extreme| extreme.role == Role::Best) {
        text.push_str(
            "Best is the evaluation of the sample that agrees most with the reference, not the optimum. ",
        );
    }
    text.trim_end().to_owned()
}

fn table(report: &Report<'_>, of: &Extremes) -> Html {
    let metric = Metric::of_one(report.study, of.metric);
    let header = of.evaluations.iter().map(|extreme| {
        let number = match (extreme.role, extreme.evaluation) {
            (Role::Default, _) | (_, None) => String::new(),
            (_, Some(evaluation)) => format!(" (evaluation {})", count(evaluation)),
        };
        Html::from(format!("{}{number}", extreme.role.name()))
    });
    let header = std::iter::once(Html::from("parameter")).chain(header);
    // The longest list is complete: all evaluations list the varying parameters, and those of the sample also
    // list parameters fixed at other values than their defaults.
    let widest = of.evaluations.iter().max_by_key(|extreme| extreme.settings.len());
    let names: Vec<&str> = widest.iter().flat_map(|one| &one.settings).map(|s| s.name.as_str()).collect();
    let left_out = names.len().saturating_sub(MAX_PARAMETERS);
    let caption = format!(
        "{} ({}) at its ends{}",
        capital(&metric.name),
        metric.aggregate_label(),
        if left_out > 0 {
            format!("; samples.csv has {} more parameters", count(left_out))
        } else {
            String::new()
        }
    );
    let mut table = Table::new("numbers", caption, header);
    let largest =
        of.evaluations.iter().filter_map(|extreme| extreme.value).fold(0.0, |m: f64, v| m.max(v.abs()));
    let rounding = Rounding::of(largest);
    let values = of.evaluations.iter().map(|extreme| value(extreme, rounding));
    table.row(std::iter::once(strong(capital(&metric.name))).chain(values));
    for name in names.into_iter().take(MAX_PARAMETERS) {
        table.row(
            std::iter::once(Html::from(name)).chain(of.evaluations.iter().map(|one| setting(one, name))),
        );
    }
    table.finish()
}

fn value(extreme: &Extreme, rounding: Rounding) -> Html {
    match (extreme.value, extreme.evaluation) {
        (Some(value), _) => strong(rounding.show(value)),
        (None, Some(_)) => Html::from("failed"),
        (None, None) => Html::from("not run"),
    }
}

fn setting(extreme: &Extreme, name: &str) -> Html {
    match extreme.settings.iter().find(|setting| setting.name == name) {
        Some(setting) if setting.is_moved() => strong(setting.value.to_string()),
        Some(setting) => Html::from(setting.value.to_string()),
        None => Html::from("–"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn table_marks_what_differs_from_the_default() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        let text = section(&fixture.report()).unwrap().into_string();
        for expected in [
            "nearest (evaluation 7)",
            "farthest (evaluation 70)",
            "<strong>1.000</strong>",
            "<strong>0.112",
            "<td>80</td><td>80</td><td>80</td>",
            "<td>45</td><td><strong>40</strong></td><td><strong>4</strong></td>",
            "not their quality",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        fixture.run.extremes[0].evaluations[0].evaluation = None;
        fixture.run.extremes[0].evaluations[0].value = None;
        let text = section(&fixture.report()).unwrap().into_string();
        assert!(text.contains("<td>not run</td>") && text.contains("their response is unknown"), "{text}");
        fixture.run.extremes[0].evaluations.truncate(1);
        assert!(section(&fixture.report()).is_none());
    }
}
