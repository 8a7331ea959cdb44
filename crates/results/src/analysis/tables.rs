//! `indices.csv`: tables of indices, one parameter per row.

use super::{CorrelationTable, ParameterCorrelation};
use pleach_sensitivity::moat::MoatIndices;
use pleach_sensitivity::vbd::VbdIndices;
use pleach_study::Defect;

/// Returns a CSV table.
///
/// # Errors
/// [`Defect`] if rows and header have different lengths.
pub(crate) fn csv<R: AsRef<[String]>>(
    header: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> Result<Vec<u8>, Defect> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(Defect::new)?;
    for row in rows {
        writer.write_record(row.as_ref()).map_err(Defect::new)?;
    }
    writer.into_inner().map_err(Defect::new)
}

/// Joins the tables of several responses, with the response in the first column. Omits tables without rows
/// and columns of their own.
pub(crate) fn by_response(tables: &[(&str, Vec<u8>)]) -> Result<Vec<u8>, Defect> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut is_headed = false;
    for (response, table) in tables {
        let mut reader = csv::Reader::from_reader(table.as_slice());
        let header = reader.headers().map_err(Defect::new)?;
        if header.len() > 1 && !is_headed {
            writer.write_record(std::iter::once("response").chain(header)).map_err(Defect::new)?;
            is_headed = true;
        }
        for row in reader.records() {
            let row = row.map_err(Defect::new)?;
            writer.write_record(std::iter::once(*response).chain(&row)).map_err(Defect::new)?;
        }
    }
    if !is_headed {
        writer.write_record(["response", "parameter"]).map_err(Defect::new)?;
    }
    writer.into_inner().map_err(Defect::new)
}

/// Returns `indices.csv` of a variance-based decomposition: one parameter per row. Undefined indices are
/// empty.
pub(crate) fn vbd(indices: &VbdIndices) -> Result<Vec<u8>, Defect> {
    let header = ["parameter", "first", "first_conf", "total", "total_conf", "failed"];
    let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let rows = indices.parameters.iter().map(|p| {
        let numbers = [p.first.value, p.first.conf, p.total.value, p.total.conf].map(shown);
        std::iter::once(p.name.clone()).chain(numbers).chain([p.failed.to_string()]).collect::<Vec<_>>()
    });
    csv(&header, rows)
}

/// Returns `indices.csv` of correlations: one parameter per row. Undefined coefficients are empty.
pub(crate) fn correlations(found: &CorrelationTable) -> Result<Vec<u8>, Defect> {
    let kinds =
        ParameterCorrelation::KINDS.iter().flat_map(|kind| [(*kind).to_owned(), format!("{kind}_conf")]);
    let header: Vec<String> = std::iter::once("parameter".to_owned()).chain(kinds).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let rows = found.parameters.iter().map(|p| {
        let numbers = p.each().into_iter().flat_map(|of| [of.value, of.conf]).map(shown);
        std::iter::once(p.name.clone()).chain(numbers).collect::<Vec<_>>()
    });
    csv(&header, rows)
}

/// Returns `indices.csv` of a MOAT study: one parameter per row. Spreads are empty with a single trajectory.
pub(crate) fn moat(indices: &MoatIndices) -> Result<Vec<u8>, Defect> {
    let header = ["parameter", "mu", "mu_conf", "mu_star", "mu_star_conf", "sigma", "sigma_conf", "effect"];
    let shown = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let rows = indices.parameters.iter().map(|p| {
        let numbers =
            [Some(p.mu), p.mu_conf, Some(p.mu_star), p.mu_star_conf, p.sigma, p.sigma_conf, Some(p.effect)];
        std::iter::once(p.name.clone()).chain(numbers.map(shown)).collect::<Vec<_>>()
    });
    csv(&header, rows)
}
