//! Section on the indices of a variance-based decomposition, as figures, as numbers and in words.

use crate::charts::first_and_total::{self, Orders};
use crate::charts::svg::Drawing;
use crate::charts::{heatmap, ranking};
use crate::page::format_number::{Rounding, capital, counted, names, percent};
use crate::page::html::{Html, Table, figure, html, p, strong};
use crate::page::metric::Metric;
use crate::sections::indices::findings::Findings;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::vbd::{VbdIndices, VbdParameter};

/// Threshold of total indices. A parameter is named as influential if the interval of its total index is
/// above, and as negligible if it is below.
pub(crate) const NEGLIGIBLE: f64 = 0.05;

/// Width of figures on the page.
const PAGE_PX: f64 = 780.0;

fn value(index: &Estimate) -> f64 {
    index.value.unwrap_or(0.0)
}

/// Returns the parameters by descending total index.
pub(crate) fn ranked(indices: &VbdIndices) -> Vec<&VbdParameter> {
    let mut ranked: Vec<_> = indices.parameters.iter().collect();
    ranked.sort_by(|a, b| value(&b.total).total_cmp(&value(&a.total)));
    ranked
}

/// Returns the result in words.
pub(crate) fn paragraph(findings: &Findings<'_>, indices: &VbdIndices) -> Html {
    let metric = &findings.metric;
    if indices.parameters.is_empty() {
        return p("No parameter was varied.");
    }
    if indices.no_variation {
        let count = counted(indices.parameters.len(), "parameter", "parameters");
        return p(html![
            strong(format!("{} did not change at all", capital(&metric.name))),
            format!(", for all values of the {count}: it has no variance. {}", findings.scope.no_change()),
        ]);
    }
    let ranked = ranked(indices);
    let low = |index: &Estimate| value(index) - index.conf.unwrap_or(0.0);
    let high = |index: &Estimate| value(index) + index.conf.unwrap_or(0.0);
    let matter: Vec<&str> =
        ranked.iter().filter(|p| low(&p.total) >= NEGLIGIBLE).map(|p| p.name.as_str()).collect();
    let negligible: Vec<&str> =
        ranked.iter().filter(|p| high(&p.total) < NEGLIGIBLE).map(|p| p.name.as_str()).collect();
    let alone: f64 = indices.parameters.iter().map(|parameter| value(&parameter.first)).sum();
    let mut text = html![
        strong(format!("Variance of {}. ", metric.name)),
        if matter.is_empty() {
            html!["With these base samples, no share differs significantly from 0. "]
        } else {
            html!["Significant shares: ", names(matter, 20), ". "]
        },
        format!(
            "Single parameters explain {} of the variance; the rest is interactions. ",
            percent(alone.clamp(0.0, 1.0))
        ),
    ];
    if !negligible.is_empty() {
        text.push(html![
            format!(
                "Can be fixed at any value with a loss of less than {} of the variance: ",
                percent(NEGLIGIBLE)
            ),
            names(negligible, 20),
            ".",
        ]);
    }
    p(text)
}

/// Returns the figures and tables. `None` without parameters or if the response does not vary.
pub(crate) fn section(metric: &Metric, indices: &VbdIndices) -> Option<Html> {
    if indices.parameters.is_empty() || indices.no_variation {
        return None;
    }
    let orders: Vec<Orders<'_>> = indices.parameters.iter().map(Orders::of).collect();
    let mut text = figure(first_and_total::draw(&orders, &metric.name).finish(), caption(indices, metric));
    text.push(figure(first_and_total::stack(&orders, &metric.name).finish(), stack_caption()));
    text.push(table(indices));
    if let Some(map) = heatmap::draw(indices) {
        // Pads the map to the width of other figures, so that the page does not enlarge a map of few
        // parameters.
        let [width, height] = map.size();
        let mut wide = Drawing::new(width.max(PAGE_PX), height, "Second-order Sobol' indices");
        wide.put([0.0, 0.0], map);
        text.push(figure(wide.finish(), map_caption()));
    }
    if let Some(pairs) = pairs(indices) {
        text.push(pairs);
    }
    Some(text)
}

fn caption(indices: &VbdIndices, metric: &Metric) -> Html {
    let left_over = indices.parameters.len().saturating_sub(ranking::MAX_BARS);
    html![
        strong("Share of the variance of each parameter."),
        format!(
            " Upper bar: the first-order index S, the share of the variance of {} that a parameter explains \
             by itself. Lower bar: the total index T, its share including interactions; if T is far larger \
             than S, the parameter acts through interactions. ",
            metric.name
        ),
        format!(
            "Lines: 95 % intervals ({} bootstrap samples of {}). Estimates can be below 0 or above 1 by \
             chance. ",
            indices.resamples,
            counted(indices.samples_used, "base sample", "base samples"),
        ),
        match indices.samples_dropped {
            0 => String::new(),
            dropped => format!(
                "Excluded, because one of their evaluations has no response: {}. ",
                counted(dropped, "base sample", "base samples")
            ),
        },
        match left_over {
            0 => String::new(),
            _ => format!("The {left_over} parameters with the smallest indices are in the table only."),
        },
    ]
}

fn stack_caption() -> Html {
    let key = |class: &str, words: &str| {
        html![Html::of_class("span", &format!("key {class}"), "■"), format!(" {words}")]
    };
    html![
        strong("First-order share and interactions of each parameter."),
        " The whole bar is the total index T: ",
        key("up", "the first-order index S, and "),
        key("down", "T − S, the share of interactions. "),
        "Interactions count in the bars of all their parameters, so the bars can sum to more than 1.",
    ]
}

fn map_caption() -> Html {
    html![
        strong("Interactions of pairs."),
        " Above the diagonal: the second-order index of each pair; on the diagonal: first-order indices. \
         Darker is larger; bold: the 95 % interval is above 0; dashed frame: below 0 by chance.",
    ]
}

fn table(indices: &VbdIndices) -> Html {
    let header = ["parameter", "S", "±", "T", "±", "T − S", "failed"].map(Html::from);
    let caption = format!(
        "First-order (S) and total (T) Sobol’ indices of {}, with half-widths of 95 % intervals (±), and the failed \
         evaluations among those that change the parameter alone.",
        indices.response
    );
    let rounding = Rounding::fixed(4);
    let mut table = Table::new("numbers", caption, header);
    for row in ranked(indices) {
        let beyond = row.total.value.zip(row.first.value).map(|(total, first)| total - first);
        table.row([
            Html::from(&row.name),
            rounding.option(row.first.value).into(),
            rounding.option(row.first.conf).into(),
            rounding.option(row.total.value).into(),
            rounding.option(row.total.conf).into(),
            rounding.option(beyond).into(),
            row.failed.to_string().into(),
        ]);
    }
    table.finish()
}

/// Maximum rows of the table of pairs.
const MAX_PAIRS: usize = 20;

fn pairs(indices: &VbdIndices) -> Option<Html> {
    let mut pairs: Vec<_> = indices.pairs.as_ref()?.iter().collect();
    pairs.sort_by(|a, b| value(&b.second).total_cmp(&value(&a.second)));
    let header = ["pair", "S₂", "±"].map(Html::from);
    let caption = format!(
        "Second-order indices: the share of two parameters together, without the share of each alone{}.",
        if pairs.len() > MAX_PAIRS { "; the largest ones, all are in indices.json" } else { "" }
    );
    let rounding = Rounding::fixed(4);
    let mut table = Table::new("numbers", caption, header);
    for pair in pairs.into_iter().take(MAX_PAIRS) {
        table.row([
            Html::from(format!("{} × {}", pair.one, pair.other)),
            rounding.option(pair.second.value).into(),
            rounding.option(pair.second.conf).into(),
        ]);
    }
    Some(table.finish())
}
