//! Forecasts the phases and rounds of a study before it runs: phases continue with survivors, and samples may grow.

use pleach_workflow::{Phase, StoppingRule, Study, SurvivorRule};
use serde::Serialize;

/// Forecast of one phase.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Forecast {
    phase: usize,
    method: &'static str,
    /// Parameters that vary in the phase.
    parameters: Bounds,
    evaluations: Bounds,
    /// Rule that selects the parameters of the next phase. `None` in the last phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    survivors: Option<String>,
}

/// Minimum and maximum of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Bounds {
    #[serde(rename = "least")]
    min: usize,
    #[serde(rename = "most")]
    max: usize,
}

impl Bounds {
    fn text(self, of: &str) -> String {
        match self {
            Self { min, max } if min == max => format!("{min} {of}"),
            Self { min, max } => format!("{min} to {max} {of}"),
        }
    }
}

/// Returns the forecast of each phase. Empty for a study with one phase and a fixed sample.
pub(super) fn forecast(study: &Study) -> Vec<Forecast> {
    let varied = study.workflow.parameters.iter().filter(|parameter| parameter.domain.varies()).count();
    let mut parameters = Bounds { min: varied, max: varied };
    let alone = || Phase { method: study.method.clone(), until: study.until, survivors: None };
    let phases = match study.until {
        _ if !study.phases.is_empty() => study.phases.clone(),
        Some(_) => vec![alone()],
        None => Vec::new(),
    };
    let mut forecasts = Vec::with_capacity(phases.len());
    for (number, phase) in phases.iter().enumerate() {
        let least = phase.method.evaluations(parameters.min);
        let most = phase.method.evaluations(parameters.max);
        let response = |metric: usize| &study.workflow.response.metrics[metric].0;
        let rule = phase.survivors.map(|of| format!("{} of {}", of.rule.text(), response(of.metric)));
        forecasts.push(Forecast {
            phase: number + 1,
            method: phase.method.kind(),
            parameters,
            evaluations: Bounds { min: least, max: phase.until.map_or(most, |until| grown(until, most)) },
            survivors: rule,
        });
        parameters = match phase.survivors.map(|of| of.rule) {
            Some(SurvivorRule::MostInfluential(count)) => {
                Bounds { min: count.min(parameters.min), max: count.min(parameters.max) }
            }
            Some(SurvivorRule::Threshold(_) | SurvivorRule::CumulativeShare(_)) => {
                Bounds { min: 1, max: parameters.max }
            }
            None => parameters,
        };
    }
    forecasts
}

/// Returns the maximum size of a sample that grows in steps of its first size.
fn grown(until: StoppingRule, first: usize) -> usize {
    if first > until.max_evaluations { first } else { until.max_evaluations / first.max(1) * first }
}

/// Formats the forecasts as lines.
pub(super) fn show(forecasts: &[Forecast]) -> Vec<String> {
    let in_phases = forecasts.len() > 1;
    let line = |forecast: &Forecast| {
        let parameters = forecast.parameters.text("parameters");
        let evaluations = forecast.evaluations.text("evaluations");
        let phase = if in_phases { format!("phase {}: ", forecast.phase) } else { "total: ".to_owned() };
        let then = forecast.survivors.as_ref();
        let then = then.map_or_else(String::new, |rule| format!("; survivors by {rule}"));
        format!("{phase}{}, {parameters}, {evaluations}{then}", forecast.method)
    };
    let mut lines: Vec<String> = forecasts.iter().map(line).collect();
    if in_phases {
        lines.insert(0, "the plan covers phase 1; the survivors are known only after it has run".to_owned());
    } else if !lines.is_empty() {
        lines.insert(0, "the plan covers the initial sample of the study".to_owned());
    }
    lines
}
