//! Figures of first-order and total indices: paired bars with intervals, and stacked bars.

use crate::charts::ranking::{MAX_BARS, whisker};
use crate::charts::svg::{Anchor, Drawing, Scale, shortened, text_width};
use crate::page::format_number::Rounding;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::fast::FastParameter;
use pleach_sensitivity::vbd::VbdParameter;

/// First-order and total index of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders<'a> {
    name: &'a str,
    first: &'a Estimate,
    total: &'a Estimate,
}

impl<'a> Orders<'a> {
    pub(crate) fn of(parameter: &'a VbdParameter) -> Self {
        Self { name: &parameter.name, first: &parameter.first, total: &parameter.total }
    }

    pub(crate) fn of_curve(parameter: &'a FastParameter) -> Self {
        Self { name: &parameter.name, first: &parameter.first, total: &parameter.total }
    }
}

const ROW_PX: f64 = 26.0;
const BAR_PX: f64 = 8.0;
const STACK_PX: f64 = 15.0;
const WIDTH_PX: f64 = 780.0;
const TOP_PX: f64 = 38.0;
const GAP_PX: f64 = 24.0;

fn value(index: &Estimate) -> f64 {
    index.value.unwrap_or(0.0)
}

fn conf(index: &Estimate) -> f64 {
    index.conf.unwrap_or(0.0)
}

/// Returns the parameters by descending total index, at most [`MAX_BARS`].
fn ranked<'a>(orders: &[Orders<'a>]) -> Vec<Orders<'a>> {
    let mut ranked = orders.to_vec();
    ranked.sort_by(|a, b| value(b.total).total_cmp(&value(a.total)));
    ranked.truncate(MAX_BARS);
    ranked
}

/// Common frame of both figures: layout, axis, names and a column of numbers.
struct Frame {
    drawing: Drawing,
    scale: Scale,
    longest: f64,
    left: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn new(
        rows: &[Orders<'_>],
        [least, most]: [f64; 2],
        head: &str,
        numbers: f64,
        title: &str,
        response: &str,
    ) -> Self {
        let longest = rows.iter().map(|row| text_width(row.name)).fold(60.0, f64::max).min(160.0);
        let (left, right) = (longest + 12.0, WIDTH_PX - numbers - GAP_PX);
        let bottom = TOP_PX + ROW_PX * rows.len() as f64 + 4.0;
        let mut drawing = Drawing::new(WIDTH_PX, bottom + 44.0, title);
        let scale = Scale::new(least, most, [left, right], 7);
        drawing.axis_below(&scale, [TOP_PX, bottom]);
        let axis = format!("share of the variance of {response}");
        drawing.text("axis", Anchor::Middle, [(left + right) / 2.0, bottom + 37.0], &axis);
        drawing.text("head", Anchor::Start, [right + GAP_PX, TOP_PX - 12.0], head);
        Self { drawing, scale, longest, left, right, bottom }
    }

    fn row(
        &mut self,
        place: usize,
        name: &str,
        number: &str,
        note: &str,
        draw: impl FnOnce(&mut Drawing, f64),
    ) {
        let middle = TOP_PX + ROW_PX * (place as f64 + 0.5) + 2.0;
        let (left, right, longest) = (self.left, self.right, self.longest);
        self.drawing.noted(note, |drawing| {
            drawing.text("label", Anchor::End, [left - 8.0, middle + 4.0], &shortened(name, longest));
            draw(drawing, middle);
            drawing.text("value", Anchor::Start, [right + GAP_PX, middle + 4.0], number);
        });
    }

    fn finish(mut self) -> Drawing {
        let zero = self.scale.px(0.0);
        self.drawing.line("base", [zero, TOP_PX, zero, self.bottom]);
        self.drawing
    }
}

/// Draws two bars per parameter, with intervals.
pub(crate) fn draw(orders: &[Orders<'_>], response: &str) -> Drawing {
    let rows = ranked(orders);
    let all = || rows.iter().flat_map(|row| [row.first, row.total]);
    let most = all().map(|index| value(index) + conf(index)).fold(1.0, f64::max);
    let least = all().map(|index| value(index) - conf(index)).fold(0.0, f64::min);
    let rounding = Rounding::fixed(3);
    let number = |row: &Orders<'_>| {
        format!("{} / {}", rounding.option(row.first.value), rounding.option(row.total.value))
    };
    let numbers = rows.iter().map(|row| text_width(&number(row))).fold(70.0, f64::max);
    let title = format!("Bars of first-order and total Sobol' indices of {response}, ranked");
    let mut frame = Frame::new(&rows, [least, most], "S / T", numbers, &title, response);
    let scale = frame.scale;
    let zero = scale.px(0.0);
    for (place, row) in rows.iter().enumerate() {
        let number = number(row);
        frame.row(place, row.name, &number, &format!("{}: S / T {number}", row.name), |drawing, middle| {
            for (index, class, offset) in [(row.first, "up", -BAR_PX - 1.0), (row.total, "down", 1.0)] {
                let end = scale.px(value(index));
                drawing.rect(class, [zero.min(end), middle + offset, (end - zero).abs(), BAR_PX]);
                if let Some(conf) = index.conf.filter(|conf| *conf > 0.0) {
                    let ends = [scale.px(value(index) - conf), scale.px(value(index) + conf)];
                    whisker(drawing, ends, middle + offset + BAR_PX / 2.0);
                }
            }
        });
    }
    frame.finish()
}

/// Draws one stacked bar per parameter: the first-order index, then the share of its interactions. Negative
/// indices have no length.
pub(crate) fn stack(orders: &[Orders<'_>], response: &str) -> Drawing {
    let rows = ranked(orders);
    let most = rows.iter().map(|row| value(row.total).max(value(row.first))).fold(0.0, f64::max);
    let rounding = Rounding::fixed(3);
    let number = |row: &Orders<'_>| rounding.show(value(row.total) - value(row.first));
    let title = format!("First-order indices of {response}, and the additional share of total indices");
    let mut frame = Frame::new(&rows, [0.0, most], "T − S", 70.0, &title, response);
    let scale = frame.scale;
    let zero = scale.px(0.0);
    for (place, row) in rows.iter().enumerate() {
        let number = number(row);
        frame.row(place, row.name, &number, &format!("{}: T − S {number}", row.name), |drawing, middle| {
            let first = scale.px(value(row.first).max(0.0));
            let total = scale.px(value(row.total).max(0.0)).max(first);
            let top = middle - STACK_PX / 2.0;
            drawing.rect("up", [zero, top, first - zero, STACK_PX]);
            drawing.rect("together", [first, top, total - first, STACK_PX]);
        });
    }
    frame.finish()
}
