//! Parameter sets from a user's CSV file.
//!
//! Columns are named by parameter, in any order. Parameters without a column stay at their defaults, and a column
//! [`EVALUATION_COLUMN`] is accepted and ignored, so that a `samples.csv` reads back. Values are checked for their
//! type but not against sampling ranges, because users may exceed these on purpose. Rows are kept in order, equal
//! ones included.

mod numbers;
mod source;

use crate::sampling::MAX_EVALUATIONS;
pub use numbers::{InvalidNumber, Numbers, Separation};
use pleach_workflow::text::quoted;
use pleach_workflow::{Parameter, ParseValueError, Value};
use source::Source;
use std::borrow::Cow;
use std::io::Read;
use thiserror::Error;

/// Column that numbers evaluations in the tables that pleach writes. A parameter of this name takes
/// precedence.
pub const EVALUATION_COLUMN: &str = "evaluation";

/// Error of a table. Lines count from 1, the header included. The caller names the file.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file has no header.
    #[error("the table is empty; a header that names parameters is needed ({known})")]
    NoHeader {
        /// Known parameters.
        known: String,
    },
    /// The file has no columns.
    #[error("the table is empty; a line of column names, or of numbers, is needed")]
    NoColumns,
    /// A header without rows.
    #[error("the table has a header and no rows; at least one parameter set is needed")]
    NoRows,
    /// A column that names no parameter.
    #[error(
        "line {line}: column {position} is \"{}\", which is not a parameter; allowed are {known} and {}",
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
    /// Two columns have the same name.
    #[error("line {line}: column \"{}\" occurs twice; column names must be unique", quoted(column, 80))]
    DuplicateColumn {
        /// Line of the header.
        line: usize,
        /// The name.
        column: String,
    },
    /// A row with more or fewer fields than the header.
    #[error("line {line} has {found} fields; the first line has {expected}, separated by {separator}")]
    Ragged {
        /// Line of the row.
        line: usize,
        /// Fields found.
        found: usize,
        /// Fields of the header.
        expected: usize,
        /// Their separator.
        separator: &'static str,
    },
    /// More rows than are held in memory.
    #[error("line {line}: the table has more than {MAX_EVALUATIONS} rows")]
    TooManyRows {
        /// Line of the first excess row.
        line: usize,
    },
    /// A field is not a value of its parameter's type.
    #[error("line {line}, column {column}: {problem}{}", decimals(&problem.text))]
    BadValue {
        /// Line of the row.
        line: usize,
        /// The parameter.
        column: String,
        /// The field, and the allowed values.
        problem: ParseValueError,
    },
    /// The CSV reader failed.
    #[error("invalid CSV: {0}")]
    Malformed(#[from] csv::Error),
    /// Reading the table failed.
    #[error("failed to read: {0}")]
    Unreadable(#[from] std::io::Error),
}

/// Returns a hint on decimal commas if the text has a comma.
fn decimals(text: &str) -> &'static str {
    if text.contains(',') { "; a decimal point is needed" } else { "" }
}

/// Parses the parameter sets of a CSV into memory: a value for every parameter in each row.
///
/// Accepts a byte-order mark, CRLF, blank lines, quoted fields and spaces around fields. Fields are separated by
/// commas, or by semicolons or tabs if the header has these and no commas. With semicolons, as in spreadsheets with
/// decimal commas, `2,5` is two and a half.
///
/// # Errors
/// [`TableError`] with line, column, value, and the allowed values.
pub fn parse(text: &str, parameters: &[Parameter]) -> Result<Vec<Vec<Value>>, TableError> {
    let mut rows = Rows::open(text.as_bytes(), parameters)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().transpose()? {
        if all.len() as u64 == MAX_EVALUATIONS {
            return Err(TableError::TooManyRows { line: rows.table.line() });
        }
        all.push(row);
    }
    if all.is_empty() { Err(TableError::NoRows) } else { Ok(all) }
}

/// Streams the parameter sets of a CSV, holding one row in memory. After an error no row follows.
pub struct Rows<'a, R> {
    table: Table<R>,
    parameters: &'a [Parameter],
    /// Parameter index of each column. `None` for the evaluation column.
    columns: Vec<Option<usize>>,
    defaults: Vec<Value>,
}

impl<'a, R: Read> Rows<'a, R> {
    /// Reads the header. See [`parse`] for the accepted syntax.
    ///
    /// # Errors
    /// [`TableError`] if the header does not match these parameters.
    pub fn open(table: R, parameters: &'a [Parameter]) -> Result<Self, TableError> {
        let mut table = Table::open(table)?;
        if !table.advance()? {
            return Err(TableError::NoHeader { known: known(parameters) });
        }
        let columns = read_header(&table.record, table.line(), parameters)?;
        table.columns = columns.len();
        let defaults = parameters.iter().map(|parameter| parameter.default).collect();
        Ok(Self { table, parameters, columns, defaults })
    }

    fn read(&mut self) -> Result<Option<Vec<Value>>, TableError> {
        if !self.table.advance()? {
            return Ok(None);
        }
        let mut row = self.defaults.clone();
        for (field, column) in self.table.record.iter().zip(&self.columns) {
            let Some(place) = *column else { continue };
            let parameter = &self.parameters[place];
            row[place] =
                Value::parse(&self.table.number(field), parameter.value_type).map_err(|problem| {
                    let column = parameter.name.clone();
                    TableError::BadValue { line: self.table.line(), column, problem }
                })?;
        }
        Ok(Some(row))
    }
}

impl<R: Read> Iterator for Rows<'_, R> {
    type Item = Result<Vec<Value>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.read().transpose();
        // Ends the iteration: after an invalid row, a caller must not continue with the next one.
        if matches!(row, Some(Err(_))) {
            self.table.ended = true;
        }
        row
    }
}

/// A CSV, row by row.
struct Table<R> {
    reader: csv::Reader<Source<R>>,
    record: csv::StringRecord,
    separator: u8,
    /// Number of fields in each row: that of the header. 0 before the header is read.
    columns: usize,
    ended: bool,
}

impl<R: Read> Table<R> {
    fn open(table: R) -> Result<Self, TableError> {
        Self::open_separated(table, false)
    }

    /// Opens a table. With `blanks`, blanks may separate its fields.
    fn open_separated(table: R, blanks: bool) -> Result<Self, TableError> {
        let (separator, source) = source::open(table, blanks)?;
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .delimiter(separator)
            .from_reader(source);
        Ok(Self { reader, record: csv::StringRecord::new(), separator, columns: 0, ended: false })
    }

    /// Reads the next row into `record`. Returns false at the end.
    fn advance(&mut self) -> Result<bool, TableError> {
        if self.ended || !self.reader.read_record(&mut self.record)? {
            return Ok(false);
        }
        let start = self.record.position().map_or(0, csv::Position::byte);
        self.reader.get_mut().release(start);
        if self.separator == b' ' {
            // Any number of blanks and tabs separates two fields.
            let fields: csv::StringRecord = self.record.iter().flat_map(str::split_whitespace).collect();
            self.record = fields;
        }
        if self.columns > 0 && self.record.len() != self.columns {
            let (line, found, expected) = (self.line(), self.record.len(), self.columns);
            return Err(TableError::Ragged { line, found, expected, separator: name_of(self.separator) });
        }
        Ok(true)
    }

    /// Line of the row, for error messages only. The CSV reader's own count is that of the first blank line
    /// skipped before the row.
    fn line(&self) -> usize {
        self.reader.get_ref().line()
    }

    /// Returns a field with a decimal point. In tables separated by semicolons, a single comma is the decimal
    /// point.
    fn number<'f>(&self, field: &'f str) -> Cow<'f, str> {
        let comma = self.separator == b';' && field.matches(',').count() == 1 && !field.contains('.');
        if comma { Cow::Owned(field.replace(',', ".")) } else { Cow::Borrowed(field) }
    }
}

fn name_of(separator: u8) -> &'static str {
    match separator {
        b';' => "semicolons",
        b'\t' => "tabs",
        b' ' => "blanks",
        _ => "commas",
    }
}

/// Returns the parameter index of each column. `None` for the evaluation column.
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
    fn spreadsheets_write_semicolons_and_decimal_commas() {
        assert_eq!(
            read("\u{feff}G1;T1\r\n60;2,5\r\n61;3.5\r\n62;4\r\n"),
            ["60 2.5 45", "61 3.5 45", "62 4 45"]
        );
        assert_eq!(read("G1\tT1\n60\t2.5\n"), ["60 2.5 45"]);
        assert!(error("G1;T1\n60;1.234,5\n").starts_with("line 2, column T1: \"1.234,5\" is not a finite"));
        assert!(error("G1;T1\n60;1,234,5\n").starts_with("line 2, column T1: \"1,234,5\" is not a finite"));
        assert_eq!(error("G1;T1\n1,5;2\n"), "line 2, column G1: \"1.5\" is not an integer");
        assert_eq!(
            error("G1;T1\n60;2;5\n"),
            "line 2 has 3 fields; the first line has 2, separated by semicolons"
        );
        assert!(error("G1\tT1\n60\t2,5\n").contains("\"2,5\" is not a finite number; a decimal point is"));
    }

    #[test]
    fn rows_come_one_by_one_and_end_with_an_error() {
        let parameters = parameters();
        let mut rows = Rows::open("G1\n1\nx\n3\n".as_bytes(), &parameters).unwrap();
        assert_eq!(rows.next().unwrap().unwrap()[0], Value::Integer(1));
        assert!(rows.next().unwrap().unwrap_err().to_string().starts_with("line 3, column G1"));
        assert!(rows.next().is_none());
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
            error("G1|T1\n60|2.5\n"),
            "line 1: column 1 is \"G1|T1\", which is not a parameter; allowed are G1, T1, G2 and evaluation"
        );
        assert!(error("G1,\n60,1\n").contains("column 2 is \"\", which is not a parameter"));
        assert!(error("G1,g2\n60,1\n").contains("column 2 is \"g2\""));
        assert_eq!(
            error("G1,T1,G1\n1,2,3\n"),
            "line 1: column \"G1\" occurs twice; column names must be unique"
        );
        assert!(error("evaluation,evaluation\n1,2\n").contains("\"evaluation\" occurs twice"));
        assert_eq!(
            error("G1,T1\n60,2.5\n60,2,5\n"),
            "line 3 has 3 fields; the first line has 2, separated by commas"
        );
        assert!(error("G1,T1\n60,2.5\n60\n").starts_with("line 3 has 1 fields"));
        assert_eq!(error("G1,T1\n60,2.5\n60.5,2\n"), "line 3, column G1: \"60.5\" is not an integer");
        assert_eq!(error("G1,T1\n60,NaN\n"), "line 2, column T1: \"NaN\" is not a finite number");
        assert_eq!(
            error("G1,T1\n60,\"2,5\"\n"),
            "line 2, column T1: \"2,5\" is not a finite number; a decimal point is needed"
        );
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
