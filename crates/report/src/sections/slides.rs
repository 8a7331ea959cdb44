//! Section with overviews of the slides and their tiles, including those left out.
//!
//! Tiles left out are pale and crossed out, so that they are distinguishable in print. `pleach-study` cuts
//! slides into tiles and skips those without tissue.

use crate::Report;
use crate::gallery::overviews::Overview;
use crate::page::data_uri;
use crate::page::format_number::{count, counted};
use crate::page::html::{Html, figcaption, html, p, strong};
use pleach_workflow::{FitScope, Tiling};
use std::fmt::Write;

/// Maximum slides shown. More would make the page too large to send.
const MAX_SHOWN: usize = 24;

/// Returns the section. `None` for a study of tiles.
pub(crate) fn section(report: &Report<'_>) -> Option<Html> {
    let slides = report.study.slides.as_ref()?;
    let overviews = &report.gallery.slides;
    let mut text = String::from("Slides are processed in tiles");
    if slides.halo_px > 0 {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            ", each with a halo of {} px, so that objects on a border are complete; only pixels of the \
             tile’s core count, and objects with their centroid in it",
            count(slides.halo_px),
        );
    }
    text.push_str(match slides.tissue {
        Some(_) => ". Tiles without tissue were excluded; they are crossed out.",
        None => ". No tile was excluded.",
    });
    if report.study.normalization.as_ref().is_some_and(|of| of.scope == FitScope::Slide) {
        text.push_str(" Stain normalization is fitted to the tissue of each slide.");
    }
    let mut section = html![Html::of_class("p", "lead-in", text)];
    let figures = overviews.iter().take(MAX_SHOWN).map(|slide| figure(slide, slides.tiling));
    section.push(Html::of_class("div", "slides", figures.collect::<Html>()));
    if overviews.len() > MAX_SHOWN {
        section.push(p(format!("{} more slides are not shown.", count(overviews.len() - MAX_SHOWN))));
    }
    Some(section)
}

fn figure(slide: &Overview, tiling: Tiling) -> Html {
    let picture = match &slide.picture {
        Ok(jpeg) => {
            // Pixels of the picture per pixel of the slide, on each axis.
            let scale = [0, 1]
                .map(|axis| f64::from([jpeg.width, jpeg.height][axis]) / f64::from(slide.size_px[axis]));
            let size = [jpeg.width, jpeg.height].map(|side| side.to_string());
            let image = Html::shape(
                "image",
                &[("width", &size[0]), ("height", &size[1]), ("href", &data_uri::jpeg(&jpeg.bytes))],
            );
            let (skipped, taken) = (path(&slide.skipped, scale, true), path(&slide.taken, scale, false));
            let shapes = html![
                image,
                Html::shape("path", &[("class", "skipped"), ("d", &skipped)]),
                Html::shape("path", &[("class", "cut under"), ("d", &taken)]),
                Html::shape("path", &[("class", "cut"), ("d", &taken)]),
            ];
            let view = format!("0 0 {} {}", jpeg.width, jpeg.height);
            let label = format!("slide {} with its tiles", slide.name);
            let attributes =
                [("class", "slide"), ("role", "img"), ("aria-label", &*label), ("viewBox", &view)];
            Html::element("svg", &attributes, shapes)
        }
        Err(why) => p(format!("Not shown: {why}.")),
    };
    // Rounds to 2 decimals: a magnification derived from MPP has meaningless digits.
    let at = |at: f64| format!(" at {}x", (at * 100.0).round() / 100.0);
    let at = slide.magnification.map_or_else(String::new, at);
    let mut text = html![
        strong(&slide.name),
        format!(
            ": {} × {} px{at}, {} {}",
            count(slide.size_px[0]),
            count(slide.size_px[1]),
            counted(slide.taken.len(), "tile", "tiles"),
            match tiling {
                Tiling::Grid(side) => format!("of {} px", count(side)),
                Tiling::Regions => "that are regions of interest".to_owned(),
            },
        ),
    ];
    if !slide.skipped.is_empty() {
        text.push(format!(", {} excluded", count(slide.skipped.len())));
    }
    text.push(".");
    Html::element("figure", &[], html![picture, figcaption(text)])
}

/// Returns the path of rectangles, crossed out if `crossed`.
fn path(cores: &[[u32; 4]], scale: [f64; 2], crossed: bool) -> String {
    let mut path = String::new();
    for core in cores {
        let edge = |axis: usize, at: u32| (f64::from(at) * scale[axis] * 10.0).round() / 10.0;
        let (left, right) = (edge(0, core[0]), edge(0, core[0] + core[2]));
        let (top, bottom) = (edge(1, core[1]), edge(1, core[1] + core[3]));
        let _ = write!(path, "M{left} {top}H{right}V{bottom}H{left}z");
        if crossed {
            let _ = write!(path, "M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::gallery::Jpeg;
    use pleach_workflow::{Slides, TissueRule};

    #[test]
    fn tiles_are_drawn_where_they_are() {
        assert_eq!(path(&[[512, 0, 512, 100]], [0.5, 0.25], false), "M256 0H512V25H256z");
        assert!(path(&[[0, 0, 8, 8]], [1.0, 1.0], true).ends_with("zM0 0L8 8M8 0L0 8"));
    }

    #[test]
    fn slides_are_shown_with_what_was_left_out() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        assert!(section(&fixture.report()).is_none());
        let least = 0.01.try_into().unwrap();
        fixture.study.slides = Some(Slides {
            files: Vec::new(),
            magnification: None,
            tiling: Tiling::Grid(512),
            halo_px: 64,
            tissue: Some(TissueRule { least, saturation: None }),
        });
        let overview = |picture| Overview {
            name: "slide <1>".to_owned(),
            picture,
            size_px: [1024, 512],
            magnification: Some(20.0),
            taken: vec![[0, 0, 512, 512]],
            skipped: vec![[512, 0, 512, 512]],
        };
        let jpeg = Jpeg { bytes: vec![1], width: 100, height: 50 };
        fixture.gallery.slides = vec![overview(Ok(jpeg)), overview(Err("gone <away>".to_owned()))];
        let text = section(&fixture.report()).unwrap().into_string();
        for expected in [
            "<strong>slide &lt;1&gt;</strong>: 1024 × 512 px at 20x, 1 tile of 512 px, 1 excluded.",
            "class=\"skipped\" d=\"M50 0H100V50H50zM50 0L100 50M100 0L50 50\"",
            "Not shown: gone &lt;away&gt;.",
            "each with a halo of 64 px",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
