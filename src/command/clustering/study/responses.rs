//! Responses of a study of the execution: makespan, gain, jobs and moved bytes of each workflow and clustering.

use super::super::candidates::{Candidate, MethodName, compared, vertical_name};
use super::evaluations::{Counts, Outcome, Sampled};
use crate::cli::{MethodArg, VerticalArg};
use crate::exit::CommandResult;
use pleach_clustering::chains::chains;
use pleach_clustering::simulate::Gain;
use pleach_interop::responses::ResponseColumn;

/// A response at all points of the sample.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) column: ResponseColumn,
    /// Whether it is analyzed even if it does not vary.
    pub(super) is_main: bool,
}

impl Response {
    /// Returns whether the response has two values or more.
    pub(super) fn varies(&self) -> bool {
        let values = &self.column.values;
        values.iter().any(|value| *value != values[0])
    }
}

/// Returns the responses of a workflow. Their names begin with `label`, and with the clustering if several are compared.
pub(super) fn responses(
    sampled: &Sampled<'_>,
    label: &str,
    method: MethodArg,
    vertical: Option<VerticalArg>,
) -> CommandResult<(Vec<Response>, Counts)> {
    let candidates = match MethodName::single(method) {
        Some(method) => {
            let candidate = Candidate { method, vertical: vertical.unwrap_or(VerticalArg::None) };
            let mut candidates = vec![Candidate::SINGLE];
            candidates.extend(Some(candidate).filter(|candidate| *candidate != Candidate::SINGLE));
            candidates
        }
        None => {
            let has_chains = chains(sampled.workflow).iter().any(|chain| chain.len() > 1);
            compared(vertical, has_chains)
        }
    };
    let mut counts = Counts::default();
    let mut outcomes: Vec<Vec<Outcome>> = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let (found, counted) = sampled.evaluate(*candidate)?;
        outcomes.push(found);
        counts += counted;
    }
    let baseline = &outcomes[0];
    let responses = match method {
        MethodArg::All => {
            let each = candidates.iter().zip(&outcomes);
            let of = |(candidate, outcomes): (&Candidate, &Vec<Outcome>)| {
                let mut columns = columns(&prefix(&[label, &name(*candidate)]), baseline, outcomes);
                // Jobs and bytes of all clusterings would hide the makespans among dozens of columns.
                columns.truncate(if *candidate == Candidate::SINGLE { 1 } else { 2 });
                columns
            };
            each.flat_map(of).collect()
        }
        MethodArg::Best => columns(&prefix(&[label]), baseline, &least(&outcomes)),
        _ => columns(&prefix(&[label]), baseline, &outcomes[outcomes.len() - 1]),
    };
    Ok((responses, counts))
}

/// Returns the outcome of the least makespan at each point, the first one of equals.
fn least(outcomes: &[Vec<Outcome>]) -> Vec<Outcome> {
    let mut least = outcomes[0].clone();
    for other in &outcomes[1..] {
        for (best, outcome) in least.iter_mut().zip(other) {
            if outcome.makespan < best.makespan {
                *best = *outcome;
            }
        }
    }
    least
}

fn columns(prefix: &str, baseline: &[Outcome], outcomes: &[Outcome]) -> Vec<Response> {
    let column = |name: &str, is_main: bool, value: &dyn Fn(usize, &Outcome) -> f64| {
        let values =
            outcomes.iter().enumerate().map(|(place, outcome)| Some(value(place, outcome))).collect();
        Response { column: ResponseColumn { name: format!("{prefix}{name}"), values }, is_main }
    };
    let gain = |place: usize, outcome: &Outcome| {
        Gain { makespan: outcome.makespan, baseline: baseline[place].makespan }.gain()
    };
    vec![
        column("makespan", true, &|_, outcome| outcome.makespan),
        column("gain", false, &gain),
        // A parameter has the name `jobs`.
        column("job-count", false, &|_, outcome| outcome.jobs as f64),
        column("moved-bytes", false, &|_, outcome| outcome.moved_bytes as f64),
    ]
}

/// Returns the beginning of the names of responses, such as `montage hrb: `. Empty without labels.
fn prefix(labels: &[&str]) -> String {
    let labels: Vec<&str> = labels.iter().copied().filter(|label| !label.is_empty()).collect();
    if labels.is_empty() { String::new() } else { format!("{}: ", labels.join(" ")) }
}

/// Returns the name of a clustering as one word.
fn name(candidate: Candidate) -> String {
    match (candidate.method, candidate.vertical) {
        (method, VerticalArg::None) => method.name().to_owned(),
        (_, VerticalArg::Only) => "vertical-only".to_owned(),
        (method, vertical) => format!("{}-{}", method.name(), vertical_name(vertical)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(makespan: f64, jobs: usize) -> Outcome {
        Outcome { makespan, moved_bytes: 0, jobs }
    }

    #[test]
    fn responses_have_labels() {
        assert_eq!(prefix(&["", "hrb"]), "hrb: ");
        assert_eq!(prefix(&["montage", "hrb"]), "montage hrb: ");
        assert_eq!(prefix(&[""]), "");
        assert_eq!(name(Candidate { method: MethodName::Hdb, vertical: VerticalArg::Prior }), "hdb-prior");
        assert_eq!(
            name(Candidate { method: MethodName::None, vertical: VerticalArg::Only }),
            "vertical-only"
        );
    }

    #[test]
    fn the_best_clustering_may_change_between_points() {
        let outcomes = [
            vec![outcome(10.0, 9), outcome(10.0, 9)],
            vec![outcome(8.0, 3), outcome(12.0, 3)],
            vec![outcome(8.0, 2), outcome(9.0, 2)],
        ];
        assert_eq!(least(&outcomes), [outcome(8.0, 3), outcome(9.0, 2)]);
        let found = columns("x: ", &outcomes[0], &least(&outcomes));
        let values = |name: &str| {
            let named = found.iter().find(|response| response.column.name == name);
            named.unwrap().column.values.iter().flatten().copied().collect::<Vec<f64>>()
        };
        assert_eq!(values("x: makespan"), [8.0, 9.0]);
        assert_eq!(values("x: gain"), [1.0 - 8.0 / 10.0, 1.0 - 9.0 / 10.0]);
        assert_eq!(values("x: job-count"), [3.0, 2.0]);
        assert!(!found[3].varies() && found[3].column.name == "x: moved-bytes");
    }
}
