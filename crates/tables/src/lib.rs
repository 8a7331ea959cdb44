//! Tables of numbers in CSV, plain text and Parquet files, for exchange with other programs.
//!
//! [`Table`] opens a file, lists its columns and reads the requested ones. [`Writer`] writes parameter sets row by
//! row. The file extension selects the format. Columns are held as numbers, 8 bytes each. Rows are streamed (in
//! Parquet a part of a column at a time). The caller interprets columns and checks their number.

mod delimited;
mod frame;
mod parquet;
mod read;
mod table_data;
mod write;

pub use frame::{Cell, CellType, FrameWriter};
pub use read::Table;
pub use table_data::{Column, ColumnRequest, TableData};
pub use write::Writer;

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum rows of a table: 10 times those of the largest design, for a table with the responses of 10 tiles. A column
/// of them takes 800 MB.
pub const MAX_ROWS: usize = 100_000_000;

/// Format of number files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Separated by commas, semicolons or tabs.
    Csv,
    /// Separated by commas, semicolons, tabs or blanks, as numpy's `savetxt` and Dakota write them.
    Text,
    /// Parquet.
    Parquet,
}

impl Format {
    /// Returns the format for a file name: CSV for `.csv` and `.tsv`, Parquet for `.parquet` and `.pq`, and text for
    /// any other.
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

/// Error of reading or writing a file.
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
    /// The file cannot be read.
    #[error("failed to read: {0}")]
    Unreadable(std::io::Error),
    /// The file cannot be written.
    #[error("failed to write: {0}")]
    Unwritable(std::io::Error),
    /// The text is not a table.
    #[error(transparent)]
    Text(#[from] pleach_sensitivity::table::TableError),
    /// The file is not Parquet, or is corrupt.
    #[error("invalid Parquet: {0}")]
    Parquet(String),
    /// A field is not a number.
    #[error("{}, column {column}: {problem}", row_label(*.is_line, *.row))]
    NoNumber {
        /// Number of its line or row.
        row: usize,
        /// Whether `row` counts lines instead of rows.
        is_line: bool,
        /// Name of the column, or its number from 1.
        column: String,
        /// The invalid text.
        problem: String,
    },
    /// A column does not hold numbers.
    #[error("column {column} holds {found}; numbers are allowed")]
    NotNumbers {
        /// Name of the column.
        column: String,
        /// Type of its values.
        found: String,
    },
    /// Two columns have the same name.
    #[error("column \"{column}\" occurs twice; column names must be unique")]
    Doubled {
        /// The name.
        column: String,
    },
    /// The table has more rows than allowed.
    #[error("the table has more than {MAX_ROWS} rows")]
    TooManyRows,
}

fn row_label(is_line: bool, row: usize) -> String {
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
