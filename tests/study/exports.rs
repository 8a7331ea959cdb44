//! `pleach export` and `pleach apply`: files of one evaluation, and of chosen parameters on other images.

use crate::masks::mask;
use crate::pleach::pleach;
use crate::pyramid::{AT_20, write_image};
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::{Row, rows};
use crate::{run, segment};
use flate2::read::GzDecoder;
use pleach_tables::{Column, ColumnRequest, Table};
use serde_json::Value;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use tiff::decoder::{Decoder, DecodingResult};

const TILES: [&str; 2] = ["tissue_01", "tissue_02"];

/// Side of a chunk of an OME-Zarr label image, pixels.
const CHUNK_PX: usize = 1_024;

/// The row of the best evaluation in `best.csv`, as the settings of `pleach segment`.
fn best(study: &Study) -> Row {
    let mut best = rows(&study.path("out/best.csv")).swap_remove(0);
    assert_eq!((best["rank"].as_str(), best["response"].as_str()), ("1", "dice"));
    let run = json(&study.path("out/run.json"));
    let extremes = run["extremes"][0]["evaluations"].as_array().expect("evaluations");
    let of_run = extremes.iter().find(|one| one["role"] == "best").expect("a best evaluation");
    assert_eq!(
        (of_run["evaluation"].to_string(), of_run["value"].to_string()),
        (best["evaluation"].clone(), best["value"].clone())
    );
    ["rank", "response", "evaluation", "value"].iter().for_each(|column| drop(best.remove(*column)));
    best
}

#[test]
fn best_evaluation_is_exported_and_applied_to_other_images() {
    let study = Study::of_tissue(96);
    study.edit(&[("reference = \"defaults\"", "reference = \"tiles\"")]);
    run(&study, "out", &["--cache", "cache"]);
    let best = best(&study);
    let export = |options: &str| {
        let all = format!("export study.toml --evaluation best --results out {options}");
        pleach(study.folder(), &all.split(' ').collect::<Vec<_>>())
    };
    let printed = export("--as masks,geojson,csv --out best").done();
    let objects: usize =
        ["01", "02"].iter().map(|tile| rows(&study.path(&format!("best/tissue_{tile}.csv"))).len()).sum();
    assert_eq!(printed, format!("best: 2 images, {objects} objects as masks, geojson, csv\n"));
    for tile in ["tissue_01", "tissue_02"] {
        let expected = segment(&study, &format!("tiles/{tile}.png"), &best, &["--normalize"]);
        assert!(mask(&study.path(&format!("best/{tile}_mask.png"))) == expected, "{tile}");
    }
    // The cache has the same masks, and a broken cache entry cannot be taken for a result.
    export("--as masks,geojson --out cached --cache cache --quiet").done();
    for file in ["tissue_01_mask.png", "tissue_02.geojson"] {
        let [best, cached] =
            ["best", "cached"].map(|out| fs::read(study.path(out).join(file)).expect("a file"));
        assert!(best == cached, "{file}");
    }

    // Other files. One is no image.
    fs::create_dir(study.path("more")).expect("a folder");
    fs::copy(study.path("tiles/tissue_02.png"), study.path("more/a.png")).expect("a copy");
    study.write("more/b.png", "no image");
    let apply = |options: &str| {
        let all = format!(
            "apply study.toml more --evaluation best --results out --as masks,csv --out cohort {options}"
        );
        pleach(study.folder(), &all.split_whitespace().collect::<Vec<_>>())
    };
    let first = apply("");
    assert_eq!(first.code, 3, "{first:?}");
    assert!(
        first
            .stderr
            .starts_with("warning: 1 of 2 images failed, listed in cohort/failed.csv; the first: b: ")
    );
    assert_eq!(rows(&study.path("cohort/failed.csv"))[0]["image"], "b");
    let at_first = fs::read(study.path("cohort/a_mask.png")).expect("a mask");
    assert!(at_first == fs::read(study.path("best/tissue_02_mask.png")).expect("a mask"));
    // The study's own tiles are not needed. A finished image is not segmented again: its file may be gone bad.
    fs::rename(study.path("tiles"), study.path("gone")).expect("renamed");
    fs::copy(study.path("gone/tissue_01.png"), study.path("more/b.png")).expect("a copy");
    study.write("more/a.png", "no image");
    for (options, message) in [
        ("", "error: --out cohort: holds an export; --resume continues it, and --overwrite replaces it"),
        ("--resume --set G1=60", "error: --out cohort: holds an export with another evaluation;"),
        ("--resume --gzip", "error: --out cohort: holds an export with another gzip;"),
    ] {
        let refused = apply(options);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
    let printed = apply("--resume").done();
    assert!(printed.starts_with("cohort: 2 images (1 complete before), "), "{printed}");
    assert!(!study.path("cohort/failed.csv").exists());
    let printed: serde_json::Value =
        serde_json::from_str(&apply("--overwrite --json").stdout).expect("one JSON document");
    assert_eq!(
        (printed["images"][0]["image"].as_str(), printed["failed"][0]["image"].as_str()),
        (Some("b"), Some("a"))
    );
}

#[test]
fn evaluations_are_exported_in_all_formats_and_changed_values_are_applied() {
    let study = Study::of_tissue(192);
    // The first set has the defaults.
    study.write("sets.csv", "G1,G2\n80,45\n60,30\n40,12\n");
    let sets = ("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"table\"\nfile = \"sets.csv\"");
    study.edit(&[("reference = \"defaults\"", "reference = \"tiles\""), sets]);
    run(&study, "out", &[]);
    let number = rows(&study.path("out/best.csv")).swap_remove(0)["evaluation"].clone();
    let masks = |command: &str, out: &str| {
        let all = format!("{command} --out {out} --quiet");
        pleach(study.folder(), &all.split(' ').collect::<Vec<_>>()).done();
        TILES.map(|tile| mask(&study.path(&format!("{out}/{tile}_mask.png"))))
    };
    let formats = "--as masks,geojson,csv,parquet,ome-zarr,ome-tiff --gzip --mpp 0.25";
    let best = masks(&format!("export study.toml --evaluation best --results out {formats}"), "best");
    let of_number = |number: &str| {
        let command = format!("export study.toml --evaluation {number} --results out --as masks");
        masks(&command, &format!("evaluation-{number}"))
    };
    assert!(best == of_number(&number), "evaluation {number}");
    let defaults = masks("export study.toml --evaluation default --as masks", "defaults");
    assert!(defaults == of_number("1"), "the first set has the defaults");
    assert!(best != defaults, "evaluation {number}");
    let changed = masks("apply study.toml tiles --set G1=60 --as masks", "changed");
    let set = Row::from([("G1".to_owned(), "60".to_owned())]);
    for (place, tile) in TILES.iter().enumerate() {
        let expected = segment(&study, &format!("tiles/{tile}.png"), &set, &["--normalize"]);
        assert!(changed[place] == expected && changed[place] != defaults[place], "{tile}");
        formats_agree(&study.path("best"), tile, &best[place]);
    }
}

/// Reads the files of an image that a command wrote, and compares them with its mask and with each other.
fn formats_agree(folder: &Path, image: &str, mask: &[bool]) {
    let labels = labels(folder, image);
    assert!(labels.iter().map(|label| *label > 0).eq(mask.iter().copied()), "{image}");
    let count = labels.iter().copied().max().unwrap_or(0) as usize;
    let mut areas = vec![0.0; count];
    labels.iter().filter(|label| **label > 0).for_each(|label| areas[*label as usize - 1] += 1.0);
    assert!(count > 2 && areas.iter().all(|area| *area > 0.0), "{image}: {areas:?}");

    let table = rows(&folder.join(format!("{image}.csv")));
    let parquet = folder.join(format!("{image}.parquet"));
    let names = Table::open(&parquet).expect("a table").names().expect("names").to_vec();
    assert_eq!((names.len(), table.len()), (table[0].len(), count), "{image}");
    for (place, name) in names.iter().enumerate() {
        let texts: Vec<&str> = table.iter().map(|row| row[name].as_str()).collect();
        let is_text = ["image", "class"].contains(&name.as_str());
        let request = if is_text { ColumnRequest::Labels(place) } else { ColumnRequest::Numbers(place) };
        let mut data = Table::open(&parquet).expect("a table").read(&[request]).expect("a column");
        match data.columns.swap_remove(0) {
            Column::Numbers(found) => {
                let numbers: Vec<f64> = texts.iter().map(|text| text.parse().expect("a number")).collect();
                assert_eq!(found, numbers, "{image}: {name}");
                assert!(name != "area_px" || found == areas, "{image}: {found:?}");
            }
            Column::Labels { texts: found, of } => {
                let found: Vec<&str> = of.iter().map(|text| found[*text as usize].as_str()).collect();
                assert_eq!(found, texts, "{image}: {name}");
            }
        }
    }

    let file = File::open(folder.join(format!("{image}.geojson.gz"))).expect("a file");
    let outlines: Value = serde_json::from_reader(GzDecoder::new(file)).expect("GeoJSON in gzip");
    let features = outlines["features"].as_array().expect("features");
    let measured = |name: &str| -> Vec<f64> {
        features.iter().filter_map(|feature| feature["properties"]["measurements"][name].as_f64()).collect()
    };
    assert_eq!(measured("Label"), (1..=count).map(|label| label as f64).collect::<Vec<_>>(), "{image}");
    assert_eq!(measured("Area px^2"), areas, "{image}");
}

/// Labels of an OME-TIFF, row by row. The OME-Zarr of the image has the same in one chunk.
fn labels(folder: &Path, image: &str) -> Vec<u32> {
    let file = File::open(folder.join(format!("{image}.ome.tif"))).expect("a file");
    let mut decoder = Decoder::new(BufReader::new(file)).expect("a TIFF");
    let (width, height) = decoder.dimensions().expect("a size");
    let DecodingResult::U32(labels) = decoder.read_image().expect("pixels") else {
        panic!("{image}: other than 32 bits");
    };
    let array = folder.join(format!("{image}.ome.zarr/labels/nuclei/0"));
    assert_eq!(json(&array.join("zarr.json"))["shape"], serde_json::json!([height, width]));
    let chunk = fs::read(array.join("c/0/0")).expect("a chunk");
    let chunk = zstd::bulk::decompress(&chunk, CHUNK_PX * CHUNK_PX * 4).expect("zstd");
    let (width, height) = (width as usize, height as usize);
    let row = |row: usize| chunk[row * CHUNK_PX * 4..][..width * 4].as_chunks::<4>().0.iter();
    assert!(
        (0..height).flat_map(row).map(|word| u32::from_le_bytes(*word)).eq(labels.iter().copied()),
        "{image}"
    );
    labels
}

#[test]
fn objects_of_a_slide_are_those_of_its_responses() {
    let study = Study::of_tissue(256);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    fs::create_dir(study.path("slides")).expect("a folder");
    write_image(&study.path("slides/s.svs"), tissue.as_raw(), 256, AT_20);
    study.edit(&[
        (
            "tiles = [\"tiles/*.png\"]",
            "slides = [\"slides/*.svs\"]\nmagnification = 10\ntile = 64\nhalo = 32",
        ),
        ("\"dice\"", "\"nuclei\""),
        ("trajectories = 2", "trajectories = 1"),
    ]);
    run(&study, "nuclei-moat", &[]);
    let counts = rows(&study.path("nuclei-moat/responses.csv"));
    let of_first = counts.iter().filter(|row| row["evaluation"] == "1");
    let expected: f64 = of_first.map(|row| row["nuclei"].parse::<f64>().expect("a number")).sum();
    let options = "export study.toml --evaluation 1 --as csv,geojson,labels --out first --class Tumor";
    pleach(study.folder(), &options.split(' ').collect::<Vec<_>>()).done();
    let objects = rows(&study.path("first/s.csv"));
    assert!(expected > 3.0 && objects.len() as f64 == expected, "{} {expected}", objects.len());
    // Slide pixels are half a micrometer; those of the segmentation are twice as large.
    for object in &objects {
        let number = |column: &str| object[column].parse::<f64>().expect("a number");
        assert!((0.0..256.0).contains(&number("x_px")) && number("area_px") % 4.0 == 0.0, "{object:?}");
        assert!((number("x_um") - 0.5 * number("x_px")).abs() < 1e-9, "{object:?}");
        assert!((number("area_um2") - 0.25 * number("area_px")).abs() < 1e-9, "{object:?}");
    }
    assert!(objects.iter().any(|object| object["right_px"].parse::<f64>().expect("a number") > 128.0));
    let outlines = text(&study.path("first/s.geojson"));
    assert_eq!(outlines.matches("\"name\":\"Tumor\"").count(), objects.len());
    // The results are of a study with the result at the defaults as its reference.
    let none = pleach(
        study.folder(),
        &["export", "study.toml", "--evaluation", "best", "--as", "csv", "--out", "x"],
    );
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("--evaluation best: "), "{none:?}");
    assert!(!study.path("x").exists() && !study.path("nuclei-moat/best.csv").exists());
}

#[test]
fn invalid_requests_are_refused_before_anything_is_written() {
    let study = Study::of_tissue(64);
    fs::create_dir(study.path("empty")).expect("a folder");
    for (options, message) in [
        (
            "export study.toml --as svg --out x",
            "masks, labels, geojson, csv, parquet, ome-zarr, ome-tiff and spatialdata are allowed",
        ),
        (
            "export study.toml --as csv --out x --set G9=1",
            "--set G9=1: parameter \"G9\" is unknown; known are ",
        ),
        (
            "export study.toml --as csv --out x --evaluation 2",
            "--results nuclei-moat: failed to read plan.json: ",
        ),
        ("export study.toml --as csv --out x --results out", "--evaluation is missing: "),
        (
            "export study.toml --as csv --out x --task t9",
            "--task t9: not a task of workflow nuclei that writes a mask or labels; ",
        ),
        ("export study.toml --as csv --out x --mpp 0", "--mpp 0: more than 0 is allowed, as in 0.25"),
        ("export study.toml --as csv --out tiles", "--out tiles: holds other files, such as tissue_0"),
        ("apply study.toml empty --as csv --out x", "empty: the folder has no image; "),
        ("apply study.toml none.png --as csv --out x", "none.png: cannot be read: "),
    ] {
        let refused = pleach(study.folder(), &options.split(' ').collect::<Vec<_>>());
        assert_eq!(refused.code, 2, "{options}: {refused:?}");
        assert!(refused.stderr.contains(message), "{options}: {}", refused.stderr);
        assert!(!study.path("x").exists(), "{options}");
    }
}
