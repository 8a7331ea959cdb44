//! Reads polygons in GeoJSON (RFC 7946), as annotation tools such as QuPath export them.
//!
//! Features must be of type Polygon or MultiPolygon, with positions in pixels from the tile's top left corner. For a
//! cell with an additional outline of its nucleus (QuPath's `nucleusGeometry`), the nucleus is read. Properties,
//! identifiers and a third coordinate are ignored. Points, lines and collections of geometries are errors.

use super::ImageFileError;
use super::read::unreadable;
use crate::objects::Polygon;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum length of a GeoJSON file, 64 MiB: about 100,000 nuclei of 100 positions each.
pub const MAX_GEOJSON_BYTES: u64 = 64 << 20;

/// Maximum coordinate: beyond any slide, and far below the range where 64-bit numbers lose fractions of a pixel.
pub const MAX_POSITION_PX: f64 = 1e7;

/// Reads the polygons of a GeoJSON file, one per feature, in the file's order.
///
/// # Errors
/// Returns an [`ImageFileError`] that names the feature.
pub fn read_polygons(path: &Path) -> Result<Vec<Polygon>, ImageFileError> {
    let text = read(path)?;
    let mut deserializer = serde_json::Deserializer::from_slice(&text);
    let fail = |place: String, cause| ImageFileError::NotGeoJson { path: path.to_owned(), place, cause };
    let collection: Collection = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let place = error.path().to_string();
        fail(if place == "." { String::new() } else { format!("{place}: ") }, error.into_inner())
    })?;
    deserializer.end().map_err(|cause| fail(String::new(), cause))?;
    let Kind::FeatureCollection = collection.kind;
    let features = collection.features.into_iter().enumerate();
    features.map(|(number, feature)| feature.polygon(path, number)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, ImageFileError> {
    // Checked before opening: opening a pipe waits for a writer.
    let about = std::fs::metadata(path).map_err(|cause| unreadable(path, cause))?;
    if !about.is_file() {
        return Err(unreadable(path, "not a regular file; a GeoJSON file is allowed"));
    }
    let found_bytes = about.len();
    if found_bytes > MAX_GEOJSON_BYTES {
        return Err(ImageFileError::GeoJsonTooLarge { path: path.to_owned(), found_bytes });
    }
    let mut text = Vec::with_capacity(found_bytes as usize);
    // The file may grow while it is read.
    let file = File::open(path).map_err(|cause| unreadable(path, cause))?;
    file.take(MAX_GEOJSON_BYTES).read_to_end(&mut text).map_err(|cause| unreadable(path, cause))?;
    Ok(text)
}

#[derive(Deserialize)]
#[serde(expecting = "a GeoJSON object")]
struct Collection {
    #[serde(rename = "type")]
    kind: Kind,
    features: Vec<Feature>,
}

#[derive(Deserialize)]
enum Kind {
    FeatureCollection,
}

#[derive(Deserialize)]
#[serde(expecting = "a feature")]
struct Feature {
    geometry: Geometry,
    #[serde(rename = "nucleusGeometry")]
    nucleus: Option<Geometry>,
}

#[derive(Deserialize)]
#[serde(tag = "type", content = "coordinates", expecting = "a geometry")]
enum Geometry {
    Polygon(Vec<Ring>),
    MultiPolygon(Vec<Vec<Ring>>),
}

type Ring = Vec<Position>;

/// The first two numbers of a list.
struct Position([f64; 2]);

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TwoOrMore;
        impl<'de> Visitor<'de> for TwoOrMore {
            type Value = Position;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a position: a list of two numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Position, A::Error> {
                let mut position = [0.0; 2];
                for (place, coordinate) in position.iter_mut().enumerate() {
                    let missing = || serde::de::Error::invalid_length(place, &self);
                    *coordinate = seq.next_element()?.ok_or_else(missing)?;
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Position(position))
            }
        }
        deserializer.deserialize_seq(TwoOrMore)
    }
}

impl Feature {
    fn polygon(self, path: &Path, number: usize) -> Result<Polygon, ImageFileError> {
        let rings = match self.nucleus.unwrap_or(self.geometry) {
            Geometry::Polygon(rings) => rings,
            // The parts of a MultiPolygon do not overlap, so the even-odd rule holds for all of their rings together.
            Geometry::MultiPolygon(parts) => parts.into_iter().flatten().collect(),
        };
        let rings = rings.into_iter().map(|ring| checked(ring, path, number));
        Ok(Polygon { rings: rings.collect::<Result<_, _>>()? })
    }
}

/// Returns the positions of a ring without consecutive duplicates. The first position is not repeated at the end.
fn checked(ring: Ring, path: &Path, feature: usize) -> Result<Vec<[f64; 2]>, ImageFileError> {
    let mut positions: Vec<[f64; 2]> = ring.into_iter().map(|Position(position)| position).collect();
    if let Some(&value) = positions.iter().flatten().find(|value| value.abs() > MAX_POSITION_PX) {
        return Err(ImageFileError::FarPosition { path: path.to_owned(), feature, value });
    }
    positions.dedup();
    if positions.len() > 1 && positions.first() == positions.last() {
        positions.pop();
    }
    if positions.len() < 3 {
        return Err(ImageFileError::ShortRing { path: path.to_owned(), feature, positions: positions.len() });
    }
    Ok(positions)
}
