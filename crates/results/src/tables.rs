//! CSV files of samples, responses and failed runs.

use crate::analysis::RunResponse;
use crate::analysis::tables::csv;
use pleach_study::Defect;
use pleach_workflow::Value;

/// Returns `samples.csv`: one parameter set per row.
pub fn samples(names: &[String], evaluations: &[Vec<Value>]) -> Result<Vec<u8>, Defect> {
    let mut header = vec!["evaluation"];
    header.extend(names.iter().map(String::as_str));
    let rows = evaluations.iter().enumerate().map(|(index, values)| {
        let numbered = std::iter::once((index + 1).to_string());
        numbered.chain(values.iter().map(ToString::to_string)).collect::<Vec<_>>()
    });
    csv(&header, rows)
}

/// Returns `responses.csv`: one run per row, in the given order. Omits failed runs, which are in
/// `failed.csv`. `first` are the columns of the analyzed metrics, which precede the others.
pub fn responses(
    metrics: &[&str],
    first: &[usize],
    tiles: &[&str],
    runs: &[RunResponse],
) -> Result<Vec<u8>, Defect> {
    let others = (0..metrics.len()).filter(|metric| !first.contains(metric));
    let order: Vec<usize> = first.iter().copied().chain(others).collect();
    let mut header = vec!["evaluation", "tile"];
    header.extend(order.iter().map(|&metric| metrics[metric]));
    let rows = runs.iter().filter_map(|run| {
        let values = run.result.as_ref().ok()?;
        let mut row = vec![run.evaluation.to_string(), tiles[run.tile].to_owned()];
        // The Display form of f64 is the shortest that parses to the same value.
        row.extend(order.iter().map(|&metric| values[metric].to_string()));
        Some(row)
    });
    csv(&header, rows)
}

/// Returns `failed.csv`: one failed run per row with its parameters, so that it can be run again.
pub fn failed(
    names: &[String],
    evaluations: &[Vec<Value>],
    tiles: &[&str],
    runs: &[RunResponse],
) -> Result<Vec<u8>, Defect> {
    let mut header = vec!["evaluation", "tile", "stage", "task", "cause"];
    header.extend(names.iter().map(String::as_str));
    let rows = runs.iter().filter_map(|run| {
        let failure = run.result.as_ref().err()?;
        let mut row = vec![run.evaluation.to_string(), tiles[run.tile].to_owned()];
        row.extend([failure.stage.clone(), failure.at.clone(), failure.cause.clone()]);
        row.extend(evaluations[run.evaluation - 1].iter().map(ToString::to_string));
        Some(row)
    });
    csv(&header, rows)
}
