//! Classifies slides or patients by the measurements of a study, and asks whether their labels depend on the parameters.
//!
//! A group is a slide, a patient or a single tile. Its features are the means over its tiles, for each evaluation. The
//! consensus of a group is the mean of its features over all evaluations. A classifier learns the user's labels from the
//! consensus, and assigns a label to each group in each evaluation. k-means finds clusters of the consensus without labels. The
//! responses of an evaluation are the share of groups whose label or cluster is another than that of their consensus, the
//! share of right labels, and the mean probability of the right label, which sensitivity methods analyze like any response.
//!
//! A group is classified by a model of the other groups (leave-one-out) if every label has two groups or more: a model
//! that has learned a group would hardly change its label. The module writes no files.

mod assignment;
mod error;
mod features;
mod groups;
mod kmeans;
mod logistic;
mod scale;

pub use assignment::{Assignment, Classification, GroupAssignment};
pub use error::{ClassificationError, LabelsProblem};
pub use features::GroupFeatures;
pub use groups::GroupLabels;

/// Features of one group, one number per column.
type Row = Vec<f64>;

fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
}
