//! Line chart of one index per parameter over growing parts of the sample, with intervals. It shows whether
//! more evaluations would change the index.
//!
//! The most influential parameters have their own colors and markers. All other lines are gray.

use crate::charts::svg::{Anchor, Drawing, Scale, shortened};
use crate::page::format_number::count;

/// Index of a part of the sample: its value and the half-width of its interval.
pub(crate) type IndexEstimate = Option<(f64, Option<f64>)>;

/// Indices of one parameter, one per step.
#[derive(Debug)]
pub(crate) struct ConvergenceCurve {
    pub(crate) name: String,
    pub(crate) parts: Vec<IndexEstimate>,
}

const SIZE_PX: [f64; 2] = [780.0, 400.0];
const LEFT_PX: f64 = 70.0;
const RIGHT_PX: f64 = 190.0;
const TOP_PX: f64 = 14.0;
const BOTTOM_PX: f64 = 52.0;
const LINE_PX: f64 = 16.0;
/// Parameters with their own color. More than 6 colors are hard to distinguish.
const OWN: usize = 6;
/// Horizontal offset between two lines, which keeps their intervals from overlapping.
const ASIDE_PX: f64 = 4.0;

const MARKERS: [&str; OWN] = [
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -4.8L4.6 3.4H-4.6Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 4.8L4.6 -3.4H-4.6Z",
    "M-4 -4L4 4M-4 4L4 -4",
];

/// Draws the figure. `evaluations` holds the evaluations of each step, `courses` the parameters by rank.
/// `None` for fewer than two steps or without any index.
pub(crate) fn draw(evaluations: &[usize], courses: &[ConvergenceCurve], axis: &str) -> Option<Drawing> {
    if evaluations.len() < 2 || known(courses).next().is_none() {
        return None;
    }
    let [width, height] = SIZE_PX;
    let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
    let plot = Plot { steps: evaluations.len(), y: index_scale(courses, bottom), right, bottom };
    let mut drawing = Drawing::new(width, height, &format!("{axis} over growing prefixes of the sample"));
    draw_axes(&mut drawing, &plot, evaluations, axis);
    // Draws the most influential parameters last, on top of the others.
    for (rank, course) in courses.iter().enumerate().rev() {
        draw_course(&mut drawing, &plot, rank, course);
    }
    draw_legend(&mut drawing, right, courses);
    Some(drawing)
}

/// Returns all indices of the courses.
fn known(courses: &[ConvergenceCurve]) -> impl Iterator<Item = &(f64, Option<f64>)> {
    courses.iter().flat_map(|course| course.parts.iter().flatten())
}

/// Area between the axes.
struct Plot {
    steps: usize,
    y: Scale,
    right: f64,
    bottom: f64,
}

impl Plot {
    /// Returns the horizontal position of a step.
    fn x(&self, step: usize) -> f64 {
        LEFT_PX + 24.0 + (self.right - LEFT_PX - 48.0) * step as f64 / (self.steps - 1) as f64
    }
}

/// Returns the scale of the indices and their intervals.
fn index_scale(courses: &[ConvergenceCurve], bottom: f64) -> Scale {
    // Intervals of small parts are wide and would compress the lines. At each end, the axis exceeds the
    // indices by at most a quarter of their range. Longer intervals are cut.
    let (least, most) = known(courses)
        .fold((0.0_f64, 0.0_f64), |(least, most), (value, _)| (least.min(*value), most.max(*value)));
    let room = 0.25 * (most - least);
    let ends = known(courses).fold((least, most), |(low, high), (value, conf)| {
        let conf = conf.unwrap_or(0.0).min(room);
        (low.min(value - conf), high.max(value + conf))
    });
    // Without negative indices, intervals that reach less than 10 % of the largest index below 0 are cut at
    // 0.
    let low = if least >= 0.0 && ends.0 > -0.1 * most { 0.0 } else { ends.0 };
    Scale::new(low, ends.1, [bottom, TOP_PX], 6)
}

/// Draws the grid, the axes and their labels.
fn draw_axes(drawing: &mut Drawing, plot: &Plot, evaluations: &[usize], axis: &str) {
    let &Plot { right, bottom, .. } = plot;
    drawing.axis_left(&plot.y, [LEFT_PX, right]);
    for (step, evaluations) in evaluations.iter().enumerate() {
        let x = plot.x(step);
        drawing.line("grid", [x, TOP_PX, x, bottom]);
        drawing.text("tick", Anchor::Middle, [x, bottom + 17.0], &count(*evaluations));
    }
    drawing.text("axis", Anchor::Middle, [(LEFT_PX + right) / 2.0, bottom + 40.0], "evaluations");
    drawing.upright("axis", [16.0, (TOP_PX + bottom) / 2.0], axis);
    let zero = plot.y.px(0.0);
    drawing.line("base", [LEFT_PX, zero, right, zero]);
    drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);
}

/// Draws the line of a parameter, with intervals and markers if it has its own color.
fn draw_course(drawing: &mut Drawing, plot: &Plot, rank: usize, course: &ConvergenceCurve) {
    let own = rank < OWN;
    let aside = if own { (rank as f64 - (OWN - 1) as f64 / 2.0) * ASIDE_PX } else { 0.0 };
    let line = if own { format!("course own-{rank}") } else { "course others".to_owned() };
    let at = |(step, part): (usize, &IndexEstimate)| {
        part.map(|(value, _)| [plot.x(step) + aside, plot.y.px(value)])
    };
    let places: Vec<[f64; 2]> = course.parts.iter().enumerate().filter_map(at).collect();
    drawing.noted(&course.name, |drawing| {
        if own {
            for (step, part) in course.parts.iter().enumerate() {
                if let Some((value, Some(conf))) = part {
                    let x = plot.x(step) + aside;
                    let ends = [x, plot.y.px(value - conf), x, plot.y.px(value + conf)];
                    drawing.line(&format!("spread own-{rank}"), ends);
                }
            }
        }
        drawing.polyline(&line, &places);
        if own {
            for &at in &places {
                drawing.path_at(&format!("marker own-{rank}"), at, MARKERS[rank]);
            }
        }
    });
}

/// Draws the names of the parameters with their own color, and the number of the others.
fn draw_legend(drawing: &mut Drawing, right: f64, courses: &[ConvergenceCurve]) {
    let height = |row: usize| TOP_PX + 10.0 + LINE_PX * row as f64;
    for (rank, course) in courses.iter().take(OWN).enumerate() {
        let at = height(rank);
        drawing.polyline(&format!("course own-{rank}"), &[[right + 20.0, at], [right + 48.0, at]]);
        drawing.path_at(&format!("marker own-{rank}"), [right + 34.0, at], MARKERS[rank]);
        let name = shortened(&course.name, RIGHT_PX - 62.0);
        drawing.text("label", Anchor::Start, [right + 56.0, at + 4.0], &name);
    }
    if courses.len() > OWN {
        let at = height(OWN);
        drawing.polyline("course others", &[[right + 20.0, at], [right + 48.0, at]]);
        let others = format!("{} others", courses.len() - OWN);
        drawing.text("label", Anchor::Start, [right + 56.0, at + 4.0], &others);
    }
}
