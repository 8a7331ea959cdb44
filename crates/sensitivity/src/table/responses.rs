//! Columns of numbers that another program has computed for parameter sets: responses.
//!
//! Columns are found by name; others, such as those of parameters, may stand beside them. An empty field is an evaluation
//! that failed, and comes out as `None`.

use super::{Table, TableError};
use std::io::Read;

/// The responses of a CSV as they are read, in as little memory as a row takes; what is accepted is as in
/// [`super::parse`]. After an error there is no other row.
pub struct Responses<R> {
    table: Table<R>,
    names: Vec<String>,
    /// For each name its column.
    columns: Vec<usize>,
}

impl<R: Read> Responses<R> {
    /// Reads the header, in which each of the names occurs once.
    ///
    /// # Errors
    /// [`TableError`] when a column is missing or doubled.
    pub fn open(table: R, names: &[&str]) -> Result<Self, TableError> {
        let mut table = Table::open(table)?;
        if !table.advance()? {
            return Err(TableError::NoHeader { known: names.join(", ") });
        }
        let line = table.line();
        let header = &table.record;
        let mut columns = Vec::with_capacity(names.len());
        for &name in names {
            let mut found = (0..header.len()).filter(|&column| header.get(column) == Some(name));
            let Some(column) = found.next() else {
                let header = header.iter().take(MOST_NAMED).collect::<Vec<_>>().join(", ");
                let header = pleach_workflow::text::quoted(&header, 300).to_string();
                return Err(TableError::MissingColumn { line, column: name.to_owned(), header });
            };
            if found.next().is_some() {
                return Err(TableError::DuplicateColumn { line, column: name.to_owned() });
            }
            columns.push(column);
        }
        table.columns = header.len();
        Ok(Self { table, names: names.iter().map(|&name| name.to_owned()).collect(), columns })
    }

    fn read(&mut self) -> Result<Option<Vec<Option<f64>>>, TableError> {
        if !self.table.advance()? {
            return Ok(None);
        }
        let response = |(&column, name): (&usize, &String)| {
            let field = self.table.record.get(column).unwrap_or_default();
            if field.is_empty() {
                return Ok(None);
            }
            match self.table.number(field).parse() {
                Ok(number) if f64::is_finite(number) => Ok(Some(number)),
                _ => {
                    let (line, column) = (self.table.line(), name.clone());
                    Err(TableError::BadResponse { line, column, text: field.to_owned() })
                }
            }
        };
        self.columns.iter().zip(&self.names).map(response).collect::<Result<_, _>>().map(Some)
    }
}

/// Columns that a message names.
const MOST_NAMED: usize = 20;

impl<R: Read> Iterator for Responses<R> {
    type Item = Result<Vec<Option<f64>>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.read().transpose();
        if matches!(row, Some(Err(_))) {
            self.table.ended = true;
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, names: &[&str]) -> Result<Vec<Vec<Option<f64>>>, String> {
        let rows = Responses::open(text.as_bytes(), names).map_err(|error| error.to_string())?;
        rows.map(|row| row.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn responses_are_found_by_name() {
        let text = "\u{feff}evaluation,G1,dice,count\r\n1,5,0.5,12\r\n2,6,,7\r\n";
        assert_eq!(
            read(text, &["count", "dice"]),
            Ok(vec![vec![Some(12.0), Some(0.5)], vec![Some(7.0), None]])
        );
        assert_eq!(read("y;z\n1,5;2\n", &["y"]), Ok(vec![vec![Some(1.5)]]));
    }

    #[test]
    fn errors_name_line_and_column() {
        let said = |text: &str, names: &[&str]| read(text, names).unwrap_err();
        assert_eq!(said("a,b\n1,2\n", &["dice"]), "line 1: there is no column \"dice\"; the header has a, b");
        assert!(said("a,a\n1,2\n", &["a"]).starts_with("line 1: column \"a\" occurs twice"));
        assert!(said("", &["a"]).starts_with("the table is empty"));
        for text in ["NaN", "inf", "-inf", "1e999", "none", "\"1,5\""] {
            let said = said(&format!("a,b\n1,2\n\n{text},3\n"), &["a"]);
            assert!(
                said.starts_with("line 4, column a: \"") && said.contains("not a finite number"),
                "{said}"
            );
        }
        assert!(said("a,b\n1\n", &["a"]).starts_with("line 2 has 1 fields; the header has 2"));
    }
}
