//! Labels and clusters of all groups in all evaluations, and the responses of each evaluation.

use super::Row;
use super::error::ClassificationError;
use super::features::GroupFeatures;
use super::groups::GroupLabels;
use super::kmeans::Clusters;
use super::logistic::Model;
use super::scale::Scale;
use crate::responses::ResponseColumn;

/// Label and cluster of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Index of the most probable label.
    pub label: usize,
    /// Probability of the group's own label.
    pub probability: f64,
    /// Cluster, from 0.
    pub cluster: usize,
}

/// Assignments of a group.
#[derive(Debug)]
pub struct GroupAssignment {
    /// That of the consensus.
    pub consensus: Assignment,
    /// One per evaluation. `None` if a run of the group failed.
    pub evaluations: Vec<Option<Assignment>>,
}

impl GroupAssignment {
    /// Returns the number of known evaluations, of those with another label than the consensus, and of those in
    /// another cluster.
    #[must_use]
    pub fn changes(&self) -> (usize, usize, usize) {
        let known = || self.evaluations.iter().flatten();
        let labels = known().filter(|found| found.label != self.consensus.label).count();
        (known().count(), labels, known().filter(|found| found.cluster != self.consensus.cluster).count())
    }
}

/// Result of a classification.
#[derive(Debug)]
pub struct Classification {
    /// One per group.
    pub groups: Vec<GroupAssignment>,
    /// Whether each group was classified by a model of the other groups.
    pub leave_one_out: bool,
    /// Number of clusters.
    pub clusters: usize,
}

/// One model of a fold: the scale of its groups, and the weights.
struct Fold {
    scale: Scale,
    model: Model,
}

impl Fold {
    /// Learns from all groups but one.
    fn learn(features: &GroupFeatures, labels: &GroupLabels, without: Option<usize>) -> Self {
        let kept = || (0..labels.groups.len()).filter(|group| Some(*group) != without);
        let rows: Vec<Row> = kept().map(|group| features.consensus[group].clone()).collect();
        let scale = Scale::of(&rows);
        let rows: Vec<Row> = rows.iter().map(|row| scale.apply(row)).collect();
        let of: Vec<usize> = kept().map(|group| labels.label_of[group]).collect();
        let model = Model::learn(&rows, &of, labels.labels.len());
        Self { scale, model }
    }
}

impl Classification {
    /// Classifies all groups. `clusters` is the number of labels by default.
    ///
    /// # Errors
    /// Returns [`ClassificationError`] if no feature differs between the groups, or there are fewer groups than clusters.
    pub fn of(
        features: &GroupFeatures,
        labels: &GroupLabels,
        clusters: Option<usize>,
    ) -> Result<Self, ClassificationError> {
        let groups = labels.groups.len();
        let count = clusters.unwrap_or(labels.labels.len());
        if !(1..=groups).contains(&count) {
            return Err(ClassificationError::Clusters { clusters: count, groups });
        }
        let scale = Scale::of(&features.consensus);
        if scale.features() == 0 {
            return Err(ClassificationError::NothingDiffers { features: features.names.clone() });
        }
        let rows: Vec<Row> = features.consensus.iter().map(|row| scale.apply(row)).collect();
        let found = Clusters::find(&rows, count);
        let leave_one_out = labels.has_pairs();
        let whole = (!leave_one_out).then(|| Fold::learn(features, labels, None));
        let of_group = |group: usize| {
            let left_out = whole.is_none().then(|| Fold::learn(features, labels, Some(group)));
            let fold = whole.as_ref().or(left_out.as_ref());
            let assign = |row: &Row| {
                let shares =
                    fold.map(|fold| fold.model.probabilities(&fold.scale.apply(row))).unwrap_or_default();
                let label =
                    (0..shares.len()).fold(0, |best, at| if shares[at] > shares[best] { at } else { best });
                let probability = shares.get(labels.label_of[group]).copied().unwrap_or_default();
                Assignment { label, probability, cluster: found.assign(&scale.apply(row)) }
            };
            let evaluations = features.evaluations.iter().map(|groups| groups[group].as_ref().map(assign));
            let evaluations = evaluations.collect();
            GroupAssignment { consensus: assign(&features.consensus[group]), evaluations }
        };
        Ok(Self { groups: (0..groups).map(of_group).collect(), leave_one_out, clusters: count })
    }

    /// Returns the responses of all evaluations: `label-changes` and `cluster-changes`, the share of groups with another label
    /// or cluster than their consensus, `accuracy`, the share of right labels, and `label-probability`, the mean
    /// probability of the right label. An evaluation without all groups has none.
    #[must_use]
    pub fn responses(&self, labels: &GroupLabels) -> Vec<ResponseColumn> {
        type Value = fn(&Assignment, &Assignment, usize) -> f64;
        let values: [(&str, Value); 4] = [
            ("label-changes", |found, consensus, _| f64::from(u8::from(found.label != consensus.label))),
            ("label-probability", |found, _, _| found.probability),
            ("accuracy", |found, _, label| f64::from(u8::from(found.label == label))),
            ("cluster-changes", |found, consensus, _| {
                f64::from(u8::from(found.cluster != consensus.cluster))
            }),
        ];
        let evaluations = self.groups.first().map_or(0, |group| group.evaluations.len());
        let mean = |value: Value, evaluation: usize| {
            let groups = self.groups.iter().zip(&labels.label_of);
            let each = groups.map(|(group, label)| {
                let found = group.evaluations[evaluation].as_ref()?;
                Some(value(found, &group.consensus, *label))
            });
            Some(each.sum::<Option<f64>>()? / self.groups.len() as f64)
        };
        let column = |(name, value): (&str, Value)| ResponseColumn {
            name: name.to_owned(),
            values: (0..evaluations).map(|evaluation| mean(value, evaluation)).collect(),
        };
        values.into_iter().map(column).collect()
    }

    /// Returns the share of groups whose consensus has the right label.
    #[must_use]
    pub fn accuracy(&self, labels: &GroupLabels) -> f64 {
        let right = self.groups.iter().zip(&labels.label_of);
        right.filter(|(group, label)| group.consensus.label == **label).count() as f64
            / self.groups.len() as f64
    }
}
