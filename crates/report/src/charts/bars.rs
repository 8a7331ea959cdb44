//! Bar chart of one index per parameter, ranked by size, with intervals. Bars of negative indices point to
//! the left.

use crate::charts::ranking::{MAX_BARS, whisker};
use crate::charts::svg::{Anchor, Drawing, Scale, shortened, text_width};
use crate::page::format_number::Rounding;
use crate::page::metric::index_name;
use pleach_results::analysis::{Analysis, IndexTable};

/// Index of a parameter. `conf` is the half-width of its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: f64,
    pub(crate) conf: Option<f64>,
}

const ROW_PX: f64 = 22.0;
const BAR_PX: f64 = 14.0;
const WIDTH_PX: f64 = 780.0;
const TOP_PX: f64 = 14.0;
const GAP_PX: f64 = 24.0;

/// Returns the main indices by size, with the half-widths of their intervals.
pub(crate) fn ranked<'a>(listed: &'a IndexTable) -> Vec<Bar<'a>> {
    let conf =
        listed.columns.get(listed.main + 1).filter(|name| name.ends_with("_conf")).map(|_| listed.main + 1);
    let bar = |(name, numbers): &'a (String, Vec<Option<f64>>)| {
        Some(Bar { name, value: numbers[listed.main]?, conf: conf.and_then(|conf| numbers[conf]) })
    };
    listed.ranked().into_iter().filter_map(bar).collect()
}

/// Draws the figure of one index per parameter. Returns the figure and the name of the index.
pub(crate) fn draw_indices(analysis: &Analysis, listed: &IndexTable) -> (Drawing, String) {
    let axis = index_name(analysis, listed);
    (draw(&ranked(listed), &axis), axis)
}

/// Draws the bars in the given order, at most [`MAX_BARS`]. `axis` names the index.
pub(crate) fn draw(bars: &[Bar<'_>], axis: &str) -> Drawing {
    let rows = &bars[..bars.len().min(MAX_BARS)];
    let longest = rows.iter().map(|row| text_width(row.name)).fold(60.0, f64::max).min(160.0);
    let end = |sign: f64| move |row: &Bar<'_>| row.value + sign * row.conf.unwrap_or(0.0);
    let most = rows.iter().map(end(1.0)).fold(0.0, f64::max);
    let least = rows.iter().map(end(-1.0)).fold(0.0, f64::min);
    // Without negative indices, intervals that reach less than 10 % of the largest value below 0 are cut at
    // 0.
    let least = if rows.iter().all(|row| row.value >= 0.0) && least > -0.1 * most { 0.0 } else { least };
    let rounding = Rounding::of(most.max(-least));
    let number = |row: &Bar<'_>| {
        let spread = row.conf.map_or_else(String::new, |conf| format!(" ± {}", rounding.show(conf)));
        format!("{}{spread}", rounding.show(row.value))
    };
    let numbers = rows.iter().map(|row| text_width(&number(row))).fold(70.0, f64::max);
    let (left, right) = (longest + 12.0, WIDTH_PX - numbers - GAP_PX);
    let bottom = TOP_PX + ROW_PX * rows.len() as f64 + 4.0;
    let mut drawing = Drawing::new(WIDTH_PX, bottom + 44.0, &format!("Bars of {axis}, ranked"));
    let scale = Scale::new(least, most, [left, right], 7);
    drawing.axis_below(&scale, [TOP_PX, bottom]);
    drawing.text("axis", Anchor::Middle, [(left + right) / 2.0, bottom + 37.0], axis);
    let zero = scale.px(0.0);
    for (place, row) in rows.iter().enumerate() {
        let middle = TOP_PX + ROW_PX * (place as f64 + 0.5) + 2.0;
        let number = number(row);
        drawing.noted(&format!("{}: {number}", row.name), |drawing| {
            drawing.text("label", Anchor::End, [left - 8.0, middle + 4.0], &shortened(row.name, longest));
            let end = scale.px(row.value);
            let class = if row.value < 0.0 { "down" } else { "up" };
            drawing.rect(class, [zero.min(end), middle - BAR_PX / 2.0, (end - zero).abs(), BAR_PX]);
            if let Some(conf) = row.conf.filter(|conf| *conf > 0.0) {
                whisker(drawing, [scale.px(row.value - conf), scale.px(row.value + conf)], middle);
            }
            drawing.text("value", Anchor::Start, [right + GAP_PX, middle + 4.0], &number);
        });
    }
    drawing.line("base", [zero, TOP_PX, zero, bottom]);
    drawing
}
