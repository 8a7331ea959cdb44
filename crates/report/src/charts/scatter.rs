//! Scatter plots of the response over each parameter, one panel per parameter, with the mean response along
//! the parameter.
//!
//! The variation of the mean line is the first-order effect of the parameter.

use crate::charts::axis;
use crate::charts::svg::{Anchor, Drawing, Scale, shortened};
use pleach_workflow::Domain;

/// Values of one parameter, one per evaluation.
#[derive(Clone, Copy, Debug)]
pub struct ScatterColumn<'a> {
    /// Name of the parameter: the label of its panel's axis.
    pub name: &'a str,
    /// Value of the parameter in each evaluation, in the order of the responses.
    pub values: &'a [f64],
    /// Values that the parameter can take.
    pub domain: &'a Domain,
}

/// Maximum panels of a page, those of the most influential parameters.
const MAX_PANELS: usize = 24;
/// Maximum points of a panel. More points would merge into a blot and make a file of megabytes.
const MAX_POINTS: usize = 1_000;
/// Maximum pieces of a parameter's range. The line joins the means of the pieces.
const PIECES: usize = 16;
/// Independent evaluations per piece, so that its mean is more than chance.
const OF_PIECE: usize = 20;
/// Minimum pieces of a line. Fewer show no trend.
const MIN_PIECES: usize = 5;
/// Up to this number of points in a panel, points are drawn larger.
const FEW: usize = 600;

const PANEL_PX: [f64; 2] = [260.0, 190.0];
const COLUMNS: usize = 3;
const LEFT_PX: f64 = 58.0;
const RIGHT_PX: f64 = 10.0;
const TOP_PX: f64 = 8.0;
const BOTTOM_PX: f64 = 44.0;
/// Gap between the axes and the first and last values, which are often levels.
const INSET_PX: f64 = 6.0;

/// Draws the figure. `parameters` are ordered by rank, `responses` has one entry per evaluation, and
/// `independent` is the number of independent evaluations. `None` without responses.
pub(crate) fn draw(
    parameters: &[ScatterColumn<'_>],
    responses: &[Option<f64>],
    independent: usize,
    response: &str,
) -> Option<Drawing> {
    let pieces = (independent / OF_PIECE).min(PIECES);
    let known: Vec<(usize, f64)> =
        responses.iter().enumerate().filter_map(|(row, value)| Some((row, (*value)?))).collect();
    let (least, most) = span(known.iter().map(|(_, value)| *value))?;
    let shown = &parameters[..parameters.len().min(MAX_PANELS)];
    let rows = shown.len().div_ceil(COLUMNS);
    let columns = shown.len().min(COLUMNS);
    let [width, height] = PANEL_PX;
    let title = format!("{response} over each parameter");
    let mut drawing = Drawing::new(width * columns as f64, height * rows as f64, &title);
    for (place, parameter) in shown.iter().enumerate() {
        let at = [width * (place % COLUMNS) as f64, height * (place / COLUMNS) as f64];
        drawing.put(at, panel(parameter, &known, [least, most], pieces, response)?);
    }
    Some(drawing)
}

fn span(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.fold(None, |span, number| {
        let (least, most) = span.unwrap_or((number, number));
        Some((f64::min(least, number), f64::max(most, number)))
    })
}

fn panel(
    parameter: &ScatterColumn<'_>,
    known: &[(usize, f64)],
    [least, most]: [f64; 2],
    pieces: usize,
    response: &str,
) -> Option<Drawing> {
    let [width, height] = PANEL_PX;
    let (right, bottom) = (width - RIGHT_PX, height - BOTTOM_PX);
    let points: Vec<[f64; 2]> = known.iter().map(|(row, value)| [parameter.values[*row], *value]).collect();
    let (low, high) = span(points.iter().map(|point| point[0]))?;
    let sides = [LEFT_PX + INSET_PX, right - INSET_PX];
    let (x, ticks) = axis::of_parameter(parameter.domain, [low, high], sides);
    let y = Scale::new(least, most, [bottom, TOP_PX], 4);
    let mut drawing = Drawing::new(width, height, &format!("{response} over {}", parameter.name));
    drawing.ticks_below(&x, &ticks, [TOP_PX, bottom]);
    drawing.axis_left(&y, [LEFT_PX, right]);
    drawing.line("base", [LEFT_PX, bottom, right, bottom]);
    drawing.line("base", [LEFT_PX, TOP_PX, LEFT_PX, bottom]);
    drawing.text(
        "label",
        Anchor::Middle,
        [(LEFT_PX + right) / 2.0, bottom + 33.0],
        &shortened(parameter.name, 180.0),
    );
    // Takes every n-th point, so that the same sample gives the same picture.
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let at = |point: &[f64; 2]| [x.px(point[0]), y.px(point[1])];
    let class = if points.len() <= FEW { "scattered few" } else { "scattered" };
    drawing.dots(class, points.iter().step_by(step).map(at));
    let means: Vec<[f64; 2]> = means(&points, [low, high], pieces).iter().map(at).collect();
    if means.len() > 2 {
        drawing.polyline("mean-under", &means);
        drawing.polyline("mean", &means);
    }
    Some(drawing)
}

/// Returns the mean value and the mean response of each piece of the range. Skips pieces with fewer than a
/// quarter of [`OF_PIECE`] points. Empty below [`MIN_PIECES`].
fn means(points: &[[f64; 2]], [low, high]: [f64; 2], pieces: usize) -> Vec<[f64; 2]> {
    if pieces < MIN_PIECES {
        return Vec::new();
    }
    let mut sums = vec![[0.0_f64; 3]; pieces];
    for [x, y] in points {
        let piece = ((x - low) / (high - low) * pieces as f64) as usize;
        let sum = &mut sums[piece.min(pieces - 1)];
        *sum = [sum[0] + x, sum[1] + y, sum[2] + 1.0];
    }
    let enough = sums.iter().filter(|sum| sum[2] >= OF_PIECE as f64 / 4.0);
    enough.map(|[x, y, count]| [x / count, y / count]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_pieces() {
        let points: Vec<[f64; 2]> =
            (0..640).map(|n| [f64::from(n) / 640.0, if n < 320 { 1.0 } else { 3.0 }]).collect();
        let found = means(&points, [0.0, 1.0], PIECES);
        assert_eq!(found.len(), PIECES);
        assert!(found[..7].iter().all(|mean| mean[1] == 1.0) && found[9..].iter().all(|mean| mean[1] == 3.0));
        assert_eq!(means(&[[0.0, 1.0]; 400], [0.0, 1.0], 4), [[0.0; 2]; 0]);
    }
}
