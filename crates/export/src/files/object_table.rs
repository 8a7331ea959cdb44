//! Table of objects: one row per object, in slide pixels and micrometers.

use crate::geometry::Geometry;
use crate::objects::ExportedObject;
use pleach_tables::{Cell, CellType, FrameWriter};
use std::io::{self, Seek, Write};

/// Columns. Those in µm are missing for images without calibration.
pub(crate) const COLUMNS: [(&str, CellType); 13] = [
    ("image", CellType::Text),
    ("label", CellType::Integer),
    ("class", CellType::Text),
    ("x_px", CellType::Real),
    ("y_px", CellType::Real),
    ("left_px", CellType::Real),
    ("top_px", CellType::Real),
    ("right_px", CellType::Real),
    ("bottom_px", CellType::Real),
    ("area_px", CellType::Real),
    ("x_um", CellType::Real),
    ("y_um", CellType::Real),
    ("area_um2", CellType::Real),
];

/// Writes an object with its label.
///
/// # Errors
/// The error of the file.
#[expect(clippy::cast_precision_loss, reason = "an area is far below 2^53")]
pub(crate) fn write_object<W: Write + Seek + Send>(
    table: &mut FrameWriter<W>,
    [image, class]: [&str; 2],
    geometry: &Geometry,
    label: u32,
    object: &ExportedObject,
) -> io::Result<()> {
    let scale = geometry.slide_px_a_px;
    let [x, y] = object.centroid_px.map(|position| position * scale);
    let [left, top, right, bottom] =
        object.bounds_px.map(|position| Cell::Real(Some(f64::from(position) * scale)));
    let area = object.area_px as f64 * scale * scale;
    let microns = geometry.microns_a_slide_px;
    let in_microns = |px: f64| Cell::Real(microns.map(|microns| px * microns));
    table.row(&[
        Cell::Text(image),
        Cell::Integer(label.into()),
        Cell::Text(class),
        Cell::Real(Some(x)),
        Cell::Real(Some(y)),
        left,
        top,
        right,
        bottom,
        Cell::Real(Some(area)),
        in_microns(x),
        in_microns(y),
        Cell::Real(microns.map(|microns| area * microns * microns)),
    ])
}
