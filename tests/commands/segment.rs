//! `pleach segment`: the masks of the original program, and tiles of every kind. `pleach region` for the same images.

use crate::data::data;
use crate::pleach::pleach;
use crate::tables::{Row, rows};
use image::{DynamicImage, GrayImage, RgbImage};
use serde_json::Value;
use std::path::Path;

/// Parameter names on the command line and in the table of the original's masks.
const PARAMETERS: [(&str, &str); 15] = [
    ("B", "B"),
    ("G", "G"),
    ("R", "R"),
    ("T1", "T1"),
    ("T2", "T2"),
    ("G1", "G1"),
    ("G2", "G2"),
    ("minSize", "minSize"),
    ("maxSize", "maxSize"),
    ("minSizePl", "minSizePl"),
    ("minSizeSeg", "minSizeSeg"),
    ("maxSizeSeg", "maxSizeSeg"),
    ("FillHoles", "FH"),
    ("MorphRecon", "RC"),
    ("Watershed", "W"),
];

/// The eight operations, normalization first.
const OPERATIONS: [&str; 8] = [
    "nuclei.normalize",
    "nuclei.background",
    "nuclei.reconstruct",
    "nuclei.candidates",
    "nuclei.candidate-area",
    "nuclei.nuclei",
    "nuclei.separate",
    "nuclei.final-area",
];

fn pixels(path: &Path) -> GrayImage {
    image::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into_luma8()
}

/// Segments a tile into `mask.png` in the folder. Returns the output of `--json`.
fn segment(folder: &Path, tile: &Path, options: &[String]) -> Value {
    let tile = tile.display().to_string();
    let mut arguments = vec!["segment", &tile, "--out", "mask.png", "--json"];
    arguments.extend(options.iter().map(String::as_str));
    serde_json::from_str(&pleach(folder, &arguments).done()).expect("one JSON document")
}

fn settings(row: &Row) -> Vec<String> {
    PARAMETERS.iter().map(|(name, column)| format!("--set={name}={}", row[*column])).collect()
}

/// Twelve of the original's masks: every tile, and every parameter set but one.
fn spread(rows: Vec<Row>) -> Vec<Row> {
    let none: Vec<Row> = rows.into_iter().filter(|row| row["normalization"] == "none").collect();
    assert_eq!(none.len(), 130);
    // 130 rows are 10 tiles of 13 sets. Steps of 11 reach every tile and no set twice.
    (0..12).map(|index| none[index * 11].clone()).collect()
}

#[test]
fn masks_are_the_originals() {
    let Some(data) = data("masks_are_the_originals") else { return };
    let reference = data.join("reference/nscale");
    let folder = tempfile::tempdir().expect("a folder");
    for row in spread(rows(&reference.join("index.csv"))) {
        let at = format!("{} {}", row["tile"], row["set"]);
        let told = segment(folder.path(), &data.join(&row["tile"]), &settings(&row));
        let (mask, original) =
            (pixels(&folder.path().join("mask.png")), pixels(&reference.join(&row["mask"])));
        assert!(mask == original, "{at}: the mask is not the original's");
        assert_eq!(told["mask"], "mask.png");
        assert_eq!(told["nonzero"].to_string(), row["nonzero"], "{at}");
        assert_eq!(told["objects"].to_string(), row["components8"], "{at}");
        let timings = told["timings"].as_object().expect("seconds by operation");
        assert_eq!(timings.len(), 7);
        let timed =
            |name: &&str| timings.get(*name).and_then(Value::as_f64).is_some_and(|seconds| seconds >= 0.0);
        assert!(OPERATIONS[1..].iter().all(timed), "{timings:?}");
    }
}

#[test]
fn defaults_are_the_originals() {
    let Some(data) = data("defaults_are_the_originals") else { return };
    let reference = data.join("reference/nscale");
    let folder = tempfile::tempdir().expect("a folder");
    let rows = rows(&reference.join("index.csv"));
    let normalized = rows.iter().find(|row| row["normalization"] == "reinhard" && row["set"] == "default");
    let row = normalized.expect("a mask of a normalized tile");
    // Both the stored normalized tile and the raw tile with the normalization stage.
    let stored = segment(folder.path(), &reference.join(&row["normalized_image"]), &[]);
    assert!(pixels(&folder.path().join("mask.png")) == pixels(&reference.join(&row["mask"])));
    assert_eq!(stored["nonzero"].to_string(), row["nonzero"]);
    let raw = segment(folder.path(), &data.join(&row["tile"]), &["--normalize".to_owned()]);
    let timings = raw["timings"].as_object().expect("seconds by operation");
    assert!(OPERATIONS.iter().all(|name| timings.contains_key(*name)) && timings.len() == 8, "{timings:?}");
    let (mask, original) = (pixels(&folder.path().join("mask.png")), pixels(&reference.join(&row["mask"])));
    let differing = mask.pixels().zip(original.pixels()).filter(|(a, b)| a != b).count() as f64;
    let objects = original.pixels().filter(|pixel| pixel.0[0] > 0).count() as f64;
    assert!(differing < 0.02 * objects, "{differing} pixels differ of {objects}");
}

/// A dark disc on a light ground, like a nucleus.
fn disc(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (i64::from(x) - 30, i64::from(y) - 30);
        image::Rgb(if dx * dx + dy * dy < 100 { [70, 60, 110] } else { [230, 190, 215] })
    })
}

#[test]
fn tile_of_every_pixel_type_is_segmented() {
    let folder = tempfile::tempdir().expect("a folder");
    let save = |name: &str, image: DynamicImage| {
        let path = folder.path().join(name);
        image.save(&path).expect("saved");
        path
    };
    let color = DynamicImage::from(disc(64, 64));
    let told = segment(folder.path(), &save("color.png", color.clone()), &[]);
    assert_eq!(told["objects"], 1);
    let mask = pixels(&folder.path().join("mask.png"));
    assert_eq!(mask.dimensions(), (64, 64));
    assert!(mask.pixels().all(|pixel| [0, 255].contains(&pixel.0[0])));
    assert_eq!(mask.pixels().filter(|pixel| pixel.0[0] > 0).count() as u64, told["nonzero"]);
    assert_eq!((mask.get_pixel(30, 30).0, mask.get_pixel(5, 5).0), ([255], [0]));
    let kinds = [
        ("alpha.png", DynamicImage::from(color.to_rgba8())),
        ("deep.png", DynamicImage::from(color.to_rgb16())),
        ("color.tif", color.clone()),
    ];
    for (name, image) in kinds {
        assert_eq!(segment(folder.path(), &save(name, image), &[])["nonzero"], told["nonzero"], "{name}");
        assert!(pixels(&folder.path().join("mask.png")) == mask, "{name}");
    }
    // Gray has equal channels at any bit depth.
    let gray = DynamicImage::from(color.to_luma8());
    let first = segment(folder.path(), &save("gray.png", gray.clone()), &[]);
    for (name, image) in [
        ("gray16.png", DynamicImage::from(gray.to_luma16())),
        ("grays.png", DynamicImage::from(gray.to_rgb8())),
    ] {
        let told = segment(folder.path(), &save(name, image), &[]);
        assert_eq!((&told["nonzero"], &told["objects"]), (&first["nonzero"], &first["objects"]), "{name}");
    }
}

#[test]
fn smallest_and_thinnest_tiles_are_segmented() {
    let folder = tempfile::tempdir().expect("a folder");
    for (width, height) in [(1, 1), (64, 1), (1, 64), (2, 2)] {
        for options in [&[][..], &["--normalize".to_owned()]] {
            let path = folder.path().join("tile.png");
            disc(width, height).save(&path).expect("saved");
            let told = segment(folder.path(), &path, options);
            assert!(told["nonzero"].is_u64() && told["objects"].is_u64(), "{told}");
            assert_eq!(pixels(&folder.path().join("mask.png")).dimensions(), (width, height));
        }
    }
}

#[test]
fn segment_prints_objects_and_timings() {
    let folder = tempfile::tempdir().expect("a folder");
    disc(64, 64).save(folder.path().join("tile.png")).expect("saved");
    let told = pleach(folder.path(), &["segment", "tile.png", "--out", "mask.png"]).done();
    assert!(told.starts_with("mask.png: 1 objects, ") && told.ends_with(" of 4096 pixels\n"), "{told}");
    let timed =
        pleach(folder.path(), &["segment", "tile.png", "--out", "mask.png", "--timings", "--normalize"])
            .done();
    assert_eq!(timed.lines().count(), 1 + OPERATIONS.len(), "{timed}");
    assert!(OPERATIONS.iter().all(|name| timed.contains(name)), "{timed}");
}

#[test]
fn a_value_given_again_replaces_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    disc(64, 64).save(folder.path().join("tile.png")).expect("saved");
    let tile = folder.path().join("tile.png");
    let nonzero = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|option| format!("--set={option}")).collect();
        segment(folder.path(), &tile, &options)["nonzero"].clone()
    };
    let all = nonzero(&[]);
    assert_eq!(nonzero(&["minSizeSeg=2000", "minSizeSeg=21"]), all);
    assert_eq!(nonzero(&["minSizeSeg=21", "minSizeSeg=2000"]), 0);
}

/// Runs the command line of the tool, with one input other than the default.
#[test]
fn a_tool_for_cwl_segments_as_the_command_does() {
    let folder = tempfile::tempdir().expect("a folder");
    pleach(folder.path(), &["tissue", "--out", ".", "--size", "128", "--count", "1"]).done();
    let tool = pleach(folder.path(), &["workflow", "show", "nuclei", "--cwl"]).done();
    let tool: Value = serde_json::from_str(&tool).expect("JSON");
    assert_eq!((&tool["cwlVersion"], &tool["inputs"]["set_G1"]["default"]), (&"v1.2".into(), &80.into()));
    let mut values = vec![("tile.path".to_owned(), "tissue_01.png".to_owned())];
    for (name, input) in tool["inputs"].as_object().expect("inputs") {
        values.push((format!("['{name}']"), input["default"].to_string()));
    }
    values.push(("['set_G1']".to_owned(), "60".to_owned()));
    let mut args = vec!["segment".to_owned()];
    for argument in tool["arguments"].as_array().expect("arguments") {
        args.extend(argument["prefix"].as_str().map(str::to_owned));
        let value = argument["valueFrom"].as_str().expect("a value");
        // The last value of a name counts.
        let given = |value: String, (name, given): &(String, String)| {
            value.replace(&format!("$(inputs.{name})"), given).replace(&format!("$(inputs{name})"), given)
        };
        args.push(values.iter().rev().fold(value.to_owned(), given));
    }
    assert_eq!(args.iter().filter(|arg| *arg == "--set").count(), PARAMETERS.len(), "{args:?}");
    pleach(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>()).done();
    let command = ["segment", "tissue_01.png", "--out", "expected.png", "--set", "G1=60"];
    pleach(folder.path(), &command).done();
    pleach(folder.path(), &["segment", "tissue_01.png", "--out", "default.png"]).done();
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("a mask");
    assert_eq!(read("mask.png"), read("expected.png"));
    assert_ne!(read("mask.png"), read("default.png"));

    let spots = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/spots/workflow.json");
    let spots = spots.to_str().expect("UTF-8");
    let refused = pleach(folder.path(), &["workflow", "show", spots, "--cwl"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(refused.stderr.contains("no stage has an output of type mask"), "{refused:?}");
}
