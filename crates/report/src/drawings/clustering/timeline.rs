//! Gantt chart of a simulated execution: a row for each worker, the phases of each job in colors.

use super::frame::{key, page};
use crate::charts::svg::{Anchor, Drawing, Scale};
use crate::page::format_number::{counted, duration, percent};

/// A job on its worker.
#[derive(Clone, Copy, Debug)]
pub struct TimelineJob {
    /// The worker, from 0.
    pub worker: usize,
    /// Start in seconds since the start of the workflow.
    pub started: f64,
    /// Queue delay, transfer, clustering delay and run time in seconds, in their order.
    pub phases: [f64; 4],
    /// Number of tasks.
    pub tasks: usize,
}

/// A simulated execution.
#[derive(Clone, Copy, Debug)]
pub struct JobTimeline<'a> {
    /// Name of the workflow.
    pub workflow: &'a str,
    /// Name of the clustering.
    pub clustering: &'a str,
    /// Number of workers.
    pub workers: usize,
    /// Makespan in seconds.
    pub makespan: f64,
    /// The jobs.
    pub jobs: &'a [TimelineJob],
}

/// Class and name of each phase.
const PHASES: [(&str, &str); 4] = [
    ("queue", "queue delay"),
    ("transfer", "transfer"),
    ("clustering", "clustering delay"),
    ("run", "run time"),
];
/// Maximum number of rows. With more, the picture becomes an area without structure.
const MAX_ROWS: usize = 180;
/// Height of all rows together, as far as [`ROW_PX`] allows.
const ROWS_PX: f64 = 560.0;
/// Minimum and maximum height of a row.
const ROW_PX: [f64; 2] = [3.0, 24.0];
const WIDTH_PX: f64 = 1000.0;
const LEFT_PX: f64 = 40.0;
const TOP_PX: f64 = 8.0;
/// Rows of at least this height have the number of their worker.
const LABEL_PX: f64 = 12.0;

impl JobTimeline<'_> {
    /// Returns the content of the SVG file.
    pub fn svg(&self) -> String {
        let rows = self.workers.min(MAX_ROWS);
        let row_px = (ROWS_PX / rows.max(1) as f64).clamp(ROW_PX[0], ROW_PX[1]);
        let bottom = TOP_PX + row_px * rows as f64;
        let (seconds, unit) = unit(self.makespan);
        let x = Scale::new(0.0, self.makespan / seconds, [LEFT_PX, WIDTH_PX], 9);
        let title = format!("Timeline of the workers: {}, {}", self.workflow, self.clustering);
        let mut drawing = Drawing::new(WIDTH_PX + 16.0, bottom + 68.0, &title);
        drawing.axis_below(&x, [TOP_PX, bottom]);
        let px = |time: f64| x.px(time / seconds);
        let height = row_px - if row_px > 6.0 { 1.0 } else { 0.4 };
        for row in 0..rows {
            let top = TOP_PX + row_px * row as f64;
            drawing.rect("row", [LEFT_PX, top, px(self.makespan) - LEFT_PX, height]);
            if row_px >= LABEL_PX {
                drawing.text(
                    "tick",
                    Anchor::End,
                    [LEFT_PX - 6.0, top + row_px / 2.0 + 4.0],
                    &row.to_string(),
                );
            }
        }
        for job in self.jobs.iter().filter(|job| job.worker < rows) {
            let top = TOP_PX + row_px * job.worker as f64;
            let lasted = duration(job.phases.iter().sum());
            drawing.noted(&format!("{}, {lasted}", counted(job.tasks, "task", "tasks")), |drawing| {
                let mut from = job.started;
                for (phase, (class, _)) in job.phases.iter().zip(PHASES) {
                    let to = from + phase;
                    if *phase > 0.0 {
                        drawing.rect(class, [px(from), top, px(to) - px(from), height]);
                    }
                    from = to;
                }
            });
        }
        drawing.line("base", [LEFT_PX, bottom, WIDTH_PX, bottom]);
        let axis = format!("time since the start, in {unit}");
        drawing.text("axis", Anchor::Middle, [(LEFT_PX + WIDTH_PX) / 2.0, bottom + 36.0], &axis);
        let entries: Vec<(&str, &str)> = PHASES.into_iter().chain([("row", "idle")]).collect();
        key(&mut drawing, [LEFT_PX, bottom + 60.0], &entries);
        page(drawing, &title, &self.note(rows))
    }

    fn note(&self, rows: usize) -> String {
        let busy: f64 = self.jobs.iter().flat_map(|job| job.phases).sum();
        let all = self.makespan * self.workers as f64;
        let busy = if all > 0.0 { busy / all } else { 0.0 };
        let jobs = counted(self.jobs.len(), "job", "jobs");
        let note = format!("{jobs} in {}, workers {} busy", duration(self.makespan), percent(busy));
        match self.workers > rows {
            true => format!("{note}; workers beyond the first {MAX_ROWS} are not shown"),
            false => note,
        }
    }
}

/// Returns the seconds and the name of the time unit of an axis.
fn unit(longest_seconds: f64) -> (f64, &'static str) {
    match longest_seconds {
        seconds if seconds > 3.0 * 3600.0 => (3600.0, "hours"),
        seconds if seconds > 300.0 => (60.0, "minutes"),
        _ => (1.0, "seconds"),
    }
}
