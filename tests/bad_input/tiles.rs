//! Tiles that are missing, are no images, or turn out to be corrupt during a study.

use crate::model::{check_moat, nuclei_ranges};
use crate::pleach::pleach;
use crate::pyramid::{AT_20, write_image};
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::rows;
use crate::{refused, refused_as, snapshot};
use std::fs;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "out"];
const PLAN: [&str; 2] = ["plan", "study.toml"];

/// Truncates a file after its header.
fn cut(study: &Study, name: &str) {
    let bytes = fs::read(study.path(name)).expect("a file");
    study.write(name, &bytes[..bytes.len() / 2]);
}

#[test]
fn missing_tiles_are_refused() {
    let study = Study::of_tissue(64);
    let refused = |tiles: &str, expected: &str| {
        study.edit(&[("[\"tiles/*.png\"]", tiles)]);
        refused(study.folder(), &RUN, &format!("study.toml: input.tiles: {expected}"));
        refused(study.folder(), &PLAN, &format!("study.toml: input.tiles: {expected}"));
    };
    refused("[\"tiles/tissue_09.png\"]", "tiles/tissue_09.png: no such file");
    refused("[\"tiles/tissue_01.png\", \"x\"]", "x: no such file");
    refused("[\"tiles/*.jpg\"]", "no file matches \"tiles/*.jpg\"");
    refused("[]", "an empty list is not allowed; allowed: at least one file or pattern");
    refused("\"tiles/*.png\"", "the text \"tiles/*.png\" has the wrong type; allowed: a list of texts");
    refused("[1]", "1 has the wrong type; allowed: a list of texts");
    refused("[\"tiles\"]", "tiles: a folder; files or a pattern such as \"tiles/*.png\" are allowed");
    fs::create_dir(study.path("folder.png")).expect("a folder made");
    refused(
        "[\"folder.png\"]",
        "folder.png: a folder; files or a pattern such as \"tiles/*.png\" are allowed",
    );
}

#[test]
fn non_image_tiles_are_refused() {
    let study = Study::of_tissue(64);
    let whole = fs::read(study.path("tiles/tissue_02.png")).expect("a tile");
    study.edit(&[("tiles/*.png", "tiles/tissue_02.png")]);
    for args in [&RUN[..], &PLAN] {
        study.write("tiles/tissue_02.png", "Dear diary\n");
        let text = "tiles/tissue_02.png: unknown image format; PNG, JPEG and TIFF are allowed";
        refused(study.folder(), args, text);
        study.write("tiles/tissue_02.png", "");
        let empty = "tiles/tissue_02.png: the file is empty; a PNG, JPEG or TIFF image is allowed";
        refused(study.folder(), args, empty);
        // Truncated within the header.
        study.write("tiles/tissue_02.png", &whole[..20]);
        refused_as(study.folder(), args, "tiles/tissue_02.png: corrupt or truncated image: ");
    }
    study.edit(&[]);
    study.write("tiles/tissue_01.png", "Dear diary\n");
    study.write("tiles/tissue_02.png", "Dear diary\n");
    let none = "tiles/tissue_01.png: unknown image format; PNG, JPEG and TIFF are allowed; none of the 2 \
                tiles can be read";
    refused(study.folder(), &RUN, none);
    refused(study.folder(), &PLAN, none);
}

#[test]
fn text_named_as_tile_fails_its_own_runs() {
    let study = Study::of_tissue(96);
    study.write("tiles/tissue_03.png", "Dear diary\n");
    let why = "tiles/tissue_03.png: unknown image format; PNG, JPEG and TIFF are allowed";
    let warning = format!("warning: {why}; all runs on this tile will fail\n");
    let planned = pleach(study.folder(), &PLAN);
    assert_eq!((planned.code, &planned.stderr), (0, &warning), "{planned:?}");
    let answer = pleach(study.folder(), &RUN);
    assert_eq!(answer.code, 3, "{answer:?}");
    let said = format!("{warning}warning: 32 of 96 runs failed, listed in out/failed.csv; the first: ");
    assert!(answer.stderr.starts_with(&said), "{answer:?}");
    let failed = rows(&study.path("out/failed.csv"));
    assert!(failed.len() == 32 && failed.iter().all(|row| row["tile"] == "tissue_03"), "{failed:?}");
    assert!(failed.iter().all(|row| row["cause"] == why), "{failed:?}");
    assert_eq!(json(&study.path("out/run.json"))["excluded_tiles"], serde_json::json!(["tissue_03"]));
    // The other tiles have the same results as in a study without the corrupt tile.
    fs::remove_file(study.path("tiles/tissue_03.png")).expect("removed");
    pleach(study.folder(), &["run", "study.toml", "--quiet", "--out", "without"]).done();
    for name in ["samples.csv", "responses.csv", "indices.json"] {
        assert_eq!(text(&study.path("without").join(name)), text(&study.path("out").join(name)), "{name}");
    }
}

#[test]
fn slides_among_tiles_are_refused_with_the_key_that_takes_them() {
    let study = Study::of_tissue(64);
    let pixels: Vec<u8> = (0..128 * 128).flat_map(|_| [180, 90, 160]).collect();
    // `a.svs` is recognized by its name, `b.tif` by its content.
    study.write("a.svs", "no slide, and no tile");
    write_image(&study.path("b.tif"), &pixels, 128, AT_20);
    let mut jpeg = fs::read(study.path("b.tif")).expect("a slide");
    let compression = [259_u16.to_le_bytes(), 3_u16.to_le_bytes()].concat();
    let at = jpeg.windows(4).position(|window| window == compression).expect("a field") + 12;
    // JPEG compression, which slides have and TIFF tiles may not have.
    jpeg[at] = 7;
    study.write("b.tif", jpeg);
    image::RgbImage::new(64, 64).save(study.path("c.png")).expect("saved");
    fs::rename(study.path("c.png"), study.path("c.mrxs")).expect("renamed");
    for name in ["a.svs", "b.tif", "c.mrxs"] {
        study.edit(&[("tiles/*.png", name)]);
        let said = format!(
            "study.toml: input.tiles: {name}: is a slide, and no tile; slides = [\"{name}\"] in place of tiles cuts it into \
             tiles"
        );
        refused(study.folder(), &RUN, &said);
        refused(study.folder(), &PLAN, &said);
        let said = format!(
            "{name}: a slide is not allowed; a tile is allowed (a study with slides = [\"{name}\"] segments it in tiles)"
        );
        refused(study.folder(), &["segment", name, "--out", "m.png"], &said);
    }
}

#[test]
fn corrupt_tile_is_excluded_and_the_rest_completes() {
    let study = Study::of_tissue(128);
    let more = ["tissue", "--out", "more", "--size", "96", "--count", "1", "--seed", "9"];
    pleach(study.folder(), &more).done();
    fs::rename(study.path("more/tissue_01.png"), study.path("tiles/tissue_00.png")).expect("a tile moved");
    let whole = fs::read(study.path("tiles/tissue_00.png")).expect("a tile");
    cut(&study, "tiles/tissue_00.png");
    for (strategy, out) in
        [("none", "out-none"), ("stage", "out-stage"), ("naive", "out-naive"), ("rtma", "out")]
    {
        let answer =
            pleach(study.folder(), &["run", "study.toml", "--quiet", "--out", out, "--strategy", strategy]);
        assert_eq!((answer.code, answer.stdout.as_str()), (3, ""), "{answer:?}");
        let said = format!(
            "warning: 32 of 96 runs failed, listed in {out}/failed.csv; the first: normalization, input: \
             tiles/tissue_00.png: corrupt or truncated image: "
        );
        assert!(answer.stderr.starts_with(&said) && answer.stderr.lines().count() == 1, "{answer:?}");
    }
    let samples = rows(&study.path("out/samples.csv"));
    let failed = rows(&study.path("out/failed.csv"));
    assert_eq!(failed.len(), 32);
    for (failed, sample) in failed.iter().zip(&samples) {
        assert_eq!((failed["tile"].as_str(), failed["stage"].as_str()), ("tissue_00", "normalization"));
        assert!(failed["cause"].contains("tissue_00.png: corrupt or truncated image"), "{failed:?}");
        // The failed run is listed with its parameters, so that it can be repeated.
        assert!(sample.iter().all(|(name, value)| failed[name] == *value), "{failed:?}");
    }
    let run = json(&study.path("out/run.json"));
    assert_eq!((&run["failed"], &run["runs"]), (&32.into(), &96.into()));
    assert_eq!(run["excluded_tiles"], serde_json::json!(["tissue_00"]));
    check_moat(&study.path("out"), "dice", &nuclei_ranges());
    assert!(study.path("out/report.html").is_file());
    for name in ["samples.csv", "responses.csv", "failed.csv", "indices.json", "indices.csv"] {
        for other in ["out-none", "out-stage", "out-naive"] {
            assert_eq!(
                text(&study.path(other).join(name)),
                text(&study.path("out").join(name)),
                "{other}/{name}"
            );
        }
    }

    // The results equal those of a study without the tile.
    study.edit(&[("tiles/*.png", "tiles/tissue_0[12].png")]);
    pleach(study.folder(), &["run", "study.toml", "--quiet", "--out", "without"]).done();
    for name in ["samples.csv", "responses.csv", "indices.json"] {
        assert_eq!(text(&study.path("without").join(name)), text(&study.path("out").join(name)), "{name}");
    }

    // With the repaired tile, a second run leaves no trace of the failure.
    study.edit(&[]);
    study.write("tiles/tissue_00.png", whole);
    let run = ["run", "study.toml", "--quiet", "--out", "out"];
    let kept = "--out out: holds results of this study, some runs of which failed; --resume runs those again, --overwrite \
                runs all again";
    refused(study.folder(), &run, kept);
    pleach(study.folder(), &[&run[..], &["--overwrite"]].concat()).done();
    assert_eq!(rows(&study.path("out/failed.csv")).len(), 0);
    assert_eq!(rows(&study.path("out/responses.csv")).len(), 96);
    assert_eq!(json(&study.path("out/run.json"))["excluded_tiles"], serde_json::json!([]));
}

#[test]
fn corrupt_reference_mask_excludes_its_tile() {
    let study = Study::of_tissue(96);
    study.edit(&[("\"defaults\"", "\"tiles\"")]);
    cut(&study, "tiles/tissue_02_labels.png");
    let answer = pleach(study.folder(), &["run", "study.toml", "--quiet", "--out", "out"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(
        answer.stderr.contains("comparison, input: tiles/tissue_02_labels.png: corrupt or truncated image"),
        "{answer:?}"
    );
    let failed = rows(&study.path("out/failed.csv"));
    assert!(failed.len() == 32 && failed.iter().all(|row| row["stage"] == "comparison"), "{failed:?}");
    assert_eq!(json(&study.path("out/run.json"))["excluded_tiles"], serde_json::json!(["tissue_02"]));
    check_moat(&study.path("out"), "dice", &nuclei_ranges());
}

#[test]
fn study_with_all_tiles_corrupt_lists_every_failed_run() {
    let study = Study::of_tissue(64);
    cut(&study, "tiles/tissue_01.png");
    cut(&study, "tiles/tissue_02.png");
    let answer = pleach(study.folder(), &[&RUN[..], &["--json"]].concat());
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(
        answer.stderr.starts_with("warning: 64 of 64 runs failed, listed in out/failed.csv; the first: "),
        "{answer:?}"
    );
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    // Standard output is still one JSON document.
    let printed: serde_json::Value = serde_json::from_str(&answer.stdout).expect("one JSON document");
    assert_eq!(printed, json(&study.path("out/run.json")));
    assert_eq!(printed["excluded_tiles"], serde_json::json!(["tissue_01", "tissue_02"]));
    assert_eq!(rows(&study.path("out/failed.csv")).len(), 64);
    assert_eq!(rows(&study.path("out/responses.csv")).len(), 0);
    let indices = json(&study.path("out/indices.json"));
    assert_eq!(indices["parameters"], serde_json::json!([]));
    let note = "all 2 trajectories lack responses; at least one complete trajectory is needed";
    assert_eq!(indices["note"], note);
    assert!(study.path("out/report.html").is_file());
    let parts = snapshot(&study.path("out"));
    assert!(parts.keys().all(|path| !path.to_string_lossy().contains(".part")), "{:?}", parts.keys());
}
