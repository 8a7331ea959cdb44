//! SVG drawings: scales, axes and basic shapes. This module sets positions, the style sheet sets colors and
//! lines.

use crate::page::format_number::{Rounding, exponent};
use crate::page::html::{Html, html};

/// Linear scale from values to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    step: f64,
    from_px: f64,
    to_px: f64,
}

impl Scale {
    /// Returns a scale that covers `low` to `high`, widened to whole steps, with about `ticks` ticks.
    pub(crate) fn new(low: f64, high: f64, [from_px, to_px]: [f64; 2], ticks: usize) -> Self {
        // Differences of larger numbers exceed the range of f64.
        const LIMIT: f64 = f64::MAX / 1e3;
        let clean = |value: f64| if value.is_finite() { value.clamp(-LIMIT, LIMIT) } else { 0.0 };
        let (mut low, mut high) = (clean(low).min(clean(high)), clean(low).max(clean(high)));
        if high - low <= low.abs().max(high.abs()) * 1e-9 {
            // Widens the range of a single value to show it.
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = if low == 0.0 { (0.0, room) } else { (low - room, high + room) };
        }
        let step = nice_step((high - low) / ticks.max(1) as f64);
        let low = (low / step + 1e-9).floor() * step;
        let high = (high / step - 1e-9).ceil() * step;
        Self { low, high, step, from_px, to_px }
    }

    /// Returns a scale that covers exactly `low` to `high`. A single value gets a widened range.
    pub(crate) fn exact(low: f64, high: f64, px: [f64; 2]) -> Self {
        let scale = Self::new(low, high, px, 3);
        if low < high && (high - low).is_finite() { Self { low, high, ..scale } } else { scale }
    }

    /// Returns the pixel of `value`, clamped to the ends of the scale.
    pub(crate) fn px(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.from_px + share * (self.to_px - self.from_px)
    }

    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    /// Returns the values and labels of the ticks.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let rounding = Rounding::of_tick(self.step, self.low.abs().max(self.high.abs()));
        let count = ((self.high - self.low) / self.step).round() as u32;
        let first = (self.low / self.step).round();
        let tick = |n: u32| (first + f64::from(n)) * self.step;
        (0..=count).map(tick).map(|value| (value, rounding.show(value))).collect()
    }
}

/// Returns the step of 1, 2 or 5 times a power of 10 that is nearest to `rough` by ratio.
pub(crate) fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powi(exponent(rough));
    // The power of a subnormal range underflows to 0.
    let power = if power > 0.0 { power } else { f64::MIN_POSITIVE };
    // Each digit with its limit, squared: the geometric mean of neighboring steps.
    let limits = [(1.0, 2.0), (2.0, 10.0), (5.0, 50.0)];
    let nearest = limits.into_iter().find(|(_, square)| (rough / power).powi(2) <= *square);
    nearest.map_or(10.0, |(digit, _)| digit) * power
}

/// Returns the width of `text` in pixels at [`TYPE_PX`]. The estimate is generous because fonts differ.
pub(crate) fn text_width(text: &str) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '(' | ')' => {
            0.38
        }
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
        c if c.is_ascii_uppercase() => 0.73,
        c if c.is_ascii() => 0.6,
        // Letters of other scripts are up to one em wide.
        _ => 1.0,
    };
    text.chars().map(em).sum::<f64>() * TYPE_PX
}

/// Type size of figures, as in `svg text` of the style sheet.
pub(crate) const TYPE_PX: f64 = 12.0;

/// Returns `text` cut in the middle to fit `width` pixels: names with equal beginnings often differ at their
/// ends.
pub(crate) fn shortened(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let kept = |count: usize| {
        let (head, tail) = (count.div_ceil(2), count / 2);
        let tail = &letters[letters.len() - tail..];
        letters[..head].iter().chain(&['…']).chain(tail).collect::<String>()
    };
    let fits = (1..letters.len()).map(kept).take_while(|text| text_width(text) <= width);
    fits.last().unwrap_or_else(|| "…".to_owned())
}

/// Position of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Picture under construction. Coordinates are pixels at its natural size, y downwards.
#[derive(Debug)]
pub(crate) struct Drawing {
    width: f64,
    height: f64,
    body: Html,
}

impl Drawing {
    /// Returns an empty picture. Screen readers read `title`.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, body: Html::element("title", &[], title) }
    }

    pub(crate) fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(px);
        let ends = [("x1", x1.as_str()), ("y1", &y1), ("x2", &x2), ("y2", &y2)];
        self.shape("line", class, &ends);
    }

    pub(crate) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(px);
        let sides = [("x", x.as_str()), ("y", &y), ("width", &width), ("height", &height)];
        self.shape("rect", class, &sides);
    }

    /// Adds small discs as one path.
    pub(crate) fn dots(&mut self, class: &str, places: impl IntoIterator<Item = [f64; 2]>) {
        let moves = places.into_iter().map(|[x, y]| format!("M{} {}h0", px(x), px(y)));
        let path: String = moves.collect();
        self.shape("path", class, &[("d", &path)]);
    }

    /// Adds a line through places.
    pub(crate) fn polyline(&mut self, class: &str, places: &[[f64; 2]]) {
        let letters = std::iter::once('M').chain(std::iter::repeat('L'));
        let path: String = places
            .iter()
            .zip(letters)
            .map(|([x, y], letter)| format!("{letter}{} {}", px(*x), px(*y)))
            .collect();
        self.shape("path", class, &[("d", &path)]);
    }

    /// Adds a path around the origin, moved to a place.
    pub(crate) fn path_at(&mut self, class: &str, [x, y]: [f64; 2], path: &'static str) {
        let place = format!("translate({} {})", px(x), px(y));
        self.shape("path", class, &[("d", path), ("transform", &place)]);
    }

    /// Adds an arrowhead that points left to the place.
    pub(crate) fn arrow(&mut self, class: &str, [x, y]: [f64; 2]) {
        let (back, up, down) = (px(x + 7.0), px(y - 3.5), px(y + 3.5));
        self.shape("path", class, &[("d", &format!("M{} {}L{back} {up}V{down}Z", px(x), px(y)))]);
    }

    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, [x, y]: [f64; 2], text: &str) {
        let (x, y) = (px(x), px(y));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let place = [("class", class), ("text-anchor", anchor), ("x", &x), ("y", &y)];
        self.body.push(Html::element("text", &place, text));
    }

    /// Adds text that runs upwards along a vertical axis, centered on the point.
    pub(crate) fn upright(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let turn = format!("translate({} {}) rotate(-90)", px(x), px(y));
        let place = [("class", class), ("text-anchor", "middle"), ("transform", &turn)];
        self.body.push(Html::element("text", &place, text));
    }

    /// Adds text that rises by 35° to the right from its point, for columns narrower than the text.
    pub(crate) fn rising(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let turn = format!("translate({} {}) rotate(-35)", px(x), px(y));
        let place = [("class", class), ("text-anchor", "start"), ("transform", &turn)];
        self.body.push(Html::element("text", &place, text));
    }

    /// Adds the shapes of `draw`, with a note that a browser shows under the pointer.
    pub(crate) fn noted(&mut self, note: &str, draw: impl FnOnce(&mut Self)) {
        let mut part =
            Self { width: self.width, height: self.height, body: Html::element("title", &[], note) };
        draw(&mut part);
        self.body.push(Html::element("g", &[], part.body));
    }

    /// Adds grid lines from top to bottom and labels of a horizontal axis.
    pub(crate) fn axis_below(&mut self, scale: &Scale, span: [f64; 2]) {
        self.ticks_below(scale, &scale.ticks(), span);
    }

    /// Adds grid lines and labels of a horizontal axis at the given ticks.
    pub(crate) fn ticks_below(&mut self, scale: &Scale, ticks: &[(f64, String)], [top, bottom]: [f64; 2]) {
        for (value, label) in ticks {
            let x = scale.px(*value);
            self.line("grid", [x, top, x, bottom]);
            self.text("tick", Anchor::Middle, [x, bottom + 16.0], label);
        }
    }

    /// Adds grid lines from left to right and labels of a vertical axis.
    pub(crate) fn axis_left(&mut self, scale: &Scale, [left, right]: [f64; 2]) {
        for (value, label) in scale.ticks() {
            let y = scale.px(value);
            self.line("grid", [left, y, right, y]);
            self.text("tick", Anchor::End, [left - 7.0, y + 4.0], &label);
        }
    }

    /// Adds another picture, with its top left corner at a place.
    pub(crate) fn put(&mut self, [x, y]: [f64; 2], other: Self) {
        let place = format!("translate({} {})", px(x), px(y));
        self.body.push(Html::element("g", &[("transform", place.as_str())], other.body));
    }

    /// Returns the width and height in pixels.
    pub(crate) fn size(&self) -> [f64; 2] {
        [self.width, self.height]
    }

    fn shape(&mut self, name: &'static str, class: &str, attributes: &[(&'static str, &str)]) {
        let all: Vec<_> = std::iter::once(("class", class)).chain(attributes.iter().copied()).collect();
        self.body.push(Html::shape(name, &all));
    }

    pub(crate) fn finish(self) -> Html {
        let (width, height) = (px(self.width), px(self.height));
        let view = format!("0 0 {width} {height}");
        let size = [("role", "img"), ("viewBox", view.as_str()), ("width", &width), ("height", &height)];
        Html::element("svg", &size, self.body)
    }

    /// Returns the picture as the content of an SVG file, with its own style sheet.
    pub(crate) fn finish_as_file(self, style: &'static str) -> String {
        let (width, height) = (px(self.width), px(self.height));
        let view = format!("0 0 {width} {height}");
        let attributes = [
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("role", "img"),
            ("viewBox", view.as_str()),
            ("width", &width),
            ("height", &height),
        ];
        let content = html![Html::element("style", &[], Html::raw(style)), self.body];
        html![Html::element("svg", &attributes, content), Html::raw("\n")].into_string()
    }
}

/// Formats a coordinate to a tenth of a pixel.
fn px(value: f64) -> String {
    debug_assert!(value.is_finite(), "a coordinate is {value}");
    let tenths = (value * 10.0).round() / 10.0;
    // Adding 0 turns −0 into 0.
    (tenths + 0.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        Scale::new(low, high, [0.0, 100.0], 5).ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_the_ones_a_person_would_draw() {
        assert_eq!(labels(0.0, 0.41), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(0.0, 0.15)[..3], ["0", "0.02", "0.04"]);
        assert_eq!(labels(-3.0, 7.0), ["−4", "−2", "0", "2", "4", "6", "8"]);
        assert_eq!(labels(0.0, 0.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.912, 0.988), ["0.90", "0.92", "0.94", "0.96", "0.98", "1.00"]);
        assert_eq!(labels(0.0, 2e6)[1], "500\u{202f}000");
        assert_eq!(labels(0.0, 2e-9)[1], "5.0e−10");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("G2", 100.0), "G2");
        let cut = shortened(&format!("{}17", "parameter-".repeat(8)), 100.0);
        assert!(cut.starts_with("param") && cut.ends_with("17") && text_width(&cut) <= 100.0, "{cut}");
        assert_eq!(shortened("parameter", 5.0), "…");
    }

    proptest! {
        #[test]
        fn a_scale_covers_its_values(low in proptest::num::f64::ANY, high in proptest::num::f64::ANY) {
            let scale = Scale::new(low, high, [10.0, 210.0], 5);
            for value in [low, high, 0.0] {
                let x = scale.px(if value.is_nan() { 0.0 } else { value });
                prop_assert!((10.0..=210.0).contains(&x), "{x}");
            }
            let ticks = scale.ticks();
            prop_assert!((2..=14).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (value, label) in ticks {
                prop_assert!(scale.px(value).is_finite());
                prop_assert!(!label.contains("NaN") && !label.contains("inf"));
            }
        }
    }
}
