//! Describes the result in words: which parameters matter, which are negligible, and which are undecided.

use crate::page::format_number::{brief, capital, counted, names, with_spread};
use crate::page::html::{Html, em, html, li, p, strong, ul};
use crate::page::metric::Metric;
use crate::sections::indices::findings::{Findings, Scope};
use crate::verdict::{Direction, NEGLIGIBLE, Verdict, largest, ranked};
use pleach_sensitivity::moat::{MoatIndices, MoatParameter};

/// Parameters with at least this share of the largest effect are named among those that change the result
/// most.
const LEADING: f64 = 0.5;

/// Returns the paragraph.
pub(crate) fn paragraph(findings: &Findings<'_>, indices: &MoatIndices) -> Html {
    let (metric, scope) = (&findings.metric, findings.scope);
    let ranked = ranked(indices);
    let largest = largest(indices);
    if ranked.is_empty() {
        return p("No parameter was varied.");
    }
    if largest == 0.0 {
        let count = counted(ranked.len(), "parameter", "parameters");
        return p(html![
            strong(format!("{} did not change at all", capital(&metric.name))),
            format!(" in the analyzed trajectories, for all values of the {count}. {}", scope.no_change()),
        ]);
    }
    let of = |verdict| ranked.iter().copied().filter(move |p| Verdict::of(p, largest) == verdict);
    let matters: Vec<_> = of(Verdict::Matters).collect();
    let (leading, others): (Vec<_>, Vec<_>) =
        matters.iter().copied().partition(|p| p.mu_star >= LEADING * largest);
    let mut first = leaders(&leading, &metric.name, &ranked);
    if let Some(range) = &findings.range {
        first.push(html![" ", range]);
    }
    let undecided: Vec<_> = of(Verdict::Undecided).collect();
    let (still, moved): (Vec<_>, Vec<_>) =
        of(Verdict::Negligible).partition(|parameter| parameter.mu_star == 0.0);
    let small = brief(NEGLIGIBLE * largest);
    let items = [
        item(
            "Smaller, but significant",
            &others,
            format!("the entire interval is above {} effect ({small}).", share()),
        ),
        item("Undecided", &undecided, undecided_words(undecided.len(), &small)),
        item("Negligible", &moved, negligible_words(&moved, &small, scope)),
        item("No effect at all", &still, format!("{} was equal before and after each step.", metric.name)),
    ];
    html![p(first), ul(items.into_iter().collect::<Html>()), p(reservations(&matters, indices, metric))]
}

/// Returns a line of the list. Empty without parameters.
fn item(title: &'static str, parameters: &[&MoatParameter], words: String) -> Html {
    if parameters.is_empty() {
        return Html::default();
    }
    li(html![em(title), ": ", list(parameters), format!(" – {words}")])
}

fn leaders(leading: &[&MoatParameter], metric: &str, ranked: &[&MoatParameter]) -> Html {
    let (first, alone) = (ranked[0], ranked.len() == 1);
    if leading.is_empty() {
        return html![
            strong("No parameter stands out with certainty."),
            " The largest measured effect is that of ",
            strong(&first.name),
            format!(", {}, and its 95 % interval includes negligible effects.", measured(first)),
        ];
    }
    let lead = match leading.len() {
        _ if alone => html!["Only ", list(leading), " was varied."],
        1 => html![list(leading), " changes the result most."],
        _ => html![list(leading), " change the result most."],
    };
    let mut text = Html::of_class("span", "lead", lead);
    for (place, parameter) in leading.iter().take(4).enumerate() {
        text.push(match place {
            0 => " Moving ",
            _ => "; moving ",
        });
        text.push(strong(&parameter.name));
        text.push(match place {
            0 => format!(" over its whole range changes {metric} by {} on average", measured(parameter)),
            _ => format!(", by {}", measured(parameter)),
        });
        text.push(match Direction::of(parameter) {
            Direction::Up => " (increases with it)",
            Direction::Down => " (decreases with it)",
            Direction::Mixed => {
                " (increases or decreases, depending on the other parameters or on its own \
                                 value)"
            }
            Direction::Nowhere => "",
        });
    }
    text.push(".");
    text
}

fn measured(parameter: &MoatParameter) -> String {
    with_spread(parameter.mu_star, parameter.mu_star_conf)
}

fn list(parameters: &[&MoatParameter]) -> Html {
    names(parameters.iter().map(|parameter| parameter.name.as_str()), 8)
}

fn share() -> String {
    format!("{:.0} % of the largest", NEGLIGIBLE * 100.0)
}

fn undecided_words(count: usize, small: &str) -> String {
    format!(
        "the {} across {} effect ({small}): more trajectories are needed to decide whether {}.",
        if count == 1 { "interval reaches" } else { "intervals reach" },
        share(),
        if count == 1 { "it matters" } else { "they matter" },
    )
}

fn negligible_words(parameters: &[&MoatParameter], small: &str, scope: Scope) -> String {
    let intervals = parameters.iter().all(|parameter| parameter.mu_star_conf.is_some());
    let upper = if intervals { ", also at the upper end of the interval" } else { "" };
    format!("below {} effect ({small}){upper}, {}.", share(), scope.limits())
}

/// Returns the limits of the conclusions: interactions, few trajectories, and the metric.
fn reservations(matters: &[&MoatParameter], indices: &MoatIndices, metric: &Metric) -> Html {
    let bends = |parameter: &&&MoatParameter| parameter.sigma.is_some_and(|sigma| sigma > parameter.mu_star);
    let bending: Vec<_> = matters.iter().filter(bends).copied().collect();
    let mut text = Html::default();
    if !bending.is_empty() {
        text.push("The influence of ");
        text.push(list(&bending));
        text.push(
            " depends strongly on the values of the other parameters, or on the position of the step \
                   in the range. ",
        );
    }
    match indices.trajectories_used {
        1 => text.push(
            "With one trajectory, intervals are not available and all results are a first impression. ",
        ),
        // A bootstrap resample of 5 or fewer trajectories often repeats one trajectory several times.
        2..=5 => text.push(format!(
            "With {} trajectories the intervals themselves are rough. ",
            indices.trajectories_used
        )),
        _ => {}
    }
    if matters.iter().any(|parameter| parameter.mu_star_conf.is_some()) {
        text.push("± marks 95 % intervals. ");
    }
    text.push(metric.caution);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn text(parameters: &[(&str, f64, f64)]) -> String {
        let fixture = fixture::moat(parameters);
        paragraph(&Findings::of(&fixture.report()), fixture.analysis.moat().unwrap()).into_string()
    }

    #[test]
    fn paragraph_names_every_parameter_with_its_verdict() {
        let text =
            text(&[("still", 0.0, 0.0), ("G2", 0.4, 0.08), ("tiny", 0.001, 0.001), ("open", 0.02, 0.02)]);
        for expected in [
            "<strong>G2</strong> changes the result most.",
            "by 0.40 ± 0.08 on average (increases with it).",
            "<em>Undecided</em>: <strong>open</strong> – the interval reaches across 5 % of the largest \
             effect (0.02",
            "<em>Negligible</em>: <strong>tiny</strong> – below 5 % of the largest effect (0.0200), also at the upper",
            "<em>No effect at all</em>: <strong>still</strong> – Dice was equal",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }

    #[test]
    fn paragraph_without_effects_claims_none() {
        assert!(text(&[("a", 0.0, 0.0)]).contains("Dice did not change at all"));
        assert!(text(&[("a", 0.3, 0.4)]).contains("No parameter stands out with certainty"));
        assert!(text(&[]).contains("No parameter was varied"));
    }

    #[test]
    fn a_direction_needs_nine_tenths_of_the_change() {
        let with = |mu: f64| {
            let fixture = fixture::moat(&[("a", 1.0, 0.1)]);
            Direction::of(&MoatParameter { mu, ..fixture.analysis.moat().unwrap().parameters[0].clone() })
        };
        assert_eq!(
            [1.0, 0.8, 0.5, -0.8].map(with),
            [Direction::Up, Direction::Up, Direction::Mixed, Direction::Down]
        );
    }
}
