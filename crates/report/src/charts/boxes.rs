//! Box plots of distributions, with one dot per number.

use crate::charts::svg::{Anchor, Drawing, Scale, shortened, text_width};
use crate::page::format_number::{brief, quantile};
use crate::page::html::Html;

/// Distribution of one row of the figure.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Finite values, ascending. Empty if no run succeeded.
    pub(crate) values: Vec<f64>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self { name: name.into(), values }
    }

    /// Returns the minimum, lower quartile, median, upper quartile and maximum. `None` without values.
    pub(crate) fn five_numbers(&self) -> Option<[f64; 5]> {
        (!self.values.is_empty())
            .then(|| [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&self.values, share)))
    }
}

/// Maximum dots of a row. More dots hide each other and make the page heavy. Beyond, only the box is drawn.
const MAX_DOTS: usize = 1000;

/// Minimum values for a box. Quartiles of fewer values are meaningless. Below, only the dots are drawn.
const MIN_IN_BOX: usize = 5;

const WIDTH_PX: f64 = 780.0;
const ROW_PX: f64 = 36.0;
const TOP_PX: f64 = 8.0;

/// Draws the figure. `axis` names the numbers.
pub(crate) fn draw(rows: &[Row], axis: &str) -> Html {
    let longest = rows.iter().map(|row| text_width(&row.name)).fold(60.0, f64::max).min(160.0);
    let (left, right) = (longest + 14.0, WIDTH_PX - 30.0);
    let bottom = TOP_PX + ROW_PX * rows.len() as f64;
    let mut drawing = Drawing::new(WIDTH_PX, bottom + 44.0, &format!("Box plots of {axis}"));
    let low = rows.iter().filter_map(|row| row.values.first().copied()).reduce(f64::min).unwrap_or(0.0);
    let high = rows.iter().filter_map(|row| row.values.last().copied()).reduce(f64::max).unwrap_or(0.0);
    let scale = Scale::new(low, high, [left, right], 7);
    drawing.axis_below(&scale, [TOP_PX, bottom]);
    drawing.text("axis", Anchor::Middle, [(left + right) / 2.0, bottom + 37.0], axis);
    for (place, row) in rows.iter().enumerate() {
        let middle = TOP_PX + ROW_PX * (place as f64 + 0.5);
        drawing.text("label", Anchor::End, [left - 8.0, middle + 4.0], &shortened(&row.name, longest));
        let Some(numbers) = row.five_numbers() else {
            drawing.text("note", Anchor::Start, [left + 6.0, middle + 4.0], "no response");
            continue;
        };
        let [smallest, lower, median, upper, largest] = numbers.map(brief);
        let note =
            format!("{}: {smallest} to {largest}, middle half {lower} to {upper}, median {median}", row.name);
        drawing.noted(&note, |drawing| one(drawing, &scale, row, numbers, middle));
    }
    drawing.line("base", [left, TOP_PX, left, bottom]);
    drawing.finish()
}

fn one(drawing: &mut Drawing, scale: &Scale, row: &Row, numbers: [f64; 5], middle: f64) {
    let count = row.values.len();
    let [smallest, lower, median, upper, largest] = numbers.map(|number| scale.px(number));
    if count >= MIN_IN_BOX {
        drawing.line("stem", [smallest, middle, lower, middle]);
        drawing.line("stem", [upper, middle, largest, middle]);
        for end in [smallest, largest] {
            drawing.line("stem", [end, middle - 5.0, end, middle + 5.0]);
        }
        drawing.rect("box", [lower, middle - 8.0, (upper - lower).max(1.0), 16.0]);
    }
    if count <= MAX_DOTS {
        let dots = row.values.iter().enumerate().map(|(n, value)| [scale.px(*value), middle + scatter(n)]);
        // A few dots without a box are drawn large enough to be seen.
        drawing.dots(if count < MIN_IN_BOX { "point" } else { "dots" }, dots);
    }
    if count >= MIN_IN_BOX {
        drawing.line("median", [median, middle - 10.0, median, middle + 10.0]);
    }
}

/// Returns the vertical offset of a dot, −9 to 9 px. Multiples of the golden ratio keep neighboring dots
/// apart and are the same in every run.
fn scatter(number: usize) -> f64 {
    ((number as f64 * 0.618_033_988_749_894_9).fract() - 0.5) * 18.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_drops_what_is_no_number() {
        let row = Row::new("tile", [3.0, f64::NAN, 1.0, f64::INFINITY, 2.0]);
        assert_eq!(row.five_numbers(), Some([1.0, 1.5, 2.0, 2.5, 3.0]));
        assert_eq!(Row::new("tile", []).five_numbers(), None);
    }

    #[test]
    fn constant_and_missing_responses_are_drawn() {
        let drawn = draw(&[Row::new("same", [1.0; 5]), Row::new("none", [])], "Dice").into_string();
        assert!(drawn.contains("no response"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
