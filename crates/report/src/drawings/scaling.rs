//! Figure of the predicted makespan and its lower bounds over the number of workers, one line per plan
//! variant, as a file for `pleach plan --plot`.
//!
//! Strategies differ in color and marker, reuse levels in dashes. Every line has its name at its end. The
//! caller predicts the makespans.

use crate::charts::svg::{Anchor, Drawing, shortened};
use crate::page::format_number::{Rounding, count, counted};
use std::num::NonZeroU32;

/// Numbers of workers, 1–256 in powers of 2: those of the papers, and fewer.
pub const WORKERS: [NonZeroU32; 9] = {
    let mut workers = [NonZeroU32::MIN; 9];
    let mut power = 1;
    while power < workers.len() {
        workers[power] = workers[power - 1].saturating_add(workers[power - 1].get());
        power += 1;
    }
    workers
};

/// Content of the figure.
#[derive(Debug)]
pub struct Scaling<'a> {
    /// Name of the study, for the heading.
    pub study: &'a str,
    /// Number of the study's parameter sets, without the defaults.
    pub evaluations: usize,
    /// Number of tiles on which each evaluation runs.
    pub tiles: usize,
    /// Limit of buckets of TRTMA, ranges and HRB, if it is the same for every number of workers. `None` is 3 buckets per
    /// worker, or fewer if each has an overhead.
    pub max_buckets: Option<usize>,
    /// Plan variants: one curve per strategy and reuse level.
    pub curves: Vec<Curve>,
}

/// Plans of one strategy and reuse level.
#[derive(Debug)]
pub struct Curve {
    /// Strategy in lower case, such as `rtma`. Determines color and marker.
    pub strategy: &'static str,
    /// Reuse level in lower case, such as `value`. Determines the dashes. `None` for strategies without buckets.
    pub reuse: Option<&'static str>,
    /// Predictions in ascending order of workers, joined by a line.
    pub points: Vec<Point>,
}

/// Plan for a number of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of workers, each with one task slot.
    pub workers: NonZeroU32,
    /// Predicted makespan of the plan, in seconds.
    pub makespan_seconds: f64,
    /// Lower bound of the makespan, in seconds: the longest chain of tasks, or all distinct tasks evenly spread over
    /// the workers if that takes longer.
    pub lower_bound_seconds: f64,
}

/// Size and margins of the picture. The right margin holds the names.
const SIZE_PX: [f64; 2] = [860.0, 560.0];
const LEFT_PX: f64 = 66.0;
const RIGHT_PX: f64 = 236.0;
const TOP_PX: f64 = 62.0;
const BOTTOM_PX: f64 = 54.0;
/// Distance between two names.
const LINE_PX: f64 = 15.0;
/// Minimum of the axis of seconds: a logarithmic axis has no place for 0.
const MIN_SECONDS: f64 = 1e-6;

/// Logarithmic scale.
#[derive(Clone, Copy, Debug)]
struct LogScale {
    low: f64,
    high: f64,
    from_px: f64,
    to_px: f64,
}

impl LogScale {
    /// Returns a scale that covers the numbers, widened to ticks.
    fn covering(numbers: impl Iterator<Item = f64> + Clone, [from_px, to_px]: [f64; 2]) -> Self {
        let numbers = numbers.map(|number| number.max(MIN_SECONDS));
        let low = numbers.clone().reduce(f64::min).unwrap_or(1.0);
        let high = numbers.reduce(f64::max).unwrap_or(1.0);
        let scale = Self { low, high, from_px, to_px };
        let ticks = || (-7..12).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        let low = ticks().rfind(|tick| *tick <= scale.low * (1.0 + 1e-9)).unwrap_or(low);
        let high = ticks().find(|tick| *tick >= scale.high && *tick > low).unwrap_or(high);
        Self { low, high, ..scale }
    }

    fn px(&self, number: f64) -> f64 {
        let share = (number.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        self.from_px + share * (self.to_px - self.from_px)
    }

    /// Returns ticks at 1, 2 and 5 times powers of 10. Over more than about 3 powers, ticks at the powers
    /// alone.
    fn ticks(&self) -> Vec<(f64, String)> {
        let digits: &[f64] = if self.high / self.low > 2e3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = (-7..12).flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        let within = all.filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick));
        within.map(|tick| (tick, Rounding::of_tick(tick, tick).show(tick))).collect()
    }
}

/// Line of the figure, and the name at its end.
struct Line {
    class: String,
    name: String,
    marker: Option<&'static str>,
    places: Vec<[f64; 2]>,
}

impl Scaling<'_> {
    /// Returns the picture as the content of an SVG file.
    pub fn svg(&self) -> String {
        let [width, height] = SIZE_PX;
        let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
        let workers = WORKERS.map(|workers| f64::from(workers.get()));
        let x = LogScale { low: workers[0], high: workers[8], from_px: LEFT_PX, to_px: right };
        let points = self.curves.iter().flat_map(|curve| &curve.points);
        let seconds = points.flat_map(|point| [point.makespan_seconds, point.lower_bound_seconds]);
        let y = LogScale::covering(seconds, [bottom, TOP_PX]);

        let mut drawing = Drawing::new(width, height, &format!("Predicted makespan of {}", self.study));
        drawing.rect("paper", [0.0, 0.0, width, height]);
        let title = format!("Predicted makespan of {}", shortened(self.study, 400.0));
        drawing.text("head", Anchor::Start, [LEFT_PX, 22.0], &title);
        drawing.text("note", Anchor::Start, [LEFT_PX, 40.0], &self.note());
        for tick in workers {
            drawing.line("grid", [x.px(tick), TOP_PX, x.px(tick), bottom]);
            drawing.text("tick", Anchor::Middle, [x.px(tick), bottom + 17.0], &count(tick as u64));
        }
        for (tick, label) in y.ticks() {
            drawing.line("grid", [LEFT_PX, y.px(tick), right, y.px(tick)]);
            drawing.text("tick", Anchor::End, [LEFT_PX - 7.0, y.px(tick) + 4.0], &label);
        }
        drawing.line("base", [LEFT_PX, bottom, right, bottom]);
        drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);
        drawing.text("axis", Anchor::Middle, [(LEFT_PX + right) / 2.0, bottom + 40.0], "workers");
        drawing.upright("axis", [16.0, (TOP_PX + bottom) / 2.0], "makespan, in seconds");

        let mut lines = self.bounds(&x, &y);
        lines.extend(self.makespans(&x, &y));
        lines.iter().for_each(|line| line.draw(&mut drawing));
        name(&lines, &mut drawing, right, [TOP_PX, bottom]);
        drawing.finish_as_file(include_str!("scaling.css"))
    }

    fn note(&self) -> String {
        let buckets = match self.max_buckets {
            Some(buckets) => format!("at most {} per stage", counted(buckets, "bucket", "buckets")),
            None => "up to 3 buckets per worker".to_owned(),
        };
        let of = |strategy: &str| self.curves.iter().any(|curve| curve.strategy == strategy);
        let limited: Vec<&str> =
            ["trtma", "ranges", "hrb"].into_iter().filter(|strategy| of(strategy)).collect();
        format!(
            "{} on {}{}",
            counted(self.evaluations, "evaluation", "evaluations"),
            counted(self.tiles, "tile", "tiles"),
            if limited.is_empty() { String::new() } else { format!("; {}: {buckets}", limited.join(", ")) },
        )
    }

    fn makespans(&self, x: &LogScale, y: &LogScale) -> Vec<Line> {
        let line = |curve: &Curve| Line {
            class: format!("line {} reuse-{}", curve.strategy, curve.reuse.unwrap_or("none")),
            name: curve.name(),
            marker: Some(marker(curve.strategy)),
            places: places(&curve.points, x, y, |point| point.makespan_seconds),
        };
        self.curves.iter().map(line).collect()
    }

    /// Returns the lower bounds. Equal bounds share a line with all their names.
    fn bounds(&self, x: &LogScale, y: &LogScale) -> Vec<Line> {
        let mut bounds: Vec<(Vec<&str>, Line)> = Vec::new();
        for curve in &self.curves {
            let places = places(&curve.points, x, y, |point| point.lower_bound_seconds);
            let level = curve.reuse.unwrap_or(curve.strategy);
            match bounds.iter_mut().find(|(_, bound)| bound.places == places) {
                Some((levels, _)) if levels.contains(&level) => {}
                Some((levels, _)) => levels.push(level),
                None => {
                    let line =
                        Line { class: "line bound".to_owned(), name: String::new(), marker: None, places };
                    bounds.push((vec![level], line));
                }
            }
        }
        let named = |(levels, line): (Vec<&str>, Line)| Line {
            name: format!("bound: {}", levels.join(", ")),
            ..line
        };
        bounds.into_iter().map(named).collect()
    }
}

impl Curve {
    fn name(&self) -> String {
        self.reuse.map_or_else(|| self.strategy.to_owned(), |reuse| format!("{}, {reuse}", self.strategy))
    }
}

fn places(points: &[Point], x: &LogScale, y: &LogScale, of: fn(&Point) -> f64) -> Vec<[f64; 2]> {
    points.iter().map(|point| [x.px(f64::from(point.workers.get())), y.px(of(point))]).collect()
}

/// Returns the marker of a strategy as an SVG path around the origin. All markers have about equal areas.
fn marker(strategy: &str) -> &'static str {
    match strategy {
        "none" => "M-4 -4L4 4M-4 4L4 -4",
        "stage" => "M-3.6 -3.6H3.6V3.6H-3.6Z",
        "naive" => "M0 -4.8L4.6 3.4H-4.6Z",
        "sca" => "M0 -5L5 0L0 5L-5 0Z",
        "rtma" => "M0 4.8L4.6 -3.4H-4.6Z",
        "ranges" => "M-5.4 -2.6H5.4V2.6H-5.4Z",
        "hrb" => "M-2.6 -5.4H2.6V5.4H-2.6Z",
        _ => "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    }
}

impl Line {
    fn draw(&self, drawing: &mut Drawing) {
        drawing.noted(&self.name, |drawing| {
            drawing.polyline(&self.class, &self.places);
            for place in &self.places {
                self.mark(drawing, *place);
            }
        });
    }

    fn mark(&self, drawing: &mut Drawing, place: [f64; 2]) {
        if let Some(marker) = self.marker {
            let class = self.class.replacen("line", "mark", 1);
            drawing.path_at(&class, place, marker);
        }
    }
}

/// Writes the names of the lines beside their ends, one below the other, each with a sample of its line.
fn name(lines: &[Line], drawing: &mut Drawing, right: f64, [top, bottom]: [f64; 2]) {
    let mut ends: Vec<(f64, &Line)> =
        lines.iter().filter_map(|line| line.places.last().map(|[_, y]| (*y, line))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
    for ((end, line), y) in ends.iter().zip(spread(&wanted, [top, bottom])) {
        drawing.line("leader", [right + 6.0, *end, right + 26.0, y]);
        drawing.polyline(&line.class, &[[right + 30.0, y], [right + 62.0, y]]);
        line.mark(drawing, [right + 46.0, y]);
        let text = shortened(&line.name, RIGHT_PX - 74.0);
        drawing.text("label", Anchor::Start, [right + 69.0, y + 4.0], &text);
    }
}

/// Returns places near the wanted ones, which ascend. Places are one line of text apart. They stay within the
/// bounds if all of them fit.
fn spread(wanted: &[f64], [top, bottom]: [f64; 2]) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for y in wanted {
        let free = places.last().map_or(top, |last| last + LINE_PX);
        places.push(y.max(free));
    }
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LINE_PX;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(strategy: &'static str, reuse: Option<&'static str>, work: f64, chain: f64) -> Curve {
        let points = WORKERS.map(|workers| {
            let lower_bound_seconds = chain.max(work / f64::from(workers.get()));
            Point { workers, makespan_seconds: lower_bound_seconds * 1.25, lower_bound_seconds }
        });
        Curve { strategy, reuse, points: points.to_vec() }
    }

    fn scaling(curves: Vec<Curve>) -> Scaling<'static> {
        Scaling { study: "gbm <moat>", evaluations: 160, tiles: 2, max_buckets: None, curves }
    }

    #[test]
    fn every_plan_variant_has_a_line_and_a_name() {
        let svg = scaling(vec![
            curve("stage", None, 1000.0, 5.0),
            curve("trtma", Some("tree"), 700.0, 5.0),
            curve("trtma", Some("dataflow"), 500.0, 3.0),
            curve("trtma", Some("value"), 500.0, 3.0),
        ])
        .svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let class = |name: &str| {
            let drawn = document
                .descendants()
                .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "path")));
            drawn.filter(|node| node.attribute("class") == Some(name)).count()
        };
        // The line, and its sample beside the name.
        assert_eq!(class("line stage reuse-none"), 2);
        assert_eq!(class("line trtma reuse-tree"), 2);
        assert_eq!(class("line trtma reuse-value"), 2);
        assert_eq!(class("mark trtma reuse-value"), WORKERS.len() + 1);
        assert_eq!(class("line bound"), 3 * 2);
        for text in
            ["bound: dataflow, value", "trtma, tree", "gbm &lt;moat&gt;", "160 evaluations on 2 tiles"]
        {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }

    #[test]
    fn worker_counts_double() {
        assert_eq!(WORKERS.map(NonZeroU32::get), [1, 2, 4, 8, 16, 32, 64, 128, 256]);
    }

    #[test]
    fn ticks_are_ones_twos_and_fives() {
        let labels = |low: f64, high: f64| {
            let ticks = LogScale::covering([low, high].into_iter(), [0.0, 1.0]).ticks();
            ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(0.3, 7.0), ["0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(labels(1.0, 9e4), ["1", "10", "100", "1000", "10\u{202f}000", "100\u{202f}000"]);
        assert_eq!(labels(3.0, 3.0), ["2", "5"]);
    }

    proptest! {
        #[test]
        fn names_keep_their_order_and_distance(mut wanted in prop::collection::vec(60.0..500.0_f64, 0..20)) {
            wanted.sort_by(f64::total_cmp);
            let places = spread(&wanted, [60.0, 500.0]);
            prop_assert_eq!(places.len(), wanted.len());
            prop_assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE_PX - 1e-9));
            prop_assert!(places.iter().all(|y| (60.0..=500.0).contains(y)));
        }

        #[test]
        fn any_costs_make_a_picture(work in 0.0..1e9_f64, chain in 0.0..1e4_f64) {
            let svg = scaling(vec![curve("none", None, work, chain)]).svg();
            prop_assert!(roxmltree::Document::parse(&svg).is_ok());
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
