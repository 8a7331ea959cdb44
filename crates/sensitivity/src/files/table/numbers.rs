//! Columns of numbers exchanged with other programs: parameter sets and responses.
//!
//! The caller selects columns. An empty field is a missing number, such as the response of a failed
//! evaluation. If the first line has only numbers, the table has no header, as in the output of numpy's
//! `savetxt`.

use super::{Table, TableError, decimals};
use pleach_workflow::text::quoted;
use std::io::Read;
use thiserror::Error;

/// Reads a CSV row by row, holding one row in memory. Accepts the same syntax as [`super::parse`].
pub struct Numbers<R> {
    table: Table<R>,
    header: Option<Vec<String>>,
    /// Whether the next row is already read: the first line was no header.
    pending: bool,
}

/// A field that is no number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{}\" is not a finite number{}; leave the field of a failed evaluation empty",
    quoted(text, 80),
    decimals(text)
)]
pub struct InvalidNumber {
    /// The field.
    pub text: String,
}

/// Separators of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// Commas, semicolons or tabs.
    Marks,
    /// The same marks, or any number of blanks. Fields separated by blanks are never empty.
    MarksOrBlanks,
}

impl<R: Read> Numbers<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// [`TableError`] without a first line, or if a name occurs twice in it.
    pub fn open(table: R, separation: Separation) -> Result<Self, TableError> {
        let mut table = Table::open_separated(table, separation == Separation::MarksOrBlanks)?;
        if !table.advance()? {
            return Err(TableError::NoColumns);
        }
        table.columns = table.record.len();
        let are_numbers = table.record.iter().all(|field| number(&table.number(field)).is_some());
        if are_numbers {
            return Ok(Self { table, header: None, pending: true });
        }
        let header: Vec<String> = table.record.iter().map(str::to_owned).collect();
        for (place, name) in header.iter().enumerate() {
            if header[..place].contains(name) {
                return Err(TableError::DuplicateColumn { line: table.line(), column: name.clone() });
            }
        }
        Ok(Self { table, header: Some(header), pending: false })
    }

    /// Returns the names of the columns. Returns `None` for a table without a header.
    #[must_use]
    pub fn header(&self) -> Option<&[String]> {
        self.header.as_deref()
    }

    /// Number of columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.table.columns
    }

    /// Advances to the next row, initially to the first. After an error no row follows.
    ///
    /// # Errors
    /// [`TableError`] if the row has more or fewer fields than the first line.
    pub fn advance(&mut self) -> Result<bool, TableError> {
        if std::mem::take(&mut self.pending) {
            return Ok(true);
        }
        let advanced = self.table.advance();
        self.table.ended = !matches!(advanced, Ok(true));
        advanced
    }

    /// Line of the current row, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.table.line()
    }

    /// Returns a field of the current row as written.
    #[must_use]
    pub fn field(&self, column: usize) -> &str {
        self.table.record.get(column).unwrap_or_default()
    }

    /// Returns a number of the current row. Returns `None` for an empty field.
    ///
    /// # Errors
    /// [`InvalidNumber`] for a text or a number that is not finite.
    pub fn number(&self, column: usize) -> Result<Option<f64>, InvalidNumber> {
        let field = self.field(column);
        if field.is_empty() {
            return Ok(None);
        }
        number(&self.table.number(field)).map(Some).ok_or_else(|| InvalidNumber { text: field.to_owned() })
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Column names, if present, and rows.
    type Read = (Option<Vec<String>>, Vec<Vec<Option<f64>>>);

    fn read(text: &str, separation: Separation) -> Result<Read, String> {
        let said = |error: TableError| error.to_string();
        let mut table = Numbers::open(text.as_bytes(), separation).map_err(said)?;
        let header = table.header().map(<[String]>::to_vec);
        let mut rows = Vec::new();
        while table.advance().map_err(said)? {
            let row = (0..table.width()).map(|column| {
                table.number(column).map_err(|error| format!("line {}: {error}", table.line()))
            });
            rows.push(row.collect::<Result<Vec<_>, _>>()?);
        }
        assert!(!table.advance().unwrap(), "a table that has ended has ended");
        Ok((header, rows))
    }

    fn marks(text: &str) -> Result<Read, String> {
        read(text, Separation::Marks)
    }

    #[test]
    fn numbers_are_read_with_and_without_names() {
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let text = "\u{feff}evaluation,G1,dice\r\n1,5,0.5\r\n2,6,\r\n";
        let rows = vec![vec![Some(1.0), Some(5.0), Some(0.5)], vec![Some(2.0), Some(6.0), None]];
        assert_eq!(marks(text), Ok((names(&["evaluation", "G1", "dice"]), rows)));
        assert_eq!(marks("y;z\n1,5;2\n").unwrap().1, [[Some(1.5), Some(2.0)]]);
        assert_eq!(
            marks("1,2\n\n3,4\n"),
            Ok((None, vec![vec![Some(1.0), Some(2.0)], vec![Some(3.0), Some(4.0)]]))
        );
        assert_eq!(marks("7"), Ok((None, vec![vec![Some(7.0)]])));
    }

    /// Output of numpy's `savetxt` and Dakota.
    #[test]
    fn blanks_separate_where_they_may() {
        let blanks = |text: &str| read(text, Separation::MarksOrBlanks);
        assert_eq!(
            blanks(" 1e0  -2.5\n3 \t4\n").unwrap(),
            (None, vec![vec![Some(1.0), Some(-2.5)], vec![Some(3.0), Some(4.0)]])
        );
        let (header, rows) = blanks("%eval_id  x1   x2\r\n1   0.5  2 \r\n").unwrap();
        assert_eq!((header.unwrap().join("|"), rows.len()), ("%eval_id|x1|x2".to_owned(), 1));
        assert_eq!(blanks("mean area,y\n1,2\n").unwrap().0.unwrap()[0], "mean area");
        assert_eq!(marks("mean area\n1\n").unwrap().0.unwrap()[0], "mean area");
        assert_eq!(
            blanks("a b\n1 2\n3\n").unwrap_err(),
            "line 3 has 1 fields; the first line has 2, separated by blanks"
        );
    }

    #[test]
    fn errors_name_line_and_value() {
        let said = |text: &str| marks(text).unwrap_err();
        assert_eq!(said(""), "the table is empty; a line of column names, or of numbers, is needed");
        assert_eq!(said("a,a\n1,2\n"), "line 1: column \"a\" occurs twice; column names must be unique");
        for text in ["NaN", "inf", "-inf", "1e999", "none", "\"1,5\""] {
            let said = said(&format!("a,b\n1,2\n\n{text},3\n"));
            assert!(said.starts_with("line 4: \"") && said.contains("\" is not a finite number"), "{said}");
            assert_eq!(said.contains("a decimal point is needed"), text.contains(','));
        }
        assert!(said("a,b\n1\n").starts_with("line 2 has 1 fields; the first line has 2"));
    }
}
