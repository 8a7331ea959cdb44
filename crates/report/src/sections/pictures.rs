//! Section with pictures of results: a tile with the outlines of the reference and of the default, the best
//! and the worst evaluation.
//!
//! Solid dark lines and dashed light lines are distinguishable without colors and in print. `gallery` selects
//! the evaluations and the window.

use crate::Report;
use crate::gallery::window::Window;
use crate::gallery::{Jpeg, ShownEvaluation, TilePictures};
use crate::page::data_uri;
use crate::page::format_number::{brief, capital, count};
use crate::page::html::{Html, figcaption, html, p, strong};
use crate::page::metric::Metric;
use pleach_pathology::outline::Loop;
use pleach_results::analysis::extremes::{Role, Setting};
use pleach_workflow::ReferenceSource;
use std::fmt::Write;

/// Maximum parameters named below a picture.
const MAX_MOVED: usize = 4;

/// Images with a longer side below 100 px show their pixels. Larger images are smoothed.
const PIXELS_PX: u32 = 100;

/// Returns the section.
pub(crate) fn section(report: &Report<'_>) -> Html {
    match &report.gallery.pictures {
        Ok(pictures) => shown(report, pictures),
        Err(why) => p(format!("Not shown: {why}.")),
    }
}

fn shown(report: &Report<'_>, pictures: &TilePictures) -> Html {
    let TilePictures { tile_px: [width, height], window, detail, .. } = pictures;
    let part = Canvas { width: window.width, height: window.height };
    let mut panels: Vec<(String, Html, Html)> = Vec::new();
    match &pictures.overview {
        Some(overview) => {
            let whole = Canvas { width: *width, height: *height };
            let picture = html![whole.image(overview, None), frame(window)];
            let text = format!(
                "{} × {} px; the frame marks the window of the other pictures",
                count(*width),
                count(*height)
            );
            panels.push(("Tile".to_owned(), whole.finish(picture), text.into()));
        }
        None => {
            let text = format!("{} × {} px", count(*width), count(*height));
            panels.push(("Tile".to_owned(), part.finish(part.image(detail, Some("detail"))), text.into()));
        }
    }
    // Embeds the image at its first use. Later uses refer to it by id.
    let reference = html![
        if pictures.overview.is_some() {
            part.image(detail, Some("detail"))
        } else {
            reuse("detail", "image")
        },
        outlines("outline-0", &pictures.reference),
        stroke("outline-0", SOLID),
    ];
    let text = match report.study.reference {
        ReferenceSource::Defaults => "the result at default parameters",
        ReferenceSource::Masks(_) => "the mask of the tile from the study file",
    };
    panels.push(("Reference".to_owned(), part.finish(reference), text.into()));
    for (place, evaluation) in pictures.shown.iter().enumerate() {
        let id = format!("outline-{}", place + 1);
        let picture = html![
            reuse("detail", "image"),
            stroke("outline-0", SOLID),
            outlines(&id, &evaluation.outlines),
            stroke(&id, DASHED),
        ];
        panels.push((title(report, &evaluation.roles), part.finish(picture), about(report, evaluation)));
    }
    let panels = panels.into_iter().zip('A'..).map(|((title, picture, text), letter)| {
        let below = html![strong(format!("{letter}. {title}:")), " ", text, "."];
        Html::of_class("div", "panel", html![picture, Html::of_class("p", "below", below)])
    });
    let panels = Html::of_class("div", "gallery", panels.collect::<Html>());
    let figure = html![panels, figcaption(caption(report, pictures))];
    let introduction = Html::of_class("p", "lead-in", introduction(report, pictures));
    html![introduction, Html::element("figure", &[], figure)]
}

fn introduction(report: &Report<'_>, pictures: &TilePictures) -> Html {
    let metric = Metric::of(report.study);
    let has = |role| pictures.shown.iter().any(|shown| shown.roles.iter().any(|(_, of)| *of == role));
    let ends = if !report.study.further.is_empty() {
        "the two extremes of each response"
    } else if has(Role::Best) {
        "the ones with the highest and the lowest agreement with the reference"
    } else if has(Role::Nearest) {
        "the nearest to the reference, which is the default itself, and the farthest"
    } else {
        "the ones with the highest and the lowest response"
    };
    let default = if has(Role::Default) { "the default parameters, and " } else { "" };
    let mut text = html![format!(
        "Executed once more: {default}{ends}, among the evaluations that have a response on every tile. "
    )];
    if report.study.tiles.len() > 1 {
        text.push(html![
            "The tile is ",
            strong(&pictures.tile),
            format!(
                ", where {} of evaluation {} departs most from the tile’s median.",
                metric.name,
                count(pictures.focus)
            ),
        ]);
    } else {
        text.push(html!["The tile is ", strong(&pictures.tile), "."]);
    }
    text
}

fn caption(report: &Report<'_>, pictures: &TilePictures) -> Html {
    let mut text = html![
        strong("The same window of the reference and of evaluations."),
        " ",
        key(SOLID),
        " reference, ",
        key(DASHED),
        " evaluation; where both coincide, the dashes cover the solid line. ",
    ];
    let Window { left, top, width, height } = pictures.window;
    if pictures.overview.is_some() {
        text.push(format!(
            "{} × {} px at full resolution, {} px from the left and {} px from the top: where evaluation {} and the \
             reference differ in most pixels. ",
            count(width),
            count(height),
            count(left),
            count(top),
            count(pictures.focus),
        ));
    }
    let masks = matches!(report.study.reference, ReferenceSource::Masks(_));
    if !masks {
        text.push(
            "Neither outline is ground truth: the reference is the result of the workflow at its \
                   defaults.",
        );
    }
    text
}

/// Returns the roles of an evaluation. With several responses, each role includes its response.
fn title(report: &Report<'_>, roles: &[(usize, Role)]) -> String {
    let metrics = &report.study.workflow.response.metrics;
    let name = |(metric, role): &(usize, Role)| match role {
        Role::Default => role.name().to_owned(),
        _ if report.study.further.is_empty() => role.name().to_owned(),
        _ => format!("{} {}", role.name(), metrics[*metric].0),
    };
    capital(&roles.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Returns the number of an evaluation, its responses and the parameters farthest from their defaults.
fn about(report: &Report<'_>, shown: &ShownEvaluation) -> Html {
    let number = |response: Option<f64>| response.map_or_else(|| "–".to_owned(), brief);
    let mut text = match shown.evaluation {
        0 => Html::from("not part of the sample. "),
        numbered => html![format!("evaluation {}. ", count(numbered))],
    };
    for of in &shown.responses {
        let metric = Metric::of_one(report.study, of.metric);
        text.push(format!("{} {}", capital(&metric.name), number(of.on_tile)));
        if report.study.tiles.len() > 1 {
            text.push(format!(" on this tile, {} {}", number(of.over_tiles), metric.aggregate_label()));
        }
        text.push(". ");
    }
    let most = &shown.moved[..shown.moved.len().min(MAX_MOVED)];
    if most.is_empty() {
        text.push("All parameters are at their defaults");
        return text;
    }
    text.push("Farthest from the defaults: ");
    for (place, Setting { name, value, default }) in most.iter().enumerate() {
        text.push(if place == 0 { "" } else { ", " });
        text.push(html![strong(name), format!("\u{a0}{value} (default\u{a0}{default})")]);
    }
    let others = shown.moved.len() - most.len();
    if others > 0 {
        text.push(format!("; {others} more differ"));
    }
    text
}

/// Drawing on an image. Its unit is half a pixel of the image, so that outlines have integer coordinates.
pub(super) struct Canvas {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Canvas {
    pub(super) fn image(&self, jpeg: &Jpeg, id: Option<&str>) -> Html {
        let (address, width, height) = (data_uri::jpeg(&jpeg.bytes), twice(self.width), twice(self.height));
        let class = if jpeg.width.max(jpeg.height) < PIXELS_PX { "pixels" } else { "smooth" };
        let mut attributes =
            vec![("class", class), ("width", &width), ("height", &height), ("href", &address)];
        attributes.extend(id.map(|id| ("id", id)));
        // The overview of a tile is rounded to whole pixels, so its aspect ratio differs slightly from the
        // tile's.
        attributes.push(("preserveAspectRatio", "none"));
        Html::shape("image", &attributes)
    }

    pub(super) fn finish(&self, content: Html) -> Html {
        let view = format!("0 0 {} {}", twice(self.width), twice(self.height));
        Html::element("svg", &[("class", "tile"), ("role", "img"), ("viewBox", &view)], content)
    }
}

fn twice(length: u32) -> String {
    (2 * u64::from(length)).to_string()
}

fn frame(window: &Window) -> Html {
    let [x, y, width, height] = [window.left, window.top, window.width, window.height].map(twice);
    let rect = |class| {
        let class = format!("outline {class}");
        Html::shape(
            "rect",
            &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)],
        )
    };
    html![rect("halo"), rect("window")]
}

/// Classes of a line: that of the wide line below it, and its own.
pub(super) type Line = [&'static str; 2];
pub(super) const SOLID: Line = ["halo", "solid"];
pub(super) const DASHED: Line = ["shade", "dashed"];

/// Defines outlines for [`stroke`].
pub(super) fn outlines(id: &str, loops: &[Loop]) -> Html {
    Html::element("defs", &[], Html::shape("path", &[("id", id), ("class", "outline"), ("d", &path(loops))]))
}

/// Draws the outlines `id` twice: a wide line for contrast with the image, and the line itself.
pub(super) fn stroke(id: &str, classes: Line) -> Html {
    classes.into_iter().map(|class| reuse(id, class)).collect()
}

pub(super) fn reuse(id: &str, class: &str) -> Html {
    Html::shape("use", &[("class", class), ("href", &format!("#{id}"))])
}

/// Returns a sample of a line for the caption.
fn key(classes: Line) -> Html {
    let line = classes.into_iter().map(|class| Html::shape("path", &[("class", class), ("d", "M2 6h36")]));
    let size = [
        ("class", "tile sample"),
        ("role", "img"),
        ("viewBox", "0 0 40 12"),
        ("width", "40"),
        ("height", "12"),
    ];
    Html::element("svg", &size, line.collect::<Html>())
}

/// Returns the path of loops through the middles of their pixel edges, in half pixels. A staircase becomes a
/// slope, and the outline deviates by less than a pixel. Relative coordinates keep the path short.
fn path(loops: &[Loop]) -> String {
    let mut path = String::new();
    for corners in loops {
        let next = corners.iter().cycle().skip(1);
        let middles = corners.iter().zip(next).flat_map(|(&[ax, ay], &[bx, by])| {
            let (dx, dy) = ((bx - ax).signum(), (by - ay).signum());
            let ends = [[2 * ax + dx, 2 * ay + dy], [2 * bx - dx, 2 * by - dy]];
            let long = ends[0] != ends[1];
            ends.into_iter().take(1 + usize::from(long))
        });
        let mut before: Option<[i32; 2]> = None;
        for [x, y] in middles {
            // Writing to a string cannot fail.
            let _ = match before {
                None => write!(path, "M{x} {y}l"),
                Some([fromx, fromy]) => write!(path, "{} {} ", x - fromx, y - fromy),
            };
            before = Some([x, y]);
        }
        path.truncate(path.trim_end().len());
        path.push('z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn outlines_cut_corners() {
        // One pixel, then two horizontal neighbors.
        assert_eq!(path(&[vec![[1, 0], [1, 1], [0, 1], [0, 0]]]), "M2 1l-1 1 -1 -1 1 -1z");
        assert_eq!(path(&[vec![[2, 0], [2, 1], [0, 1], [0, 0]]]), "M4 1l-1 1 -2 0 -1 -1 1 -1 2 0z");
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn results_are_shown_with_what_sets_them_apart() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        let text = section(&fixture.report()).into_string();
        for expected in [
            "B. Reference:</strong> the result at default parameters.",
            "C. Nearest:</strong> evaluation 7. Dice 0.812 on this tile, 0.800 mean over tiles. ",
            "D. Farthest:</strong> evaluation 70. Dice 0.112 on this tile",
            "<strong>G2</strong>\u{a0}4 (default\u{a0}45), <strong>G1</strong>\u{a0}5 (default\u{a0}80).",
            "All parameters are at their defaults.",
            "The tile is <strong>tile &amp; one</strong>, where",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        // The page embeds the overview, the detail image and the reference's outlines once each.
        assert_eq!(text.matches("href=\"data:").count(), 2);
        assert_eq!(text.matches("id=\"outline-0\"").count(), 1);
        assert_eq!(text.matches("href=\"#outline-0\"").count(), 6);

        fixture.gallery.pictures = Err("no <response>".to_owned());
        assert!(section(&fixture.report()).into_string().contains("Not shown: no &lt;response&gt;."));
    }
}
