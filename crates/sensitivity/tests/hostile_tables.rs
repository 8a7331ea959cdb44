//! Corrupt and malicious tables: each is read or rejected with a one-line error, in memory proportional to
//! its length.
//!
//! Every row becomes one value of 16 bytes per parameter, a list header, and an entry in the list of rows,
//! which may have just doubled. The shortest row is 2 bytes. The CSV reader also holds a record, and the
//! position of each of its fields, which take at least 1 byte each.

#[path = "../../../tests/support/allocations.rs"]
mod allocations;
#[path = "../../../tests/support/mutations.rs"]
mod mutations;

use allocations::peak_of;
use mutations::{mutated, mutations};
use pleach_sensitivity::table::{Numbers, Rows, Separation, parse};
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use proptest::prelude::*;

fn parameters() -> Vec<Parameter> {
    let parameter = |number: usize| {
        let value_type = if number.is_multiple_of(2) { ValueType::Integer } else { ValueType::Real };
        Parameter {
            name: format!("P{number}"),
            value_type,
            default: Value::from_f64(5.0, value_type).expect("a value"),
            domain: Domain::range(value_type, 2.0, 40.0, None).expect("a range"),
        }
    };
    (0..15).map(parameter).collect()
}

/// Maximum memory for a table of this length: rows of 2 bytes with 15 values and three headers of 24 bytes,
/// fields of 1 byte with two positions of 8 bytes, and twice the record.
fn bound(length: usize) -> usize {
    length / 2 * (15 * 16 + 3 * 24) + length * (2 * 8 + 2) + (1 << 20)
}

#[track_caller]
fn read_within_bounds(text: &str) -> Result<usize, String> {
    let parameters = parameters();
    let (rows, peak) = peak_of(|| parse(text, &parameters));
    assert!(peak <= bound(text.len()), "{peak} bytes held for {}", text.len());
    let rows = rows.map_err(|error| error.to_string());
    if let Err(said) = &rows {
        assert_eq!(said.lines().count(), 1, "{said:?}");
    }
    let rows = rows?;
    assert!(rows.iter().all(|row| row.len() == parameters.len()));
    Ok(rows.len())
}

#[test]
fn hostile_tables_are_read_or_refused_within_bounds() {
    let long = "1,".repeat(5_000_000);
    let said = |text: &str| read_within_bounds(text).expect_err("no table");
    assert!(said("P0\n\"1\n2\n3").contains("line 2"), "an open quote swallows the rest");
    assert!(said(&format!("P0\n{long}")).starts_with("line 2 has 5000001 fields; the first line has 1"));
    assert!(said(&long).starts_with("line 1: column 1 is \"1\""));
    assert!(said(&",".repeat(10_000_000)).starts_with("line 1: column 1 is \"\""));
    assert!(said(&"\"".repeat(10_000_001)).starts_with("line 1: column 1 is "));
    assert!(said(&"\0".repeat(1_000)).starts_with("line 1: column 1 is "));
    assert_eq!(said(&"\n".repeat(1_000_000)), said(""));
    assert!(said("P0\nNaN\n").contains("\"NaN\" is not an integer"));
    assert!(said("P1\ninf\n").contains("\"inf\" is not a finite number"));
    assert!(said("P1\n1e999\n").contains("\"1e999\" is not a finite number"));
    assert!(said("P0\n99999999999999999999\n").contains("is not an integer"));
    assert_eq!(read_within_bounds(&format!("P0\n{}", "1\n".repeat(200_000))), Ok(200_000));
    assert_eq!(read_within_bounds("\u{feff}P0,P1\r\n1,2\r\n"), Ok(1));
    assert_eq!(read_within_bounds("P0\r1\r2\r"), Ok(2));
}

/// Table longer than memory. Rows are generated while the test reads.
struct Endless {
    header: &'static [u8],
    row: &'static [u8],
    left: u64,
    at: Vec<u8>,
}

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at.is_empty() {
            self.at.extend_from_slice(self.header);
            self.header = &[];
            while self.at.len() < 4096 && self.left > 0 {
                self.at.extend_from_slice(self.row);
                self.left -= 1;
            }
        }
        let count = buffer.len().min(self.at.len());
        buffer[..count].copy_from_slice(&self.at[..count]);
        self.at.drain(..count);
        Ok(count)
    }
}

/// Half a million rows of sets or responses are read in less than 1 MB, and an error in the last row names
/// its line.
#[test]
fn rows_are_streamed() {
    let parameters = parameters();
    let table = |row| Endless { header: b"\xef\xbb\xbfP0,P1,dice\r\n", row, left: 500_000, at: Vec::new() };
    let (count, peak) = peak_of(|| {
        let mut numbers = Numbers::open(table(b"1,2.5,0.25\r\n"), Separation::Marks).expect("a header");
        let mut count = 0;
        while numbers.advance().expect("a row") {
            count += usize::from(numbers.number(2) == Ok(Some(0.25)));
        }
        count
    });
    assert_eq!(count, 500_000);
    assert!(peak < 1 << 20, "{peak} bytes held");

    let sets = |row| Endless { header: b"P0,P1\n", row, left: 200_000, at: Vec::new() };
    let (said, peak) = peak_of(|| {
        let damaged = std::io::Read::chain(sets(b"1,2.5\r\n"), &b"1,text\n"[..]);
        let rows = Rows::open(damaged, &parameters).expect("a header");
        rows.filter_map(Result::err).map(|error| error.to_string()).collect::<Vec<_>>()
    });
    assert_eq!(said, ["line 200002, column P1: \"text\" is not a finite number"]);
    assert!(peak < 1 << 20, "{peak} bytes held");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn corrupt_tables_are_read_or_refused_within_bounds(rows in 1..20_usize, mutations in mutations()) {
        let header: Vec<String> = (0..15).map(|number| format!("P{number}")).collect();
        let row = |row: usize| (0..15).map(|n| (row + n).to_string()).collect::<Vec<_>>().join(",");
        let good = format!("{}\n{}\n", header.join(","), (0..rows).map(row).collect::<Vec<_>>().join("\n"));
        let bad = mutated(good.as_bytes(), &mutations);
        let _ = read_within_bounds(&String::from_utf8_lossy(&bad));
    }

    #[test]
    fn any_text_is_read_or_refused_within_bounds(text in "[P0-9,;\"\\r\\n\\t\\u{feff} .eE+-]{0,200}") {
        let _ = read_within_bounds(&text);
        let _ = read_within_bounds(&format!("P0,P1\n{text}"));
    }
}
