//! Annotations of slides and regions of interest: equal to tiles with label maps, counted, part of the results' identity,
//! and refused where they are wrong.

use crate::findings;
use crate::pleach::pleach;
use crate::pyramid::{AT_20, write_image};
use crate::results::json;
use crate::study::Study;
use crate::tables::{Row, rows};
use serde_json::json;
use std::collections::BTreeMap;

/// Side of the slide, pixels: four tiles of 64.
const SIDE: u32 = 128;

const METHOD: (&str, &str) =
    ("kind = \"moat\"\ntrajectories = 2\nlevels = 20\n", "kind = \"table\"\nfile = \"two.csv\"\n");
const METRICS: &str = "metric = [\"dice\", \"nuclei\", \"object-dice\"]\n";
const SLIDES: &str = "slides = [\"slides/*.svs\"]\ntile = 64\nhalo = 0\nskip_background = false";

fn feature(geometry: &str, properties: &str) -> String {
    format!(r#"{{"type": "Feature", "geometry": {geometry}, "properties": {{{properties}}}}}"#)
}

fn rectangle([left, top, right, bottom]: [u32; 4]) -> String {
    format!("[[[{left}, {top}], [{right}, {top}], [{right}, {bottom}], [{left}, {bottom}], [{left}, {top}]]]")
}

/// A region of interest.
fn region(sides: [u32; 4]) -> String {
    let geometry = format!(r#"{{"type": "Polygon", "coordinates": {}}}"#, rectangle(sides));
    feature(&geometry, r#""name": "ROI", "classification": null"#)
}

fn write_collection(study: &Study, features: &[String]) {
    let features = features.join(",");
    let text = format!(r#"{{"type": "FeatureCollection", "features": [{features}]}}"#);
    study.write("truth/s.geojson", text);
}

/// Each object as the rectangles of its rows.
fn nuclei(labels: &image::ImageBuffer<image::Luma<u16>, Vec<u16>>) -> Vec<String> {
    let mut parts: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (x, y, label) in labels.enumerate_pixels().filter(|(.., label)| label.0[0] > 0) {
        parts.entry(label.0[0]).or_default().push(rectangle([x, y, x + 1, y + 1]));
    }
    let of = |parts: &Vec<String>| {
        let geometry = format!(r#"{{"type": "MultiPolygon", "coordinates": [{}]}}"#, parts.join(","));
        feature(&geometry, r#""classification": {"name": "Nucleus"}"#)
    };
    parts.values().map(of).collect()
}

/// A slide, its nuclei as annotations, and its four tiles with label maps.
fn slide_and_tiles() -> (Study, Vec<String>) {
    let study = Study::of_tissue(SIDE);
    study.write("two.csv", "G1\n80\n60\n");
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    let labels = image::open(study.path("tiles/tissue_01_labels.png")).expect("labels").into_luma16();
    study.write("slides/none.txt", "");
    study.write("parts/none.txt", "");
    write_image(&study.path("slides/s.svs"), tissue.as_raw(), SIDE as usize, AT_20);
    for (number, [x, y]) in [[0, 0], [64, 0], [0, 64], [64, 64]].into_iter().enumerate() {
        let part = image::imageops::crop_imm(&tissue, x, y, 64, 64).to_image();
        part.save(study.path(&format!("parts/{number}.png"))).expect("a tile written");
        let part = image::imageops::crop_imm(&labels, x, y, 64, 64).to_image();
        part.save(study.path(&format!("parts/{number}_labels.png"))).expect("labels written");
    }
    let nuclei = nuclei(&labels);
    assert!(nuclei.len() > 5, "{}", nuclei.len());
    write_collection(&study, &nuclei);
    (study, nuclei)
}

/// A study of the slide with these lines in `[input]` and `[response]`.
fn edit_slides(study: &Study, input: &str, response: &str) {
    let input = format!("\"truth\"\n{input}");
    let response = format!("{METRICS}{response}");
    study.edit(&[
        ("tiles = [\"tiles/*.png\"]", SLIDES),
        // As tiles that are files.
        ("normalize = true", "normalize = { fit = \"tile\" }"),
        ("\"defaults\"\n", &input),
        METHOD,
        ("metric = \"dice\"\n", &response),
    ]);
}

fn edit_tiles(study: &Study, tiles: &str) {
    let tiles = format!("tiles = {tiles}");
    study.edit(&[
        ("tiles = [\"tiles/*.png\"]", &tiles),
        ("\"defaults\"", "\"parts\""),
        METHOD,
        ("metric = \"dice\"\n", METRICS),
    ]);
}

/// Responses without the names of the tiles.
fn responses(study: &Study, out: &str) -> Vec<Row> {
    let mut rows = rows(&study.path(out).join("responses.csv"));
    rows.iter_mut().for_each(|row| drop(row.remove("tile")));
    rows
}

const REGIONS: &str = "[input.annotations]\nclasses = [\"Nucleus\"]\nregions = [\"ROI\"]\n";

#[test]
fn annotations_of_a_slide_are_those_of_its_tiles() {
    let (study, mut features) = slide_and_tiles();
    edit_slides(&study, "", "");
    findings(&study, "slides", &["--workers", "2"]);
    edit_tiles(&study, "[\"parts/*.png\"]");
    findings(&study, "tiles", &[]);
    let found = responses(&study, "slides");
    assert_eq!(found, responses(&study, "tiles"));
    assert!(found.iter().any(|row| row["dice"].parse::<f64>().expect("a number") > 0.5), "{found:?}");
    let expected = json!([{ "tile": "s", "reference": "s.geojson", "annotations": features.len(), "outside": 0,
                            "partly_outside": 0, "unusable": 0 }]);
    assert_eq!(json(&study.path("slides/run.json"))["annotations"], expected);

    // Only the left half counts: two tiles.
    let nuclei = features.len();
    features.push(region([0, 0, 64, 128]));
    features.push(feature(r#"{"type": "Point", "coordinates": [3, 3]}"#, r#""classification": "Nucleus""#));
    features.push(feature(r#"{"type": "LineString", "coordinates": [[3, 3], [9, 9]]}"#, ""));
    let stroma = format!(r#"{{"type": "Polygon", "coordinates": {}}}"#, rectangle([0, 0, 60, 60]));
    features.push(feature(&stroma, r#""classification": {"names": ["Stroma"]}"#));
    write_collection(&study, &features);
    edit_slides(&study, REGIONS, "");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "regions"]).done();
    let told = format!(
        "reference truth/s.geojson: of {nuclei} annotations 0 outside the slide (not counted); 1 more of other classes; \
         2 more without an area (points, lines)\n2 of 4 tiles left out: no region of interest has a pixel in them\n"
    );
    assert!(printed.starts_with(&told), "{printed}");
    edit_tiles(&study, "[\"parts/0.png\", \"parts/2.png\"]");
    findings(&study, "left", &[]);
    assert_eq!(responses(&study, "regions"), responses(&study, "left"));
    let run = json(&study.path("regions/run.json"));
    assert_eq!((&run["tiles_without_regions"], &run["annotations"][0]["regions"]), (&json!(2), &json!(1)));
    assert_eq!(run["annotations"][0]["without_area"], 2);
}

#[test]
fn regions_that_cut_tiles_divide_the_pixels_and_nuclei() {
    let (study, nuclei) = slide_and_tiles();
    // Different pixels and nuclei of both tiles and sets, within a region.
    let within = |sides: [u32; 4]| -> [f64; 2] {
        let features: Vec<String> = nuclei.iter().cloned().chain([region(sides)]).collect();
        write_collection(&study, &features);
        edit_slides(&study, REGIONS, "");
        let out = format!("within-{}-{}", sides[0], sides[2]);
        findings(&study, &out, &[]);
        let rows = responses(&study, &out);
        assert_eq!(rows.len(), 4, "two sets on the two tiles of the left half");
        ["pixel-difference", "nuclei"]
            .map(|column| rows.iter().map(|row| row[column].parse::<f64>().expect("a number")).sum())
    };
    let (left, right, both) = (within([0, 0, 32, 128]), within([32, 0, 64, 128]), within([0, 0, 64, 128]));
    assert!(left[0] > 0.0 && right[0] > 0.0 && left[1] < both[1], "{left:?} {right:?}");
    // A pixel is in one half, and so is the centroid of a nucleus.
    assert_eq!([left[0] + right[0], left[1] + right[1]], both);
}

#[test]
fn edited_annotations_change_results_and_weights_count() {
    let (study, mut features) = slide_and_tiles();
    let nuclei = features.len();
    features.push(region([0, 0, 96, 128]));
    write_collection(&study, &features);
    edit_slides(&study, REGIONS, "weights = \"annotated\"\n");
    let executed = |out: &str| {
        findings(&study, out, &["--cache", "cache"]);
        json(&study.path(out).join("run.json"))["tasks_executed"].as_u64().expect("a number")
    };
    assert!(executed("first") > 0);
    assert_eq!(executed("again"), 0);
    let run = json(&study.path("first/run.json"));
    let weights = [4096.0, 2048.0, 4096.0, 2048.0];
    assert_eq!(run["weights"], json!({ "by": "annotated", "pixels": weights }));
    let best = &run["extremes"][0]["evaluations"];
    let best =
        best.as_array().expect("a list").iter().find(|of| of["role"] == "best").expect("an evaluation");
    let rows = rows(&study.path("first/responses.csv"));
    let best_evaluation = best["evaluation"].to_string();
    let of = rows.iter().filter(|row| row["evaluation"] == best_evaluation);
    let values: Vec<f64> = of.map(|row| row["dice"].parse().expect("a number")).collect();
    let mean: f64 = values.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / 12_288.0;
    let plain: f64 = values.iter().sum::<f64>() / 4.0;
    assert!((best["value"].as_f64().expect("a number") - mean).abs() < 1e-12, "{best} {mean}");
    assert!((mean - plain).abs() > 1e-6, "the weights of {values:?} matter");
    let page = crate::results::text(&study.path("first/report.html"));
    assert!(page.contains("weigh each tile by its annotated area: the lightest of 4 tiles has 16.7 %"));
    // Without some nuclei, comparisons run again, and segmentations do not.
    features.drain(0..nuclei / 2);
    write_collection(&study, &features);
    let again = executed("edited");
    assert!(again > 0 && again < run["tasks_executed"].as_u64().expect("a number") / 2, "{again}");
    assert_ne!(responses(&study, "first"), responses(&study, "edited"));
}

#[test]
fn regions_of_interest_are_tiles() {
    let (study, mut features) = slide_and_tiles();
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    let labels = image::open(study.path("tiles/tissue_01_labels.png")).expect("labels").into_luma16();
    let boxes = [[60, 6, 118, 50], [10, 55, 90, 120]];
    for (number, [left, top, right, bottom]) in boxes.into_iter().enumerate() {
        features.push(region([left, top, right, bottom]));
        let (width, height) = (right - left, bottom - top);
        let part = image::imageops::crop_imm(&tissue, left, top, width, height).to_image();
        part.save(study.path(&format!("parts/roi{number}.png"))).expect("a tile written");
        let part = image::imageops::crop_imm(&labels, left, top, width, height).to_image();
        part.save(study.path(&format!("parts/roi{number}_labels.png"))).expect("labels written");
    }
    write_collection(&study, &features);
    let by_regions = |regions: &str| {
        edit_slides(&study, regions, "");
        let text = std::fs::read_to_string(study.path("study.toml")).expect("a study");
        study.write("study.toml", text.replace("tile = 64", "tile = \"regions\""));
    };
    by_regions(REGIONS);
    findings(&study, "regions", &[]);
    edit_tiles(&study, "[\"parts/roi*.png\"]");
    findings(&study, "files", &[]);
    assert_eq!(responses(&study, "regions"), responses(&study, "files"));
    let names: Vec<String> =
        rows(&study.path("regions/responses.csv")).iter().map(|row| row["tile"].clone()).collect();
    assert_eq!(names, ["s/60_6", "s/10_55", "s/60_6", "s/10_55"]);
    let page = crate::results::text(&study.path("regions/report.html"));
    assert!(page.contains("128 × 128 px at 20x, 2 tiles that are regions of interest."));

    let refused = |expected: &str| {
        let answer = pleach(study.folder(), &["plan", "study.toml"]);
        assert_eq!((answer.code, answer.stderr), (2, format!("error: study.toml: input.{expected}\n")));
    };
    features.push(region([80, 40, 128, 60]));
    write_collection(&study, &features);
    by_regions(REGIONS);
    refused(
        "tile: \"regions\" is not allowed: the bounding boxes of two regions of interest of slides/s.svs overlap, at (60, 6) and \
         at (80, 40); a side in pixels is allowed",
    );
    by_regions(&REGIONS.replace("ROI", "roi"));
    refused("annotations.regions: no annotation with the class or name roi is on the slide");
    by_regions("");
    refused(
        "tile: \"regions\" is not allowed; allowed: a side in pixels without annotations.regions, the names of the regions of \
         interest",
    );
    let text = std::fs::read_to_string(study.path("study.toml")).expect("a study");
    study.write("study.toml", text.replace("\"regions\"", "\"roi\""));
    refused(
        "tile: \"roi\" is not allowed; allowed: a side of 64 to 16384 px, or \"regions\" (a tile for each region of interest)",
    );
}

#[test]
fn wrong_annotations_are_refused() {
    let (study, mut features) = slide_and_tiles();
    features.truncate(5);
    features.push(region([0, 0, 64, 64]));
    write_collection(&study, &features);
    let refused = |lines: &str, response: &str, expected: &str| {
        edit_slides(&study, lines, response);
        let answer = pleach(study.folder(), &["plan", "study.toml"]);
        assert_eq!((answer.code, answer.stderr), (2, format!("error: {expected}\n")));
    };
    refused(
        "[input.annotations]\nclasses = [\"Tumor\"]\n",
        "",
        "study.toml: input.annotations.classes: no annotation has the class \"Tumor\"; the classes of all files are no \
         class (1), \"Nucleus\" (5)",
    );
    refused(
        "[input.annotations]\nregions = [\"roi\"]\n",
        "",
        "study.toml: input.annotations.regions: no annotation has the class or name \"roi\"; the classes of all files \
         are no class (1), \"Nucleus\" (5)",
    );
    refused(
        "[input.annotations]\nclass = [\"Tumor\"]\n",
        "",
        "study.toml: input.annotations.class: unknown; known are classes, regions, unit, mpp",
    );
    refused(
        "",
        "weights = \"area\"\n",
        "study.toml: response.weights: \"area\" is not allowed; allowed: \"equal\", \"tissue\", \"annotated\"",
    );
    // A region beyond the slide.
    features.pop();
    features.push(region([200, 200, 300, 300]));
    write_collection(&study, &features);
    refused(
        "[input.annotations]\nregions = [\"ROI\"]\n",
        "",
        "study.toml: input.annotations.regions: none of the 4 tiles has a pixel within ROI",
    );
    let beyond =
        |sides| feature(&format!(r#"{{"type": "Polygon", "coordinates": {}}}"#, rectangle(sides)), "");
    write_collection(&study, &[features[0].clone(), beyond([200, 0, 210, 9])]);
    refused(
        "",
        "",
        "study.toml: input.annotations_outside: truth/s.geojson: 1 of 2 annotations (50 %) lie outside slide \
         slides/s.svs; up to 5 % of a file are allowed; annotations_outside = 0.5 in [input] allows these",
    );
    write_collection(&study, &[beyond([200, 0, 210, 9])]);
    refused(
        "",
        "",
        "truth/s.geojson: none of its 1 features covers a pixel of the slide of 128 x 128 px; positions are pixels from \
         the slide's top left corner at full resolution, not micrometers; annotations = { unit = \"um\" } reads micrometers",
    );
    study.write("truth/s.geojson", "Dear diary");
    refused(
        "",
        "",
        "truth/s.geojson: expected value at line 1 column 1; GeoJSON with features of type Polygon or MultiPolygon is \
         allowed",
    );
    // Label maps have no regions, and the defaults no annotations.
    edit_tiles(&study, "[\"parts/*.png\"]");
    let text = std::fs::read_to_string(study.path("study.toml")).expect("a study");
    for (reference, expected) in [
        ("\"parts\"", "reference: parts has none of 0.geojson and 0.geojson.gz for parts/0.png"),
        (
            "\"defaults\"",
            "annotations: a section is not allowed; allowed: none with reference = \"defaults\"; a folder with X.geojson \
             for each tile or slide X has annotations",
        ),
    ] {
        let edited = text.replace("reference = \"parts\"\n", &format!("reference = {reference}\n{REGIONS}"));
        study.write("study.toml", edited);
        let answer = pleach(study.folder(), &["plan", "study.toml"]);
        assert_eq!((answer.code, answer.stderr), (2, format!("error: study.toml: input.{expected}\n")));
    }
}
