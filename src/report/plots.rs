//! The figures of an analysis as files of their own, for `pleach analyze --plot`.
//!
//! Which figures a method has is decided here; each is drawn in a file of its own. Colors are Okabe and Ito's, as in the
//! report, and nothing is said by color alone.

use crate::analysis::{Analysis, IndexTable};
use crate::report::convergence::{self, Course, Part};
use crate::report::first_and_total::{self, Orders};
use crate::report::format_number::capital;
use crate::report::other_methods::{self, index_name};
use crate::report::scatter::{self, Along};
use crate::report::svg::{Anchor, Drawing, shortened};
use crate::report::{heatmap, mu_sigma_plot, ranking};
use pleach_sensitivity::indices::Indices;

/// A figure.
#[derive(Debug)]
pub(crate) struct Picture {
    /// What it shows: a name for its file.
    pub(crate) name: &'static str,
    /// The content of an SVG file.
    pub(crate) svg: String,
}

/// What is drawn of one response.
#[derive(Debug)]
pub(crate) struct Drawn<'a> {
    pub(crate) analysis: &'a Analysis,
    /// Indices of growing parts of the sample, and their evaluations.
    pub(crate) steps: Vec<(usize, IndexTable)>,
    /// The values of the parameters, and the responses.
    pub(crate) along: Vec<Along<'a>>,
    pub(crate) responses: &'a [Option<f64>],
    /// Evaluations that are independent of each other.
    pub(crate) independent: usize,
}

const MARGIN_PX: f64 = 16.0;
const HEAD_PX: f64 = 56.0;

/// The figures; none of a response that does not vary.
pub(crate) fn pictures(drawn: &Drawn<'_>) -> Vec<Picture> {
    let Some(listed) = IndexTable::of(drawn.analysis) else { return Vec::new() };
    let varies =
        listed.rows.iter().any(|(_, numbers)| numbers[listed.main].is_some_and(|value| value != 0.0));
    if !varies {
        return Vec::new();
    }
    let response = drawn.analysis.response();
    let mut pictures = of_method(drawn.analysis, &listed, response);
    if let Some((drawing, index)) = settling(drawn) {
        let note = "of growing parts of the sample, with 95 % intervals; lines that are level at the right have settled";
        pictures.push(alone("convergence", drawing, &format!("Convergence of {index}, {response}"), note));
    }
    if let Some(drawing) = scattered(drawn, response) {
        let note = "dots: evaluations; line, where they are enough: their mean along the parameter";
        pictures.push(alone("scatter", drawing, &format!("{response} over each parameter"), note));
    }
    pictures
}

/// The main index of each parameter over growing parts of the sample, and what it is called.
pub(super) fn settling(drawn: &Drawn<'_>) -> Option<(Drawing, String)> {
    let listed = IndexTable::of(drawn.analysis)?;
    let ranked = listed.ranked();
    let course = |(name, _): &(String, Vec<Option<f64>>)| Course {
        name: name.clone(),
        parts: drawn.steps.iter().map(|(_, step)| part(step, name)).collect(),
    };
    let courses: Vec<Course> = ranked.into_iter().map(course).collect();
    let evaluations: Vec<usize> = drawn.steps.iter().map(|(evaluations, _)| *evaluations).collect();
    let index = index_name(drawn.analysis, &listed);
    convergence::draw(&evaluations, &courses, &index).map(|drawing| (drawing, index))
}

/// The response over each parameter, the most influential first.
pub(super) fn scattered(drawn: &Drawn<'_>, response: &str) -> Option<Drawing> {
    let listed = IndexTable::of(drawn.analysis)?;
    let ranked = listed.ranked();
    let mut along = drawn.along.clone();
    // Of groups, which are in no order, the parameters stay in theirs.
    along.sort_by_key(|one| ranked.iter().position(|(name, _)| name == one.name).unwrap_or(usize::MAX));
    scatter::draw(&along, drawn.responses, drawn.independent, response)
}

fn of_method(analysis: &Analysis, listed: &IndexTable, response: &str) -> Vec<Picture> {
    match analysis {
        Analysis::Indices(Indices::Moat(found)) => {
            let note =
                "light: rises with the parameter; dark: falls as it rises; gray: both; lines: 95 % intervals";
            let title = format!("How much each parameter changes {response} (MOAT)");
            let mut pictures = vec![alone("bars", ranking::draw(found, response), &title, note)];
            if let Some(plane) = mu_sigma_plot::draw(found, response) {
                let note = match plane.unlabeled.len() {
                    0 => "far below the line, an effect is the same everywhere; near it or above, it bends or interacts".to_owned(),
                    count => format!("for want of room without a label: {count} parameters"),
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
                    "on the diagonal first-order indices; bold: 95 % interval above 0; dashed frame: below 0";
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
            let (drawing, axis) = other_methods::draw(analysis, listed);
            let note = "to the right, light: rises with the parameter; to the left, dark: falls; lines: 95 % intervals";
            let signed = matches!(analysis, Analysis::Correlations(_) | Analysis::Regression(_));
            let note = if signed { note } else { "lines: 95 % intervals" };
            let title = format!("{} of {response}", capital(&axis));
            vec![alone("bars", drawing, &title, note)]
        }
    }
}

fn of_orders(orders: &[Orders<'_>], response: &str) -> Vec<Picture> {
    let note = "upper bar, light: first order S; lower bar, dark: total T; lines: 95 % intervals";
    let title = format!("First-order and total Sobol’ indices of {response}");
    let bars = alone("bars", first_and_total::draw(orders, response), &title, note);
    let note =
        "filled: what the parameter explains alone (S); outlined: what it explains with others (T − S)";
    let title = format!("What parameters explain of {response}, alone and together");
    vec![bars, alone("stack", first_and_total::stack(orders, response), &title, note)]
}

/// The main index of a parameter in a step.
fn part(step: &IndexTable, name: &str) -> Part {
    let (_, numbers) = step.rows.iter().find(|(known, _)| known == name)?;
    let conf = step.columns.get(step.main + 1).filter(|column| column.ends_with("_conf"));
    Some((numbers[step.main]?, conf.and_then(|_| numbers[step.main + 1])))
}

/// A figure on paper, with a heading and a line that says how it is read.
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
