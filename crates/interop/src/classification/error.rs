//! Errors of classification.

use crate::error::EvaluationNumberError;
use pleach_tables::FileError;
use pleach_workflow::text::quoted;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why groups cannot be classified.
#[derive(Debug, Error)]
pub enum ClassificationError {
    /// A file is no table, or cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// The content of a file does not fit.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The problem.
        #[source]
        problem: LabelsProblem,
    },
    /// No feature distinguishes the groups.
    #[error("features {}: equal in all groups; at least one that differs is needed", features.join(", "))]
    NothingDiffers {
        /// Names of the features.
        features: Vec<String>,
    },
    /// A number of clusters that the groups do not have.
    #[error("--clusters {clusters}: 1 to {groups} are allowed, the number of groups with features")]
    Clusters {
        /// The number.
        clusters: usize,
        /// Groups with features.
        groups: usize,
    },
}

/// Problem with the content of a file of labels or responses.
#[derive(Debug, Error)]
pub enum LabelsProblem {
    /// A column is missing.
    #[error("column {column}: missing; the header has {}", header.join(", "))]
    NoColumn {
        /// The column.
        column: String,
        /// Columns of the file.
        header: Vec<String>,
    },
    /// A field is empty.
    #[error("{row}, column {column}: empty; a text is needed")]
    Empty {
        /// Location of the row.
        row: String,
        /// The column.
        column: &'static str,
    },
    /// A tile has two rows.
    #[error("{row}: a second row for tile \"{}\"; one row per tile is allowed", quoted(tile, 80))]
    DuplicateTile {
        /// Location of the second row.
        row: String,
        /// The tile.
        tile: String,
    },
    /// The tiles of a group have different labels.
    #[error(
        "{row}: group \"{}\" has the labels \"{}\" and \"{}\"; one label per group is allowed",
        quoted(group, 80),
        quoted(one, 80),
        quoted(other, 80)
    )]
    TwoLabels {
        /// Location of the row with the other label.
        row: String,
        /// The group.
        group: String,
        /// Label of earlier rows.
        one: String,
        /// The other label.
        other: String,
    },
    /// All groups have the same label.
    #[error("column label: {count} label; at least 2 different ones are needed")]
    OneLabel {
        /// Number of labels.
        count: usize,
    },
    /// A tile of the labels has no responses.
    #[error("tile \"{}\": not in the responses; their tiles are {}", quoted(tile, 80), listed(tiles))]
    UnknownTile {
        /// The tile.
        tile: String,
        /// Tiles of the responses.
        tiles: Vec<String>,
    },
    /// Number of an evaluation.
    #[error(transparent)]
    Number(#[from] EvaluationNumberError),
    /// A number beyond the sample.
    #[error("{row}, column evaluation: {evaluation} is not in the samples; 1 to {evaluations} are allowed")]
    UnknownEvaluation {
        /// Location of the row.
        row: String,
        /// Number of the evaluation.
        evaluation: u64,
        /// Evaluations of the sample.
        evaluations: usize,
    },
    /// An evaluation has two rows of a tile.
    #[error("{row}: a second row of the evaluation for tile \"{}\"; one is allowed", quoted(tile, 80))]
    DuplicateRow {
        /// Location of the second row.
        row: String,
        /// The tile.
        tile: String,
    },
    /// The responses have no column of features.
    #[error(
        "no columns that measure nuclei; list them under response.metric of the study, as in \"nuclei\" or \"mean-area\""
    )]
    NoFeatures,
    /// A group has no evaluation with all of its tiles.
    #[error("group \"{}\": no evaluation has responses of all of its tiles", quoted(group, 80))]
    NoResponses {
        /// The group.
        group: String,
    },
}

/// Returns the first tiles of a list.
fn listed(tiles: &[String]) -> String {
    const SHOWN: usize = 8;
    let rest = tiles.len().saturating_sub(SHOWN);
    let shown = tiles.iter().take(SHOWN).map(|tile| format!("\"{}\"", quoted(tile, 80)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    if rest == 0 { shown } else { format!("{shown} and {rest} more") }
}
