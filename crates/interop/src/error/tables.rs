//! Errors of reading tables of samples and responses.

use pleach_sensitivity::sampling::MAX_EVALUATIONS;
use pleach_study::Defect;
use pleach_tables::FileError;
use pleach_workflow::Value;
use pleach_workflow::text::quoted;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a table of samples cannot be read.
#[derive(Debug, Error)]
pub enum SampleTableError {
    /// The file is no table, or cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// No parameter of the problem varies.
    #[error("{}: no parameter varies; at least one needs a range or two values", file.display())]
    NothingVaries {
        /// File of the problem.
        file: PathBuf,
    },
    /// The table does not match the problem.
    #[error("{}: {problem}", file.display())]
    Mismatch {
        /// The table.
        file: PathBuf,
        /// The problem.
        #[source]
        problem: SampleTableProblem,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Mismatch of a table of samples with its problem.
#[derive(Debug, Error)]
pub enum SampleTableProblem {
    /// The table has no rows.
    #[error("there are no rows; at least one parameter set is needed")]
    NoRows,
    /// The table has too many rows.
    #[error("{rows} rows are too many; {MAX_EVALUATIONS} are allowed")]
    TooManyRows {
        /// Rows of the table.
        rows: usize,
    },
    /// A table without names has another number of columns than the problem has parameters.
    #[error(
        "it has {columns} columns without names, and the problem has {parameters} parameters, of which {varying} vary; \
         a line of names says which is which"
    )]
    ColumnCount {
        /// Columns of the table.
        columns: usize,
        /// All parameters.
        parameters: usize,
        /// Varying parameters.
        varying: usize,
    },
    /// A varying parameter has no column.
    #[error("there is no column \"{}\"; the header has {}", quoted(name, 80), listed(header))]
    NoColumn {
        /// Name of the parameter.
        name: String,
        /// Names of the columns.
        header: Vec<String>,
    },
    /// A value is missing or invalid.
    #[error("{row}, column {}: {problem}", quoted(column, 80))]
    Value {
        /// Location of the row, such as `line 3`.
        row: String,
        /// Name of the parameter.
        column: String,
        /// The problem.
        #[source]
        problem: ValueProblem,
    },
    /// A row has no valid number of an evaluation.
    #[error("{0}")]
    EvaluationNumber(#[from] EvaluationNumberError),
    /// Two rows have the same number of an evaluation.
    #[error("{row}: evaluation {evaluation} occurs a second time; each may be there once")]
    DuplicateEvaluation {
        /// Location of the second row.
        row: String,
        /// The number.
        evaluation: u64,
    },
    /// An evaluation of a design is missing.
    #[error(
        "evaluation {missing} is missing, and the rows of this method's design belong together; leave the response of a \
         failed evaluation empty"
    )]
    Incomplete {
        /// Number of the first missing evaluation.
        missing: u64,
    },
}

/// Mismatch of a value with its parameter.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ValueProblem {
    /// The field is empty.
    #[error("there is no value; each evaluation needs one")]
    Missing,
    /// The value of an integer parameter has a fraction.
    #[error("{0} is not an integer")]
    NoInteger(f64),
    /// The value of a fixed parameter differs from that of the problem.
    #[error("{given} is another value than {fixed}, at which the problem fixes it")]
    NotFixed {
        /// The value.
        given: f64,
        /// Value of the problem.
        fixed: Value,
    },
    /// Values are outside the bounds.
    #[error(
        "{farthest} is outside the bounds {low} to {high}, as {outside} of {values} values are; wider bounds in the \
         problem, or the right file, are needed"
    )]
    OutOfBounds {
        /// The farthest value.
        farthest: f64,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
        /// Number of values outside.
        outside: usize,
        /// Number of all values.
        values: usize,
    },
}

/// A number in the column of evaluation numbers is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "{row}, column evaluation: {} is no number of an evaluation; they count from 1",
    if given.is_nan() { "nothing".to_owned() } else { given.to_string() }
)]
pub struct EvaluationNumberError {
    /// Location of the row, such as `line 3`.
    pub(crate) row: String,
    /// The number. NaN for an empty field.
    pub(crate) given: f64,
}

/// Reason why responses cannot be read.
#[derive(Debug, Error)]
pub enum ResponsesError {
    /// The file is no table, or cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// The table does not match the samples.
    #[error("{}: {problem}", file.display())]
    Mismatch {
        /// The table.
        file: PathBuf,
        /// The problem.
        #[source]
        problem: ResponsesProblem,
    },
}

/// Mismatch of a table of responses with its samples.
#[derive(Debug, Error)]
pub enum ResponsesProblem {
    /// A requested response has no column.
    #[error("--response: there is no response \"{}\"; the columns are {}", quoted(name, 80), listed(columns))]
    NoResponse {
        /// Name of the response.
        name: String,
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// No column is a response.
    #[error("there is no column of a response; the columns are {}", listed(columns))]
    NoColumn {
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// The table has another number of rows than the samples.
    #[error(
        "it has {rows} rows, and {} has {samples}; one each is needed, empty where an evaluation failed, or a column \
         evaluation that says whose they are",
        table.display()
    )]
    RowCount {
        /// Rows of the responses.
        rows: usize,
        /// Table of samples.
        table: PathBuf,
        /// Rows of the samples.
        samples: usize,
    },
    /// A row has no valid number of an evaluation.
    #[error("{0}")]
    EvaluationNumber(#[from] EvaluationNumberError),
    /// The samples have no evaluation of this number.
    #[error("{row}: evaluation {evaluation} is none of {}, which has {first} to {last}", table.display())]
    UnknownEvaluation {
        /// Location of the row, such as `line 3`.
        row: String,
        /// The number.
        evaluation: u64,
        /// Table of samples.
        table: PathBuf,
        /// First number of the samples.
        first: u64,
        /// Last number of the samples.
        last: u64,
    },
    /// Two rows have the same evaluation.
    #[error(
        "{row}: its evaluation occurs a second time; each may be there once, or once for each tile that a column tile \
         names"
    )]
    DuplicateEvaluation {
        /// Location of the second row.
        row: String,
    },
    /// Two rows have the same evaluation and tile.
    #[error(
        "{row}: its evaluation occurs a second time for tile \"{}\"; each may be there once",
        quoted(tile, 80)
    )]
    DuplicateTile {
        /// Location of the second row.
        row: String,
        /// Name of the tile.
        tile: String,
    },
}

/// Joins names for a message: at most 20 names and 300 characters.
fn listed(names: &[String]) -> String {
    quoted(&names.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", "), 300)
}
