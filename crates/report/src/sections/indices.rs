//! Section on the sensitivity indices, as figures and numbers, or the reason for their absence.

pub(crate) mod conclusions;
pub(crate) mod correlations;
pub(crate) mod findings;
pub(crate) mod other_methods;
pub(crate) mod variance;

use crate::charts::{mu_sigma_plot, ranking};
use crate::page::format_number::{Rounding, capital, counted, names};
use crate::page::html::{Html, Table, em, figure, html, p, strong};
use crate::page::metric::Metric;
use crate::sections::indices::findings::{Findings, Scope};
use crate::verdict::{Direction, NEGLIGIBLE, Verdict, largest, ranked};
use pleach_results::analysis::Analysis;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::{MoatIndices, RESAMPLES};
use pleach_workflow::{Domain, Parameter};

/// Returns the content of the box at the top: the result in words.
pub(crate) fn answer(findings: &Findings<'_>) -> Html {
    match findings.analysis {
        Analysis::None { note, .. } => p(html![
            strong("No sensitivity indices."),
            format!(" {}. The responses are written and described below.", sentence(note)),
        ]),
        Analysis::Indices(Indices::Moat(indices)) => conclusions::paragraph(findings, indices),
        Analysis::Indices(Indices::Vbd(indices)) => variance::paragraph(findings, indices),
        Analysis::Correlations(found) => correlations::paragraph(&findings.metric, found),
        Analysis::Indices(_) | Analysis::Regression(_) => {
            other_methods::paragraph(findings.analysis, &findings.metric.name)
        }
    }
}

/// Returns the section, with the figures of the sample at its end. `None` without indices.
pub(crate) fn section(findings: &Findings<'_>, of_sample: Option<Html>) -> Option<Html> {
    let mut text = of_method(findings)?;
    text.push(of_sample.unwrap_or_default());
    Some(text)
}

fn of_method(findings: &Findings<'_>) -> Option<Html> {
    let metric = &findings.metric;
    let indices = match findings.analysis {
        Analysis::Indices(Indices::Moat(indices)) => indices,
        Analysis::Indices(Indices::Vbd(indices)) => return variance::section(metric, indices),
        Analysis::Correlations(found) => return correlations::section(found),
        Analysis::None { .. } => return None,
        other => return other_methods::section(other, &metric.name),
    };
    if indices.parameters.is_empty() {
        return None;
    }
    let caption = ranking_caption(indices, metric, findings.scope);
    let mut text = figure(ranking::draw(indices, &metric.name).finish(), caption);
    match mu_sigma_plot::draw(indices, &metric.name) {
        Some(plane) => {
            let caption = plane_caption(&plane);
            text.push(figure(plane.on_page(), caption));
        }
        None => {
            text.push(p("One trajectory measures each effect once, so intervals and σ are not available."))
        }
    }
    text.push(table(findings.parameters, indices));
    Some(text)
}

fn ranking_caption(indices: &MoatIndices, metric: &Metric, scope: Scope) -> Html {
    let key = |direction: Direction, words: &str| {
        let class = format!("key {}", direction.class());
        html![Html::of_class("span", &class, "■"), format!(" {} {words}", direction.glyph())]
    };
    let intervals = if indices.trajectories_used > 1 {
        format!(
            "Line: its 95 % interval ({RESAMPLES} bootstrap samples of the trajectories), cut off at 0{}. ",
            scope.interval()
        )
    } else {
        String::new()
    };
    let left_over = indices.parameters.len().saturating_sub(ranking::MAX_BARS);
    html![
        strong("Influence of each parameter."),
        format!(
            " Bar: μ*, the mean size of the parameter’s effects in {}, each scaled from its step to the \
             whole range. {intervals}Effect: the signed mean as a share of the spread of {} (it can exceed \
             1, as steps are shorter than the range). ",
            counted(indices.trajectories_used, "trajectory", "trajectories"),
            metric.name,
        ),
        key(Direction::Up, "increases with the parameter, "),
        key(Direction::Down, "decreases (nine tenths of all change or more), "),
        key(Direction::Mixed, "both."),
        if left_over > 0 {
            format!(" The {left_over} parameters with the smallest effects are in the table only.")
        } else {
            String::new()
        },
    ]
}

fn plane_caption(plane: &mu_sigma_plot::Plane) -> Html {
    let mut text = html![
        strong("Variation of the effects."),
        " σ is the standard deviation of a parameter’s effects. Far below the line, a parameter changes the \
         response by nearly the same amount at all values of the others. Near or above the line σ = μ*, its \
         effect depends on the other parameters (interaction) or on the position of the step in its range \
         (non-linear); this method cannot distinguish these two.",
    ];
    if plane.magnified {
        text.push(" The shaded corner is magnified at the right.");
    }
    if !plane.unlabeled.is_empty() {
        text.push(" Without a label, for lack of space: ");
        text.push(names(plane.unlabeled.iter().map(String::as_str), 40));
        text.push(".");
    }
    text
}

fn table(parameters: &[Parameter], indices: &MoatIndices) -> Html {
    let largest = largest(indices);
    let rounding = |of: fn(&pleach_sensitivity::moat::MoatParameter) -> f64| {
        Rounding::of(indices.parameters.iter().map(|p| of(p).abs()).fold(0.0, f64::max))
    };
    let (size, spread) = (rounding(|p| p.mu_star), rounding(|p| p.sigma.unwrap_or(0.0)));
    let header = [
        html!["parameter"],
        html!["values"],
        html!["default"],
        html!["μ*"],
        html!["±"],
        html!["μ"],
        html!["±"],
        html!["σ"],
        html!["±"],
        html!["effect"],
        html!["verdict"],
    ];
    let caption = html![
        format!("The indices of {}, with half-widths of 95 % intervals (±). ", indices.response),
        em("matters"),
        format!(": the interval of μ* lies above {:.0} % of the largest μ*; ", NEGLIGIBLE * 100.0),
        em("negligible"),
        ": below; ",
        em("undecided"),
        ": across. Values: the sampled range (in brackets, the number of allowed values); a default with a \
         star is outside it.",
    ];
    let mut table = Table::new("numbers indices", caption, header);
    for row in ranked(indices) {
        let parameter = parameters.iter().find(|parameter| parameter.name == row.name);
        let verdict = Verdict::of(row, largest);
        table.row([
            Html::from(&row.name),
            parameter.map(values).unwrap_or_default().into(),
            parameter.map(default).unwrap_or_default().into(),
            size.show(row.mu_star).into(),
            size.option(row.mu_star_conf).into(),
            size.show(row.mu).into(),
            size.option(row.mu_conf).into(),
            spread.option(row.sigma).into(),
            spread.option(row.sigma_conf).into(),
            Rounding::fixed(3).signed(row.effect).into(),
            Html::of_class("span", verdict.words(), verdict.words()),
        ]);
    }
    table.finish()
}

/// Describes the values of a parameter.
fn values(parameter: &Parameter) -> String {
    match &parameter.domain {
        Domain::Continuous { low, high } => format!("{low} – {high}"),
        Domain::Distributed { distribution } => distribution.to_string(),
        Domain::Fixed { value } => value.to_string(),
        Domain::Levels { values } if values.len() <= 4 => {
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        Domain::Levels { values } => {
            let (low, high) = parameter.domain.bounds();
            format!("{low} – {high} ({})", values.len())
        }
    }
}

/// Returns the default, with a star if it is outside the bounds of the domain.
fn default(parameter: &Parameter) -> String {
    let (low, high) = parameter.domain.bounds();
    let inside = (low..=high).contains(&parameter.default.as_f64());
    format!("{}{}", parameter.default, if inside { "" } else { " *" })
}

/// Capitalizes a note and removes its full stop.
fn sentence(note: &str) -> String {
    capital(note.trim_end_matches('.'))
}
