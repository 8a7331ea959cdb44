//! Heat map of the second-order indices of all pairs of parameters. Each cell shows its number, so the map is
//! readable without colors.

use crate::charts::svg::{Anchor, Drawing, shortened, text_width};
use crate::page::format_number::Rounding;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::vbd::VbdIndices;

/// Maximum parameters of a map: those with the largest total indices.
const MOST: usize = 16;

const CELL_PX: f64 = 44.0;
/// Height of a name that rises by 35°, as a share of its width: sin 35° ≈ 0.574.
const RISE: f64 = 0.58;
/// Minimum index for the darkest shade. If all indices are smaller, none is darkest.
const MIN_DARK: f64 = 0.05;
/// Number of the darkest shade, for the largest index. Shade 0 is an index of about 0.
const SHADES: f64 = 6.0;

/// Draws the map. `None` without second-order indices or if the response does not vary.
pub(crate) fn draw(indices: &VbdIndices) -> Option<Drawing> {
    let pairs = indices.pairs.as_ref().filter(|pairs| !pairs.is_empty() && !indices.no_variation)?;
    let total = |place: &usize| indices.parameters[*place].total.value.unwrap_or(0.0);
    let mut shown: Vec<usize> = (0..indices.parameters.len()).collect();
    shown.sort_by(|a, b| total(b).total_cmp(&total(a)));
    shown.truncate(MOST);
    let name = |place: usize| indices.parameters[place].name.as_str();
    let second = |one: usize, other: usize| {
        let (one, other) = (name(one.min(other)), name(one.max(other)));
        pairs.iter().find(|pair| pair.one == one && pair.other == other).map(|pair| &pair.second)
    };
    let seconds = pairs.iter().map(|pair| pair.second.value.unwrap_or(0.0));
    let largest = seconds.fold(MIN_DARK, f64::max);

    let longest = shown.iter().map(|&place| text_width(name(place))).fold(40.0, f64::max).min(150.0);
    let side = CELL_PX * shown.len() as f64;
    let (left, top) = (longest + 14.0, RISE * longest + 22.0);
    let title = format!("Second-order Sobol' indices of {}", indices.response);
    let mut drawing = Drawing::new((left + side + longest).max(420.0), top + side + 6.0, &title);
    for (row, &one) in shown.iter().enumerate() {
        let y = top + CELL_PX * row as f64;
        let middle = y + CELL_PX / 2.0 + 4.0;
        drawing.text("label", Anchor::End, [left - 8.0, middle], &shortened(name(one), longest));
        for (column, &other) in shown.iter().enumerate().skip(row) {
            let found = if row == column { Some(&indices.parameters[one].first) } else { second(one, other) };
            let Some(found) = found else { continue };
            let x = left + CELL_PX * column as f64;
            let note = match row == column {
                true => format!("{}: S {}", name(one), shown_with(found)),
                false => format!("{} × {}: S₂ {}", name(one), name(other), shown_with(found)),
            };
            drawing.noted(&note, |drawing| {
                let shade =
                    if row == column { "own".to_owned() } else { shade(found.value.unwrap_or(0.0), largest) };
                drawing.rect(&format!("cell {shade}"), [x + 1.0, y + 1.0, CELL_PX - 2.0, CELL_PX - 2.0]);
                let clear = found.value.zip(found.conf).is_some_and(|(value, conf)| value - conf > 0.0);
                let dark = ["shade-4", "shade-5", "shade-6"].contains(&shade.as_str());
                let class = format!(
                    "cell-number{}{}",
                    if clear { " clear" } else { "" },
                    if dark { " on-dark" } else { "" }
                );
                let number = Rounding::fixed(2).option(found.value);
                drawing.text(&class, Anchor::Middle, [x + CELL_PX / 2.0, middle], &number);
            });
        }
    }
    for (column, &place) in shown.iter().enumerate() {
        let x = left + CELL_PX * (column as f64 + 0.5);
        drawing.rising("label", [x, top - 7.0], &shortened(name(place), longest));
    }
    Some(drawing)
}

fn shown_with(of: &Estimate) -> String {
    let rounding = Rounding::fixed(4);
    format!("{} ± {}", rounding.option(of.value), rounding.option(of.conf))
}

/// Returns the class of a cell's shade.
fn shade(value: f64, largest: f64) -> String {
    // Values between −0.005 and 0 are shown as ≈0 and keep shade 0.
    if value <= -0.005 {
        return "below".to_owned();
    }
    let share = if largest > 0.0 { value.max(0.0) / largest } else { 0.0 };
    format!("shade-{}", (share * SHADES).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_of_the_largest() {
        assert_eq!(["shade-0", "shade-3", "shade-6"], [0.0, 0.2, 0.4].map(|value| shade(value, 0.4)));
        assert_eq!((shade(-0.1, 0.4).as_str(), shade(0.0, 0.0).as_str()), ("below", "shade-0"));
    }
}
