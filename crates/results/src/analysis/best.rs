//! The best parameter sets of a study with a given reference, ready to use.

use super::CollectedResponses;
use super::extremes::FarSide;
use super::tables;
use pleach_study::{Defect, PreparedStudy};
use pleach_workflow::Value;

/// Parameter sets of a response.
pub const MAX_SETS: usize = 10;

/// Best parameter sets of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct BestSets {
    /// Name of the response.
    pub response: String,
    /// Index of the response among the metrics of the workflow.
    pub metric: usize,
    /// The sets, the best first, at most [`MAX_SETS`]. Evaluations with equal values are one set.
    pub sets: Vec<RankedSet>,
}

/// Parameter set of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedSet {
    /// Number of the evaluation, from 1. 0 for the defaults.
    pub evaluation: usize,
    /// Response over all tiles.
    pub value: f64,
    /// A value for each parameter of the workflow.
    pub values: Vec<Value>,
}

impl BestSets {
    /// Returns the best sets of each response that measures agreement with a given reference. Empty if results are compared with
    /// the result at the defaults: being near it is no quality.
    pub fn of_all(prepared: &PreparedStudy, collected: &CollectedResponses) -> Vec<Self> {
        let workflow = &prepared.study.workflow;
        if prepared.reference_run() || workflow.reference.is_none() {
            return Vec::new();
        }
        let of = |metric: usize| {
            let (name, over_tiles) = &workflow.response.metrics[metric];
            let far = FarSide::of_metric(name);
            let default = collected.default(metric, *over_tiles).filter(|_| prepared.defaults_run());
            let defaults = default.map(|value| (0, value, &prepared.evaluations[0]));
            let responses = collected.responses(metric, *over_tiles);
            let sample = responses.iter().zip(&prepared.design.evaluations).enumerate();
            let sample = sample.filter_map(|(place, (value, values))| Some((place + 1, (*value)?, values)));
            let sets = ranked(defaults.into_iter().chain(sample), far)?;
            Some(Self { response: name.clone(), metric, sets })
        };
        prepared.study.metrics().filter_map(of).collect()
    }
}

/// Sorts sets by their response. On ties, the first evaluation precedes. `None` for a response without direction.
fn ranked<'a>(
    all: impl Iterator<Item = (usize, f64, &'a Vec<Value>)>,
    far: FarSide,
) -> Option<Vec<RankedSet>> {
    let sign = match far {
        FarSide::Low => -1.0,
        FarSide::High => 1.0,
        FarSide::Unknown => return None,
    };
    let mut all: Vec<_> = all.filter(|(_, value, _)| value.is_finite()).collect();
    all.sort_by(|(_, a, _), (_, b, _)| (sign * a).total_cmp(&(sign * b)));
    let mut sets: Vec<RankedSet> = Vec::new();
    for (evaluation, value, values) in all {
        if sets.len() == MAX_SETS {
            break;
        }
        if !sets.iter().any(|set| set.values == *values) {
            sets.push(RankedSet { evaluation, value, values: values.clone() });
        }
    }
    Some(sets)
}

/// Returns `best.csv`: a row for each set with its response, rank, evaluation, value and parameters.
///
/// # Errors
/// [`Defect`] if the table cannot be composed.
pub fn csv(all: &[BestSets], names: &[String]) -> Result<Vec<u8>, Defect> {
    let mut header = vec!["response", "rank", "evaluation", "value"];
    header.extend(names.iter().map(String::as_str));
    let rows = all.iter().flat_map(|of| {
        of.sets.iter().enumerate().map(|(place, set)| {
            let head = [
                of.response.clone(),
                (place + 1).to_string(),
                set.evaluation.to_string(),
                set.value.to_string(),
            ];
            head.into_iter().chain(set.values.iter().map(ToString::to_string)).collect::<Vec<_>>()
        })
    });
    tables::csv(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_ranked_once_and_in_the_direction_of_the_response() {
        let rows: Vec<(f64, Vec<Value>)> = [(0.5, 1), (0.9, 2), (f64::NAN, 3), (0.9, 2), (0.9, 4), (0.1, 5)]
            .into_iter()
            .map(|(value, parameter)| (value, vec![Value::Integer(parameter)]))
            .collect();
        let all = || rows.iter().enumerate().map(|(place, (value, values))| (place, *value, values));
        let order = |far| {
            let sets = ranked(all(), far);
            sets.map(|sets| sets.iter().map(|set| set.evaluation).collect::<Vec<_>>())
        };
        assert_eq!(order(FarSide::Low), Some(vec![1, 4, 0, 5]));
        assert_eq!(order(FarSide::High), Some(vec![5, 0, 1, 4]));
        assert_eq!(order(FarSide::Unknown), None);
        let many: Vec<Vec<Value>> = (0..20).map(|number| vec![Value::Integer(number)]).collect();
        let sets = ranked(many.iter().enumerate().map(|(n, values)| (n, 1.0, values)), FarSide::Low).unwrap();
        assert_eq!(sets.len(), MAX_SETS);
        let best = BestSets { response: "dice".to_owned(), metric: 0, sets: sets[..1].to_vec() };
        let text = csv(&[best], &["G1".to_owned()]).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "response,rank,evaluation,value,G1\ndice,1,0,1,0\n");
    }
}
