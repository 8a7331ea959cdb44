//! Gain of each clustering, as bars.

use super::frame::page;
use crate::charts::bars::{self, Bar};

/// Gains of the clusterings of a workflow.
#[derive(Clone, Copy, Debug)]
pub struct GainChart<'a> {
    /// Name of the workflow.
    pub workflow: &'a str,
    /// Name and gain of each clustering, in their order: 1 − makespan / makespan without clustering.
    pub bars: &'a [(String, f64)],
}

impl GainChart<'_> {
    /// Returns the content of the SVG file. It shows the first 40 bars.
    pub fn svg(&self) -> String {
        let bars: Vec<Bar<'_>> =
            self.bars.iter().map(|(name, gain)| Bar { name, value: *gain, conf: None }).collect();
        let figure = bars::draw(&bars, "gain μ = 1 − makespan / makespan without clustering");
        let title = format!("Gain of each clustering of {}", self.workflow);
        page(figure, &title, "right, light: shorter than without clustering; left, dark: longer")
    }
}
