//! Bar chart of μ* per parameter, ranked, with intervals.

use crate::charts::svg::{Anchor, Drawing, Scale, shortened, text_width};
use crate::page::format_number::Rounding;
use crate::verdict::ranked;
use crate::verdict::{Direction, NEGLIGIBLE, largest};
use pleach_sensitivity::moat::{MoatIndices, MoatParameter};

/// Maximum bars on a printed page. The table holds all parameters.
pub(crate) const MAX_BARS: usize = 40;

const ROW_PX: f64 = 22.0;
const BAR_PX: f64 = 14.0;
const WIDTH_PX: f64 = 780.0;
const TOP_PX: f64 = 38.0;
/// Gap between the bars and the columns to their right.
const GAP_PX: f64 = 24.0;
const EFFECT_PX: f64 = 76.0;

/// Draws the figure.
pub(crate) fn draw(indices: &MoatIndices, response: &str) -> Drawing {
    let rows = &ranked(indices)[..indices.parameters.len().min(MAX_BARS)];
    let longest = rows.iter().map(|row| text_width(&row.name)).fold(60.0, f64::max).min(160.0);
    let most = rows.iter().map(|row| row.mu_star + row.mu_star_conf.unwrap_or(0.0)).fold(0.0, f64::max);
    let rounding = Rounding::of(most);
    let number = |row: &MoatParameter| {
        let spread = row.mu_star_conf.map_or_else(String::new, |conf| format!(" ± {}", rounding.show(conf)));
        format!("{}{spread}", rounding.show(row.mu_star))
    };
    // Two columns follow to the right of the bars: μ*, and the signed effect.
    let numbers = rows.iter().map(|row| text_width(&number(row))).fold(70.0, f64::max);
    let (left, right) = (longest + 12.0, WIDTH_PX - numbers - EFFECT_PX - GAP_PX);
    let bottom = TOP_PX + ROW_PX * rows.len() as f64 + 4.0;
    let title = format!("Bars of mu*, the mean size of each parameter's effect on {response}, ranked");
    let mut drawing = Drawing::new(WIDTH_PX, bottom + 44.0, &title);

    let scale = Scale::new(0.0, most, [left, right], 7);
    drawing.axis_below(&scale, [TOP_PX, bottom]);
    let axis = format!("μ*: mean change of {response} over the whole range");
    drawing.text("axis", Anchor::Middle, [(left + right) / 2.0, bottom + 37.0], &axis);
    let head = if rows.iter().any(|row| row.mu_star_conf.is_some()) { "μ* ± 95 %" } else { "μ*" };
    drawing.text("head", Anchor::Start, [right + GAP_PX, TOP_PX - 12.0], head);
    drawing.text("head", Anchor::End, [WIDTH_PX - 2.0, TOP_PX - 12.0], "effect");

    for (place, row) in rows.iter().enumerate() {
        let middle = TOP_PX + ROW_PX * (place as f64 + 0.5) + 2.0;
        let direction = Direction::of(row);
        let number = number(row);
        let effect = format!("{} {}", direction.glyph(), Rounding::fixed(3).signed(row.effect));
        drawing.noted(&format!("{}: μ* {number}, effect {effect}", row.name), |drawing| {
            drawing.text("label", Anchor::End, [left - 8.0, middle + 4.0], &shortened(&row.name, longest));
            let length = scale.px(row.mu_star) - left;
            drawing.rect(direction.class(), [left, middle - BAR_PX / 2.0, length, BAR_PX]);
            if let Some(conf) = row.mu_star_conf.filter(|conf| *conf > 0.0) {
                whisker(drawing, [scale.px(row.mu_star - conf), scale.px(row.mu_star + conf)], middle);
            }
            drawing.text("value", Anchor::Start, [right + GAP_PX, middle + 4.0], &number);
            drawing.text("value", Anchor::End, [WIDTH_PX - 2.0, middle + 4.0], &effect);
        });
    }
    let threshold = NEGLIGIBLE * largest(indices);
    if threshold > 0.0 {
        let x = scale.px(threshold);
        drawing.line("threshold", [x, TOP_PX - 6.0, x, bottom]);
        let label = format!("{:.0} % of the largest", NEGLIGIBLE * 100.0);
        drawing.text("note", Anchor::Start, [x - 2.0, TOP_PX - 12.0], &label);
    }
    drawing.line("base", [left, TOP_PX, left, bottom]);
    drawing
}

/// Draws an interval across a bar.
pub(crate) fn whisker(drawing: &mut Drawing, [from, to]: [f64; 2], middle: f64) {
    drawing.line("whisker", [from, middle, to, middle]);
    for end in [from, to] {
        drawing.line("whisker", [end, middle - 4.0, end, middle + 4.0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn one_bar_a_parameter_up_to_a_page() {
        for count in [1, 2, 40, 60] {
            let names: Vec<String> = (0..count).map(|n| format!("parameter-{n}")).collect();
            let parameters: Vec<_> = names.iter().map(|name| (name.as_str(), 0.1, 0.01)).collect();
            let fixture = fixture::moat(&parameters);
            let drawn = draw(fixture.analysis.moat().unwrap(), "Dice").finish().into_string();
            assert_eq!(drawn.matches("<rect").count(), count.min(MAX_BARS));
        }
    }
}
