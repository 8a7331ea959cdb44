//! An open table: its columns, and requests for them.

use crate::delimited::Delimited;
use crate::parquet::Parquet;
use crate::table_data::{ColumnRequest, TableData};
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
