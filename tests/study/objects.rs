//! Studies of object metrics, checked against a computation with sets of pixels from masks and label maps.

use crate::data::data;
use crate::masks::components;
use crate::model::{check_moat, nuclei_ranges};
use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::{Row, rows};
use crate::{findings, run, segment};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const TILES: [&str; 2] = ["tiles/tissue_01.png", "tiles/tissue_02.png"];
const HEADER: &str =
    "evaluation,tile,object-dice,object-jaccard,object-pair-dice,object-recall,nuclei,mean-area\n";

/// A label map and its width.
fn labels(path: &Path) -> (Vec<u32>, usize) {
    let image = image::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into_luma16();
    (image.pixels().map(|pixel| u32::from(pixel.0[0])).collect(), image.width() as usize)
}

fn pixel_sets(labels: &[u32]) -> Vec<BTreeSet<usize>> {
    let mut sets: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (pixel, label) in labels.iter().enumerate().filter(|(_, label)| **label > 0) {
        sets.entry(*label).or_default().insert(pixel);
    }
    sets.into_values().collect()
}

/// All metrics of the object comparison.
fn compare(mask: &[bool], reference: &[u32], width: usize) -> BTreeMap<&'static str, f64> {
    let (found, reference) = (pixel_sets(&components(mask, width)), pixel_sets(reference));
    let area = |sets: &[BTreeSet<usize>]| sets.iter().map(BTreeSet::len).sum::<usize>() as f64;
    let (a1, a2) = (area(&found), area(&reference));
    let pairs = found.iter().flat_map(|a| reference.iter().map(move |b| (a, b)));
    let shared: Vec<(f64, f64)> = pairs
        .map(|(a, b)| (a.intersection(b).count() as f64, (a.len() + b.len()) as f64))
        .filter(|(shared, _)| *shared > 0.0)
        .collect();
    let sum: f64 = shared.iter().map(|(shared, _)| shared).sum();
    let dice: f64 = shared.iter().map(|(shared, areas)| 2.0 * shared / areas).sum();
    let share = |part: f64, whole: f64| match whole {
        0.0 if a1 + a2 == 0.0 => 1.0,
        0.0 => 0.0,
        _ => part / whole,
    };
    BTreeMap::from([
        ("object-dice", share(2.0 * sum, a1 + a2)),
        ("object-jaccard", share(sum, a1 + a2 - sum)),
        ("object-pair-dice", share(dice, shared.len() as f64)),
        ("object-recall", share(sum, a2)),
        ("nuclei", found.len() as f64),
        ("mean-area", if found.is_empty() { 0.0 } else { a1 / found.len() as f64 }),
    ])
}

/// Recomputes the responses of some evaluations with one `pleach segment` each.
fn check_objects(study: &Study, out: &str, tiles: &[&str], evaluations: &[usize], options: &[&str]) {
    let samples = rows(&study.path(out).join("samples.csv"));
    let responses = rows(&study.path(out).join("responses.csv"));
    assert_eq!(responses.len(), samples.len() * tiles.len());
    for (number, tile) in tiles.iter().enumerate() {
        let (reference, width) = labels(&study.path(&tile.replace(".png", "_labels.png")));
        for &evaluation in evaluations {
            let mask = segment(study, tile, &samples[evaluation - 1], options);
            let found = &responses[(evaluation - 1) * tiles.len() + number];
            for (metric, expected) in compare(&mask, &reference, width) {
                let found: f64 = found[metric].parse().expect("a number");
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{metric} of {evaluation} on {tile}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn label_maps_of_people_are_the_reference() {
    let study = Study::of_tissue(128);
    let objects = [("\"defaults\"", "\"tiles\""), ("\"dice\"", "\"object-dice\"")];
    study.edit(&objects);
    let replicated = findings(&study, "none", &["--strategy", "none", "--workers", "1"]);
    for (out, options) in [("rtma", &["--workers", "2"][..]), ("stage", &["--strategy", "stage"])] {
        assert_eq!(findings(&study, out, options), replicated, "{out}");
    }
    assert!(text(&study.path("rtma/responses.csv")).starts_with(HEADER));
    check_objects(&study, "rtma", &TILES, &[1, 9, 17, 32], &["--normalize"]);
    check_moat(&study.path("rtma"), "object-dice", &nuclei_ranges());
    // The plan has no pixel comparison.
    let plan = json(&study.path("rtma/plan.json"));
    let stages: Vec<&str> =
        plan["per_stage"].as_array().expect("stages").iter().filter_map(|s| s["stage"].as_str()).collect();
    assert_eq!(stages, ["normalization", "segmentation", "object-comparison"]);

    // Nuclei of a mask do not overlap, so the object Dice by area equals the Dice of pixels.
    study.edit(&objects[..1]);
    run(&study, "pixels", &[]);
    let of = |out: &str, metric: &str| -> Vec<String> {
        rows(&study.path(out).join("responses.csv"))
            .into_iter()
            .map(|mut row| row.remove(metric).unwrap())
            .collect()
    };
    assert_eq!(of("rtma", "object-dice"), of("pixels", "dice"));
    assert_ne!(of("rtma", "object-pair-dice"), of("rtma", "object-dice"));
}

#[test]
fn polygons_of_people_are_the_reference() {
    let study = Study::of_tissue(96);
    let metric = ("\"dice\"", "\"object-pair-dice\"");
    study.edit(&[("\"defaults\"", "\"tiles\""), metric]);
    let by_labels = findings(&study, "labels", &[]);
    // Each nucleus as a multipolygon with one part per row, which covers the same pixels.
    for tile in TILES {
        let (labels, width) = labels(&study.path(&tile.replace(".png", "_labels.png")));
        let mut features: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (pixel, label) in labels.iter().enumerate().filter(|(_, label)| **label > 0) {
            let (x, y) = (pixel % width, pixel / width);
            let (right, bottom) = (x + 1, y + 1);
            features.entry(*label).or_default().push(format!(
                "[[[{x}, {y}], [{right}, {y}], [{right}, {bottom}], [{x}, {bottom}], [{x}, {y}]]]"
            ));
        }
        let features: Vec<String> = features
            .into_values()
            .map(|parts| {
                let coordinates = parts.join(",");
                format!(
                    r#"{{"type": "Feature", "properties": {{}},
                         "geometry": {{"type": "MultiPolygon", "coordinates": [{coordinates}]}}}}"#
                )
            })
            .collect();
        let features = features.join(",");
        let name = tile.replace("tiles", "drawn").replace(".png", ".geojson");
        study.write(&name, format!(r#"{{"type": "FeatureCollection", "features": [{features}]}}"#));
    }
    study.edit(&[("\"defaults\"", "\"drawn\""), metric]);
    assert_eq!(findings(&study, "polygons", &[]), by_labels);
    assert_eq!(findings(&study, "polygons-none", &["--strategy", "none"]), by_labels);
    // The polygons also serve as a reference mask.
    study.edit(&[("\"defaults\"", "\"drawn\"")]);
    run(&study, "drawn-mask", &[]);
    study.edit(&[("\"defaults\"", "\"tiles\"")]);
    run(&study, "labels-mask", &[]);
    assert_eq!(text(&study.path("drawn-mask/responses.csv")), text(&study.path("labels-mask/responses.csv")));
}

#[test]
fn nuclei_can_be_counted() {
    let study = Study::of_tissue(128);
    study.edit(&[("\"dice\"", "\"nuclei\"")]);
    run(&study, "out", &["--strategy", "rtma"]);
    assert_eq!(
        findings(&study, "none", &["--strategy", "none"]),
        findings(&study, "stage", &["--strategy", "stage"])
    );
    check_moat(&study.path("out"), "nuclei", &nuclei_ranges());
    let header = text(&study.path("out/responses.csv"));
    assert!(header.starts_with("evaluation,tile,nuclei,object-dice,"), "{header}");
    let samples = rows(&study.path("out/samples.csv"));
    let responses = rows(&study.path("out/responses.csv"));
    for evaluation in [1, 12, 30] {
        for (number, tile) in TILES.iter().enumerate() {
            let settings = samples[evaluation - 1].iter().filter(|(name, _)| *name != "evaluation");
            let settings: Vec<String> =
                settings.map(|(name, value)| format!("--set={name}={value}")).collect();
            let mut arguments = vec!["segment", tile, "--out", "mask.png", "--normalize", "--json"];
            arguments.extend(settings.iter().map(String::as_str));
            let printed = pleach(study.folder(), &arguments).done();
            let printed: serde_json::Value = serde_json::from_str(&printed).expect("one JSON document");
            let response = &responses[2 * (evaluation - 1) + number];
            assert_eq!(response["nuclei"], printed["objects"].to_string());
        }
    }
    let page = text(&study.path("out/report.html"));
    assert!(page.contains("the number of connected objects in the mask") && page.contains("sum over tiles"));
}

/// The run at default parameters is its own reference.
#[test]
fn defaults_agree_with_themselves() {
    let study = Study::of_tissue(96);
    study.write("one.csv", "G1\n80\n60\n");
    let (moat, table) =
        ("kind = \"moat\"\ntrajectories = 2\nlevels = 20\n", "kind = \"table\"\nfile = \"one.csv\"\n");
    study.edit(&[(moat, table), ("\"dice\"", "\"object-jaccard\"")]);
    run(&study, "out", &[]);
    let responses = rows(&study.path("out/responses.csv"));
    assert_eq!(responses.len(), 4);
    for row in &responses[..2] {
        for metric in ["object-dice", "object-jaccard", "object-pair-dice", "object-recall"] {
            assert_eq!(row[metric], "1", "{row:?}");
        }
    }
    let tile = TILES[0];
    let (changed, defaults) = (
        segment(&study, tile, &Row::from([("G1".to_owned(), "60".to_owned())]), &["--normalize"]),
        segment(&study, tile, &Row::new(), &["--normalize"]),
    );
    let expected = compare(&changed, &components(&defaults, 96), 96);
    assert_eq!(responses[2]["object-jaccard"], expected["object-jaccard"].to_string());
}

#[test]
fn object_metrics_of_real_annotations_are_plausible() {
    let Some(data) = data("object_metrics_of_real_annotations_are_plausible") else { return };
    let (gbm, cpm) = (data.join("annotated/gbm40"), data.join("annotated/cpm15"));
    let study = Study::of_tissue(64);
    std::fs::create_dir(study.path("truth")).expect("a folder made");
    let mut tiles = Vec::new();
    for (folder, name) in [(&gbm, "gbm40_03"), (&cpm, "cpm15_09")] {
        std::fs::copy(
            folder.join(format!("{name}_labels.png")),
            study.path(&format!("truth/{name}_labels.png")),
        )
        .expect("a label map copied");
        tiles.push(folder.join(format!("{name}.png")).display().to_string());
    }
    study.write("sets.csv", "G1,G2\n80,45\n40,20\n20,10\n");
    let listed = format!("{tiles:?}");
    study.edit(&[
        ("[\"tiles/*.png\"]", &listed),
        ("\"defaults\"", "\"truth\""),
        ("kind = \"moat\"\ntrajectories = 2\nlevels = 20\n", "kind = \"table\"\nfile = \"sets.csv\"\n"),
        ("\"dice\"", "\"object-dice\""),
    ]);
    run(&study, "out", &[]);
    let responses = rows(&study.path("out/responses.csv"));
    assert_eq!(responses.len(), 6);
    for row in &responses {
        for metric in ["object-dice", "object-jaccard", "object-pair-dice", "object-recall"] {
            let value: f64 = row[metric].parse().expect("a number");
            assert!(0.0 < value && value < 1.0, "{row:?}");
        }
        assert!(row["nuclei"].parse::<u32>().is_ok_and(|count| count > 10), "{row:?}");
    }
}
