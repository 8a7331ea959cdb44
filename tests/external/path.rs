//! The path of a user through the commands: an annotated slide, a study of it, the best parameters on the slide, and the files in
//! other programs. `path.py` opens them.
//!
//! geopandas and ome-zarr are dependencies of spatialdata, so the test shares its environment.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::skipped;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Interpreter with geopandas, ome-zarr and zarr, which need 2 GB with spatialdata and so are not among those of
/// `scripts/install-python`.
const SPATIALDATA_PYTHON: &str = "PLEACH_SPATIALDATA_PYTHON";

/// Tiles of 256 px: the region of interest is on each of the 16, so that export and apply write the same tiles.
const STUDY: &str = r#"[study]
name = "slide"
workflow = "nuclei"
seed = 500
[input]
slides = ["slides/*.tif"]
tile = 256
halo = 64
reference = "annotations"
[input.annotations]
regions = ["ROI"]
[method]
kind = "table"
file = "sets.csv"
[response]
metric = ["dice", "nuclei"]
"#;

/// Runs `pleach` with words separated by spaces.
fn call(folder: &Path, words: &str) -> String {
    pleach(folder, &words.split(' ').collect::<Vec<_>>()).done()
}

/// Adds a region of interest to a GeoJSON file, as its user draws one. Returns the number of earlier annotations.
fn add_region(path: &Path) -> usize {
    let mut annotations = json(path);
    let features = annotations["features"].as_array_mut().expect("features");
    let count = features.len();
    features.push(serde_json::json!({
        "type": "Feature",
        "geometry": { "type": "Polygon", "coordinates": [[[100, 100], [900, 100], [900, 900], [100, 900], [100, 100]]] },
        "properties": { "objectType": "annotation", "classification": { "name": "ROI" } },
    }));
    fs::write(path, annotations.to_string()).expect("written");
    count
}

/// Opens an export with other programs. Returns the number of objects.
fn opened(python: &Path, folder: &Path, export: &str) -> u64 {
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/external/path.py"))
        .args([export, "s"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder)
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{export}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

#[test]
fn annotated_slide_is_studied_segmented_and_opened_by_other_programs() {
    let Some(python) = std::env::var_os(SPATIALDATA_PYTHON) else {
        let test = "annotated_slide_is_studied_segmented_and_opened_by_other_programs";
        return skipped(test, &format!("{SPATIALDATA_PYTHON} is not set"));
    };
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path();
    ["slides", "annotations"].iter().for_each(|name| fs::create_dir(folder.join(name)).expect("a folder"));
    call(folder, "tissue --slide 1024x1024 --out slides/s.tif --annotations annotations/s.geojson --seed 7");
    let nuclei = add_region(&folder.join("annotations/s.geojson"));
    assert!(nuclei > 50, "{nuclei}");
    fs::write(folder.join("study.toml"), STUDY).expect("written");
    fs::write(folder.join("sets.csv"), "G1,G2\n80,45\n60,30\n40,12\n").expect("written");

    call(folder, "run study.toml --out out --quiet");
    let record = json(&folder.join("out/run.json"));
    let annotations = &record["annotations"][0];
    assert_eq!(
        (&annotations["annotations"], &annotations["regions"]),
        (&Value::from(nuclei), &Value::from(1))
    );
    let evaluations = record["extremes"][0]["evaluations"].as_array().expect("evaluations");
    let dice = |role: &str| {
        evaluations.iter().find(|of| of["role"] == role).and_then(|of| of["value"].as_f64()).expect("a value")
    };
    assert!(dice("best") > dice("default"), "{evaluations:?}");

    let chosen = "--evaluation best --results out --as geojson,ome-zarr";
    let printed = call(folder, &format!("export study.toml {chosen} --out best"));
    let objects = opened(Path::new(&python), folder, "best");
    assert_eq!(printed, format!("best: 1 images, {objects} objects as geojson, ome-zarr\n"));
    assert!(objects > 50, "{objects}");
    call(folder, &format!("apply study.toml slides {chosen} --out cohort"));
    assert_eq!(opened(Path::new(&python), folder, "cohort"), objects);
    assert!(text(&folder.join("best/s.geojson")) == text(&folder.join("cohort/s.geojson")));
    // The defaults find other objects.
    call(folder, "apply study.toml slides --as geojson --out defaults");
    assert!(text(&folder.join("defaults/s.geojson")) != text(&folder.join("cohort/s.geojson")));
}
