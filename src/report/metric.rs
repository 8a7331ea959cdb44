//! The response in words.

use pleach_workflow::{Aggregate, Reference, Study};

/// What is known of the metric that a study analyses.
#[derive(Debug)]
pub(super) struct Metric {
    /// As it stands in a sentence.
    pub(super) name: String,
    /// What it measures; empty for metrics of workflows that are not built in.
    pub(super) meaning: &'static str,
    /// How tiles are put together.
    pub(super) over_tiles: Aggregate,
    /// What a change of it means, and what it does not; where that needs saying.
    pub(super) caution: &'static str,
}

impl Metric {
    pub(super) fn of(study: &Study) -> Self {
        let (name, over_tiles) = &study.workflow.response.metrics[study.metric];
        let (name, meaning) = match name.as_str() {
            "dice" => (
                "Dice",
                "twice the area that mask and reference share, divided by the sum of their areas: \
                 1 where they are the same, 0 where they share nothing",
            ),
            "jaccard" => (
                "Jaccard",
                "the area that mask and reference share, divided by the area that either covers: \
                 1 where they are the same, 0 where they share nothing",
            ),
            "pixel-difference" => {
                ("the pixel difference", "the number of pixels in which mask and reference differ")
            }
            other => (other, ""),
        };
        let compared = study.workflow.reference.is_some();
        let caution = match study.reference {
            Reference::Defaults if compared => {
                "The reference is the workflow’s own result at its default parameters: a change tells how far the \
                 result moves from that one, not whether it gets better."
            }
            _ => "",
        };
        Self { name: name.to_owned(), meaning, over_tiles: *over_tiles, caution }
    }

    /// "mean over tiles" or "sum over tiles".
    pub(super) fn over_tiles(&self) -> &'static str {
        match self.over_tiles {
            Aggregate::Mean => "mean over tiles",
            Aggregate::Sum => "sum over tiles",
        }
    }
}
