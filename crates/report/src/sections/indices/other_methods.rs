//! Section on methods with one figure and one table: regression, PAWN, delta, eFAST, RBD-FAST.

use crate::charts::bars;
use crate::page::format_number::{Rounding, capital, names};
use crate::page::html::{Html, Table, figure, html, p, strong};
use pleach_results::analysis::{Analysis, IndexTable};
use pleach_sensitivity::indices::Indices;

/// Explains the indices of a method.
fn meaning(analysis: &Analysis) -> &'static str {
    match analysis {
        Analysis::Regression(_) => {
            "Change of the response, in standard deviations, with one standard deviation of the parameter, \
             in a linear model of values (SRC) and of ranks (SRRC)"
        }
        Analysis::Indices(Indices::Pawn(_)) => {
            "Distance between the distribution of the response and that with the parameter within a slice \
             of its values: 0 is no change, 1 the maximum. With few evaluations, distances are above 0 by \
             chance"
        }
        Analysis::Indices(Indices::Delta(_)) => {
            "Half the mean area between the density of the response and that within a class of the \
             parameter's values: 0 without influence, 1 if the parameter determines the response"
        }
        _ => "Share of the variance that a parameter explains",
    }
}

/// Returns the result in words.
pub(crate) fn paragraph(analysis: &Analysis, response: &str) -> Html {
    let Some(listed) = IndexTable::of(analysis) else { return Html::default() };
    let ranked = bars::ranked(&listed);
    if ranked.is_empty() {
        return p(html![
            strong(format!("{} did not change at all", capital(response))),
            ", for all values of the parameters: indices are not defined.",
        ]);
    }
    let clear = ranked.iter().filter(|bar| bar.conf.is_some_and(|conf| bar.value.abs() > conf));
    let clear: Vec<&str> = clear.map(|bar| bar.name).collect();
    let mut text = html![strong(format!("Dependence of {response} on the parameters. "))];
    if clear.is_empty() {
        text.push("With these evaluations, no index differs significantly from 0.");
    } else {
        text.push(html!["Indices whose interval excludes 0, largest first: ", names(clear, 20), "."]);
    }
    p(text)
}

/// Returns the figure and the table. `None` without indices.
pub(crate) fn section(analysis: &Analysis, response: &str) -> Option<Html> {
    let listed = IndexTable::of(analysis)?;
    if bars::ranked(&listed).is_empty() {
        return None;
    }
    let (drawing, axis) = bars::draw_indices(analysis, &listed);
    let caption = html![
        strong(format!("{} of {response}.", capital(&axis))),
        format!(" {}. Lines: 95 % intervals.", meaning(analysis)),
    ];
    let mut text = figure(drawing.finish(), caption);
    let shown = |name: &String| if name.ends_with("_conf") { Html::from("±") } else { Html::from(name) };
    let header = std::iter::once(Html::from("parameter")).chain(listed.columns.iter().map(shown));
    let caption = format!("The indices of {response}, with half-widths of 95 % intervals (±).");
    let mut table = Table::new("numbers", caption, header);
    let rounding = Rounding::fixed(4);
    for (name, numbers) in listed.ranked() {
        let cells = numbers.iter().map(|number| Html::from(rounding.option(*number)));
        table.row(std::iter::once(Html::from(name)).chain(cells));
    }
    text.push(table.finish());
    for warning in analysis.warnings().iter().take(12) {
        text.push(p(format!("{}.", capital(&warning.to_string()))));
    }
    Some(text)
}
