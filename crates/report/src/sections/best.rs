//! Section with the best parameter sets of each response, ready to use.

use crate::Report;
use crate::page::format_number::{Rounding, capital, count};
use crate::page::html::{Html, Table, html, strong};
use crate::page::metric::Metric;
use pleach_results::analysis::best::{BestSets, RankedSet};
use pleach_workflow::{Parameter, Value};

/// Maximum parameters of a table: a wider one gives no overview.
const MAX_PARAMETERS: usize = 9;

/// Returns the section. `None` for a study without given reference.
pub(crate) fn section(report: &Report<'_>) -> Option<Html> {
    if report.best.iter().all(|of| of.sets.is_empty()) {
        return None;
    }
    let lead_in = Html::of_class(
        "p",
        "lead-in",
        "The evaluations that agree most with the reference over all tiles. Bold values differ from the default. best.csv has all \
         parameters. Apply a set to other images with pleach apply and the settings below the table.",
    );
    let each = report.best.iter().map(|of| html![table(report, of), settings(report, of)]);
    Some(html![lead_in, each.collect::<Html>()])
}

/// Returns the parameters that differ from their defaults in a set, or between the sets.
fn columns(parameters: &[Parameter], sets: &[RankedSet]) -> Vec<usize> {
    let moves = |index: &usize| sets.iter().any(|set| set.values[*index] != parameters[*index].default);
    (0..parameters.len()).filter(moves).collect()
}

fn table(report: &Report<'_>, of: &BestSets) -> Html {
    let parameters = &report.study.workflow.parameters;
    let metric = Metric::of_one(report.study, of.metric);
    let all = columns(parameters, &of.sets);
    let shown = &all[..all.len().min(MAX_PARAMETERS)];
    let left_out = all.len() - shown.len();
    let more = if left_out > 0 {
        format!("; best.csv has {} more parameters", count(left_out))
    } else {
        String::new()
    };
    let caption = format!("Best by {} ({}){more}", metric.name, metric.aggregate_label());
    let head = ["rank".to_owned(), "evaluation".to_owned(), capital(&metric.name)];
    let names = shown.iter().map(|index| parameters[*index].name.clone());
    let mut table = Table::new("numbers", caption, head.into_iter().chain(names).map(Html::from));
    let largest = of.sets.iter().fold(0.0, |most: f64, set| most.max(set.value.abs()));
    let rounding = Rounding::of(largest);
    for (place, set) in of.sets.iter().enumerate() {
        let number = match set.evaluation {
            0 => Html::from("default"),
            numbered => Html::from(count(numbered)),
        };
        let head = [Html::from(count(place + 1)), number, strong(rounding.show(set.value))];
        let value = |index: &usize| match set.values[*index] {
            value if value == parameters[*index].default => Html::from(value.to_string()),
            value => strong(value.to_string()),
        };
        table.row(head.into_iter().chain(shown.iter().map(value)));
    }
    table.finish()
}

/// Returns the sets as options of `pleach apply`.
fn settings(report: &Report<'_>, of: &BestSets) -> Html {
    let parameters = &report.study.workflow.parameters;
    let lines = of.sets.iter().map(|set| {
        let options = options(parameters, &set.values);
        let options = if options.is_empty() { "no option: the defaults".to_owned() } else { options };
        Html::element("li", &[], Html::element("code", &[], options))
    });
    Html::of_class("ol", "settings", lines.collect::<Html>())
}

/// Returns the values that differ from their defaults as options.
fn options(parameters: &[Parameter], values: &[Value]) -> String {
    let moved = parameters.iter().zip(values).filter(|(parameter, value)| parameter.default != **value);
    moved.map(|(parameter, value)| format!("--set {}={value}", parameter.name)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn sets_are_listed_with_their_settings() {
        let fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        assert!(section(&fixture.report()).is_none());
        let parameters = &fixture.study.workflow.parameters;
        let defaults: Vec<Value> = parameters.iter().map(|parameter| parameter.default).collect();
        let place = parameters.iter().position(|parameter| parameter.name == "G1").unwrap();
        let mut moved = defaults.clone();
        moved[place] = Value::Integer(60);
        let sets = vec![
            RankedSet { evaluation: 7, value: 0.9, values: moved },
            RankedSet { evaluation: 0, value: 0.8, values: defaults },
        ];
        let best = [BestSets { response: "dice".to_owned(), metric: 0, sets }];
        let text = section(&crate::Report { best: &best, ..fixture.report() }).unwrap().into_string();
        for expected in [
            "<li><code>--set G1=60</code></li><li><code>no option: the defaults</code></li>",
            "<td>80</td>",
            "<strong>60</strong>",
            "<strong>0.9000</strong>",
            "<td>default</td>",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
