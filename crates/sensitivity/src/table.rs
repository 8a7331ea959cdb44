//! Parameter sets that a user brings in a CSV.
//!
//! Columns are named by parameter, in any order; parameters without a column stay at their defaults, and a
//! column [`EVALUATION_COLUMN`] is accepted and ignored, so that a `samples.csv` reads back. Values are checked for their
//! type and not against sampling ranges, which a user may leave on purpose. Rows are kept in order, equal
//! ones included.

use pleach_workflow::text::quoted;
use pleach_workflow::{Parameter, ParseValueError, Value};
use thiserror::Error;

/// The column that numbers evaluations in the tables pleach writes. A parameter of that name comes first.
pub const EVALUATION_COLUMN: &str = "evaluation";

/// Why a table cannot be used. Lines count from 1, the header included; the caller names the file.
#[derive(Debug, Error)]
pub enum TableError {
    /// Nothing to read.
    #[error("the table is empty; a header that names parameters is needed ({known})")]
    NoHeader {
        /// Known parameters.
        known: String,
    },
    /// A header without rows.
    #[error("the table has a header and no rows; at least one parameter set is needed")]
    NoRows,
    /// A column that names no parameter.
    #[error(
        "line {line}: column {position} is \"{}\", which is no parameter; allowed are {known} and {}",
        quoted(column, 80),
        EVALUATION_COLUMN
    )]
    UnknownColumn {
        /// Line of the header.
        line: usize,
        /// Place of the column, from 1.
        position: usize,
        /// Its name.
        column: String,
        /// Known parameters.
        known: String,
    },
    /// Two columns of one name.
    #[error("line {line}: column \"{}\" occurs twice; each parameter may have one", quoted(column, 80))]
    DuplicateColumn {
        /// Line of the header.
        line: usize,
        /// The name.
        column: String,
    },
    /// A row with more or fewer fields than the header.
    #[error("line {line} has {found} fields; the header has {expected}, separated by commas")]
    Ragged {
        /// Line of the row.
        line: usize,
        /// Fields found.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// A field that is no value of its parameter's type.
    #[error("line {line}, column {column}: {problem}")]
    BadValue {
        /// Line of the row.
        line: usize,
        /// The parameter.
        column: String,
        /// The field, and what is allowed.
        problem: ParseValueError,
    },
    /// The CSV reader gave up.
    #[error("the table is no CSV: {0}")]
    Malformed(#[from] csv::Error),
}

/// The parameter sets of a CSV: a value for every parameter in each row.
///
/// A byte-order mark, CRLF, blank lines, quoted fields and spaces around fields are accepted.
///
/// # Errors
/// [`TableError`], which names line, column and value, and what is allowed.
pub fn parse(text: &str, parameters: &[Parameter]) -> Result<Vec<Vec<Value>>, TableError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    if !reader.read_record(&mut record)? {
        return Err(TableError::NoHeader { known: known(parameters) });
    }
    let columns = read_header(&record, line(text, &record), parameters)?;

    let defaults: Vec<Value> = parameters.iter().map(|parameter| parameter.default).collect();
    let mut rows = Vec::new();
    while reader.read_record(&mut record)? {
        if record.len() != columns.len() {
            let (line, found, expected) = (line(text, &record), record.len(), columns.len());
            return Err(TableError::Ragged { line, found, expected });
        }
        let mut row = defaults.clone();
        for (field, column) in record.iter().zip(&columns) {
            let Some(place) = *column else { continue };
            let parameter = &parameters[place];
            row[place] = Value::parse(field, parameter.value_type).map_err(|problem| {
                TableError::BadValue { line: line(text, &record), column: parameter.name.clone(), problem }
            })?;
        }
        rows.push(row);
    }
    if rows.is_empty() { Err(TableError::NoRows) } else { Ok(rows) }
}

/// For each column the place of its parameter, `None` for the evaluation column.
fn read_header(
    header: &csv::StringRecord,
    line: usize,
    parameters: &[Parameter],
) -> Result<Vec<Option<usize>>, TableError> {
    let mut columns = Vec::with_capacity(header.len());
    for (index, name) in header.iter().enumerate() {
        let place = parameters.iter().position(|parameter| parameter.name == name);
        if place.is_none() && name != EVALUATION_COLUMN {
            let (position, column, known) = (index + 1, name.to_owned(), known(parameters));
            return Err(TableError::UnknownColumn { line, position, column, known });
        }
        if columns.contains(&place) {
            return Err(TableError::DuplicateColumn { line, column: name.to_owned() });
        }
        columns.push(place);
    }
    Ok(columns)
}

fn known(parameters: &[Parameter]) -> String {
    parameters.iter().map(|parameter| parameter.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Line of a record, for error messages only. The CSV reader's own count is that of the first of the blank
/// lines it skipped before the record.
fn line(text: &str, record: &csv::StringRecord) -> usize {
    let start = record.position().map_or(0, |position| position.byte() as usize);
    let bytes = text.as_bytes();
    let blank = bytes[start..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    1 + bytes[..start + blank].iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::{Domain, ValueType};

    fn parameters() -> Vec<Parameter> {
        let parameter = |name: &str, value_type, default| Parameter {
            name: name.into(),
            value_type,
            default: Value::from_f64(default, value_type).unwrap(),
            domain: Domain::range(value_type, 2.0, 40.0, None).unwrap(),
        };
        vec![
            parameter("G1", ValueType::Integer, 80.0),
            parameter("T1", ValueType::Real, 5.0),
            parameter("G2", ValueType::Integer, 45.0),
        ]
    }

    fn read(text: &str) -> Vec<String> {
        let rows = parse(text, &parameters()).unwrap();
        rows.iter().map(|row| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")).collect()
    }

    fn error(text: &str) -> String {
        parse(text, &parameters()).unwrap_err().to_string()
    }

    #[test]
    fn columns_come_in_any_order_and_the_rest_are_defaults() {
        assert_eq!(read("evaluation,T1,G1\n1,2.5,60\n7,1e1,5\n"), ["60 2.5 45", "5 10 45"]);
        assert_eq!(read("evaluation\n1\n"), ["80 5 45"]);
        assert_eq!(read("G1\n60\n60"), ["60 5 45", "60 5 45"]);
    }

    #[test]
    fn ranges_are_not_checked() {
        assert_eq!(read("G1,T1\n-300,1e9\n"), ["-300 1000000000 45"]);
    }

    #[test]
    fn files_of_other_programs_read_too() {
        assert_eq!(read("\u{feff}\"G1\",\"T1\"\r\n\r\n 60 , 2.5\r\n\"61.0\",3"), ["60 2.5 45", "61 3 45"]);
    }

    #[test]
    fn errors_name_line_column_value_and_what_is_allowed() {
        assert_eq!(error(""), "the table is empty; a header that names parameters is needed (G1, T1, G2)");
        assert_eq!(error("\u{feff}\r\n"), error(""));
        assert_eq!(
            error("G1,T1\n"),
            "the table has a header and no rows; at least one parameter set is needed"
        );
        assert_eq!(
            error("G1;T1\n60;2.5\n"),
            "line 1: column 1 is \"G1;T1\", which is no parameter; allowed are G1, T1, G2 and evaluation"
        );
        assert!(error("G1,\n60,1\n").contains("column 2 is \"\", which is no parameter"));
        assert!(error("G1,g2\n60,1\n").contains("column 2 is \"g2\""));
        assert_eq!(
            error("G1,T1,G1\n1,2,3\n"),
            "line 1: column \"G1\" occurs twice; each parameter may have one"
        );
        assert!(error("evaluation,evaluation\n1,2\n").contains("\"evaluation\" occurs twice"));
        assert_eq!(
            error("G1,T1\n60,2.5\n60,2,5\n"),
            "line 3 has 3 fields; the header has 2, separated by commas"
        );
        assert!(error("G1,T1\n60,2.5\n60\n").starts_with("line 3 has 1 fields"));
        assert_eq!(error("G1,T1\n60,2.5\n60.5,2\n"), "line 3, column G1: \"60.5\" is not an integer");
        assert_eq!(error("G1,T1\n60,NaN\n"), "line 2, column T1: \"NaN\" is not a finite number");
        assert_eq!(error("G1,T1\n60,\"2,5\"\n"), "line 2, column T1: \"2,5\" is not a finite number");
        assert_eq!(error("G1,T1\n60,\n"), "line 2, column T1: \"\" is not a finite number");
    }

    #[test]
    fn lines_are_those_an_editor_shows() {
        let blanks = "\u{feff}G1,T1\r\n\r\n\r\n60,2.5\r\n\r\nx,2\r\n";
        assert!(error(blanks).starts_with("line 6, column G1"), "{}", error(blanks));
        assert!(error("\n\nG7\n1\n").starts_with("line 3: column 1 is \"G7\""), "{}", error("\n\nG7\n1\n"));
        assert!(error("G1\n1\n2\n3\nx").starts_with("line 5, column G1"));
    }
}
