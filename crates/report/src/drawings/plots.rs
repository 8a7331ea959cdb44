//! Figures of an analysis as separate files, for `pleach analyze --plot`.
//!
//! This module selects the figures of each method. Each figure has its own module. Colors are those of Okabe
//! and Ito, as in the report, and no information depends on color alone.

use crate::charts::convergence::{self, ConvergenceCurve, IndexEstimate};
use crate::charts::first_and_total::{self, Orders};
use crate::charts::scatter::{self, ScatterColumn};
use crate::charts::svg::{Anchor, Drawing, shortened};
use crate::charts::{bars, heatmap, mu_sigma_plot, ranking};
use crate::page::format_number::capital;
use crate::page::metric::index_name;
use pleach_results::analysis::{Analysis, IndexTable};
use pleach_sensitivity::indices::Indices;

/// Figure as a file.
#[derive(Debug)]
pub struct Picture {
    /// Name of the file.
    pub name: &'static str,
    /// Content of the SVG file.
    pub svg: String,
}

/// Input of the figures of one response.
#[derive(Debug)]
pub struct ResponsePlots<'a> {
    /// Analysis of the response. Its method determines the figures.
    pub analysis: &'a Analysis,
    /// Growing parts of the sample: their evaluations and indices.
    pub steps: Vec<(usize, IndexTable)>,
    /// Values of each parameter.
    pub along: Vec<ScatterColumn<'a>>,
    /// Response of each evaluation. `None` for a failed evaluation.
    pub responses: &'a [Option<f64>],
    /// Number of independent evaluations.
    pub independent: usize,
}

const MARGIN_PX: f64 = 16.0;
const HEAD_PX: f64 = 56.0;

/// Returns the figures. Empty for a response that does not vary.
pub fn pictures(drawn: &ResponsePlots<'_>) -> Vec<Picture> {
    let Some(listed) = IndexTable::of(drawn.analysis) else { return Vec::new() };
    let varies =
        listed.rows.iter().any(|(_, numbers)| numbers[listed.main].is_some_and(|value| value != 0.0));
    if !varies {
        return Vec::new();
    }
    let response = drawn.analysis.response();
    let mut pictures = of_method(drawn.analysis, &listed, response);
    if let Some((drawing, index)) = settling(drawn) {
        let note = "growing prefixes of the sample, with 95 % intervals; a line that is level at the right \
                    has converged";
        pictures.push(alone("convergence", drawing, &format!("Convergence of {index}, {response}"), note));
    }
    if let Some(drawing) = scattered(drawn, response) {
        let note = "dots: evaluations; line, with enough evaluations: their mean along the parameter";
        pictures.push(alone("scatter", drawing, &format!("{response} over each parameter"), note));
    }
    pictures
}

/// Draws the main index of each parameter over growing parts of the sample. Returns the figure and the name
/// of the index.
pub(crate) fn settling(drawn: &ResponsePlots<'_>) -> Option<(Drawing, String)> {
    let listed = IndexTable::of(drawn.analysis)?;
    let ranked = listed.ranked();
    let course = |(name, _): &(String, Vec<Option<f64>>)| ConvergenceCurve {
        name: name.clone(),
        parts: drawn.steps.iter().map(|(_, step)| part(step, name)).collect(),
    };
    let courses: Vec<ConvergenceCurve> = ranked.into_iter().map(course).collect();
    let evaluations: Vec<usize> = drawn.steps.iter().map(|(evaluations, _)| *evaluations).collect();
    let index = index_name(drawn.analysis, &listed);
    convergence::draw(&evaluations, &courses, &index).map(|drawing| (drawing, index))
}

/// Draws the response over each parameter, the most influential parameter first.
pub(crate) fn scattered(drawn: &ResponsePlots<'_>, response: &str) -> Option<Drawing> {
    let listed = IndexTable::of(drawn.analysis)?;
    let ranked = listed.ranked();
    let mut along = drawn.along.clone();
    // Parameters without a row of their own, such as those of groups, come last in their given order.
    along.sort_by_key(|one| ranked.iter().position(|(name, _)| name == one.name).unwrap_or(usize::MAX));
    scatter::draw(&along, drawn.responses, drawn.independent, response)
}

fn of_method(analysis: &Analysis, listed: &IndexTable, response: &str) -> Vec<Picture> {
    match analysis {
        Analysis::Indices(Indices::Moat(found)) => {
            let note =
                "light: increases with the parameter; dark: decreases; gray: both; lines: 95 % intervals";
            let title = format!("Effect of each parameter on {response} (MOAT)");
            let mut pictures = vec![alone("bars", ranking::draw(found, response), &title, note)];
            if let Some(plane) = mu_sigma_plot::draw(found, response) {
                let note = match plane.unlabeled.len() {
                    0 => "far below the line: constant effect; near or above the line: non-linear effect or \
                          interaction"
                        .to_owned(),
                    count => format!("without a label, for lack of space: {count} parameters"),
                };
                let title = format!("Plane of μ* and σ, {response}");
                pictures.push(alone("plane", plane.alone(&title), &title, &note));
            }
            pictures
        }
        Analysis::Indices(Indices::Vbd(found)) => {
            let orders: Vec<Orders<'_>> = found.parameters.iter().map(Orders::of).collect();
            let mut pictures = of_orders(&orders, response);
            if let Some(map) = heatmap::draw(found) {
                let note =
                    "diagonal: first-order indices; bold: 95 % interval above 0; dashed frame: below 0";
                pictures.push(alone(
                    "second-order",
                    map,
                    &format!("Second-order Sobol’ indices of {response}"),
                    note,
                ));
            }
            pictures
        }
        Analysis::Indices(Indices::Efast(found)) => {
            let orders: Vec<Orders<'_>> = found.parameters.iter().map(Orders::of_curve).collect();
            of_orders(&orders, response)
        }
        _ => {
            let (drawing, axis) = bars::draw_indices(analysis, listed);
            let note = "right, light: increases with the parameter; left, dark: decreases; lines: 95 % \
                        intervals";
            let signed = matches!(analysis, Analysis::Correlations(_) | Analysis::Regression(_));
            let note = if signed { note } else { "lines: 95 % intervals" };
            let title = format!("{} of {response}", capital(&axis));
            vec![alone("bars", drawing, &title, note)]
        }
    }
}

fn of_orders(orders: &[Orders<'_>], response: &str) -> Vec<Picture> {
    let note = "upper bar, light: first-order S; lower bar, dark: total T; lines: 95 % intervals";
    let title = format!("First-order and total Sobol’ indices of {response}");
    let bars = alone("bars", first_and_total::draw(orders, response), &title, note);
    let note = "filled: first-order index (S); outlined: interactions (T − S)";
    let title = format!("Variance of {response} by parameter, alone and in interactions");
    vec![bars, alone("stack", first_and_total::stack(orders, response), &title, note)]
}

/// Returns the main index of a parameter in a step. `None` if the step has none.
fn part(step: &IndexTable, name: &str) -> IndexEstimate {
    let (_, numbers) = step.rows.iter().find(|(known, _)| known == name)?;
    let conf = step.columns.get(step.main + 1).filter(|column| column.ends_with("_conf"));
    Some((numbers[step.main]?, conf.and_then(|_| numbers[step.main + 1])))
}

/// Returns a figure on a background, with a heading and a note on how to read it.
fn alone(name: &'static str, figure: Drawing, title: &str, note: &str) -> Picture {
    let [width, height] = figure.size();
    let whole = (width + 2.0 * MARGIN_PX).max(560.0);
    let mut page = Drawing::new(whole, height + HEAD_PX + MARGIN_PX, title);
    page.rect("paper", [0.0, 0.0, whole, height + HEAD_PX + MARGIN_PX]);
    page.text("title", Anchor::Start, [MARGIN_PX, 24.0], &shortened(title, whole - 200.0));
    page.text("note", Anchor::Start, [MARGIN_PX, 42.0], note);
    page.put([MARGIN_PX, HEAD_PX], figure);
    Picture { name, svg: page.finish_as_file(include_str!("plots.css")) }
}
