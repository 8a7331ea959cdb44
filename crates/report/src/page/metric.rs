//! Describes responses in words.

use pleach_results::analysis::{Analysis, IndexTable};
use pleach_sensitivity::indices::Indices;
use pleach_workflow::{Aggregate, ReferenceSource, Study, split_label};

/// Description of a metric that a study analyzes.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Name within a sentence.
    pub(crate) name: String,
    /// Definition of the metric. Empty for metrics of workflows that are not built in.
    pub(crate) meaning: &'static str,
    /// Aggregation over tiles.
    pub(crate) aggregate: Aggregate,
    /// Whether tiles have weights in means.
    is_weighted: bool,
    /// Caution about the meaning of a change. Empty if none is needed.
    pub(crate) caution: &'static str,
}

impl Metric {
    pub(crate) fn of(study: &Study) -> Self {
        Self::of_one(study, study.metric)
    }

    /// Describes one of the study's metrics, by its column.
    pub(crate) fn of_one(study: &Study, metric: usize) -> Self {
        let (metric, over_tiles) = &study.workflow.response.metrics[metric];
        let (label, metric) = split_label(metric);
        let (name, meaning) = match metric {
            "dice" => (
                "Dice",
                "twice the intersection of mask and reference, divided by the sum of their areas: 1 if they \
                 are equal, 0 without overlap",
            ),
            "jaccard" => (
                "Jaccard",
                "intersection of mask and reference, divided by their union: 1 if they are equal, 0 without \
                 overlap",
            ),
            "pixel-difference" => {
                ("the pixel difference", "the number of pixels in which mask and reference differ")
            }
            "object-dice" => (
                "object Dice",
                "twice the overlap of nuclei of the mask with nuclei of the reference, divided by the area \
                 of all nuclei of both: 1 if they cover the same area, 0 without overlap",
            ),
            "object-jaccard" => (
                "object Jaccard",
                "overlap of nuclei of the mask with nuclei of the reference, divided by the area that the \
                 nuclei of either cover: 1 if they cover the same area, 0 without overlap",
            ),
            "object-pair-dice" => (
                "the mean Dice of a pair",
                "Dice of each pair of overlapping nuclei, one of the mask and one of the reference, \
                 averaged over all pairs: 1 if the nuclei of every pair are equal, less if nuclei are \
                 split, merged or of another shape; nuclei without a partner are not counted",
            ),
            "object-recall" => (
                "object recall",
                "share of the area of the reference’s nuclei that nuclei of the mask cover: 1 if all of it \
                 is covered, even if the mask covers more, 0 if none is",
            ),
            "nuclei" => ("the number of nuclei", "the number of connected objects in the mask"),
            "mean-area" => (
                "the mean area of nuclei",
                "the mean area of the mask’s connected objects in pixels, 0 without any",
            ),
            other => (other, ""),
        };
        let compared = study.workflow.reference.is_some();
        let caution = match study.reference {
            // These metrics ignore the reference.
            _ if ["nuclei", "mean-area"].contains(&metric) => {
                "It is measured on the mask alone: a change shows how much the result changes, not whether \
                 it improves."
            }
            ReferenceSource::Defaults if compared => {
                "The reference is the workflow’s own result at its default parameters: a change shows how \
                 far the result is from that one, not whether it improves."
            }
            _ => "",
        };
        let is_weighted = !study.weights.are_equal();
        Self { name: format!("{label}{name}"), meaning, aggregate: *over_tiles, is_weighted, caution }
    }

    /// Describes a response of a model by its name.
    pub(crate) fn of_model(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            meaning: "",
            aggregate: Aggregate::Mean,
            is_weighted: false,
            caution: "",
        }
    }

    /// Returns "mean over tiles", "weighted mean over tiles" or "sum over tiles".
    pub(crate) fn aggregate_label(&self) -> &'static str {
        match self.aggregate {
            Aggregate::Mean if self.is_weighted => "weighted mean over tiles",
            Aggregate::Mean => "mean over tiles",
            Aggregate::Sum => "sum over tiles",
        }
    }
}

/// Returns the name of the main column of an index table.
pub(crate) fn index_name(analysis: &Analysis, listed: &IndexTable) -> String {
    let column = listed.columns.get(listed.main).map_or("", String::as_str);
    let words = match (analysis, column) {
        (Analysis::Indices(Indices::Moat(_)), _) => "μ*",
        (Analysis::Indices(Indices::Vbd(_) | Indices::Efast(_)), _) => "total index T",
        (Analysis::Indices(Indices::Pawn(_)), _) => "PAWN index (median distance)",
        (Analysis::Indices(Indices::Delta(_)), _) => "delta",
        (Analysis::Indices(Indices::RbdFast(_)), _) => "first-order index S (RBD-FAST)",
        (Analysis::Correlations(_), "prcc") => "partial rank correlation (PRCC)",
        (Analysis::Correlations(_), _) => "rank correlation (Spearman)",
        (Analysis::Regression(_), _) => "standardized regression coefficient (SRC)",
        _ => column,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use pleach_study::builtin;

    #[test]
    fn every_metric_of_the_built_in_workflow_is_put_into_words() {
        let workflow = builtin::workflow("nuclei", &builtin::registry()).unwrap().unwrap();
        let mut study = fixture::moat(&[]).study;
        for (table, place, name) in workflow.metrics() {
            (study.workflow, study.metric) = (workflow.measuring(table), place);
            let metric = Metric::of(&study);
            assert!(!metric.meaning.is_empty(), "{name}");
            let of_mask_alone = ["nuclei", "mean-area"].contains(&name);
            assert_eq!(
                metric.caution.starts_with("It is measured on the mask alone"),
                of_mask_alone,
                "{name}"
            );
            let added = ["pixel-difference", "nuclei"].contains(&name);
            assert_eq!(metric.aggregate_label() == "sum over tiles", added, "{name}");
        }
    }

    #[test]
    fn label_of_a_metric_precedes_its_words() {
        let mut study = fixture::moat(&[]).study;
        let plain = Metric::of(&study);
        study.workflow.response.metrics[study.metric].0.insert_str(0, "levelset: ");
        let labeled = Metric::of(&study);
        assert_eq!((labeled.name, labeled.meaning), (format!("levelset: {}", plain.name), plain.meaning));
    }
}
