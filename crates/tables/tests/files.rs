//! Files of other programs, and files written for them.

use pleach_tables::{Column, ColumnRequest, Table, TableData, Writer};
use pleach_workflow::{Value, ValueType};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn open(file: &Path) -> Table {
    Table::open(file).unwrap_or_else(|error| panic!("{error}"))
}

fn column(file: &Path, name: &str) -> Vec<f64> {
    let table = open(file);
    let place = table.names().expect("names").iter().position(|known| known == name).expect("a column");
    table.read(&[ColumnRequest::Numbers(place)]).unwrap_or_else(|error| panic!("{error}")).take_numbers(0)
}

fn said(file: &Path, name: &str) -> String {
    let table = open(file);
    let place = table.names().expect("names").iter().position(|known| known == name).expect("a column");
    let said = table.read(&[ColumnRequest::Numbers(place)]).expect_err("no numbers").to_string();
    said.strip_prefix(&format!("{}: ", file.display())).expect("the file is named").to_owned()
}

/// Files of pandas: Snappy in three row groups, and Zstandard in pages of the second version.
#[test]
fn columns_of_pandas_are_read() {
    for name in ["pandas.parquet", "zstd-v2.parquet"] {
        let file = fixture(name);
        let table = open(&file);
        // The names omit the index, which pandas writes as a column.
        assert_eq!(table.names().unwrap(), ["evaluation", "x1", "x2", "k", "u", "flag", "tile", "y", "when"]);
        let rows = || (0..40).map(f64::from);
        assert_eq!(column(&file, "evaluation"), rows().map(|row| row + 1.0).collect::<Vec<_>>());
        assert_eq!(column(&file, "x1"), rows().map(|row| row / 8.0 - 2.0).collect::<Vec<_>>());
        assert_eq!(column(&file, "x2"), rows().map(|row| row / 4.0).collect::<Vec<_>>());
        assert_eq!(column(&file, "k"), rows().map(|row| row % 5.0 - 2.0).collect::<Vec<_>>());
        assert_eq!(column(&file, "u"), rows().map(|row| row + 200.0).collect::<Vec<_>>());
        assert_eq!(column(&file, "flag"), rows().map(|row| f64::from(row % 3.0 == 0.0)).collect::<Vec<_>>());
        for (row, found) in column(&file, "y").into_iter().enumerate() {
            assert_eq!(found.is_nan(), row % 7 == 3, "{row}");
            assert!(found.is_nan() || found == row as f64 / 4.0 - 4.0, "{row}: {found}");
        }
        let content = table.read(&[ColumnRequest::Labels(6)]).unwrap();
        let Column::Labels { texts, of } = &content.columns[0] else { panic!("{content:?}") };
        assert_eq!(texts, &["even", "odd"]);
        assert!(of.iter().zip(0..).all(|(label, row)| *label == row % 2));
        assert_eq!((content.rows, content.row_label(4)), (40, "row 5".to_owned()));
    }
}

#[test]
fn columns_that_are_no_numbers_are_refused() {
    let file = fixture("pandas.parquet");
    assert_eq!(said(&file, "tile"), "column tile holds texts; numbers are allowed");
    assert_eq!(said(&file, "when"), "column when holds values of the type Timestamp; numbers are allowed");
    let odd = fixture("odd.parquet");
    let nan = "NaN is not a finite number; null is allowed for a missing number, such as that of a failed evaluation";
    assert_eq!(said(&odd, "x"), format!("row 2, column x: {nan}"));
    assert!(said(&odd, "y").starts_with("row 2, column y: inf is not a finite number"));
    let lists = open(&odd).names().unwrap().iter().find(|name| name.starts_with("all")).cloned().unwrap();
    assert_eq!(said(&odd, &lists), format!("column {lists} holds lists or structures; numbers are allowed"));
}

const COLUMNS: [(&str, ValueType); 3] =
    [("evaluation", ValueType::Integer), ("a \"b\", c", ValueType::Real), ("k", ValueType::Integer)];

fn write(file: &Path, rows: &[(f64, i64)]) {
    let columns = COLUMNS.map(|(name, value_type)| (name.to_owned(), value_type));
    let mut writer = Writer::create(file, &columns).expect("a table");
    for (number, (real, whole)) in (1..).zip(rows) {
        let real = Value::from_f64(*real, ValueType::Real).expect("a table");
        writer.row([Value::Integer(number), real, Value::Integer(*whole)].into_iter()).expect("a table");
    }
    writer.finish().expect("a table");
}

fn read(file: &Path) -> TableData {
    let table = open(file);
    assert_eq!(table.names().expect("a table"), COLUMNS.map(|(name, _)| name));
    table
        .read(&[ColumnRequest::Numbers(0), ColumnRequest::Numbers(1), ColumnRequest::Numbers(2)])
        .expect("a table")
}

#[test]
fn row_groups_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<(f64, i64)> = (0..300_000).map(|row| (f64::from(row) / 7.0, i64::from(row % 3))).collect();
    let file = folder.path().join("large.parquet");
    write(&file, &rows);
    let mut content = read(&file);
    assert_eq!(content.rows, rows.len());
    assert_eq!(content.take_numbers(1), rows.iter().map(|(real, _)| *real).collect::<Vec<_>>());
}

#[test]
fn unfinished_writer_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.parquet"] {
        let columns = COLUMNS.map(|(name, value_type)| (name.to_owned(), value_type));
        drop(Writer::create(&folder.path().join(name), &columns).unwrap());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = folder.path().join("none/a.csv");
    let said = Writer::create(&nowhere, &[]).err().expect("no folder").to_string();
    assert!(said.contains("none/a.csv: failed to write: No such file"), "{said}");
    let said = Writer::create(folder.path(), &[]).err().expect("a folder").to_string();
    assert!(said.ends_with("failed to write: it is a folder"), "{said}");
}

#[test]
fn files_that_are_no_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let said = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        Table::open(&file).err().expect("no table").to_string()
    };
    assert!(said("a.parquet", b"").contains("a.parquet: invalid Parquet"));
    assert!(said("a.parquet", b"x1,x2\n1,2\n").contains("invalid Parquet"));
    assert!(
        said("a.csv", b"").ends_with("the table is empty; a line of column names, or of numbers, is needed")
    );
    assert!(
        said("a.csv", b"a,b,a\n1,2,3\n")
            .ends_with("line 1: column \"a\" occurs twice; column names must be unique")
    );
    let said = Table::open(&folder.path().join("none.parquet")).err().expect("no file").to_string();
    assert!(said.ends_with("none.parquet: failed to read: No such file or directory (os error 2)"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every format stores every number to the last bit.
    #[test]
    fn written_tables_round_trip(
        rows in prop::collection::vec((any::<f64>().prop_filter("finite", |x| x.is_finite()), -(1_i64 << 53)..1 << 53), 1..50),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["t.csv", "t.tsv", "t.txt", "t.parquet"] {
            let file = folder.path().join(name);
            write(&file, &rows);
            let mut content = read(&file);
            prop_assert_eq!(content.rows, rows.len());
            prop_assert_eq!(content.take_numbers(1), rows.iter().map(|(real, _)| *real).collect::<Vec<_>>());
            prop_assert_eq!(content.take_numbers(2), rows.iter().map(|(_, whole)| *whole as f64).collect::<Vec<_>>());
        }
    }

    /// A damaged file is read, or rejected with a one-line message.
    #[test]
    fn reading_corrupt_tables_does_not_panic(cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), end in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("damaged.parquet");
        let mut bytes = std::fs::read(fixture("pandas.parquet")).unwrap();
        for (place, byte) in cuts {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if end.index(4) == 0 {
            bytes.truncate(end.index(bytes.len()));
        }
        std::fs::write(&file, bytes).unwrap();
        if let Ok(table) = Table::open(&file) {
            let wanted: Vec<ColumnRequest> = (0..table.width()).map(ColumnRequest::Numbers).collect();
            if let Err(error) = table.read(&wanted) {
                prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
            }
        }
    }
}
