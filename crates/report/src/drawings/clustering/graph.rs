//! Graph of the tasks of a workflow: a row for each level, a color for each job of two or more tasks.

use super::frame::page;
use crate::charts::svg::{Anchor, Drawing, text_width};
use crate::page::format_number::counted;

/// A task of a graph.
#[derive(Clone, Debug)]
pub struct GraphTask {
    /// Its name, for the note under the pointer.
    pub name: String,
    /// Its level, from 0.
    pub level: usize,
    /// Its job, from 0.
    pub job: usize,
}

/// Tasks, dependencies and jobs of a workflow.
#[derive(Clone, Copy, Debug)]
pub struct ClusteredGraph<'a> {
    /// Name of the workflow.
    pub workflow: &'a str,
    /// Name of the clustering.
    pub clustering: &'a str,
    /// The tasks.
    pub tasks: &'a [GraphTask],
    /// Pairs of a parent and a child, as positions in `tasks`.
    pub edges: &'a [(usize, usize)],
}

/// Maximum number of tasks: more would be less than 2 px apart on one level.
pub const MAX_GRAPH_TASKS: usize = 400;
/// Number of job classes in `clustering.css`. Higher numbers wrap around, and nodes have the number of their job where it fits.
const COLORS: usize = 8;
const WIDTH_PX: f64 = 1000.0;
const LEFT_PX: f64 = 40.0;
const TOP_PX: f64 = 16.0;
const ROW_PX: f64 = 64.0;
/// Maximum side of a node.
const NODE_PX: f64 = 26.0;

impl ClusteredGraph<'_> {
    /// Returns the content of the SVG file. All tasks are drawn: the caller keeps to [`MAX_GRAPH_TASKS`].
    pub fn svg(&self) -> String {
        let levels = self.tasks.iter().map(|task| task.level + 1).max().unwrap_or(0);
        let title = format!("Tasks and jobs: {}, {}", self.workflow, self.clustering);
        let mut drawing = Drawing::new(WIDTH_PX + 16.0, TOP_PX + ROW_PX * levels as f64, &title);
        let (places, sides) = self.places(levels);
        for (parent, child) in self.edges {
            let ([x1, y1], [x2, y2]) = (places[*parent], places[*child]);
            drawing.line("edge", [x1, y1 + sides[*parent] / 2.0, x2, y2 - sides[*child] / 2.0]);
        }
        let jobs = self.tasks.iter().map(|task| task.job + 1).max().unwrap_or(0);
        let classes = self.classes(jobs);
        for ((task, [x, y]), side) in self.tasks.iter().zip(&places).zip(&sides) {
            drawing.noted(&format!("{}, job {}", task.name, task.job + 1), |drawing| {
                drawing.rect(&classes[task.job], [x - side / 2.0, y - side / 2.0, *side, *side]);
                let label = (task.job + 1).to_string();
                if text_width(&label) <= *side {
                    drawing.text("job", Anchor::Middle, [*x, y + 4.0], &label);
                }
            });
        }
        for level in 0..levels {
            let y = TOP_PX + ROW_PX * (level as f64 + 0.5);
            drawing.text("tick", Anchor::End, [LEFT_PX - 14.0, y + 4.0], &(level + 1).to_string());
        }
        let note = format!(
            "{} in {}; rows: levels; colors and numbers: jobs of several tasks; white: jobs of one task",
            counted(self.tasks.len(), "task", "tasks"),
            counted(jobs, "job", "jobs")
        );
        page(drawing, &title, &note)
    }

    /// Returns the center and the side of the node of each task. The tasks of a job are side by side on their level.
    fn places(&self, levels: usize) -> (Vec<[f64; 2]>, Vec<f64>) {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); levels];
        for (number, task) in self.tasks.iter().enumerate() {
            rows[task.level].push(number);
        }
        let (mut places, mut sides) = (vec![[0.0; 2]; self.tasks.len()], vec![0.0; self.tasks.len()]);
        for (level, row) in rows.iter_mut().enumerate() {
            row.sort_by_key(|task| self.tasks[*task].job);
            let step = (WIDTH_PX - LEFT_PX) / row.len().max(1) as f64;
            for (column, task) in row.iter().enumerate() {
                let x = LEFT_PX + step * (column as f64 + 0.5);
                places[*task] = [x, TOP_PX + ROW_PX * (level as f64 + 0.5)];
                sides[*task] = (0.8 * step).min(NODE_PX);
            }
        }
        (places, sides)
    }

    /// Returns the class of the nodes of each job. Jobs of several tasks take the colors in turn.
    fn classes(&self, jobs: usize) -> Vec<String> {
        let mut tasks = vec![0_usize; jobs];
        self.tasks.iter().for_each(|task| tasks[task.job] += 1);
        let mut colored = 0;
        let class = |tasks: usize| {
            if tasks < 2 {
                return "node single".to_owned();
            }
            colored += 1;
            format!("node j{}", (colored - 1) % COLORS)
        };
        tasks.into_iter().map(class).collect()
    }
}
