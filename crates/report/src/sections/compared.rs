//! Section on the comparison with references: annotations outside their tiles, and runs with an empty mask
//! and an empty reference.

use crate::Report;
use crate::page::format_number::{count, counted, names};
use crate::page::html::{Html, Table, html, p};
use pleach_results::analysis::BothEmptyRuns;
use pleach_results::record::{AnnotatedTile, RunRecord, WeightRecord};

/// Maximum reference files in the table, those with most annotations outside first.
const MAX_FILES: usize = 20;
/// Tiles named before "and N more".
const MAX_TILES: usize = 6;

/// Returns the section. `None` without annotations and without empty runs.
pub(crate) fn section(report: &Report<'_>) -> Option<Html> {
    let run = report.run;
    let mut section = Html::default();
    if !run.annotations.is_empty() {
        section.push(annotations(&run.annotations));
    }
    section.push(tiles(run));
    run.both_empty.iter().for_each(|empty| section.push(both_empty(empty)));
    let is_plain = run.tiles_without_regions == 0 && run.weights.is_none();
    let is_empty = run.annotations.is_empty() && run.both_empty.is_empty() && is_plain;
    (!is_empty).then_some(section)
}

/// Describes the tiles that are left out, and the weights of the others.
fn tiles(run: &RunRecord) -> Html {
    let mut text = Html::default();
    if run.tiles_without_regions > 0 {
        text.push(p(format!(
            "{} of {} tiles are left out, because no region of interest has a pixel in them. On the other tiles, pixels \
             and objects outside all regions of interest do not count.",
            count(run.tiles_without_regions),
            count(run.tiles_without_regions + run.tiles.len())
        )));
    }
    if let Some(WeightRecord { by, pixels }) = &run.weights {
        let total: f64 = pixels.iter().sum();
        let share = |pixels: f64| if total > 0.0 { 100.0 * pixels / total } else { 0.0 };
        let (min, max) =
            pixels.iter().fold((f64::INFINITY, 0.0_f64), |(min, max), of| (min.min(*of), max.max(*of)));
        let area = if *by == "tissue" { "tissue" } else { "annotated area" };
        text.push(p(format!(
            "Means over tiles weigh each tile by its {area}: the lightest of {} tiles has {:.1} % of the total, the \
             heaviest {:.1} %.",
            count(pixels.len()),
            share(min),
            share(max)
        )));
    }
    text
}

fn annotations(files: &[AnnotatedTile]) -> Html {
    let sum = |of: fn(&AnnotatedTile) -> usize| files.iter().map(of).sum::<usize>();
    let all = sum(|file| file.annotations);
    let [outside, partly, unusable] =
        [sum(|file| file.outside), sum(|file| file.partly_outside), sum(|file| file.unusable)];
    let of_all = format!(
        "{} in {}. ",
        counted(all, "annotation", "annotations"),
        counted(files.len(), "reference file", "reference files")
    );
    if outside + partly + unusable == 0 {
        return html![p(format!("{of_all}All are inside their tiles.")), others(files)];
    }
    let text = p(format!(
        "{of_all}Outside their tiles and ignored: {}. Partly outside and clipped at the border: {}. Without \
         a pixel, because they are too small or covered by later ones: {}.",
        count(outside),
        count(partly),
        count(unusable),
    ));
    let mut of_note: Vec<&AnnotatedTile> =
        files.iter().filter(|file| file.outside + file.partly_outside + file.unusable > 0).collect();
    of_note.sort_by_key(|file| std::cmp::Reverse((file.outside, file.unusable, file.partly_outside)));
    let header = ["tile", "reference", "annotations", "outside", "partly outside", "without a pixel"];
    let caption = match of_note.len().saturating_sub(MAX_FILES) {
        0 => "Reference files with ignored or clipped annotations".to_owned(),
        others => format!(
            "The {MAX_FILES} reference files with the most ignored or clipped annotations; run.json has {} \
             more",
            count(others)
        ),
    };
    let mut table = Table::new("numbers", caption, header);
    for file in of_note.iter().take(MAX_FILES) {
        let numbers = [file.annotations, file.outside, file.partly_outside, file.unusable];
        let names = [Html::from(&file.tile), Html::from(&file.reference)];
        table.row(names.into_iter().chain(numbers.map(|number| count(number).into())));
    }
    html![text, others(files), table.finish()]
}

/// Describes the counts that most files have not.
fn others(files: &[AnnotatedTile]) -> Html {
    let words = [
        ("other_classes", "of classes that the study does not select"),
        ("without_area", "points, lines or without a geometry (left out)"),
        ("beyond_tiles", "on no tile of the study"),
        ("self_crossing", "with an outline that crosses itself (inside by the even-odd rule)"),
        ("stray_holes", "with a hole beyond the outline (cut off)"),
        ("regions", "regions of interest"),
    ];
    let sum = |name: &str| files.iter().filter_map(|file| file.others.get(name)).sum::<usize>();
    let counts = words.into_iter().map(|(name, words)| (sum(name), words)).filter(|(number, _)| *number > 0);
    let texts: Vec<String> = counts.map(|(number, words)| format!("{} {words}", count(number))).collect();
    if texts.is_empty() { Html::default() } else { p(format!("The files also have: {}.", texts.join("; "))) }
}

fn both_empty(found: &BothEmptyRuns) -> Html {
    let BothEmptyRuns { response, runs, of, tiles, left_out } = found;
    let mut text = html![
        format!(
            "Mask and reference are both empty in {} of {} runs, on {}: ",
            count(*runs),
            count(*of),
            counted(tiles.len(), "tile", "tiles")
        ),
        names(tiles.iter().map(String::as_str), MAX_TILES),
        format!(". By convention {response} is 1 in these runs. "),
    ];
    let key = |value: &str| Html::element("code", &[], format!("both_empty = \"{value}\""));
    text.push(if *left_out {
        html!["They are excluded from the mean over tiles (", key("leave-out"), ")."]
    } else {
        html![
            "The mean over tiles includes them; ",
            key("leave-out"),
            " in ",
            Html::element("code", &[], "[response]"),
            " excludes them."
        ]
    });
    p(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn file(tile: &str, numbers: [usize; 4]) -> AnnotatedTile {
        let [annotations, outside, partly_outside, unusable] = numbers;
        let reference = format!("{tile}.geojson");
        let (tile, others) = (tile.to_owned(), Default::default());
        AnnotatedTile { tile, reference, annotations, outside, partly_outside, unusable, others }
    }

    #[test]
    fn annotations_are_counted_by_file() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        assert!(section(&fixture.report()).is_none());
        fixture.run.annotations = vec![file("one", [40, 0, 0, 0]), file("<two>", [108, 1, 4, 2])];
        let text = section(&fixture.report()).unwrap().into_string();
        for expected in [
            "148 annotations in 2 reference files. Outside their tiles and ignored: 1.",
            "Partly outside and clipped at the border: 4.",
            "covered by later ones: 2.",
            "<td>108</td><td>1</td><td>4</td><td>2</td>",
            "&lt;two&gt;.geojson",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("one.geojson"), "nothing is to be said of it");
        fixture.run.annotations.truncate(1);
        let text = section(&fixture.report()).unwrap().into_string();
        assert!(text.contains("All are inside their tiles."), "{text}");
    }

    #[test]
    fn both_empty_runs_are_listed_with_the_remedy() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        let empty = BothEmptyRuns {
            response: "dice".to_owned(),
            runs: 160,
            of: 320,
            tiles: vec!["tile-two".to_owned()],
            left_out: false,
        };
        fixture.run.both_empty = vec![empty.clone()];
        let text = section(&fixture.report()).unwrap().into_string();
        assert!(
            text.contains("both empty in 160 of 320 runs, on 1 tile: <strong>tile-two</strong>"),
            "{text}"
        );
        assert!(text.contains("both_empty = &quot;leave-out&quot;</code> in"), "{text}");
        fixture.run.both_empty = vec![BothEmptyRuns { left_out: true, ..empty }];
        let text = section(&fixture.report()).unwrap().into_string();
        assert!(text.contains("They are excluded from the mean"), "{text}");
    }
}
