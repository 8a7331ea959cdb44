//! CSV files of results.

use crate::analysis::{CorrelationTable, ParameterCorrelation};
use crate::exit::{CommandError, CommandResult};
use pleach_sensitivity::moat::MoatIndices;
use pleach_sensitivity::vbd::VbdIndices;
use pleach_workflow::Value;

/// Responses of one run: the value of each metric, or the failure.
#[derive(Clone, Debug)]
pub(crate) struct RunResponse {
    /// Number of the evaluation, from 1.
    pub(crate) evaluation: usize,
    /// Index of the tile.
    pub(crate) tile: usize,
    /// Values of all metrics, in the order of their columns.
    pub(crate) result: Result<Vec<f64>, RunFailure>,
    /// For each metric, whether mask and reference are both empty. Empty if they are for no metric.
    pub(crate) both_empty: Vec<bool>,
}

/// Reason why a run has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunFailure {
    /// Stage that failed.
    pub(crate) stage: String,
    /// Task that failed, or input that could not be read.
    pub(crate) at: String,
    /// Cause of the failure.
    pub(crate) cause: String,
}

fn write<R: AsRef<[String]>>(header: &[&str], rows: impl IntoIterator<Item = R>) -> CommandResult<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(CommandError::defect)?;
    for row in rows {
        writer.write_record(row.as_ref()).map_err(CommandError::defect)?;
    }
    writer.into_inner().map_err(CommandError::defect)
}

/// Returns `samples.csv`: one parameter set per row.
pub(crate) fn samples(names: &[String], evaluations: &[Vec<Value>]) -> CommandResult<Vec<u8>> {
    let mut header = vec!["evaluation"];
    header.extend(names.iter().map(String::as_str));
    let rows = evaluations.iter().enumerate().map(|(index, values)| {
        let numbered = std::iter::once((index + 1).to_string());
        numbered.chain(values.iter().map(ToString::to_string)).collect::<Vec<_>>()
    });
    write(&header, rows)
}

/// Returns `responses.csv`: one run per row, in the given order. Omits failed runs, which are in
/// `failed.csv`. `first` are the columns of the analyzed metrics, which precede the others.
pub(crate) fn responses(
    metrics: &[&str],
    first: &[usize],
    tiles: &[&str],
    runs: &[RunResponse],
) -> CommandResult<Vec<u8>> {
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
    write(&header, rows)
}

/// Joins the tables of several responses, with the response in the first column. Omits tables without rows
/// and columns of their own.
pub(crate) fn by_response(tables: &[(&str, Vec<u8>)]) -> CommandResult<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut is_headed = false;
    for (response, table) in tables {
        let mut reader = csv::Reader::from_reader(table.as_slice());
        let header = reader.headers().map_err(CommandError::defect)?;
        if header.len() > 1 && !is_headed {
            writer.write_record(std::iter::once("response").chain(header)).map_err(CommandError::defect)?;
            is_headed = true;
        }
        for row in reader.records() {
            let row = row.map_err(CommandError::defect)?;
            writer.write_record(std::iter::once(*response).chain(&row)).map_err(CommandError::defect)?;
        }
    }
    if !is_headed {
        writer.write_record(["response", "parameter"]).map_err(CommandError::defect)?;
    }
    writer.into_inner().map_err(CommandError::defect)
}

/// Returns `failed.csv`: one failed run per row with its parameters, so that it can be run again.
pub(crate) fn failed(
    names: &[String],
    evaluations: &[Vec<Value>],
    tiles: &[&str],
    runs: &[RunResponse],
) -> CommandResult<Vec<u8>> {
    let mut header = vec!["evaluation", "tile", "stage", "task", "cause"];
    header.extend(names.iter().map(String::as_str));
    let rows = runs.iter().filter_map(|run| {
        let failure = run.result.as_ref().err()?;
        let mut row = vec![run.evaluation.to_string(), tiles[run.tile].to_owned()];
        row.extend([failure.stage.clone(), failure.at.clone(), failure.cause.clone()]);
        row.extend(evaluations[run.evaluation - 1].iter().map(ToString::to_string));
        Some(row)
    });
    write(&header, rows)
}

/// Returns `indices.csv` of a variance-based decomposition: one parameter per row. Undefined indices are
/// empty.
pub(crate) fn vbd(indices: &VbdIndices) -> CommandResult<Vec<u8>> {
    let header = ["parameter", "first", "first_conf", "total", "total_conf", "failed"];
    let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let rows = indices.parameters.iter().map(|p| {
        let numbers = [p.first.value, p.first.conf, p.total.value, p.total.conf].map(shown);
        std::iter::once(p.name.clone()).chain(numbers).chain([p.failed.to_string()]).collect::<Vec<_>>()
    });
    write(&header, rows)
}

/// Returns `indices.csv` of correlations: one parameter per row. Undefined coefficients are empty.
pub(crate) fn correlations(found: &CorrelationTable) -> CommandResult<Vec<u8>> {
    let kinds =
        ParameterCorrelation::KINDS.iter().flat_map(|kind| [(*kind).to_owned(), format!("{kind}_conf")]);
    let header: Vec<String> = std::iter::once("parameter".to_owned()).chain(kinds).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let rows = found.parameters.iter().map(|p| {
        let numbers = p.each().into_iter().flat_map(|of| [of.value, of.conf]).map(shown);
        std::iter::once(p.name.clone()).chain(numbers).collect::<Vec<_>>()
    });
    write(&header, rows)
}

/// Returns `indices.csv` of a MOAT study: one parameter per row. Spreads are empty with a single trajectory.
pub(crate) fn moat(indices: &MoatIndices) -> CommandResult<Vec<u8>> {
    let header = ["parameter", "mu", "mu_conf", "mu_star", "mu_star_conf", "sigma", "sigma_conf", "effect"];
    let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let rows = indices.parameters.iter().map(|p| {
        let numbers =
            [Some(p.mu), p.mu_conf, Some(p.mu_star), p.mu_star_conf, p.sigma, p.sigma_conf, Some(p.effect)];
        std::iter::once(p.name.clone()).chain(numbers.map(shown)).collect::<Vec<_>>()
    });
    write(&header, rows)
}
