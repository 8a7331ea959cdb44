//! Imbalance of the levels of a workflow before and after clustering: a panel for each metric, a row for each level.

use super::frame::{key, page};
use crate::charts::svg::{Anchor, Drawing, Scale};
use crate::page::format_number::brief;

/// Imbalance of a level.
#[derive(Clone, Copy, Debug)]
pub struct LevelImbalance {
    /// Number of tasks or jobs.
    pub tasks: usize,
    /// HRV, HIFV, HDV and PRV.
    pub metrics: [f64; 4],
}

/// Levels of a workflow, and those of its jobs.
#[derive(Clone, Copy, Debug)]
pub struct ImbalanceChart<'a> {
    /// Name of the workflow.
    pub workflow: &'a str,
    /// Name of the clustering.
    pub clustering: &'a str,
    /// Levels of the tasks.
    pub before: &'a [LevelImbalance],
    /// Levels of the jobs.
    pub after: &'a [LevelImbalance],
}

/// Names of the metrics, in the order of [`LevelImbalance::metrics`].
const METRICS: [&str; 4] = ["HRV: run times", "HIFV: impact factors", "HDV: distances", "PRV: chains"];
/// Maximum number of levels: more would not fit a page.
const MAX_LEVELS: usize = 60;
const LEFT_PX: f64 = 128.0;
const PANEL_PX: f64 = 190.0;
const GAP_PX: f64 = 26.0;
const TOP_PX: f64 = 26.0;
const ROW_PX: f64 = 22.0;
const BAR_PX: f64 = 8.0;

impl ImbalanceChart<'_> {
    /// Returns the content of the SVG file.
    pub fn svg(&self) -> String {
        let levels = self.before.len().max(self.after.len());
        let rows = levels.min(MAX_LEVELS);
        let bottom = TOP_PX + ROW_PX * rows as f64 + 4.0;
        let width = LEFT_PX + (PANEL_PX + GAP_PX) * METRICS.len() as f64;
        let title = format!("Imbalance of levels: {}, {}", self.workflow, self.clustering);
        let mut drawing = Drawing::new(width, bottom + 50.0, &title);
        for level in 0..rows {
            let middle = TOP_PX + ROW_PX * (level as f64 + 0.5);
            drawing.text("label", Anchor::End, [LEFT_PX - 8.0, middle + 4.0], &self.name(level));
        }
        for (metric, name) in METRICS.iter().enumerate() {
            let left = LEFT_PX + (PANEL_PX + GAP_PX) * metric as f64;
            self.panel(&mut drawing, metric, name, [left, bottom, rows as f64]);
        }
        key(&mut drawing, [LEFT_PX, bottom + 42.0], &[("before", "tasks"), ("after", "jobs")]);
        let mut note =
            "rows: level, its tasks → its jobs; equal run times, impacts, distances and chains have 0"
                .to_owned();
        if levels > rows {
            note = format!("{note}; levels beyond the first {MAX_LEVELS} are not shown");
        }
        page(drawing, &title, &note)
    }

    /// Returns the label of a level with its numbers of tasks and jobs.
    fn name(&self, level: usize) -> String {
        let count = |levels: &[LevelImbalance]| {
            levels.get(level).map_or_else(|| "–".to_owned(), |level| level.tasks.to_string())
        };
        format!("{}: {} → {}", level + 1, count(self.before), count(self.after))
    }

    fn panel(&self, drawing: &mut Drawing, metric: usize, name: &str, [left, bottom, rows]: [f64; 3]) {
        let levels = rows as usize;
        let sides = [("before", self.before), ("after", self.after)];
        let value = |level: &LevelImbalance| level.metrics[metric];
        let all = sides.iter().flat_map(|(_, side)| side.iter().take(levels)).map(value);
        let scale = Scale::new(0.0, all.fold(0.0, f64::max), [left, left + PANEL_PX], 3);
        drawing.text("head", Anchor::Start, [left, TOP_PX - 10.0], name);
        drawing.axis_below(&scale, [TOP_PX, bottom]);
        for (place, (class, side)) in sides.into_iter().enumerate() {
            for (number, level) in side.iter().take(levels).enumerate() {
                let top = TOP_PX + ROW_PX * number as f64 + 2.0 + (BAR_PX + 1.0) * place as f64;
                let length = scale.px(value(level)) - left;
                drawing.noted(
                    &format!("level {}, {class}: {}", number + 1, brief(value(level))),
                    |drawing| {
                        drawing.rect(class, [left, top, length, BAR_PX]);
                    },
                );
            }
        }
        drawing.line("base", [left, TOP_PX, left, bottom]);
    }
}
