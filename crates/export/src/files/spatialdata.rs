//! Metadata of a `SpatialData` store (format 0.2, Zarr v3): `labels/nuclei` and `shapes/nuclei`.
//!
//! The coordinate system `global` has slide pixels, and calibrated images also have `micrometers`. Labels are a copy of the label
//! image, outlines a `GeoParquet` file. The store has no image and no table.

use super::ome::LABELS;
use crate::geometry::Geometry;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the outlines in their element.
const SHAPES_FILE: &str = "shapes.parquet";

/// Name of the outlines' element: elements of a store have unique names.
const SHAPES: &str = "nuclei_outlines";

/// Coordinate system of calibrated images.
const MICRONS: &str = "micrometers";

/// Returns the file of the outlines.
#[must_use]
pub(crate) fn shapes_file(store: &Path) -> PathBuf {
    store.join("shapes").join(SHAPES).join(SHAPES_FILE)
}

/// Returns the folder of the label image's arrays.
#[must_use]
pub(crate) fn labels_folder(store: &Path) -> PathBuf {
    store.join("labels").join(LABELS)
}

/// Writes the groups of a store with `levels` arrays of labels.
///
/// # Errors
/// The system's error.
pub(crate) fn write_groups(store: &Path, image: &str, geometry: &Geometry, levels: usize) -> io::Result<()> {
    let group = |path: &Path, attributes: &Value| -> io::Result<()> {
        let document = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
        fs::create_dir_all(path)?;
        fs::write(path.join("zarr.json"), serde_json::to_vec_pretty(&document)?)
    };
    let software = concat!("pleach ", env!("CARGO_PKG_VERSION"));
    group(
        store,
        &json!({ "spatialdata_attrs": { "version": "0.2", "spatialdata_software_version": software } }),
    )?;
    let labels = store.join("labels");
    group(&labels, &json!({ "ome": { "labels": [LABELS] } }))?;
    group(&labels_folder(store), &labels_attributes(image, geometry, levels))?;
    let shapes = store.join("shapes");
    group(&shapes, &json!({}))?;
    group(
        &shapes.join(SHAPES),
        &json!({
            "encoding-type": "ngff:shapes",
            "axes": ["x", "y"],
            "coordinateTransformations": transformations(["x", "y"], 1.0, geometry.microns_a_slide_px),
            "spatialdata_attrs": { "version": "0.3" },
        }),
    )
}

fn labels_attributes(image: &str, geometry: &Geometry, levels: usize) -> Value {
    let dataset = |level: usize| {
        let scale = f64::from(1_u32 << level.min(31));
        json!({
            "path": level.to_string(),
            "coordinateTransformations": [{ "type": "scale", "scale": [scale, scale] }],
        })
    };
    json!({
        "ome": {
            "version": "0.5-dev-spatialdata",
            "multiscales": [{
                "name": image,
                "axes": [{ "name": "y", "type": "space" }, { "name": "x", "type": "space" }],
                "datasets": (0..levels).map(dataset).collect::<Vec<_>>(),
                "coordinateTransformations":
                    transformations(["y", "x"], geometry.slide_px_a_px, geometry.microns_a_px()),
            }],
        },
        "spatialdata_attrs": { "version": "0.3" },
    })
}

/// Returns the transformations of an element: into slide pixels and, if it is calibrated, into micrometers.
fn transformations(axes: [&str; 2], slide_px: f64, microns: Option<f64>) -> Value {
    let system = |name: &str, unit: &str| {
        let axis = |name: &str| json!({ "name": name, "type": "space", "unit": unit });
        json!({ "name": name, "axes": axes.map(axis) })
    };
    let scaled = |scale: f64, name: &str, unit: &str| {
        json!({
            "type": "scale",
            "scale": [scale, scale],
            "input": system(&axes.concat(), "unit"),
            "output": system(name, unit),
        })
    };
    let calibrated = microns.map(|microns| scaled(microns, MICRONS, "micrometer"));
    Value::Array([scaled(slide_px, "global", "unit")].into_iter().chain(calibrated).collect())
}

/// Copies the files of a folder and of its subfolders.
///
/// # Errors
/// The system's error.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_slide_pixels_and_micrometers() {
        let geometry =
            Geometry { width_px: 40, height_px: 30, slide_px_a_px: 2.0, microns_a_slide_px: Some(0.25) };
        let labels = labels_attributes("s", &geometry, 2);
        let scales = |of: &Value| -> Vec<(String, Value)> {
            let of = of.as_array().unwrap().iter();
            of.map(|one| (one["output"]["name"].as_str().unwrap().to_owned(), one["scale"].clone())).collect()
        };
        assert_eq!(
            scales(&labels["ome"]["multiscales"][0]["coordinateTransformations"]),
            [("global".to_owned(), json!([2.0, 2.0])), (MICRONS.to_owned(), json!([0.5, 0.5]))]
        );
        assert_eq!(
            scales(&transformations(["x", "y"], 1.0, None)),
            [("global".to_owned(), json!([1.0, 1.0]))]
        );
    }
}
