//! CSV files, by column.

use std::collections::BTreeMap;
use std::path::Path;

/// A record of a CSV file, by column.
pub(crate) type Row = BTreeMap<String, String>;

/// All records of a CSV file.
pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).expect("a CSV file");
    reader.deserialize().map(|row| row.expect("a record")).collect()
}
