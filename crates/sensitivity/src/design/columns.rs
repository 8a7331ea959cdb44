//! Values of varying parameters as columns of numbers, for given-data methods.
//!
//! Levels of discrete parameters are represented by their numbers. Responses are not used.

use pleach_workflow::{Parameter, Value};
use std::collections::BTreeSet;
use thiserror::Error;

/// One column per parameter. Columns have equal lengths, numbers are finite, and names are unique.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    rows: usize,
}

/// Cause of a failed construction of columns.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ColumnsError {
    /// Every parameter is fixed or has one value.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// Names and columns do not pair up.
    #[error("{columns} columns for {names} parameters; one per parameter is needed")]
    ColumnCount {
        /// Parameters named.
        names: usize,
        /// Columns given.
        columns: usize,
    },
    /// Two columns have the same name.
    #[error("parameter {name} has two columns; one is needed")]
    Doubled {
        /// The parameter.
        name: String,
    },
    /// The length of a column differs from that of the first one.
    #[error("parameter {name} has {found} values; {expected} are needed, as for {first}")]
    Length {
        /// The parameter.
        name: String,
        /// Values found.
        found: usize,
        /// The parameter of the first column.
        first: String,
        /// Its values.
        expected: usize,
    },
    /// The number of values in a row differs from the number of parameters.
    #[error("evaluation {evaluation} has {found} values; {expected} are needed, one per parameter")]
    RowWidth {
        /// Its number, from 1.
        evaluation: usize,
        /// Values found.
        found: usize,
        /// Values needed.
        expected: usize,
    },
    /// A value is NaN or infinite.
    #[error("{value} of parameter {name} in evaluation {evaluation} is not a finite number")]
    NotFinite {
        /// The parameter.
        name: String,
        /// Number of the evaluation, from 1.
        evaluation: usize,
        /// The value.
        value: f64,
    },
}

impl Columns {
    /// Creates columns for parameters named in the same order.
    ///
    /// # Errors
    /// [`ColumnsError`] if names and columns do not fit, or a number is not finite.
    pub fn new(names: Vec<String>, columns: Vec<Vec<f64>>) -> Result<Self, ColumnsError> {
        if names.len() != columns.len() {
            return Err(ColumnsError::ColumnCount { names: names.len(), columns: columns.len() });
        }
        let rows = columns.first().ok_or(ColumnsError::NothingVaries)?.len();
        let mut seen = BTreeSet::new();
        for (name, column) in names.iter().zip(&columns) {
            let name = || name.clone();
            if !seen.insert(name()) {
                return Err(ColumnsError::Doubled { name: name() });
            }
            if column.len() != rows {
                let (found, first) = (column.len(), names[0].clone());
                return Err(ColumnsError::Length { name: name(), found, first, expected: rows });
            }
            if let Some(index) = column.iter().position(|value| !value.is_finite()) {
                let value = column[index];
                return Err(ColumnsError::NotFinite { name: name(), evaluation: index + 1, value });
            }
        }
        Ok(Self { names, columns, rows })
    }

    /// Creates columns for the parameters with more than one value in their domain, from rows with one value
    /// per parameter.
    ///
    /// # Errors
    /// [`ColumnsError`] if the length of a row differs from the number of parameters, or nothing varies.
    pub fn of(parameters: &[Parameter], rows: &[Vec<Value>]) -> Result<Self, ColumnsError> {
        if let Some(index) = rows.iter().position(|row| row.len() != parameters.len()) {
            let (found, expected) = (rows[index].len(), parameters.len());
            return Err(ColumnsError::RowWidth { evaluation: index + 1, found, expected });
        }
        let varying = (0..parameters.len()).filter(|&place| parameters[place].domain.varies());
        let column = |place: usize| rows.iter().map(|row| row[place].as_f64()).collect();
        let (names, columns) = varying.map(|place| (parameters[place].name.clone(), column(place))).unzip();
        Self::new(names, columns)
    }

    /// Names of the k parameters, at least one.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of evaluations.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the values of the parameter at `place` in [`Columns::names`].
    #[must_use]
    pub fn column(&self, place: usize) -> &[f64] {
        &self.columns[place]
    }

    /// Returns all columns, in the order of [`Columns::names`].
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.columns.iter().map(Vec::as_slice)
    }

    /// Returns the columns of the first `rows` evaluations, or of all if there are fewer.
    #[must_use]
    pub fn prefix(&self, rows: usize) -> Self {
        let rows = rows.min(self.rows);
        let columns = self.columns.iter().map(|column| column[..rows].to_vec()).collect();
        Self { names: self.names.clone(), columns, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_columns_are_refused() {
        let error = |names: &[&str], columns: &[&[f64]]| {
            let names = names.iter().map(ToString::to_string).collect();
            let columns = columns.iter().map(|column| column.to_vec()).collect();
            Columns::new(names, columns).unwrap_err().to_string()
        };
        assert!(error(&[], &[]).starts_with("no parameter varies"));
        assert_eq!(error(&["a"], &[]), "0 columns for 1 parameters; one per parameter is needed");
        assert_eq!(error(&["a", "a"], &[&[1.0], &[1.0]]), "parameter a has two columns; one is needed");
        let ragged = error(&["a", "b"], &[&[1.0], &[1.0, 2.0]]);
        assert_eq!(ragged, "parameter b has 2 values; 1 are needed, as for a");
        let nan = error(&["a"], &[&[1.0, f64::NAN]]);
        assert_eq!(nan, "NaN of parameter a in evaluation 2 is not a finite number");
    }
}
