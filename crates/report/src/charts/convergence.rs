//! Line chart of one index per parameter over growing parts of the sample, with intervals. It shows whether
//! more evaluations would change the index.
//!
//! The most influential parameters have their own colors and markers. All other lines are gray.

use crate::charts::svg::{Anchor, Drawing, Scale, shortened};
use crate::page::format_number::count;

/// Index of a part of the sample: its value and the half-width of its interval.
pub(crate) type Part = Option<(f64, Option<f64>)>;

/// Indices of one parameter, one per step.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) name: String,
    pub(crate) parts: Vec<Part>,
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
pub(crate) fn draw(evaluations: &[usize], courses: &[Course], axis: &str) -> Option<Drawing> {
    let known = || courses.iter().flat_map(|course| course.parts.iter().flatten());
    if evaluations.len() < 2 || known().next().is_none() {
        return None;
    }
    let [width, height] = SIZE_PX;
    let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
    // Intervals of small parts are wide and would compress the lines. At each end, the axis exceeds the
    // indices by at most a quarter of their range. Longer intervals are cut.
    let (least, most) =
        known().fold((0.0_f64, 0.0_f64), |(least, most), (value, _)| (least.min(*value), most.max(*value)));
    let room = 0.25 * (most - least);
    let ends = known().fold((least, most), |(low, high), (value, conf)| {
        let conf = conf.unwrap_or(0.0).min(room);
        (low.min(value - conf), high.max(value + conf))
    });
    // Without negative indices, intervals that reach less than 10 % of the largest index below 0 are cut at
    // 0.
    let low = if least >= 0.0 && ends.0 > -0.1 * most { 0.0 } else { ends.0 };
    let y = Scale::new(low, ends.1, [bottom, TOP_PX], 6);
    let place = |step: usize| {
        LEFT_PX + 24.0 + (right - LEFT_PX - 48.0) * step as f64 / (evaluations.len() - 1) as f64
    };
    let mut drawing = Drawing::new(width, height, &format!("{axis} over growing parts of the sample"));
    drawing.axis_left(&y, [LEFT_PX, right]);
    for (step, evaluations) in evaluations.iter().enumerate() {
        drawing.line("grid", [place(step), TOP_PX, place(step), bottom]);
        drawing.text("tick", Anchor::Middle, [place(step), bottom + 17.0], &count(*evaluations));
    }
    drawing.text("axis", Anchor::Middle, [(LEFT_PX + right) / 2.0, bottom + 40.0], "evaluations");
    drawing.upright("axis", [16.0, (TOP_PX + bottom) / 2.0], axis);
    let zero = y.px(0.0);
    drawing.line("base", [LEFT_PX, zero, right, zero]);
    drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);

    // Draws the most influential parameters last, on top of the others.
    for (rank, course) in courses.iter().enumerate().rev() {
        let own = rank < OWN;
        let aside = if own { (rank as f64 - (OWN - 1) as f64 / 2.0) * ASIDE_PX } else { 0.0 };
        let line = if own { format!("course own-{rank}") } else { "course others".to_owned() };
        let at = |(step, part): (usize, &Part)| part.map(|(value, _)| [place(step) + aside, y.px(value)]);
        let places: Vec<[f64; 2]> = course.parts.iter().enumerate().filter_map(at).collect();
        drawing.noted(&course.name, |drawing| {
            if own {
                for (step, part) in course.parts.iter().enumerate() {
                    if let Some((value, Some(conf))) = part {
                        let x = place(step) + aside;
                        drawing.line(
                            &format!("spread own-{rank}"),
                            [x, y.px(value - conf), x, y.px(value + conf)],
                        );
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
    for (rank, course) in courses.iter().take(OWN).enumerate() {
        let at = TOP_PX + 10.0 + LINE_PX * rank as f64;
        drawing.polyline(&format!("course own-{rank}"), &[[right + 20.0, at], [right + 48.0, at]]);
        drawing.path_at(&format!("marker own-{rank}"), [right + 34.0, at], MARKERS[rank]);
        drawing.text(
            "label",
            Anchor::Start,
            [right + 56.0, at + 4.0],
            &shortened(&course.name, RIGHT_PX - 62.0),
        );
    }
    if courses.len() > OWN {
        let at = TOP_PX + 10.0 + LINE_PX * OWN as f64;
        drawing.polyline("course others", &[[right + 20.0, at], [right + 48.0, at]]);
        drawing.text(
            "label",
            Anchor::Start,
            [right + 56.0, at + 4.0],
            &format!("{} others", courses.len() - OWN),
        );
    }
    Some(drawing)
}
