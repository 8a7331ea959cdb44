//! Annotations outside their tiles, outlines that cross themselves, and tiles without any object to compare.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::rows;
use crate::{findings, run};
use serde_json::json;

const METHOD: &str = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
const METRIC: &str = "metric = \"dice\"\n";
const DEFAULTS: &str = "reference = \"defaults\"\n";

/// A GeoJSON file of squares of 4 px, by left and top.
fn squares(study: &Study, name: &str, places: &[[i32; 2]]) {
    let feature = |[x, y]: &[i32; 2]| {
        let (right, bottom) = (x + 4, y + 4);
        format!(
            r#"{{"type": "Feature", "properties": {{}}, "geometry": {{"type": "Polygon",
                "coordinates": [[[{x}, {y}], [{right}, {y}], [{right}, {bottom}], [{x}, {bottom}], [{x}, {y}]]]}}}}"#
        )
    };
    let features: Vec<String> = places.iter().map(feature).collect();
    let features = features.join(",");
    study.write(name, format!(r#"{{"type": "FeatureCollection", "features": [{features}]}}"#));
}

/// Two tiles of 64 px with annotations. `outside` of the 20 annotations of the first tile are beyond its right side.
fn annotated(outside: usize) -> Study {
    let study = Study::of_tissue(64);
    study.write("one.csv", "G1\n80\n60\n");
    let grid = |number: i32| [6 * (number % 5) + 1, 6 * (number / 5) + 1];
    // One annotation crosses the border, and one is covered by another.
    let mut places = vec![[62, 30], [40, 40], [40, 40]];
    places.extend((0..17 - outside as i32).map(grid));
    places.extend((0..outside as i32).map(|number| [70, 5 * number]));
    squares(&study, "truth/tissue_01.geojson", &places);
    squares(&study, "truth/tissue_02.geojson", &[[1, 1], [9, 9]]);
    study
}

fn edit(study: &Study, lines: &str) {
    let reference = format!("reference = \"truth\"\n{lines}");
    study.edit(&[(DEFAULTS, &reference), (METHOD, "kind = \"table\"\nfile = \"one.csv\"\n")]);
}

#[test]
fn few_annotations_outside_are_reported() {
    let study = annotated(1);
    edit(&study, "");
    let told = "reference truth/tissue_01.geojson: of 20 annotations 1 outside the tile (not counted), \
                1 partly outside (cut off), 1 without a pixel of their own\n";
    let printed = pleach(study.folder(), &["plan", "study.toml"]).done();
    assert!(printed.starts_with(told), "{printed}");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
    assert!(printed.starts_with(told) && !printed.contains("tissue_02.geojson"), "{printed}");
    let expected = json!([
        { "tile": "tissue_01", "reference": "tissue_01.geojson", "annotations": 20, "outside": 1, "partly_outside": 1,
          "unusable": 1 },
        { "tile": "tissue_02", "reference": "tissue_02.geojson", "annotations": 2, "outside": 0, "partly_outside": 0,
          "unusable": 0 },
    ]);
    assert_eq!(json(&study.path("out/run.json"))["annotations"], expected);
    let plan = pleach(study.folder(), &["plan", "study.toml", "--json"]).done();
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("a document");
    assert_eq!(plan["annotations"], expected);
    let page = text(&study.path("out/report.html"));
    assert!(page.contains("<h2>Masks and references</h2>"));
    assert!(page.contains("22 annotations in 2 reference files. Outside their tiles and ignored: 1."));
}

#[test]
fn many_annotations_outside_are_refused_unless_allowed() {
    let study = annotated(2);
    edit(&study, "");
    let refusal = "error: study.toml: input.annotations_outside: truth/tissue_01.geojson: 2 of 20 annotations (10 %) lie \
                   outside tile tiles/tissue_01.png; up to 5 % of a file are allowed; annotations_outside = 0.1 in [input] \
                   allows these\n";
    pleach(study.folder(), &["certs", "init", "--dir", "ca"]).done();
    pleach(study.folder(), &["certs", "issue", "--dir", "ca", "--name", "me", "--role", "client"]).done();
    // The commands fail before they connect to a manager.
    let submit = ["submit", "study.toml", "--manager", "https://127.0.0.1:1", "--certs", "ca/me"];
    for command in [&["plan", "study.toml"][..], &["run", "study.toml", "--out", "out"], &submit] {
        let answer = pleach(study.folder(), command);
        assert_eq!((answer.code, answer.stderr.as_str()), (2, refusal), "{answer:?}");
    }
    assert!(!study.path("out").exists());
    edit(&study, "annotations_outside = 0.1\n");
    run(&study, "allowed", &[]);
    assert_eq!(json(&study.path("allowed/run.json"))["annotations"][0]["outside"], 2);
    for (given, shown) in [("1.5", "1.5"), ("-1", "-1"), ("nan", "nan")] {
        edit(&study, &format!("annotations_outside = {given}\n"));
        let answer = pleach(study.folder(), &["plan", "study.toml"]);
        let expected = format!(
            "error: study.toml: input.annotations_outside: {shown} is not allowed; allowed: 0 to 1, a share of the \
             annotations of a file\n"
        );
        assert_eq!((answer.code, answer.stderr), (2, expected));
    }
}

/// A GeoJSON file of polygons, by the coordinates of their rings.
fn polygons(study: &Study, name: &str, all: &[&str]) {
    let feature = |rings: &&str| {
        format!(
            r#"{{"type": "Feature", "properties": {{}}, "geometry": {{"type": "Polygon", "coordinates": [{rings}]}}}}"#
        )
    };
    let features = all.iter().map(feature).collect::<Vec<_>>().join(",");
    study.write(name, format!(r#"{{"type": "FeatureCollection", "features": [{features}]}}"#));
}

#[test]
fn crossing_outlines_and_stray_holes_are_reported_by_a_run() {
    let study = Study::of_tissue(64);
    study.write("one.csv", "G1\n80\n60\n");
    // Masks of glass are empty, so the differing pixels are those of the annotations.
    let glass = image::RgbImage::from_pixel(64, 64, image::Rgb([244, 243, 245]));
    for tile in ["tissue_01", "tissue_02"] {
        glass.save(study.path(&format!("tiles/{tile}.png"))).expect("an image written");
    }
    let square = "[[1, 1], [6, 1], [6, 6], [1, 6], [1, 1]]";
    let large = "[[30, 30], [40, 30], [40, 40], [30, 40], [30, 30]]";
    let crossing = "[[10, 10], [20, 20], [20, 10], [10, 20], [10, 10]]";
    let stray = format!("{large}, [[44, 30], [48, 30], [48, 34], [44, 34], [44, 30]]");
    let hollow = format!("{large}, [[32, 32], [36, 32], [36, 36], [32, 36], [32, 32]]");
    polygons(&study, "truth/tissue_01.geojson", &[crossing, &stray, square]);
    polygons(&study, "truth/tissue_02.geojson", &[square, &hollow]);
    edit(&study, "");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
    let told = "reference truth/tissue_01.geojson: of 3 annotations 0 outside the tile (not counted), 1 with an outline that \
                crosses itself (inside by the even-odd rule), 1 with a hole beyond the outline (cut off)\n";
    assert!(printed.starts_with(told) && !printed.contains("tissue_02.geojson"), "{printed}");
    let expected = json!([
        { "tile": "tissue_01", "reference": "tissue_01.geojson", "annotations": 3, "outside": 0, "partly_outside": 0,
          "unusable": 0, "self_crossing": 1, "stray_holes": 1 },
        { "tile": "tissue_02", "reference": "tissue_02.geojson", "annotations": 2, "outside": 0, "partly_outside": 0,
          "unusable": 0 },
    ]);
    assert_eq!(json(&study.path("out/run.json"))["annotations"], expected);
    // Both wings of the crossing outline, 50 px, are inside. The stray hole, 16 px, is not. A hole within its outline is cut out.
    let of = [("tissue_01", 25 + 100 + 50), ("tissue_02", 25 + 100 - 16)];
    for row in rows(&study.path("out/responses.csv")) {
        let (_, pixels) = of.iter().find(|(tile, _)| row["tile"] == *tile).expect("a tile");
        assert_eq!(row["pixel-difference"], pixels.to_string(), "{row:?}");
    }
    let page = text(&study.path("out/report.html"));
    let listed = "1 with an outline that crosses itself (inside by the even-odd rule); 1 with a hole beyond the outline (cut off)";
    assert!(page.contains(listed));
}

/// A tile of glass has empty masks with any parameters.
#[test]
fn runs_of_empty_masks_are_reported_and_can_be_excluded() {
    let study = Study::of_tissue(64);
    let truth = ("\"defaults\"", "\"tiles\"");
    study.edit(&[truth]);
    let without = findings(&study, "without", &[]);
    let glass = image::RgbImage::from_pixel(64, 64, image::Rgb([244, 243, 245]));
    glass.save(study.path("tiles/glass.png")).expect("an image written");
    image::GrayImage::new(64, 64).save(study.path("tiles/glass_labels.png")).expect("a label map written");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "counted"]).done();
    let told = "dice: mask and reference are both empty in 32 of 96 runs, on 1 tile; they count\n  as 1\n";
    assert!(printed.contains(told), "{printed}");
    assert_eq!(
        json(&study.path("counted/run.json"))["both_empty"],
        json!([{ "response": "dice", "runs": 32, "of": 96, "tiles": ["glass"], "left_out": false }])
    );
    let page = text(&study.path("counted/report.html"));
    assert!(page.contains("both empty in 32 of 96 runs, on 1 tile: <strong>glass</strong>"));
    let mu_star = |out: &str| -> Vec<f64> {
        let indices = rows(&study.path(out).join("indices.csv"));
        indices.iter().map(|row| row["mu_star"].parse().expect("a number")).collect()
    };
    // As one of three tiles with constant response, it scales all effects by 2/3.
    for (counted, without) in mu_star("counted").iter().zip(mu_star("without")) {
        assert!((counted - without * 2.0 / 3.0).abs() < 1e-12, "{counted} {without}");
    }

    study.edit(&[truth, (METRIC, &format!("{METRIC}both_empty = \"leave-out\"\n"))]);
    let left_out = findings(&study, "left-out", &[]);
    assert_eq!((&left_out[0], &left_out[3..]), (&without[0], &without[3..]));
    assert_eq!(left_out[1], text(&study.path("counted/responses.csv")));
    assert_eq!(json(&study.path("left-out/run.json"))["both_empty"][0]["left_out"], true);
    study.edit(&[(METRIC, &format!("{METRIC}both_empty = \"drop\"\n"))]);
    let answer = pleach(study.folder(), &["plan", "study.toml"]);
    let expected = "error: study.toml: response.both_empty: \"drop\" is not allowed; allowed: \"count\", \"leave-out\"\n";
    assert_eq!((answer.code, answer.stderr.as_str()), (2, expected));
}
