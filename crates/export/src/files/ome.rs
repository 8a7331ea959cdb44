//! Metadata of OME-Zarr 0.5 and OME-TIFF for label images.

use crate::geometry::Geometry;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;

/// Name of the label image in the store.
pub(crate) const LABELS: &str = "nuclei";

/// Writes the groups of a store: the root, `labels`, and `labels/nuclei` with `levels` arrays. Its arrays are written elsewhere.
///
/// # Errors
/// The system's error.
pub(crate) fn write_groups(store: &Path, image: &str, geometry: &Geometry, levels: usize) -> io::Result<()> {
    let group = |path: &Path, ome: &Value| -> io::Result<()> {
        let document = json!({ "zarr_format": 3, "node_type": "group", "attributes": { "ome": ome } });
        fs::create_dir_all(path)?;
        fs::write(path.join("zarr.json"), serde_json::to_vec_pretty(&document)?)
    };
    group(store, &json!({ "version": "0.5" }))?;
    let folder = store.join("labels");
    group(&folder, &json!({ "version": "0.5", "labels": [LABELS] }))?;
    group(
        &folder.join(LABELS),
        &json!({
            "version": "0.5",
            "multiscales": [multiscale(image, geometry, levels)],
            "image-label": { "version": "0.5" },
        }),
    )
}

/// Returns the entry `multiscales`. Level 1 has every second pixel, and so on, so the middles of its pixels move by no more than a
/// pixel of level 0.
fn multiscale(image: &str, geometry: &Geometry, levels: usize) -> Value {
    let axis = |name: &str| match geometry.microns_a_px() {
        Some(_) => json!({ "name": name, "type": "space", "unit": "micrometer" }),
        None => json!({ "name": name, "type": "space" }),
    };
    let side = geometry.microns_a_px().unwrap_or(1.0);
    let dataset = |level: usize| {
        let scale = side * f64::from(1_u32 << level.min(31));
        json!({
            "path": level.to_string(),
            "coordinateTransformations": [{ "type": "scale", "scale": [scale, scale] }],
        })
    };
    json!({
        "name": image,
        "axes": [axis("y"), axis("x")],
        "datasets": (0..levels).map(dataset).collect::<Vec<_>>(),
        "type": "nearest",
    })
}

/// Returns the OME-XML of a label image.
#[must_use]
pub(crate) fn xml(image: &str, geometry: &Geometry) -> String {
    let physical = geometry.microns_a_px().map_or_else(String::new, |side| {
        format!(
            " PhysicalSizeX=\"{side}\" PhysicalSizeXUnit=\"µm\" PhysicalSizeY=\"{side}\" PhysicalSizeYUnit=\"µm\""
        )
    });
    let Geometry { width_px, height_px, .. } = geometry;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" \
         Creator=\"pleach\"><Image ID=\"Image:0\" Name=\"{}\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" \
         Type=\"uint32\" SizeX=\"{width_px}\" SizeY=\"{height_px}\" SizeC=\"1\" SizeZ=\"1\" SizeT=\"1\" \
         BigEndian=\"false\"{physical}><Channel ID=\"Channel:0:0\" Name=\"{LABELS}\" SamplesPerPixel=\"1\"/>\
         <TiffData IFD=\"0\" PlaneCount=\"1\"/></Pixels></Image></OME>",
        escaped(image),
    )
}

/// Returns a text for an attribute of XML. Control characters are not allowed there.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for letter in text.chars() {
        match letter {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            control if control.is_control() => all.push(' '),
            letter => all.push(letter),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry =
        Geometry { width_px: 40, height_px: 30, slide_px_a_px: 2.0, microns_a_slide_px: Some(0.25) };

    #[test]
    fn scales_are_micrometers_of_each_level() {
        let of = multiscale("s", &GEOMETRY, 2);
        assert_eq!(of["axes"][0], json!({ "name": "y", "type": "space", "unit": "micrometer" }));
        let scale = |level: usize| of["datasets"][level]["coordinateTransformations"][0]["scale"].clone();
        assert_eq!([scale(0), scale(1)], [json!([0.5, 0.5]), json!([1.0, 1.0])]);
        let uncalibrated = Geometry { microns_a_slide_px: None, ..GEOMETRY };
        assert_eq!(multiscale("s", &uncalibrated, 1)["axes"][1], json!({ "name": "x", "type": "space" }));
    }

    #[test]
    fn xml_names_the_image_and_its_pixels() {
        let text = xml("a<b>&\"c\"", &GEOMETRY);
        assert!(text.contains("Name=\"a&lt;b&gt;&amp;&quot;c&quot;\""), "{text}");
        assert!(
            text.contains("SizeX=\"40\" SizeY=\"30\"") && text.contains("PhysicalSizeX=\"0.5\""),
            "{text}"
        );
        assert!(!xml("a", &Geometry { microns_a_slide_px: None, ..GEOMETRY }).contains("Physical"));
    }
}
