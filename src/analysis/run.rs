//! Result of one run: its responses, or its failure.

/// Responses of one run: the value of each metric, or the failure.
#[derive(Clone, Debug)]
pub(crate) struct RunResponse {
    /// Number of the evaluation, from 1.
    pub(crate) evaluation: usize,
    /// Index of the tile.
    pub(crate) tile: usize,
    /// Values of all metrics, in the order of their columns.
    pub(crate) result: Result<Vec<f64>, RunFailure>,
    /// For each metric, whether mask and reference are both empty. Empty if they are for no metric.
    pub(crate) both_empty: Vec<bool>,
}

/// Reason why a run has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunFailure {
    /// Stage that failed.
    pub(crate) stage: String,
    /// Task that failed, or input that could not be read.
    pub(crate) at: String,
    /// Cause of the failure.
    pub(crate) cause: String,
}
