//! Outlines of objects as `GeoParquet` 1.1: one row per object, its label the index of pandas, its outline in WKB (OGC 06-103r4).
//!
//! Rows are written in groups, so memory holds the outlines of one group.

use crate::objects::ExportedObject;
use crate::rings::PixelPolygon;
use pleach_tables::{Cell, CellType, FrameWriter};
use serde_json::json;
use std::io::{self, Seek, Write};

/// Columns. The label is also the index.
const COLUMNS: [(&str, CellType); 4] = [
    ("label", CellType::Integer),
    ("class", CellType::Text),
    ("area_px", CellType::Real),
    ("geometry", CellType::Bytes),
];

/// WKB: byte order, and the numbers of types.
const LITTLE_ENDIAN: u8 = 1;
const POLYGON: u32 = 3;
const MULTI_POLYGON: u32 = 6;

/// Open file of outlines.
pub(crate) struct OutlineTable<W: Write + Seek + Send> {
    rows: FrameWriter<W>,
    class: String,
    /// Slide pixels per analysis pixel.
    scale: f64,
    geometry: Vec<u8>,
}

impl<W: Write + Seek + Send> OutlineTable<W> {
    /// Starts a file. Positions are multiplied by `scale`.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn create(file: W, class: &str, scale: f64) -> io::Result<Self> {
        let geometry =
            json!({ "encoding": "WKB", "crs": null, "geometry_types": ["Polygon", "MultiPolygon"] });
        let geo =
            json!({ "version": "1.1.0", "primary_column": "geometry", "columns": { "geometry": geometry } });
        let column = |(name, kind): &(&str, CellType)| {
            let (pandas, numpy) = match kind {
                CellType::Integer => ("int64", "int64"),
                CellType::Real => ("float64", "float64"),
                CellType::Text => ("unicode", "object"),
                CellType::Bytes => ("bytes", "object"),
            };
            json!({
                "name": name, "field_name": name, "pandas_type": pandas, "numpy_type": numpy, "metadata": null,
            })
        };
        let pandas = json!({
            "index_columns": ["label"],
            "column_indexes": [],
            "columns": COLUMNS.iter().map(column).collect::<Vec<_>>(),
            "pandas_version": "2.0.0",
        });
        let metadata = [("geo", geo.to_string()), ("pandas", pandas.to_string())];
        let rows = FrameWriter::parquet_with_metadata(file, &COLUMNS, &metadata)?;
        Ok(Self { rows, class: class.to_owned(), scale, geometry: Vec::new() })
    }

    /// Writes an object with its label.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn object(&mut self, label: u32, object: &ExportedObject) -> io::Result<()> {
        self.geometry.clear();
        push_geometry(&mut self.geometry, &object.polygons, self.scale);
        #[expect(clippy::cast_precision_loss, reason = "an area is far below 2^53")]
        let area = object.area_px as f64 * self.scale * self.scale;
        self.rows.row(&[
            Cell::Integer(label.into()),
            Cell::Text(&self.class),
            Cell::Real(Some(area)),
            Cell::Bytes(&self.geometry),
        ])
    }

    /// Writes the end and returns the file.
    ///
    /// # Errors
    /// The error of the file.
    pub(crate) fn finish(self) -> io::Result<W> {
        self.rows.finish()
    }
}

/// Appends the outlines of an object: a polygon, or a multipolygon of several.
fn push_geometry(to: &mut Vec<u8>, polygons: &[PixelPolygon], scale: f64) {
    if let [one] = polygons {
        return push_polygon(to, one, scale);
    }
    push_start(to, MULTI_POLYGON, polygons.len());
    polygons.iter().for_each(|polygon| push_polygon(to, polygon, scale));
}

fn push_polygon(to: &mut Vec<u8>, rings: &PixelPolygon, scale: f64) {
    push_start(to, POLYGON, rings.len());
    for ring in rings {
        push_count(to, ring.len() + 1);
        // The first position is repeated at the end.
        for position in ring.iter().chain(ring.first()).flatten() {
            to.extend_from_slice(&(f64::from(*position) * scale).to_le_bytes());
        }
    }
}

fn push_start(to: &mut Vec<u8>, kind: u32, parts: usize) {
    to.push(LITTLE_ENDIAN);
    to.extend_from_slice(&kind.to_le_bytes());
    push_count(to, parts);
}

fn push_count(to: &mut Vec<u8>, count: usize) {
    // An object has far fewer positions than 2^32.
    to.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_is_well_known_binary() {
        // A square of 1 px at (1, 2), in slide pixels of half the size.
        let square: PixelPolygon = vec![vec![[1, 2], [2, 2], [2, 3], [1, 3]]];
        let mut one = Vec::new();
        push_geometry(&mut one, std::slice::from_ref(&square), 2.0);
        let mut expected = vec![1, 3, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0];
        for position in [2.0, 4.0, 4.0, 4.0, 4.0, 6.0, 2.0, 6.0, 2.0, 4.0_f64] {
            expected.extend_from_slice(&position.to_le_bytes());
        }
        assert_eq!(one, expected);
        let mut two = Vec::new();
        push_geometry(&mut two, &[square.clone(), square], 2.0);
        assert_eq!(two[..9], [1, 6, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(two[9..], [expected.clone(), expected].concat());
    }
}
