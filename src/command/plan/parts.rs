//! What can be said of a study's parts before any of it has run: of phases that go on with what survives, and of samples that
//! grow.

use pleach_workflow::{Phase, StoppingRule, Study, SurvivorRule};
use serde::Serialize;

/// One part.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Forecast {
    phase: usize,
    method: &'static str,
    /// How many parameters vary in it.
    parameters: Bounds,
    evaluations: Bounds,
    /// The rule that says which parameters go on; none in the last phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    survivors: Option<String>,
}

/// The fewest and the most that there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Bounds {
    least: usize,
    most: usize,
}

impl Bounds {
    fn text(self, of: &str) -> String {
        match self {
            Self { least, most } if least == most => format!("{least} {of}"),
            Self { least, most } => format!("{least} to {most} {of}"),
        }
    }
}

/// All parts of a study that has several, or whose sample grows; none of any other.
pub(super) fn forecast(study: &Study) -> Vec<Forecast> {
    let varied = study.workflow.parameters.iter().filter(|parameter| parameter.domain.varies()).count();
    let mut parameters = Bounds { least: varied, most: varied };
    let alone = || Phase { method: study.method.clone(), until: study.until, survivors: None };
    let phases = match study.until {
        _ if !study.phases.is_empty() => study.phases.clone(),
        Some(_) => vec![alone()],
        None => Vec::new(),
    };
    let mut forecasts = Vec::with_capacity(phases.len());
    for (number, phase) in phases.iter().enumerate() {
        let least = phase.method.evaluations(parameters.least);
        let most = phase.method.evaluations(parameters.most);
        let response = |metric: usize| &study.workflow.response.metrics[metric].0;
        let rule = phase.survivors.map(|of| format!("{} of {}", of.rule.text(), response(of.metric)));
        forecasts.push(Forecast {
            phase: number + 1,
            method: phase.method.kind(),
            parameters,
            evaluations: Bounds { least, most: phase.until.map_or(most, |until| grown(until, most)) },
            survivors: rule,
        });
        parameters = match phase.survivors.map(|of| of.rule) {
            Some(SurvivorRule::MostInfluential(count)) => {
                Bounds { least: count.min(parameters.least), most: count.min(parameters.most) }
            }
            Some(SurvivorRule::Threshold(_) | SurvivorRule::CumulativeShare(_)) => {
                Bounds { least: 1, most: parameters.most }
            }
            None => parameters,
        };
    }
    forecasts
}

/// A sample grows by what it begins with.
fn grown(until: StoppingRule, first: usize) -> usize {
    if first > until.max_evaluations { first } else { until.max_evaluations / first.max(1) * first }
}

/// The same in print.
pub(super) fn show(forecasts: &[Forecast]) -> Vec<String> {
    let in_phases = forecasts.len() > 1;
    let line = |forecast: &Forecast| {
        let parameters = forecast.parameters.text("parameters");
        let evaluations = forecast.evaluations.text("evaluations");
        let phase = if in_phases { format!("phase {}: ", forecast.phase) } else { "in all: ".to_owned() };
        let then = forecast.survivors.as_ref();
        let then = then.map_or_else(String::new, |rule| format!("; survivors by {rule}"));
        format!("{phase}{}, {parameters}, {evaluations}{then}", forecast.method)
    };
    let mut lines: Vec<String> = forecasts.iter().map(line).collect();
    if in_phases {
        lines.insert(0, "planned is phase 1; what survives it, it has to be run for".to_owned());
    } else if !lines.is_empty() {
        lines.insert(0, "planned is the sample that the study begins with".to_owned());
    }
    lines
}
