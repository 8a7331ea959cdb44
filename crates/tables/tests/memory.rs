//! Memory of tables: a row while writing, a number for each field while reading.

#[path = "../../../tests/support/allocations.rs"]
mod allocations;

use allocations::peak_of;
use pleach_tables::{ColumnRequest, Table, Writer};
use pleach_workflow::{Value, ValueType};
use std::path::Path;

const ROWS: usize = 400_000;

fn write(file: &Path) {
    let columns = ["evaluation", "x1", "x2", "x3"].map(|name| (name.to_owned(), ValueType::Real));
    let mut writer = Writer::create(file, &columns).expect("a file");
    for row in 0..ROWS {
        // Digits that no encoding compresses.
        let number = |place: usize| ((row * 4 + place) as f64).sqrt().fract();
        let values = (0..4).map(|place| Value::from_f64(number(place), ValueType::Real).expect("finite"));
        writer.row(values).expect("a row");
    }
    writer.finish().expect("an end");
}

#[test]
fn rows_pass_and_columns_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["t.csv", "t.parquet"] {
        let file = folder.path().join(name);
        let ((), writing) = peak_of(|| write(&file));
        // A row group of four columns is 4 MB, and its encoding takes additional memory.
        assert!(writing < 24 << 20, "{name}: {writing} bytes held while writing");
        let (content, reading) = peak_of(|| {
            let table = Table::open(&file).expect("a table");
            table.read(&[ColumnRequest::Numbers(1), ColumnRequest::Numbers(2)]).expect("numbers")
        });
        assert_eq!(content.rows, ROWS);
        // Two columns, which may both just have doubled, and a batch.
        assert!(reading < 2 * 3 * 8 * ROWS + (8 << 20), "{name}: {reading} bytes held while reading");
    }
}

/// For tables of thousands of columns, as for samples of that many parameters, the memory held equals the estimate.
#[test]
fn wide_table_takes_what_is_estimated() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rows, width) in [(10, 20_000), (3_000, 2_000), (20_000, 20)] {
        let columns: Vec<(String, ValueType)> =
            (0..width).map(|column| (format!("x{column}"), ValueType::Real)).collect();
        for name in ["t.csv", "t.parquet"] {
            let file = folder.path().join(name);
            let ((), counted) = peak_of(|| {
                let mut writer = Writer::create(&file, &columns).expect("a file");
                for row in 0..rows {
                    let number = |column: usize| ((row * width + column) as f64).sqrt().fract();
                    let value = |column| Value::from_f64(number(column), ValueType::Real).expect("finite");
                    writer.row((0..width).map(value)).expect("a row");
                }
                writer.finish().expect("an end");
            });
            let estimated = Writer::bytes(&file, rows as u64, width);
            println!("{name}, {rows} x {width}: {estimated} bytes estimated, {counted} counted");
            // Each column's encoder has pages of 1 MB.
            assert!(counted as u64 <= estimated + (8 << 20), "{name}, {rows} x {width}: {counted}");
            assert!(estimated <= 2 * counted as u64, "{name}, {rows} x {width}: {estimated}");
        }
    }
}
