//! The default, the best and the worst evaluation of a response, with their parameters.
//!
//! A response without a direction has a highest and a lowest evaluation instead. If the result at the
//! defaults is itself the reference, agreement with it does not measure quality: the evaluations are then the
//! nearest and the farthest. The default is evaluation 0, which is not part of the sample. No index depends
//! on it.

use super::CollectedResponses;
use pleach_study::PreparedStudy;
use pleach_workflow::{Parameter, Value, split_label};
use serde::{Serialize, Serializer};

/// Side of a response on which results are far from their reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FarSide {
    /// Low responses: the metric measures agreement.
    Low,
    /// High responses: the metric measures difference.
    High,
    /// The metric compares nothing, or is unknown.
    Unknown,
}

impl FarSide {
    /// Returns the far side of a metric, by its column name, whose label does not matter.
    pub(super) fn of_metric(metric: &str) -> Self {
        match split_label(metric).1 {
            "dice" | "jaccard" | "object-dice" | "object-jaccard" => Self::Low,
            "pixel-difference" => Self::High,
            _ => Self::Unknown,
        }
    }
}

/// Notable evaluations of one response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extremes {
    /// Name of the response.
    pub response: String,
    /// Index of the response among the metrics of the workflow.
    #[serde(skip)]
    pub metric: usize,
    /// The default, then the better and the worse end. The ends are missing if no evaluation is complete.
    pub evaluations: Vec<Extreme>,
}

/// One notable evaluation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extreme {
    /// Reason why the evaluation is notable.
    pub role: Role,
    /// Number of the evaluation: from 1 in the sample, 0 for the defaults run in addition. `None` if the
    /// defaults are not run.
    pub evaluation: Option<usize>,
    /// Response aggregated over all tiles. `None` if a run of the evaluation failed.
    pub value: Option<f64>,
    /// Parameters that vary or differ from their default.
    #[serde(rename = "parameters", serialize_with = "as_map")]
    pub settings: Vec<Setting>,
}

/// Reason why an evaluation is notable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// All parameters at their defaults.
    Default,
    /// Best agreement with a given reference.
    Best,
    /// Worst agreement with a given reference.
    Worst,
    /// Best agreement with the result at the defaults.
    Nearest,
    /// Worst agreement with the result at the defaults.
    Farthest,
    /// Highest value of a response without direction.
    Highest,
    /// Lowest value of a response without direction.
    Lowest,
}

impl Role {
    /// Returns the role as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Best => "best",
            Self::Worst => "worst",
            Self::Nearest => "nearest",
            Self::Farthest => "farthest",
            Self::Highest => "highest",
            Self::Lowest => "lowest",
        }
    }
}

/// A parameter, its value and its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the parameter.
    pub name: String,
    /// Value of the parameter in the evaluation.
    pub value: Value,
    /// Default of the parameter: its value in evaluation 0.
    pub default: Value,
}

impl Setting {
    /// Returns whether the value differs from the default.
    pub fn is_moved(&self) -> bool {
        self.value != self.default
    }
}

fn as_map<S: Serializer>(settings: &[Setting], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(settings.iter().map(|setting| {
        let value = match setting.value {
            Value::Integer(number) => serde_json::Value::from(number),
            Value::Real(number) => serde_json::Value::from(number.get()),
        };
        (&setting.name, value)
    }))
}

impl Extremes {
    /// Returns the extremes of each response of a study.
    pub fn of_all(prepared: &PreparedStudy, collected: &CollectedResponses) -> Vec<Self> {
        prepared.study.metrics().map(|metric| Self::of(prepared, collected, metric)).collect()
    }

    fn of(prepared: &PreparedStudy, collected: &CollectedResponses, metric: usize) -> Self {
        let workflow = &prepared.study.workflow;
        let (name, over_tiles) = &workflow.response.metrics[metric];
        let responses = collected.responses(metric, *over_tiles);
        let extreme = |role, (evaluation, value): (usize, f64)| Extreme {
            role,
            evaluation: Some(evaluation),
            value: Some(value),
            settings: settings(&workflow.parameters, &prepared.design.evaluations[evaluation - 1]),
        };
        let mut evaluations = vec![default(prepared, &responses, collected.default(metric, *over_tiles))];
        let far = FarSide::of_metric(name);
        let [good, bad] = roles(far, prepared.reference_run());
        if let Some([high, low]) = ends(&responses) {
            let [first, last] = if far == FarSide::High { [low, high] } else { [high, low] };
            evaluations.extend([extreme(good, first), extreme(bad, last)]);
        }
        Self { response: name.clone(), metric, evaluations }
    }

    /// Returns the evaluation of a role.
    #[cfg(test)]
    fn get(&self, role: Role) -> Option<&Extreme> {
        self.evaluations.iter().find(|extreme| extreme.role == role)
    }
}

/// Returns the roles of the better and of the worse end.
fn roles(far: FarSide, is_own_reference: bool) -> [Role; 2] {
    match far {
        FarSide::Unknown => [Role::Highest, Role::Lowest],
        FarSide::Low | FarSide::High if is_own_reference => [Role::Nearest, Role::Farthest],
        FarSide::Low | FarSide::High => [Role::Best, Role::Worst],
    }
}

/// Returns the highest and the lowest response, each with the number of its evaluation. On ties, the first
/// evaluation wins.
fn ends(responses: &[Option<f64>]) -> Option<[(usize, f64); 2]> {
    let finite = responses.iter().enumerate().filter_map(|(place, response)| {
        response.filter(|response| response.is_finite()).map(|response| (place + 1, response))
    });
    finite.fold(None, |ends: Option<[(usize, f64); 2]>, one| {
        let Some([high, low]) = ends else { return Some([one, one]) };
        Some([if one.1 > high.1 { one } else { high }, if one.1 < low.1 { one } else { low }])
    })
}

/// Returns the defaults: evaluation 0 if it is run, or else the evaluation of the sample with the same
/// values.
fn default(prepared: &PreparedStudy, responses: &[Option<f64>], beside: Option<f64>) -> Extreme {
    let parameters = &prepared.study.workflow.parameters;
    let defaults: Vec<Value> = parameters.iter().map(|parameter| parameter.default).collect();
    let (evaluation, value) = if prepared.defaults_run() {
        (Some(0), beside)
    } else {
        let place = prepared.design.evaluations.iter().position(|values| *values == defaults);
        (place.map(|place| place + 1), place.and_then(|place| responses[place]))
    };
    Extreme { role: Role::Default, evaluation, value, settings: settings(parameters, &defaults) }
}

fn settings(parameters: &[Parameter], values: &[Value]) -> Vec<Setting> {
    let all = parameters.iter().zip(values);
    let of_note = all.filter(|(parameter, value)| parameter.domain.varies() || parameter.default != **value);
    of_note
        .map(|(parameter, value)| Setting {
            name: parameter.name.clone(),
            value: *value,
            default: parameter.default,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_skip_incomplete_evaluations_and_take_the_first_of_equals() {
        let responses = [None, Some(0.5), Some(0.9), Some(f64::NAN), Some(0.9), Some(0.5)];
        assert_eq!(ends(&responses), Some([(3, 0.9), (2, 0.5)]));
        assert_eq!(ends(&responses[..1]), None);
        assert_eq!(ends(&responses[..2]), Some([(2, 0.5), (2, 0.5)]));
    }

    #[test]
    fn agreement_with_the_default_is_no_quality() {
        assert_eq!(roles(FarSide::Low, false), [Role::Best, Role::Worst]);
        assert_eq!(roles(FarSide::High, true), [Role::Nearest, Role::Farthest]);
        assert_eq!(roles(FarSide::Unknown, true), [Role::Highest, Role::Lowest]);
    }

    #[test]
    fn json_names_roles_and_parameters() {
        let setting =
            Setting { name: "G1".to_owned(), value: Value::Integer(60), default: Value::Integer(80) };
        let best =
            Extreme { role: Role::Best, evaluation: Some(7), value: Some(0.5), settings: vec![setting] };
        let extremes = Extremes { response: "dice".to_owned(), metric: 0, evaluations: vec![best.clone()] };
        assert_eq!(extremes.get(Role::Best), Some(&best));
        assert_eq!(
            serde_json::to_value(&extremes).unwrap(),
            serde_json::json!({
                "response": "dice",
                "evaluations": [{ "role": "best", "evaluation": 7, "value": 0.5, "parameters": { "G1": 60 } }],
            })
        );
    }
}
