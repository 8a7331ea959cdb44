//! Tiles, reference masks and workflows in the forms that users have.

use crate::masks::mask;
use crate::model::{check_moat, nuclei_ranges};
use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::{Row, rows};
use crate::{check_responses, compare, findings, run, segment};
use std::path::Path;

const TILES: [&str; 2] = ["tiles/tissue_01.png", "tiles/tissue_02.png"];

#[test]
fn masks_of_people_are_the_reference() {
    let study = Study::of_tissue(128);
    study.edit(&[("\"defaults\"", "\"tiles\"")]);
    run(&study, "out", &[]);
    let labels = |tile: &str| mask(&study.path(&tile.replace(".png", "_labels.png")));
    check_responses(&study, "out", &TILES, &[1, 14, 32], &["--normalize"], labels);
    check_moat(&study.path("out"), "dice", &nuclei_ranges());
    // The defaults run beside the sample. `extremes` lists them with the best and the worst evaluation, each equal to a
    // single run.
    assert!(json(&study.path("out/plan.json"))["reference_tasks"].as_u64() > Some(0));
    let record = json(&study.path("out/run.json"));
    let of = &record["extremes"][0];
    let roles: Vec<&str> =
        of["evaluations"].as_array().expect("roles").iter().filter_map(|one| one["role"].as_str()).collect();
    assert_eq!((of["response"].as_str(), roles), (Some("dice"), vec!["default", "best", "worst"]));
    let samples = rows(&study.path("out/samples.csv"));
    for one in of["evaluations"].as_array().expect("roles") {
        let number = one["evaluation"].as_u64().expect("a number") as usize;
        let sample = number.checked_sub(1).map_or_else(Row::new, |place| samples[place].clone());
        let dice = TILES.map(|tile| {
            let metrics = compare(&segment(&study, tile, &sample, &["--normalize"]), &labels(tile));
            metrics["dice"].parse::<f64>().expect("a number")
        });
        assert_eq!(one["value"].as_f64(), Some((dice[0] + dice[1]) / 2.0), "{one}");
    }
    let page = text(&study.path("out/report.html"));
    for expected in ["<h2>Default, best and worst</h2>", "C. Default:", "D. Best:", "E. Worst:"] {
        assert!(page.contains(expected), "{expected}");
    }
    each_tile_has_a_row_of_overlays(&page);
    let default = of["evaluations"][0]["value"].as_f64().expect("a value");
    check_best_sets(&study, &page, default, labels);
}

/// Checks the outlines of the default, the best and the worst evaluation on each tile.
fn each_tile_has_a_row_of_overlays(page: &str) {
    let (_, rest) = page.split_once("<h2>Default, best and worst on each tile</h2>").expect("the section");
    let (section, _) = rest.split_once("</section>").expect("its end");
    let rows: Vec<&str> = section.split("<h3>").skip(1).collect();
    assert_eq!(rows.len(), TILES.len(), "{section}");
    for (number, row) in rows.iter().enumerate() {
        assert!(row.starts_with(&format!("tissue_0{}</h3>", number + 1)), "{row}");
        for (place, role) in ["Default", "Best", "Worst"].iter().enumerate() {
            let outline = format!("<path id=\"tile-{number}-outline-{place}\" class=\"outline\" d=\"M");
            let title = format!("<strong>{role}:</strong> Dice ");
            assert!(row.contains(&outline) && row.matches(&title).count() == 1, "{role}: {row}");
        }
    }
}

/// Checks `best.csv` and the settings of the report: the ten best of all evaluations, the highest Dice first. The settings of the
/// tenth give its Dice.
fn check_best_sets(study: &Study, page: &str, default: f64, labels: impl Fn(&str) -> Vec<bool>) {
    let (samples, responses) = (rows(&study.path("out/samples.csv")), rows(&study.path("out/responses.csv")));
    let number = |row: &Row, column: &str| row[column].parse::<f64>().expect("a number");
    let means =
        responses.chunks_exact(2).map(|tiles| (number(&tiles[0], "dice") + number(&tiles[1], "dice")) / 2.0);
    let mut expected: Vec<(usize, f64)> = std::iter::once(default).chain(means).enumerate().collect();
    // On ties, the first evaluation precedes.
    expected.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    expected.truncate(10);
    let best = rows(&study.path("out/best.csv"));
    let found: Vec<(usize, f64)> =
        best.iter().map(|row| (number(row, "evaluation") as usize, number(row, "value"))).collect();
    assert_eq!(found, expected);
    for (place, row) in best.iter().enumerate() {
        assert_eq!((row["response"].as_str(), number(row, "rank")), ("dice", (place + 1) as f64));
        let sample = found[place].0.checked_sub(1).map(|evaluation| &samples[evaluation]);
        let is_equal = |(name, value): (&String, &String)| name == "evaluation" || row[name] == *value;
        assert!(sample.is_none_or(|sample| sample.iter().all(is_equal)), "{row:?}");
    }
    let (_, rest) = page.split_once("<ol class=\"settings\">").expect("settings");
    let (settings, _) = rest.split_once("</ol>").expect("their end");
    let settings: Vec<&str> = settings.split("<li><code>").skip(1).collect();
    assert_eq!(settings.len(), 10);
    let (options, _) = settings[9].split_once("</code>").expect("options");
    let setting = |option: &str| {
        let (name, value) = option.trim().split_once('=').expect("a setting");
        (name.to_owned(), value.to_owned())
    };
    let set: Row = options.split("--set ").skip(1).map(setting).collect();
    assert!(!set.is_empty(), "{options}");
    let masks = compare(&segment(study, TILES[0], &set, &["--normalize"]), &labels(TILES[0]));
    assert_eq!(masks["dice"], responses[(found[9].0 - 1) * TILES.len()]["dice"], "{options}");
}

/// The run at the defaults serves comparison only and changes no result.
#[test]
fn defaults_beside_the_sample_leave_its_results_alone() {
    let study = Study::of_tissue(64);
    study.edit(&[("\"defaults\"", "\"tiles\"")]);
    let first = findings(&study, "one", &["--workers", "2"]);
    assert_eq!(findings(&study, "two", &["--strategy", "none", "--workers", "1"]), first);
    assert_eq!(rows(&study.path("one/responses.csv")).len(), 32 * 2);
    // Default values outside an operation's range are refused as all other values are.
    let metric = "metric = \"dice\"\n";
    let broken = format!("{metric}[parameters.FillHoles]\nvalues = [4, 8]\ndefault = 5\n");
    study.edit(&[("\"defaults\"", "\"tiles\""), (metric, &broken)]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "three", "--quiet"]);
    assert!(refused.code == 2 && refused.stderr.contains("parameters.FillHoles.default: 5"), "{refused:?}");
}

#[test]
fn masks_named_like_their_tiles_are_the_reference() {
    let study = Study::of_tissue(96);
    let by_defaults = findings(&study, "defaults", &[]);
    std::fs::create_dir(study.path("masks")).expect("a folder made");
    for tile in TILES {
        segment(&study, tile, &Row::new(), &["--normalize"]);
        std::fs::rename(study.path("mask.png"), study.path(&tile.replace("tiles", "masks")))
            .expect("a file moved");
    }
    study.edit(&[("\"defaults\"", "\"masks\"")]);
    assert_eq!(findings(&study, "masks-1", &[]), by_defaults);
    assert_eq!(findings(&study, "masks-2", &["--strategy", "none"]), by_defaults);
}

#[test]
fn tiles_may_differ_in_size_and_format() {
    let study = Study::of_tissue(96);
    let small = ["tissue", "--out", "more", "--size", "70", "--count", "1"];
    pleach(study.folder(), &small).done();
    let tile = image::open(study.path("more/tissue_01.png")).expect("a tile");
    // A tile that is not square, in another format, with an extension that does not show it.
    tile.crop_imm(0, 0, 70, 41)
        .save_with_format(study.path("tiles/wide.tile"), image::ImageFormat::Tiff)
        .expect("saved");
    study.edit(&[("\"tiles/*.png\"", "\"tiles/*.png\", \"tiles/wide.tile\", \"more/tissue_01.png\"")]);
    let merged = findings(&study, "rtma", &["--workers", "2"]);
    assert_eq!(findings(&study, "none", &["--strategy", "none", "--workers", "1"]), merged);
    // Two tiles with the same name are distinguished by their folders.
    let tiles = ["more/tissue_01.png", "tiles/tissue_01.png", "tissue_02", "wide"];
    let named: Vec<String> =
        rows(&study.path("rtma/responses.csv")).iter().take(4).map(|row| row["tile"].clone()).collect();
    assert_eq!(named, tiles);
    assert_eq!(json(&study.path("rtma/run.json"))["tiles"], serde_json::json!(tiles));
    check_moat(&study.path("rtma"), "dice", &nuclei_ranges());
}

#[test]
fn a_workflow_from_files_is_the_built_in_one() {
    let study = Study::of_tissue(96);
    let built_in = findings(&study, "built-in", &[]);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pathology/descriptors/nuclei");
    for name in [
        "workflow.json",
        "normalization.json",
        "segmentation.json",
        "comparison.json",
        "object-comparison.json",
    ] {
        study.write(&format!("workflow/{name}"), text(&shipped.join(name)));
    }
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"workflow/workflow.json\"")]);
    assert_eq!(findings(&study, "from-files", &[]), built_in);

    // The study reads the file: another range gives other samples.
    let edited =
        text(&study.path("workflow/segmentation.json")).replace("\"range\": [5, 80]", "\"range\": [5, 50]");
    study.write("workflow/segmentation.json", edited);
    run(&study, "edited", &[]);
    let samples = rows(&study.path("edited/samples.csv"));
    assert!(samples.iter().all(|row| {
        ["G1", "minSizePl"].iter().all(|name| row[*name].parse::<u32>().is_ok_and(|value| value <= 50))
    }));
}

#[test]
fn run_prints_ranking_and_summary() {
    let study = Study::of_tissue(64);
    let table = pleach(study.folder(), &["run", "study.toml", "--out", "a"]).done();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "parameters by their influence on dice", "{table}");
    assert!(lines[1].starts_with("parameter ") && lines[17].is_empty(), "{table}");
    assert_eq!(lines[lines.len() - 1], "results in a; open a/report.html");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
    // The summary agrees with `run.json`.
    let run = json(&study.path("a/run.json"));
    let number = |name: &str| {
        let row = lines[18..].iter().find_map(|line| line.trim_start().strip_prefix(name));
        let number = row.and_then(|row| row.trim_start().split("  ").next());
        number.unwrap_or_else(|| panic!("{name}: {table}")).replace(' ', "")
    };
    for (name, value) in [
        ("evaluations", &run["evaluations"]),
        ("runs", &run["runs"]),
        ("failed", &run["failed"]),
        ("executed", &run["tasks_executed"]),
        ("reused by stage", &run["tasks_reused"]["stage"]),
        ("reused by tree", &run["tasks_reused"]["tree"]),
    ] {
        assert_eq!(number(name), value.to_string(), "{name}");
    }
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "b", "--json"]).done();
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("one JSON document");
    assert_eq!(printed, json(&study.path("b/run.json")));
    // The page refers to no other file.
    let page = text(&study.path("a/report.html"));
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    assert!(!page.contains("src=\"http") && !page.contains("<link") && page.contains("nuclei-moat"));
}

/// Paths of a study refer to its folder, independent of the current folder.
#[test]
fn a_study_is_the_same_from_another_folder() {
    let study = Study::of_tissue(64);
    run(&study, "out", &[]);
    let first = text(&study.path("out/responses.csv"));
    let again = ["run", "../study.toml", "--out", "../out", "--quiet", "--overwrite"];
    pleach(&study.path("tiles"), &again).done();
    assert_eq!(text(&study.path("out/responses.csv")), first);
}
