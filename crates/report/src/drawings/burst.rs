//! Figures of simulated bursts, each in its own file: cost and makespan of the policies, workers over time,
//! and the tasks of each slot.
//!
//! A policy has the same color and marker in all figures. `pleach_simulation` computes the outcomes.

mod gantt;
mod workers;

use crate::charts::svg::{Anchor, Drawing, Scale, shortened};
use crate::page::format_number::Rounding;
use pleach_simulation::burst::{Burst, Outcome};

/// Picture and the name of its file.
#[derive(Debug)]
pub struct Picture {
    /// Name of the file, without extension.
    pub name: String,
    /// Content of the SVG file.
    pub svg: String,
}

/// Content of the figures.
#[derive(Clone, Copy, Debug)]
pub struct Pictures<'a> {
    /// Name of the study, for the headings.
    pub study: &'a str,
    /// Names of the pools, in the order of the burst's sites.
    pub pools: &'a [&'a str],
    /// Names of the study's stages.
    pub stages: &'a [String],
    /// Deadline, in seconds since the submission. `None` draws none.
    pub deadline: Option<f64>,
    /// Outcomes of the policies. The position of a policy determines its color and marker.
    pub outcomes: &'a [Outcome],
    /// Outcomes with fixed numbers of workers, in ascending order.
    pub front: &'a [Outcome],
}

/// Size and margins of a figure. The right margin holds the names.
const SIZE_PX: [f64; 2] = [900.0, 520.0];
const LEFT_PX: f64 = 70.0;
const RIGHT_PX: f64 = 270.0;
const TOP_PX: f64 = 62.0;
const BOTTOM_PX: f64 = 54.0;
/// Distance between two names.
const NAME_PX: f64 = 34.0;
/// Number of policy classes and of stage classes in `burst.css`. Higher numbers wrap around.
const POLICIES: usize = 8;
const STAGES: u32 = 6;

/// Time unit of a figure: hours from 3 h, minutes from 5 min, else seconds.
#[derive(Clone, Copy, Debug)]
struct Unit {
    seconds: f64,
    name: &'static str,
}

impl Unit {
    fn of(longest_seconds: f64) -> Self {
        match longest_seconds {
            seconds if seconds > 3.0 * 3600.0 => Self { seconds: 3600.0, name: "hours" },
            seconds if seconds > 300.0 => Self { seconds: 60.0, name: "minutes" },
            _ => Self { seconds: 1.0, name: "seconds" },
        }
    }
}

/// Returns the marker of a policy as an SVG path around the origin. All markers have about equal areas.
fn marker(policy: usize) -> &'static str {
    match policy % POLICIES {
        0 => "M-4 -4L4 4M-4 4L4 -4",
        1 => "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
        2 => "M-3.6 -3.6H3.6V3.6H-3.6Z",
        3 => "M0 -4.8L4.6 3.4H-4.6Z",
        4 => "M0 -5L5 0L0 5L-5 0Z",
        5 => "M0 4.8L4.6 -3.4H-4.6Z",
        6 => "M-4 -4H4V4H-4ZM-4 0H4",
        _ => "M-5 0L0 -4L5 0L0 4ZM-5 0H5",
    }
}

fn class(kind: &str, policy: usize) -> String {
    format!("{kind} p{}", policy % POLICIES)
}

impl Pictures<'_> {
    /// Returns all pictures: cost over makespan, workers over time, and the slots of each policy.
    pub fn all(&self, burst: &Burst) -> Vec<Picture> {
        let mut pictures = vec![
            Picture { name: "cost-makespan".to_owned(), svg: self.front() },
            Picture { name: "workers".to_owned(), svg: workers::draw(self, burst) },
        ];
        pictures.extend(self.outcomes.iter().map(|outcome| Picture {
            name: format!("slots-{}", outcome.policy),
            svg: gantt::draw(self, burst, outcome),
        }));
        pictures
    }

    /// Starts a drawing with a background, a heading and a note below it.
    fn begin(&self, [width, height]: [f64; 2], title: &str, note: &str) -> Drawing {
        let mut drawing = Drawing::new(width, height, title);
        drawing.rect("paper", [0.0, 0.0, width, height]);
        drawing.text("head", Anchor::Start, [LEFT_PX, 22.0], &shortened(title, width - LEFT_PX - 20.0));
        drawing.text("note", Anchor::Start, [LEFT_PX, 40.0], note);
        drawing
    }

    /// Draws the key beside a figure: name, color, marker, makespan and cost of each policy.
    fn names(&self, drawing: &mut Drawing, is_line: bool) {
        let left = SIZE_PX[0] - RIGHT_PX + 24.0;
        for (number, outcome) in self.outcomes.iter().enumerate() {
            let y = TOP_PX + 8.0 + NAME_PX * number as f64;
            if is_line {
                drawing.polyline(&class("line", number), &[[left, y], [left + 40.0, y]]);
            }
            // At the end of the line: its dashes stay visible.
            let at = if is_line { [left + 40.0, y] } else { [left + 12.0, y] };
            drawing.path_at(&class("mark", number), at, marker(number));
            let name = [at[0] + 14.0, y + 4.0];
            drawing.text("label", Anchor::Start, name, &shortened(&outcome.policy, 186.0));
            let unit = Unit::of(outcome.makespan_seconds);
            let late = if outcome.in_time == Some(false) { ", too late" } else { "" };
            let figures = format!(
                "{:.1} {}, cost {:.2}{late}",
                outcome.makespan_seconds / unit.seconds,
                unit.name,
                outcome.cost
            );
            drawing.text("small", Anchor::Start, [name[0], y + 17.0], &figures);
        }
    }

    /// Draws the deadline as a vertical line.
    fn deadline_at(&self, drawing: &mut Drawing, x: f64, [top, bottom]: [f64; 2]) {
        drawing.line("deadline", [x, top, x, bottom]);
        drawing.text("deadline-name", Anchor::Start, [x + 5.0, top + 12.0], "deadline");
    }

    fn front(&self) -> String {
        let [width, height] = SIZE_PX;
        let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
        let all = || self.outcomes.iter().chain(self.front);
        let longest = all().map(|outcome| outcome.makespan_seconds).fold(0.0, f64::max);
        let unit = Unit::of(longest);
        let x = Scale::new(0.0, longest / unit.seconds, [LEFT_PX, right], 7);
        let dearest = all().map(|outcome| outcome.cost).fold(0.0, f64::max);
        let y = Scale::new(0.0, dearest, [bottom, TOP_PX], 6);
        let place = |outcome: &Outcome| [x.px(outcome.makespan_seconds / unit.seconds), y.px(outcome.cost)];
        let first = self.pools.first().copied().unwrap_or_default();
        let note = format!("gray: constant numbers of workers of pool {first}");
        let title = format!("Cost and makespan of {}", self.study);
        let mut drawing = self.begin(SIZE_PX, &title, &note);
        drawing.axis_below(&x, [TOP_PX, bottom]);
        drawing.axis_left(&y, [LEFT_PX, right]);
        drawing.line("base", [LEFT_PX, bottom, right, bottom]);
        drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);
        let axis = format!("makespan, in {}", unit.name);
        drawing.text("axis", Anchor::Middle, [(LEFT_PX + right) / 2.0, bottom + 40.0], &axis);
        drawing.upright("axis", [16.0, (TOP_PX + bottom) / 2.0], "cost, in the currency of the prices");
        if let Some(deadline) = self.deadline {
            self.deadline_at(&mut drawing, x.px(deadline / unit.seconds), [TOP_PX, bottom]);
        }
        let places: Vec<[f64; 2]> = self.front.iter().map(place).collect();
        drawing.polyline("front", &places);
        let mut last: Option<[f64; 2]> = None;
        for (outcome, at) in self.front.iter().zip(&places) {
            drawing.path_at("front-mark", *at, "M-2.5 0A2.5 2.5 0 1 0 2.5 0A2.5 2.5 0 1 0 -2.5 0Z");
            // Of crowded points, only the first has a name.
            let is_apart = |other: [f64; 2]| (other[0] - at[0]).abs().max((other[1] - at[1]).abs()) > 16.0;
            // Points near a policy have no name: the key names the policy.
            if last.is_none_or(is_apart) && self.outcomes.iter().map(place).all(is_apart) {
                drawing.text("small", Anchor::Middle, [at[0], at[1] + 15.0], &outcome.policy);
                last = Some(*at);
            }
        }
        for (number, outcome) in self.outcomes.iter().enumerate() {
            drawing.noted(&outcome.policy, |drawing| {
                drawing.path_at(&class("mark", number), place(outcome), marker(number));
            });
        }
        self.names(&mut drawing, false);
        drawing.finish_as_file(include_str!("burst.css"))
    }
}

/// Formats a number of a note.
fn brief(number: f64) -> String {
    Rounding::brief(number.abs()).show(number)
}
