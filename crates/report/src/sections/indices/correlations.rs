//! Section on the correlations of the response with each parameter, as a table and in words.

use crate::page::format_number::{Rounding, capital, counted, names};
use crate::page::html::{Html, Table, em, html, p, strong};
use crate::page::metric::Metric;
use pleach_results::analysis::CorrelationTable;
use pleach_sensitivity::estimate::Estimate;

/// Returns the result in words.
pub(crate) fn paragraph(metric: &Metric, found: &CorrelationTable) -> Html {
    if found.no_variation {
        return p(html![
            strong(format!("{} did not change at all", capital(&metric.name))),
            ", for all values of the parameters: correlations are not defined.",
        ]);
    }
    let ranked = found.ranked();
    let clear = |sign: f64| {
        let is_clear = move |estimate: &Estimate| {
            let apart = estimate.value.zip(estimate.conf).map(|(value, conf)| sign * value - conf);
            apart.is_some_and(|apart| apart > 0.0)
        };
        let of = ranked.iter().filter(move |parameter| {
            is_clear(if parameter.prcc.value.is_some() { &parameter.prcc } else { &parameter.spearman })
        });
        of.map(|parameter| parameter.name.as_str()).collect::<Vec<_>>()
    };
    let (up, down) = (clear(1.0), clear(-1.0));
    let mut text = html![strong(format!("Correlations of {}. ", metric.name))];
    if up.is_empty() && down.is_empty() {
        text.push("With these evaluations, no correlation differs significantly from 0.");
    }
    if !up.is_empty() {
        text.push(html!["It increases with ", names(up, 20), ". "]);
    }
    if !down.is_empty() {
        text.push(html!["It decreases with increasing ", names(down, 20), "."]);
    }
    p(text)
}

/// Returns the table. `None` without parameters or if the response does not vary.
pub(crate) fn section(found: &CorrelationTable) -> Option<Html> {
    if found.parameters.is_empty() || found.no_variation {
        return None;
    }
    let header = ["parameter", "Pearson", "±", "Spearman", "±", "PCC", "±", "PRCC", "±"].map(Html::from);
    let caption = html![
        format!(
            "Correlations of {} with each parameter over {}, with half-widths of 95 % intervals (±, {} bootstrap samples). ",
            found.response,
            counted(found.evaluations_used, "evaluation", "evaluations"),
            found.resamples
        ),
        em("Pearson"),
        " measures linear effects, ",
        em("Spearman"),
        " monotonic ones, by ranks; ",
        em("PCC"),
        " and ",
        em("PRCC"),
        " are the same without the influence of the other parameters. None detects an effect that increases \
         and decreases equally.",
    ];
    let rounding = Rounding::fixed(3);
    let mut table = Table::new("numbers", caption, header);
    for parameter in found.ranked() {
        let numbers = parameter.each().into_iter().flat_map(|of| [of.value, of.conf]);
        let cells = numbers.map(|number| Html::from(rounding.option(number)));
        table.row(std::iter::once(Html::from(&parameter.name)).chain(cells));
    }
    let mut text = table.finish();
    if found.evaluations_dropped > 0 {
        let dropped = counted(found.evaluations_dropped, "evaluation", "evaluations");
        text.push(p(format!("Excluded, because they have no response: {dropped}.")));
    }
    for note in &found.notes {
        text.push(p(format!("{}.", capital(note))));
    }
    Some(text)
}
