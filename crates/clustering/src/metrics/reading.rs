//! Readings of the imbalance metrics.

/// Reading of the imbalance metrics, where text, worked examples and published figures of paper 002 disagree. Redundant edges
/// never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// Text and worked examples (section 4.1): sample deviations, every exit has impact factor 1, and the distance of two
    /// tasks is the shortest path to and from a common successor.
    #[default]
    Definition,
    /// Published figures (Table 5): population deviations, the exits of the deepest level share impact factor 1, and distances
    /// count synchronous steps. Their deviation is divided by tasks, not by pairs.
    Table,
    /// `Table` with the numbers of WorkflowSim 1.1.0: run times are whole milliseconds of 100 and more, mean and variance of
    /// run times are rounded down.
    Wfs,
}
