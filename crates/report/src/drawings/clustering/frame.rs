//! Page around a figure: background, heading, and a note on how to read it.

use crate::charts::svg::{Anchor, Drawing, shortened, text_width};

const MARGIN_PX: f64 = 16.0;
const HEAD_PX: f64 = 56.0;
/// Minimum width: notes are one line.
const MIN_WIDTH_PX: f64 = 640.0;

/// Returns the figure on its page, as the content of an SVG file.
pub(super) fn page(figure: Drawing, title: &str, note: &str) -> String {
    let [width, height] = figure.size();
    let (width, height) = ((width + 2.0 * MARGIN_PX).max(MIN_WIDTH_PX), height + HEAD_PX + MARGIN_PX);
    let mut page = Drawing::new(width, height, title);
    page.rect("paper", [0.0, 0.0, width, height]);
    page.text("title", Anchor::Start, [MARGIN_PX, 24.0], &shortened(title, width - 180.0));
    page.text("note", Anchor::Start, [MARGIN_PX, 42.0], note);
    page.put([MARGIN_PX, HEAD_PX], figure);
    page.finish_as_file(include_str!("../clustering.css"))
}

/// Draws the key: squares of these classes with their names, from a place to the right.
pub(super) fn key(drawing: &mut Drawing, [mut x, y]: [f64; 2], entries: &[(&str, &str)]) {
    for (class, name) in entries {
        drawing.rect(class, [x, y - 9.0, 12.0, 10.0]);
        drawing.text("label", Anchor::Start, [x + 17.0, y], name);
        x += 17.0 + text_width(name) + 18.0;
    }
}
