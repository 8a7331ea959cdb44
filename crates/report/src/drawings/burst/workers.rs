//! Step chart of the workers of all pools over time, one line per policy.

use super::{BOTTOM_PX, LEFT_PX, Pictures, RIGHT_PX, SIZE_PX, TOP_PX, Unit, class, marker};
use crate::charts::svg::{Anchor, Scale};
use pleach_simulation::burst::{Burst, Outcome};

/// Returns the picture as the content of an SVG file.
pub(super) fn draw(pictures: &Pictures<'_>, burst: &Burst) -> String {
    let [width, height] = SIZE_PX;
    let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
    let longest = pictures.outcomes.iter().map(|outcome| outcome.makespan_seconds).fold(0.0, f64::max);
    let unit = Unit::of(longest);
    let x = Scale::new(0.0, longest / unit.seconds, [LEFT_PX, right], 7);
    let most = pictures.outcomes.iter().map(|outcome| outcome.max_workers).max().unwrap_or(0);
    let y = Scale::new(0.0, f64::from(most.max(1)), [bottom, TOP_PX], 6);
    let note = format!(
        "connected workers of {}, in addition to {} base nodes; a line ends with the study",
        pictures.pools.join(" and "),
        burst.base.nodes
    );
    let title = format!("Workers over time of {}", pictures.study);
    let mut drawing = pictures.begin(SIZE_PX, &title, &note);
    drawing.axis_below(&x, [TOP_PX, bottom]);
    drawing.axis_left(&y, [LEFT_PX, right]);
    drawing.line("base", [LEFT_PX, bottom, right, bottom]);
    drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);
    let axis = format!("time since submission, in {}", unit.name);
    drawing.text("axis", Anchor::Middle, [(LEFT_PX + right) / 2.0, bottom + 40.0], &axis);
    drawing.upright("axis", [16.0, (TOP_PX + bottom) / 2.0], "workers");
    if let Some(deadline) = pictures.deadline {
        pictures.deadline_at(&mut drawing, x.px(deadline / unit.seconds), [TOP_PX, bottom]);
    }
    for (number, outcome) in pictures.outcomes.iter().enumerate() {
        let steps: Vec<[f64; 2]> = steps(outcome)
            .into_iter()
            .map(|[at, workers]| [x.px(at / unit.seconds), y.px(workers)])
            .collect();
        drawing.noted(&outcome.policy, |drawing| {
            drawing.polyline(&class("line", number), &steps);
            if let Some(end) = steps.last() {
                drawing.path_at(&class("mark", number), *end, marker(number));
            }
        });
    }
    pictures.names(&mut drawing, true);
    drawing.finish_as_file(include_str!("../burst.css"))
}

/// Returns points of seconds and workers, with a corner before each change and a last point at the makespan.
fn steps(outcome: &Outcome) -> Vec<[f64; 2]> {
    let mut steps: Vec<[f64; 2]> = Vec::with_capacity(2 * outcome.workers.len() + 1);
    for (at, workers) in &outcome.workers {
        let workers = f64::from(workers.iter().sum::<u32>());
        if let Some([_, before]) = steps.last().copied() {
            steps.push([*at, before]);
        }
        steps.push([*at, workers]);
    }
    if let Some([_, last]) = steps.last().copied() {
        steps.push([outcome.makespan_seconds, last]);
    }
    steps
}
