//! Writes CSV tables.

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
