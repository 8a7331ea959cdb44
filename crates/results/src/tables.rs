//! CSV files of samples, responses and failed runs.

use crate::analysis::RunResponse;
use crate::analysis::tables::csv as table_of;
use pleach_study::Defect;
use pleach_workflow::Value;
use std::collections::BTreeMap;

/// Returns `samples.csv`: one parameter set per row.
pub fn samples(names: &[String], evaluations: &[Vec<Value>]) -> Result<Vec<u8>, Defect> {
    let mut header = vec!["evaluation"];
    header.extend(names.iter().map(String::as_str));
    let rows = evaluations.iter().enumerate().map(|(index, values)| {
        let numbered = std::iter::once((index + 1).to_string());
        numbered.chain(values.iter().map(ToString::to_string)).collect::<Vec<_>>()
    });
    table_of(&header, rows)
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
    table_of(&header, rows)
}

/// Task of a run that failed because its input cannot be read.
const INPUT: &str = "input";

/// Returns the cause of the first failed run on each tile, by the tile's name in `failed.csv`. A run that failed in a task has the
/// stage and the task in its cause, one whose input cannot be read has not. Rows without these columns are left out.
#[must_use]
pub fn causes_by_tile(failed: &[u8]) -> BTreeMap<String, String> {
    let mut causes = BTreeMap::new();
    let mut table = csv::Reader::from_reader(failed);
    for row in table.records().flatten() {
        let [Some(tile), Some(stage), Some(task), Some(cause)] = [1, 2, 3, 4].map(|column| row.get(column))
        else {
            continue;
        };
        let is_of_task = !task.is_empty() && task != INPUT;
        let cause =
            if is_of_task { format!("stage {stage}, task {task}: {cause}") } else { cause.to_owned() };
        causes.entry(tile.to_owned()).or_insert(cause);
    }
    causes
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
    table_of(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_those_of_the_first_run_on_each_tile() {
        let table = "evaluation,tile,stage,task,cause,G1\n1,a,segmentation,t2,\"too large, by 3\",60\n1,b,normalization,input,unreadable,60\n\
                     2,a,segmentation,t3,later,61\n1,c\n";
        let causes = causes_by_tile(table.as_bytes());
        assert_eq!(causes.len(), 2, "{causes:?}");
        assert_eq!(causes["a"], "stage segmentation, task t2: too large, by 3");
        assert_eq!(causes["b"], "unreadable");
    }
}
