//! An open table: its columns, and requests for them.

use crate::delimited::Delimited;
use crate::parquet::Parquet;
use crate::{FileError, Format, TableProblem};
use std::path::{Path, PathBuf};

/// A table with known columns and unread rows.
pub struct Table {
    file: PathBuf,
    source: Source,
}

enum Source {
    Delimited(Box<Delimited>),
    Parquet(Parquet),
}

/// Request for a column, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRequest {
    /// A column of numbers.
    Numbers(usize),
    /// A column of labels, with few distinct texts.
    Labels(usize),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// One number per row. NaN if missing. All other numbers are finite.
    Numbers(Vec<f64>),
    /// One text per row, stored as an index.
    Labels {
        /// Distinct texts in order of occurrence.
        texts: Vec<String>,
        /// Index of each row's text.
        of: Vec<u32>,
    },
}

/// The requested columns, in the order of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct TableData {
    /// The columns, all of the same length.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: usize,
    /// Line of the first row, if every row is on the line after its predecessor.
    pub first_line: Option<usize>,
}

impl TableData {
    /// Returns the location of a row (from 0) in the file: its line, if known, or its number from 1.
    #[must_use]
    pub fn place(&self, row: usize) -> String {
        match self.first_line {
            Some(first) => format!("line {}", first + row),
            None => format!("row {}", row + 1),
        }
    }

    /// Takes the numbers of the request at this position. Empty for a label request.
    #[must_use]
    pub fn take_numbers(&mut self, place: usize) -> Vec<f64> {
        match self.columns.get_mut(place) {
            Some(Column::Numbers(numbers)) => std::mem::take(numbers),
            Some(Column::Labels { .. }) | None => Vec::new(),
        }
    }
}

impl Table {
    /// Opens a file and reads the names of its columns.
    ///
    /// # Errors
    /// Returns a [`FileError`] if the file is not a table, or has two columns of the same name.
    pub fn open(file: &Path) -> Result<Self, FileError> {
        let source = match Format::of(file) {
            Format::Parquet => Parquet::open(file).map(Source::Parquet),
            format => Delimited::open(file, format).map(|table| Source::Delimited(Box::new(table))),
        };
        let source = source.map_err(|problem| problem.at(file))?;
        Ok(Self { file: file.to_owned(), source })
    }

    /// Returns the names of the columns. Returns `None` for a text whose first line already holds numbers.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        match &self.source {
            Source::Delimited(table) => table.names(),
            Source::Parquet(table) => Some(table.names()),
        }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn width(&self) -> usize {
        match &self.source {
            Source::Delimited(table) => table.width(),
            Source::Parquet(table) => table.names().len(),
        }
    }

    /// Reads the requested columns to the end of the file. Other columns are ignored.
    ///
    /// # Errors
    /// Returns a [`FileError`] with row and column of a value that is not a number, or not finite.
    pub fn read(self, wanted: &[ColumnRequest]) -> Result<TableData, FileError> {
        let file = self.file;
        let content = match self.source {
            Source::Delimited(table) => table.read(wanted),
            Source::Parquet(table) => table.read(wanted),
        };
        content.map_err(|problem: TableProblem| problem.at(&file))
    }
}

/// Texts with few distinct values, stored as indices.
#[derive(Default)]
pub(crate) struct LabelColumn {
    texts: Vec<String>,
    known: std::collections::HashMap<String, u32>,
    of: Vec<u32>,
}

impl LabelColumn {
    pub(crate) fn push(&mut self, text: &str) {
        let number = match self.known.get(text) {
            Some(&number) => number,
            None => {
                // Fits: tables have fewer than 2³² rows.
                let number = self.texts.len() as u32;
                self.texts.push(text.to_owned());
                self.known.insert(text.to_owned(), number);
                number
            }
        };
        self.of.push(number);
    }

    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    pub(crate) fn finish(self) -> Column {
        Column::Labels { texts: self.texts, of: self.of }
    }
}
