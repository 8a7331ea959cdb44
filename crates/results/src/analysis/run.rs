//! Result of one run: its responses, or its failure.

/// Responses of one run: the value of each metric, or the failure.
#[derive(Clone, Debug)]
pub struct RunResponse {
    /// Number of the evaluation, from 1.
    pub evaluation: usize,
    /// Index of the tile.
    pub tile: usize,
    /// Values of all metrics, in the order of their columns.
    pub result: Result<Vec<f64>, RunFailure>,
    /// For each metric, whether mask and reference are both empty. Empty if they are for no metric.
    pub both_empty: Vec<bool>,
}

/// Reason why a run has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Stage that failed.
    pub stage: String,
    /// Task that failed, or input that could not be read.
    pub at: String,
    /// Cause of the failure.
    pub cause: String,
}
