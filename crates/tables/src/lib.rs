//! Tables of numbers in CSV, plain text and Parquet files, for exchange with other programs.
//!
//! [`Table`] opens a file, lists its columns and reads the requested ones. [`Writer`] writes parameter sets row by
//! row. The file extension selects the format. Columns are held as numbers, 8 bytes each. Rows are streamed (in
//! Parquet a part of a column at a time). The caller interprets columns and checks their number.

mod delimited;
mod parquet;
mod read;
mod write;

pub use read::{Column, ColumnRequest, Table, TableData};
pub use write::Writer;

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum rows of a table: ten times those of the largest design, for a table with the response of each of ten
/// tiles. A column of them takes 800 MB.
pub const MAX_ROWS: usize = 100_000_000;

/// Format of number files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Separated by commas, semicolons or tabs.
    Csv,
    /// Separated by any of these, or by blanks, as numpy's `savetxt` and Dakota write them.
    Text,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The format of a file of this name: `.csv` and `.tsv`, `.parquet` and `.pq`, and text of any other name.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("csv" | "tsv") => Self::Csv,
            Some("parquet" | "pq") => Self::Parquet,
            _ => Self::Text,
        }
    }
}

/// A file that cannot be read or written, and why.
#[derive(Debug, Error)]
#[error("{}: {problem}", file.display())]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub problem: TableProblem,
}

/// Problem with a table. Rows and lines count from 1, the header included.
#[derive(Debug, Error)]
pub enum TableProblem {
    /// It cannot be read.
    #[error("failed to read: {0}")]
    Unreadable(std::io::Error),
    /// It cannot be written.
    #[error("failed to write: {0}")]
    Unwritable(std::io::Error),
    /// Text that is no table.
    #[error(transparent)]
    Text(#[from] pleach_sensitivity::table::TableError),
    /// The file is not Parquet, or is corrupt.
    #[error("no Parquet that can be read: {0}")]
    Parquet(String),
    /// A field that is no number.
    #[error("{}, column {column}: {problem}", place(*.is_line, *.row))]
    NoNumber {
        /// Its line, or row.
        row: usize,
        /// Which of them.
        is_line: bool,
        /// Name of the column, or its place.
        column: String,
        /// The invalid text.
        problem: String,
    },
    /// A column does not hold numbers.
    #[error("column {column} holds {found}, and numbers are needed")]
    NotNumbers {
        /// Name of the column.
        column: String,
        /// Type of its values.
        found: String,
    },
    /// Two columns have the same name.
    #[error("column \"{column}\" occurs twice; each may be there once")]
    Doubled {
        /// The name.
        column: String,
    },
    /// More rows than are held.
    #[error("the table has more than {MAX_ROWS} rows")]
    TooManyRows,
}

fn place(is_line: bool, row: usize) -> String {
    format!("{} {row}", if is_line { "line" } else { "row" })
}

impl TableProblem {
    fn at(self, file: &Path) -> FileError {
        FileError { file: file.to_owned(), problem: self }
    }
}

impl From<std::io::Error> for TableProblem {
    fn from(error: std::io::Error) -> Self {
        Self::Unreadable(error)
    }
}
