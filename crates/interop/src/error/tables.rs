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
    #[error("no rows; at least one parameter set is needed")]
    NoRows,
    /// The table has too many rows.
    #[error("{rows} rows; at most {MAX_EVALUATIONS} are allowed")]
    TooManyRows {
        /// Rows of the table.
        rows: usize,
    },
    /// A table without names has another number of columns than the problem has parameters.
    #[error(
        "{columns} columns without names, but the problem has {parameters} parameters, {varying} of them \
         varying; a header with column names is needed"
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
    #[error("column \"{}\": missing; the header has {}", quoted(name, 80), listed(header))]
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
    #[error("{row}: evaluation {evaluation} occurs a second time; numbers must be unique")]
    DuplicateEvaluation {
        /// Location of the second row.
        row: String,
        /// The number.
        evaluation: u64,
    },
    /// An evaluation of a design is missing.
    #[error(
        "evaluation {missing} is missing; the design of this method needs all rows, with an empty response \
         for a failed evaluation"
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
    #[error("missing value; each evaluation needs one")]
    Missing,
    /// The value of an integer parameter has a fraction.
    #[error("{0} is not an integer")]
    NoInteger(f64),
    /// The value of a fixed parameter differs from that of the problem.
    #[error("{given} is not allowed; the problem fixes the parameter at {fixed}")]
    NotFixed {
        /// The value.
        given: f64,
        /// Value of the problem.
        fixed: Value,
    },
    /// Values are outside the bounds.
    #[error(
        "{farthest} is outside the bounds {low} to {high} ({outside} of {values} values are outside); widen \
         the bounds of the problem, or name another file"
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
    "{row}, column evaluation: {} is not the number of an evaluation; numbers from 1 are allowed",
    if given.is_nan() { "an empty field".to_owned() } else { given.to_string() }
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
    #[error("--response: \"{}\" is not a column; the columns are {}", quoted(name, 80), listed(columns))]
    NoResponse {
        /// Name of the response.
        name: String,
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// No column is a response.
    #[error("no response column; the columns are {}", listed(columns))]
    NoColumn {
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// The table has another number of rows than the samples.
    #[error(
        "{rows} rows, but {} has {samples}; one row per evaluation is needed, empty for a failed one, or a \
         column evaluation with its number",
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
    #[error("{row}: evaluation {evaluation} is not in {}, which has {first} to {last}", table.display())]
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
        "{row}: the evaluation occurs a second time; one row per evaluation is allowed, or one per tile \
         with a column tile"
    )]
    DuplicateEvaluation {
        /// Location of the second row.
        row: String,
    },
    /// Two rows have the same evaluation and tile.
    #[error(
        "{row}: the evaluation occurs a second time for tile \"{}\"; one row per evaluation and tile is \
         allowed",
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
