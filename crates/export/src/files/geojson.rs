//! GeoJSON as `QuPath` imports it: a `FeatureCollection` of detections in slide pixels, with class and measurements.
//!
//! Features are written one by one. Their positions are the corners of pixels, so the outlines cover exactly the pixels of the label
//! image.

use crate::geometry::Geometry;
use crate::objects::ExportedObject;
use serde_json::json;
use std::io::{self, Write};

/// Color of the class, red, green and blue: that of `QuPath`'s class Tumor, which stands out on H&E stains.
const COLOR: [u8; 3] = [200, 0, 0];

/// Open file.
#[derive(Debug)]
pub(crate) struct GeojsonWriter<W> {
    file: W,
    geometry: Geometry,
    /// Properties of each feature up to its measurements.
    properties: String,
    line: Vec<u8>,
    count: u64,
}

impl<W: Write> GeojsonWriter<W> {
    /// Starts a file of objects of one class.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn create(mut file: W, geometry: Geometry, class: &str) -> io::Result<Self> {
        file.write_all(b"{\"type\":\"FeatureCollection\",\"features\":[")?;
        let classification = json!({ "name": class, "color": COLOR });
        let properties = format!(
            "\"properties\":{{\"objectType\":\"detection\",\"classification\":{classification},\"measurements\":{{"
        );
        Ok(Self { file, geometry, properties, line: Vec::new(), count: 0 })
    }

    /// Writes an object with its label.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn object(&mut self, label: u32, object: &ExportedObject) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(if self.count > 0 { b",\n" } else { b"\n" });
        let scale = self.geometry.slide_px_a_px;
        line.extend_from_slice(b"{\"type\":\"Feature\",\"geometry\":{\"type\":");
        let is_one = object.polygons.len() == 1;
        line.extend_from_slice(if is_one { b"\"Polygon\"" } else { b"\"MultiPolygon\"" });
        line.extend_from_slice(if is_one { b",\"coordinates\":" } else { b",\"coordinates\":[" });
        for (place, polygon) in object.polygons.iter().enumerate() {
            line.extend_from_slice(if place > 0 { b",[" } else { b"[" });
            for (place, ring) in polygon.iter().enumerate() {
                line.extend_from_slice(if place > 0 { b",[" } else { b"[" });
                // The first position is repeated at the end.
                for (place, corner) in ring.iter().chain(ring.first()).enumerate() {
                    line.extend_from_slice(if place > 0 { b",[" } else { b"[" });
                    push_position(line, *corner, scale);
                    line.push(b']');
                }
                line.push(b']');
            }
            line.push(b']');
        }
        line.extend_from_slice(if is_one { b"}," } else { b"]}," });
        line.extend_from_slice(self.properties.as_bytes());
        write!(line, "\"Label\":{label}")?;
        #[expect(clippy::cast_precision_loss, reason = "an area is far below 2^53")]
        let area = object.area_px as f64 * scale * scale;
        write!(line, ",\"Area px^2\":{area}")?;
        if let Some(microns) = self.geometry.microns_a_slide_px {
            write!(line, ",\"Area µm^2\":{}", area * microns * microns)?;
        }
        line.extend_from_slice(b"}}}");
        self.count += 1;
        self.file.write_all(line)
    }

    /// Writes the end and returns the file.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.file.write_all(b"\n]}\n")?;
        Ok(self.file)
    }
}

fn push_position(line: &mut Vec<u8>, [x, y]: [i32; 2], scale: f64) {
    #[expect(clippy::float_cmp, reason = "exactly 1 for images at their own magnification")]
    if scale == 1.0 {
        let mut digits = itoa::Buffer::new();
        line.extend_from_slice(digits.format(x).as_bytes());
        line.push(b',');
        line.extend_from_slice(digits.format(y).as_bytes());
    } else {
        // Writing to a vector cannot fail.
        let _ = write!(line, "{},{}", f64::from(x) * scale, f64::from(y) * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(geometry: Geometry, objects: &[ExportedObject]) -> serde_json::Value {
        let mut writer = GeojsonWriter::create(Vec::new(), geometry, "Im\"mune").unwrap();
        for (place, object) in objects.iter().enumerate() {
            writer.object(place as u32 + 1, object).unwrap();
        }
        serde_json::from_slice(&writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn detection_has_class_positions_and_measurements() {
        let geometry =
            Geometry { width_px: 9, height_px: 9, slide_px_a_px: 2.0, microns_a_slide_px: Some(0.25) };
        let object = ExportedObject::new(vec![([1, 2], 2)], true);
        // Two pixels that touch at a corner.
        let two = ExportedObject::new(vec![([0, 0], 1), ([1, 1], 1)], true);
        let collection = written(geometry, &[object, two]);
        let feature = &collection["features"][0];
        assert_eq!(
            feature["geometry"],
            json!({ "type": "Polygon", "coordinates": [[[6, 4], [6, 6], [2, 6], [2, 4], [6, 4]]] })
        );
        assert_eq!(
            feature["properties"],
            json!({
                "objectType": "detection",
                "classification": { "name": "Im\"mune", "color": [200, 0, 0] },
                "measurements": { "Label": 1, "Area px^2": 8, "Area µm^2": 0.5 },
            })
        );
        assert_eq!(collection["features"][1]["geometry"]["type"], "MultiPolygon");
        assert_eq!(collection["features"][1]["geometry"]["coordinates"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn no_objects_make_an_empty_collection() {
        let geometry = Geometry { width_px: 9, height_px: 9, slide_px_a_px: 1.0, microns_a_slide_px: None };
        assert_eq!(written(geometry, &[]), json!({ "type": "FeatureCollection", "features": [] }));
    }
}
