//! Pictures of a study: outlines in the report, and previews of task outputs.

use crate::masks::{compare, mask};
use crate::pleach::pleach;
use crate::results::text;
use crate::study::Study;
use crate::tables::{Row, rows};
use crate::{run, segment};
use std::fs;
use std::path::Path;

/// Names of the previews in a result folder, sorted.
fn previews(study: &Study, out: &str) -> Vec<String> {
    let Ok(folder) = fs::read_dir(study.path(out).join("previews")) else { return Vec::new() };
    let mut names: Vec<String> =
        folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Evaluations and the tile of the previews of `t7`.
fn shown(names: &[String]) -> (Vec<usize>, String) {
    let masks = names.iter().filter_map(|name| name.strip_suffix("-segmentation-t7-mask.png"));
    let (evaluations, tiles): (Vec<usize>, Vec<&str>) = masks
        .filter_map(|name| name.split_once('-'))
        .map(|(evaluation, tile)| (evaluation.parse::<usize>().expect("a number"), tile))
        .unzip();
    (evaluations.into_iter().filter(|evaluation| *evaluation > 0).collect(), tiles[0].to_owned())
}

/// Mean response over the tiles, per evaluation.
fn means(study: &Study, out: &str, metric: &str) -> Vec<f64> {
    let responses = rows(&study.path(out).join("responses.csv"));
    let mean = |number: usize| {
        let own = responses.iter().filter(|row| row["evaluation"] == number.to_string());
        let values: Vec<f64> = own.map(|row| row[metric].parse().expect("a number")).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    (1..=rows(&study.path(out).join("samples.csv")).len()).map(mean).collect()
}

#[test]
fn previews_are_what_the_tasks_made() {
    let study = Study::of_tissue(128);
    run(&study, "out", &["--preview", "t7", "--preview", "t3", "--preview", "normalize"]);
    let names = previews(&study, "out");
    let (evaluations, tile) = shown(&names);
    assert_eq!((evaluations.len(), names.len()), (2, 3 * 4), "{names:?}");
    for (ending, colors) in [
        ("normalization-normalize-normalized", image::ColorType::Rgb8),
        ("segmentation-t3-diff", image::ColorType::L8),
        ("segmentation-t3-bw1", image::ColorType::L8),
        ("segmentation-t7-mask", image::ColorType::L8),
    ] {
        for evaluation in evaluations.iter().chain([&0]) {
            let name = format!("previews/{evaluation}-{tile}-{ending}.png");
            let image = image::open(study.path("out").join(&name)).expect("an image");
            assert_eq!((image.width(), image.height(), image.color()), (128, 128, colors), "{name}");
        }
    }

    // The previews show the extremes of the responses, and the reference.
    let means = means(&study, "out", "dice");
    let lowest = means.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(evaluations.iter().any(|evaluation| means[evaluation - 1] == lowest));
    let mask_of = |evaluation: usize| {
        mask(&study.path("out").join(format!("previews/{evaluation}-{tile}-segmentation-t7-mask.png")))
    };
    let reference = mask_of(0);
    let file = format!("tiles/{tile}.png");
    assert!(segment(&study, &file, &Row::new(), &["--normalize"]) == reference);
    let responses = rows(&study.path("out/responses.csv"));
    let samples = rows(&study.path("out/samples.csv"));
    for &evaluation in &evaluations {
        let found = mask_of(evaluation);
        assert!(segment(&study, &file, &samples[evaluation - 1], &["--normalize"]) == found);
        let own = |row: &&Row| row["evaluation"] == evaluation.to_string() && row["tile"] == tile;
        let mut row = responses.iter().find(own).expect("a response").clone();
        row.retain(|column, _| column != "evaluation" && column != "tile");
        assert_eq!(compare(&found, &reference), row, "evaluation {evaluation}");
    }
    assert!(previews_of_another_run_are_gone(&study));
}

/// Runs the study again without previews. Returns whether only the user's own file is left.
fn previews_of_another_run_are_gone(study: &Study) -> bool {
    study.write("out/previews/notes.png", "mine");
    run(study, "out", &["--overwrite"]);
    previews(study, "out") == ["notes.png"]
}

#[test]
fn the_reference_may_be_a_mask_of_people() {
    let study = Study::of_tissue(96);
    study.edit(&[("\"defaults\"", "\"tiles\""), ("\"dice\"", "\"pixel-difference\"")]);
    run(&study, "out", &["--preview", "t7"]);
    let (evaluations, tile) = shown(&previews(&study, "out"));
    // The defaults have a preview as well.
    assert_eq!((evaluations.len(), previews(&study, "out").len()), (2, 3));
    let means = means(&study, "out", "pixel-difference");
    let most = means.iter().copied().fold(0.0, f64::max);
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    for end in [most, least] {
        assert!(evaluations.iter().any(|evaluation| means[evaluation - 1] == end), "{end}");
    }
    // The best sets have the smallest differences, which are summed over the two tiles.
    let best = rows(&study.path("out/best.csv"));
    let values: Vec<f64> = best.iter().map(|row| row["value"].parse().expect("a number")).collect();
    assert!(values.len() == 10 && values.is_sorted() && values[0] <= 2.0 * least, "{values:?}, {least}");
    let page = text(&study.path("out/report.html"));
    assert!(page.contains("the mask of the tile from the study file") && page.contains(&tile));
}

#[test]
fn a_page_shows_outlines_and_is_the_same_again() {
    let study = Study::of_tissue(96);
    study.write("t.csv", "G1,G2\n80,45\n20,10\n60,30\n");
    // Removes values that depend on the machine or the clock: times, shares of time, memory.
    let lasting = |out: &str, options: &[&str]| {
        run(&study, out, &[&["--parameter-sets", "t.csv"][..], options].concat());
        let page = text(&study.path(out).join("report.html"));
        let (_, rest) = page.split_once(">Masks of selected evaluations</h2>").expect("pictures");
        rest.split_once("</section>").expect("its end").0.to_owned()
    };
    let first = lasting("a", &["--workers", "1"]);
    assert_eq!(lasting("b", &["--workers", "2", "--strategy", "none"]), first);
    // The first set equals the defaults, which are the reference.
    assert!(first.contains("<strong>C. Nearest:</strong> evaluation 1. Dice 1"), "the first set: {first}");
    assert!(first.contains("<strong>D. Farthest:</strong> evaluation 2. Dice "), "the second set");
    for expected in
        ["data:image/jpeg;base64,", "id=\"outline-2\"", "<strong>G2</strong>\u{a0}10 (default\u{a0}45)"]
    {
        assert!(first.contains(expected), "{expected}");
    }
    // A small tile is shown as a whole and embedded once.
    assert_eq!(first.matches("data:image/jpeg").count(), 1);
}

#[test]
fn without_a_complete_evaluation_there_is_nothing_to_show() {
    let study = Study::of_tissue(64);
    for tile in ["tissue_01", "tissue_02"] {
        let path = study.path(&format!("tiles/{tile}.png"));
        let whole = fs::read(&path).expect("a tile");
        fs::write(&path, &whole[..whole.len() / 2]).expect("a tile cut short");
    }
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--preview", "t7"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.stdout.ends_with("no previews: no evaluation has responses on all tiles\n"), "{answer:?}");
    assert!(previews(&study, "out").is_empty());
    let page = text(&study.path("out/report.html"));
    assert!(page.contains("Not shown: no evaluation has responses on all tiles."));
}

#[test]
fn failed_tiles_are_not_shown() {
    let study = Study::of_tissue(64);
    let path = study.path("tiles/tissue_01.png");
    let whole = fs::read(&path).expect("a tile");
    fs::write(&path, &whole[..whole.len() / 2]).expect("a tile cut short");
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--preview", "t1"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let told = format!("3 previews in {}\n", Path::new("out").join("previews").display());
    assert!(answer.stdout.ends_with(&told), "{answer:?}");
    // The task's second output is a table and has no preview.
    assert!(previews(&study, "out").iter().all(|name| name.ends_with("-tissue_02-segmentation-t1-rbc.png")));
}
