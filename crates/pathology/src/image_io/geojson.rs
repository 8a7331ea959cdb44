//! Reads annotations in GeoJSON (RFC 7946), as annotation tools such as QuPath export them.
//!
//! A document is a FeatureCollection, a list of features or geometries, one feature, or one geometry. Positions are pixels
//! from the top left corner of the tile, or of the slide at full resolution. For a cell with an additional outline of its
//! nucleus (QuPath's `nucleusGeometry`), the nucleus is read. A MultiPolygon and a GeometryCollection of a feature are one
//! annotation; each member of a bare GeometryCollection is one. Points and lines are counted and left out.
//!
//! Features are read one by one, so that memory holds positions only and never the document.

mod document;
mod root;

use super::ImageFileError;
use super::annotation_set::{AnnotationSet, Builder};
use super::read::unreadable;
use crate::objects::Polygon;
use flate2::read::MultiGzDecoder;
use pleach_workflow::AnnotationRules;
use root::Root;
use serde::de::DeserializeSeed;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Maximum length of the GeoJSON of a tile, 64 MiB: about 100,000 nuclei of 100 positions each.
pub const MAX_GEOJSON_BYTES: u64 = 64 << 20;

/// Maximum length of the GeoJSON of a slide, 4 GiB: about 4,000,000 nuclei of 50 positions each.
pub const MAX_SLIDE_GEOJSON_BYTES: u64 = 4 << 30;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// First bytes of compressed files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns whether a file is one of annotations: by its name, or, for a copy without an extension, by its first byte.
#[must_use]
pub fn is_annotations(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if name.ends_with(".geojson") || name.ends_with(".geojson.gz") {
        return true;
    }
    let mut first = [0; 2];
    // Only a regular file: opening a pipe waits for a writer.
    let is_file = path.extension().is_none() && path.is_file();
    let is_read = is_file && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    is_read && (first == GZIP || [b'{', b'['].contains(&first[0]) || first[0].is_ascii_whitespace())
}

/// Reads the annotations of a file of at most `max_bytes` of text, and selects those that `rules` name.
///
/// # Errors
/// Returns an [`ImageFileError`] that names the feature.
pub fn read_annotations(
    path: &Path,
    rules: &AnnotationRules,
    max_bytes: u64,
) -> Result<AnnotationSet, ImageFileError> {
    let mut reader = open(path, max_bytes)?;
    let mut builder = Builder::new(path, rules);
    let read = read_document(path, &mut reader, &mut builder);
    // The end of the limit looks like a truncated document.
    if reader.get_ref().limit() == 0 {
        return Err(ImageFileError::GeoJsonTooLarge { path: path.to_owned(), max_bytes });
    }
    match (read, builder.failure.take()) {
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) => Err(error),
        (Ok(()), _) => Ok(builder.finish()),
    }
}

/// Reads the polygons of a GeoJSON file, one per annotation, in the file's order.
///
/// # Errors
/// Returns an [`ImageFileError`] that names the feature.
pub fn read_polygons(path: &Path) -> Result<Vec<Polygon>, ImageFileError> {
    let found = read_annotations(path, &AnnotationRules::default(), MAX_GEOJSON_BYTES)?.objects;
    let polygon = |outline| Polygon { rings: found.rings(outline).map(<[_]>::to_vec).collect() };
    Ok((0..found.len()).map(polygon).collect())
}

/// Text of a file, decompressed, up to one byte beyond a limit.
type Text = BufReader<std::io::Take<Box<dyn Read>>>;

fn open(path: &Path, max_bytes: u64) -> Result<Text, ImageFileError> {
    // Checked before opening: opening a pipe waits for a writer.
    let about = std::fs::metadata(path).map_err(|cause| unreadable(path, cause))?;
    if !about.is_file() {
        return Err(unreadable(path, "not a regular file; a GeoJSON file is allowed"));
    }
    if about.len() > max_bytes {
        return Err(ImageFileError::GeoJsonTooLarge { path: path.to_owned(), max_bytes });
    }
    let file = File::open(path).map_err(|cause| unreadable(path, cause))?;
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let is_compressed = file.fill_buf().map_err(|cause| unreadable(path, cause))?.starts_with(&GZIP);
    let text: Box<dyn Read> =
        if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    // The file may grow while it is read.
    Ok(BufReader::with_capacity(BUFFER_BYTES, text.take(max_bytes + 1)))
}

fn read_document(path: &Path, reader: &mut Text, builder: &mut Builder<'_>) -> Result<(), ImageFileError> {
    let fail = |place: String, cause| ImageFileError::NotGeoJson { path: path.to_owned(), place, cause };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    Root { builder }.deserialize(tracked).map_err(|error| {
        let place = track.path().to_string();
        fail(if place == "." { String::new() } else { format!("{place}: ") }, error)
    })?;
    json.end().map_err(|cause| fail(String::new(), cause))
}
