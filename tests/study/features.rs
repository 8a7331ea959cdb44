//! Studies of features: planes of the tile run once per tile, responses do not depend on reuse, and labels of tiles follow them.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::rows;
use crate::{findings, run};
use std::collections::BTreeMap;

/// Responses of the study: those of all three tables.
const METRICS: [&str; 6] =
    ["dice", "nuclei", "mean-area", "mean-circularity", "nucleus-blue-mean", "texture-contrast"];

/// Operations on the tile alone.
const OF_TILE: [&str; 4] = ["features.channels", "features.gradient", "features.sobel", "features.canny"];

/// Two tiles, 32 evaluations.
fn study() -> Study {
    let study = Study::of_tissue(96);
    let metrics = format!("{METRICS:?}");
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"nuclei-features\""), ("\"dice\"", &metrics)]);
    study
}

/// Executions of each operation.
fn executions(study: &Study, out: &str) -> BTreeMap<String, u64> {
    let record = json(&study.path(out).join("run.json"));
    let operations = record["operations"].as_array().expect("a list");
    let of = |operation: &serde_json::Value| {
        Some((operation["name"].as_str()?.to_owned(), operation["runs"].as_u64()?))
    };
    operations.iter().filter_map(of).collect()
}

#[test]
fn planes_of_a_tile_are_computed_once_whatever_the_evaluations() {
    let study = study();
    let reused = findings(&study, "reused", &["--workers", "2"]);
    assert_eq!(findings(&study, "none", &["--strategy", "none", "--workers", "2"]), reused);
    let (with, without) = (executions(&study, "reused"), executions(&study, "none"));
    for operation in OF_TILE {
        assert_eq!(with[operation], 2, "{operation}");
        assert!(without[operation] >= 64, "{operation}");
    }
    // The mask differs between evaluations.
    assert!(with["features.shape"] > 2 && with["features.shape"] <= 64);

    // The indices rank all parameters for each response.
    let indices = rows(&study.path("reused/indices.csv"));
    for metric in METRICS {
        let of: Vec<_> = indices.iter().filter(|row| row["response"] == metric).collect();
        assert_eq!(of.len(), 15, "{metric}");
        assert!(of.iter().any(|row| row["mu_star"].parse::<f64>().expect("a number") > 0.0), "{metric}");
    }
    // Number and area of nuclei are those that the workflow without features finds.
    study.edit(&[("\"dice\"", "[\"nuclei\", \"mean-area\"]")]);
    run(&study, "plain", &[]);
    let (plain, reused) =
        (rows(&study.path("plain/responses.csv")), rows(&study.path("reused/responses.csv")));
    assert_eq!(plain.len(), reused.len());
    for (plain, reused) in plain.iter().zip(&reused) {
        for metric in ["nuclei", "mean-area"] {
            let [a, b] = [plain, reused].map(|row| row[metric].parse::<f64>().expect("a number"));
            assert!((a - b).abs() < 1e-9, "{metric}: {a} {b}");
        }
    }
}

#[test]
fn labels_of_tiles_are_classified_by_features() {
    let study = study();
    run(&study, "results", &[]);
    study.write("labels.csv", "tile,label\ntissue_01,one\ntissue_02,other\n");
    let arguments = ["classify", "study.toml", "--results", "results", "--labels", "labels.csv"];
    let printed = pleach(study.folder(), &[&arguments[..], &["--out", "classes"]].concat()).done();
    assert!(printed.contains("2 groups, 2 labels, 48 features"), "{printed}");
    let assigned = rows(&study.path("classes/assignments.csv"));
    assert_eq!(assigned.len(), 64);
    let responses = rows(&study.path("classes/responses.csv"));
    for (evaluation, response) in responses.iter().enumerate() {
        let of = assigned.iter().filter(|row| row["evaluation"] == (evaluation + 1).to_string());
        let changed = of.map(|row| row["label_changed"].parse::<f64>().expect("a number")).sum::<f64>() / 2.0;
        assert_eq!(response["label-changes"].parse::<f64>().expect("a number"), changed);
    }
    let document = json(&study.path("classes/classification.json"));
    assert_eq!(document["labels"], serde_json::json!(["one", "other"]));
    assert_eq!((&document["evaluations"], &document["leave_one_out"]), (&32.into(), &false.into()));
    assert_eq!(text(&study.path("classes/groups.csv")).lines().count(), 3);
    // `pleach analyze` reads the responses.
    let analyzed = [
        "analyze",
        "study.toml",
        "--samples",
        "results/samples.csv",
        "--responses",
        "classes/responses.csv",
        "--response",
        "label-probability",
    ];
    assert!(pleach(study.folder(), &analyzed).done().contains("label-probability"));
    // Results of a study are not overwritten, and a wrong file is named.
    let refused = pleach(study.folder(), &[&arguments[..], &["--out", "results"]].concat());
    assert_eq!(refused.code, 2);
    study.write("labels.csv", "tile,label\ntissue_01,one\ntissue_9,other\n");
    let unknown = pleach(study.folder(), &arguments);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("labels.csv: tile \"tissue_9\": not in the responses"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn features_of_each_nucleus_are_written() {
    let study = Study::of_tissue(160);
    let segment = |file: &str| {
        let arguments = [
            "segment",
            "tiles/tissue_01.png",
            "--out",
            "mask.png",
            "--normalize",
            "--json",
            "--features",
            file,
        ];
        pleach(study.folder(), &arguments)
    };
    let printed: serde_json::Value = serde_json::from_str(&segment("nuclei.csv").done()).expect("JSON");
    let nuclei = rows(&study.path("nuclei.csv"));
    assert!(!nuclei.is_empty() && printed["objects"] == nuclei.len());
    let area: f64 = nuclei.iter().map(|row| row["area"].parse::<f64>().expect("a number")).sum();
    assert_eq!(Some(area), printed["nonzero"].as_f64());
    assert!(
        nuclei.iter().all(|row| row["class"] == "nucleus" && row.contains_key("cytoplasm-red-sobel-mean"))
    );
    segment("nuclei.geojson").done();
    let features = json(&study.path("nuclei.geojson"));
    assert_eq!(features["features"].as_array().map(Vec::len), Some(nuclei.len()));
    let refused = segment("nuclei.png");
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("--features nuclei.png: a name that ends in .csv or .geojson is allowed")
    );
}
