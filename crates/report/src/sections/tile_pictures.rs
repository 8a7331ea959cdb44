//! Section with pictures of each tile: the default, the best and the worst evaluation of the first response.

use crate::Report;
use crate::gallery::{ShownEvaluation, TilePictures};
use crate::page::format_number::{brief, capital, count};
use crate::page::html::{Html, html, strong};
use crate::page::metric::Metric;
use crate::sections::pictures::{Canvas, DASHED, SOLID, outlines, reuse, stroke};
use pleach_results::analysis::extremes::Role;

/// Returns the section. `None` if the gallery shows the only tile, or no tile can be shown.
pub(crate) fn section(report: &Report<'_>) -> Option<Html> {
    let all = &report.gallery.tiles;
    if all.rows.is_empty() {
        return None;
    }
    let rows = all.rows.iter().enumerate().map(|(number, pictures)| row(report, number, pictures));
    let rows: Html = rows.collect();
    Some(html![Html::of_class("p", "lead-in", introduction(report)), rows])
}

fn introduction(report: &Report<'_>) -> String {
    let metric = Metric::of(report.study);
    let all = &report.gallery.tiles;
    let mut text = format!(
        "The evaluations at the ends of {} over all tiles, on each tile: the solid line is the reference, the dashed line the \
         evaluation. The window is where the last evaluation and the reference differ most. ",
        metric.name
    );
    if all.left_out > 0 {
        text.push_str(&format!(
            "{} of {} tiles are shown, those where the evaluations differ most.",
            count(all.rows.len()),
            count(all.rows.len() + all.left_out)
        ));
    }
    text.trim_end().to_owned()
}

fn row(report: &Report<'_>, number: usize, pictures: &TilePictures) -> Html {
    let part = Canvas { width: pictures.window.width, height: pictures.window.height };
    let id = |name: &str| format!("tile-{number}-{name}");
    let (detail, reference) = (id("detail"), id("reference"));
    let panels = pictures.shown.iter().enumerate().map(|(place, shown)| {
        // Embeds the image and the reference at their first use. Later uses refer to them by id.
        let below = match place {
            0 => {
                html![part.image(&pictures.detail, Some(&detail)), outlines(&reference, &pictures.reference)]
            }
            _ => reuse(&detail, "image"),
        };
        let own = id(&format!("outline-{place}"));
        let picture =
            html![below, stroke(&reference, SOLID), outlines(&own, &shown.outlines), stroke(&own, DASHED),];
        let text = html![strong(format!("{}:", title(shown))), " ", about(report, shown)];
        Html::of_class("div", "panel", html![part.finish(picture), Html::of_class("p", "below", text)])
    });
    let panels = Html::of_class("div", "gallery three", panels.collect::<Html>());
    html![Html::element("h3", &[], pictures.tile.as_str()), Html::element("figure", &[], panels)]
}

fn title(shown: &ShownEvaluation) -> String {
    let names: Vec<&str> = shown.roles.iter().map(|(_, role)| role.name()).collect();
    capital(&names.join(", "))
}

fn about(report: &Report<'_>, shown: &ShownEvaluation) -> String {
    let number = |response: Option<f64>| response.map_or_else(|| "–".to_owned(), brief);
    let of = shown.responses.iter().find(|of| of.metric == report.study.metric);
    let name = capital(&Metric::of(report.study).name);
    let response = of.map_or_else(String::new, |of| format!("{name} {} on this tile", number(of.on_tile)));
    let is_default = shown.roles.iter().any(|(_, role)| *role == Role::Default);
    if is_default {
        format!("{response}.")
    } else {
        format!("{response}, evaluation {}.", count(shown.evaluation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::gallery::rows::TileRows;

    #[test]
    fn each_tile_has_a_row_with_ids_of_its_own() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        assert!(section(&fixture.report()).is_none());
        let rows = (0..2).map(|_| fixture::moat(&[]).gallery.pictures.unwrap()).collect();
        fixture.gallery.tiles = TileRows { rows, left_out: 3 };
        let text = section(&fixture.report()).unwrap().into_string();
        for expected in [
            "<h3>tile &amp; one</h3>",
            "id=\"tile-0-detail\"",
            "id=\"tile-1-detail\"",
            "<strong>Nearest:</strong> Dice 0.812 on this tile, evaluation 7.",
            "2 of 5 tiles are shown",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert_eq!(text.matches("href=\"data:").count(), 2);
    }
}
