//! Content of a data region as bytes, and back: one byte string for each element type and shape, the basis of digests and
//! encodings.
//!
//! Numbers are little-endian. The bytes do not include the shape, which the caller stores separately. This module does not
//! compress.

mod read;

pub(crate) use read::{ExpectedLength, expected_length, read};

use crate::data::number::{LittleEndian, each, write_numbers};
use crate::{AnnotatedObjects, DataRegion, ElementType, Shape, Table, TypedValues};
use std::borrow::Cow;

/// Numbers are converted to bytes in pieces of 64 KiB, which fill every lane of the hash and fit in the
/// innermost caches.
const PIECE_BYTES: usize = 64 * 1024;

impl DataRegion {
    /// Returns the content of a region as little-endian bytes, without its shape: the form in which other processes get it.
    ///
    /// - images, masks, label maps, arrays: the values, rows first
    /// - tables: for each column the length of its name (u32), the name, and the number (f64)
    /// - ragged arrays: the end of each row (u64), then the values
    /// - points: the coordinates (f64)
    /// - polygons: the end of each polygon in rings and of each ring in positions (u32), then the positions (f64)
    /// - objects: the class of each object (u32), outlines as polygons, the numbers (f64), then the names of classes and of
    ///   numbers, each as a length (u32) and the name
    /// - scalars: the number (f64)
    #[must_use]
    pub fn content(&self) -> Cow<'_, [u8]> {
        contiguous(self)
    }

    /// Creates a region from a shape (see [`Shape`]) and its [`content`](Self::content), both untrusted. `None` if they do not
    /// fit each other or the element type.
    #[must_use]
    pub fn from_content(element: ElementType, shape: &[u64], content: Vec<u8>) -> Option<Self> {
        let shape = Shape::of(shape)?;
        let fits = match expected_length(element, &shape)? {
            ExpectedLength::Exactly(bytes) => content.len() as u64 == bytes,
            ExpectedLength::AtLeast(bytes) => content.len() as u64 >= bytes,
        };
        // An image of another number of channels would be an image of no element type.
        let channels = match (element, &*shape) {
            (ElementType::Bgr8, [_, _, channels]) => *channels == 3,
            (ElementType::Gray8 | ElementType::Mask, [_, _, channels]) => *channels == 1,
            _ => true,
        };
        if fits && channels { read(element, &shape, content) } else { None }
    }
}

/// Passes the content of a region to `sink` in pieces.
///
/// - images, masks: the pixels
/// - label maps: the labels
/// - tables: for each column the name's length (u32), the name, and the number
/// - arrays: the values
/// - ragged arrays: the end of each row (u64), then the values
/// - points: the coordinates
/// - polygons: the end of each polygon, in rings, and of each ring, in positions (u32), then the positions
/// - objects: the class of each (u32), outlines as polygons, the numbers, then the names of classes and of
///   numbers, each as a length (u32) and the name
/// - scalars: the number
pub(crate) fn pieces(region: &DataRegion, sink: &mut dyn FnMut(&[u8])) {
    match region {
        DataRegion::Bgr8(raster) | DataRegion::Gray8(raster) | DataRegion::Mask(raster) => {
            sink(raster.data());
        }
        DataRegion::Labels(map) => numbers(map.labels(), sink),
        DataRegion::Table(table) => sink(&table_bytes(table)),
        DataRegion::Array(array) => values(array.values(), sink),
        DataRegion::Ragged(ragged) => {
            numbers(ragged.ends(), sink);
            values(ragged.values(), sink);
        }
        DataRegion::Points(points) => numbers(points.coordinates(), sink),
        DataRegion::Polygons(polygons) => outlines(&polygons.0, sink),
        DataRegion::Objects(objects) => {
            numbers(objects.class_of(), sink);
            outlines(objects.outlines(), sink);
            numbers(objects.numbers(), sink);
            sink(&names(objects));
        }
        DataRegion::Scalar(value) => sink(&value.to_le_bytes()),
    }
}

/// Returns the content of a region in one piece, borrowed for pixels and arrays of bytes.
pub(crate) fn contiguous(region: &DataRegion) -> Cow<'_, [u8]> {
    match region {
        DataRegion::Bgr8(raster) | DataRegion::Gray8(raster) | DataRegion::Mask(raster) => {
            Cow::Borrowed(raster.data())
        }
        DataRegion::Array(array) if let TypedValues::U8(values) = array.values() => Cow::Borrowed(values),
        DataRegion::Labels(map) => {
            let mut bytes = vec![0; size_of_val(map.labels())];
            write_numbers(map.labels(), &mut bytes);
            Cow::Owned(bytes)
        }
        _ => {
            let mut bytes = Vec::with_capacity(region.bytes() as usize);
            pieces(region, &mut |piece| bytes.extend_from_slice(piece));
            Cow::Owned(bytes)
        }
    }
}

fn numbers<T: LittleEndian>(numbers: &[T], sink: &mut dyn FnMut(&[u8])) {
    let a_piece = PIECE_BYTES / size_of::<T>();
    let mut piece = vec![0; a_piece.min(numbers.len()) * size_of::<T>()];
    for numbers in numbers.chunks(a_piece) {
        let bytes = &mut piece[..size_of_val(numbers)];
        write_numbers(numbers, bytes);
        sink(bytes);
    }
}

fn values(values: &TypedValues, sink: &mut dyn FnMut(&[u8])) {
    match values {
        TypedValues::U8(values) => sink(values),
        values => each!(values, values => numbers(values, sink)),
    }
}

fn outlines(outlines: &crate::data::polygons::Outlines, sink: &mut dyn FnMut(&[u8])) {
    numbers(outlines.ends(), sink);
    numbers(outlines.ring_ends(), sink);
    numbers(outlines.positions().as_flattened(), sink);
}

fn table_bytes(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in table.columns() {
        write_name(name, &mut bytes);
        bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }
    bytes
}

fn names(objects: &AnnotatedObjects) -> Vec<u8> {
    let mut bytes = Vec::new();
    objects.classes().iter().chain(objects.columns()).for_each(|name| write_name(name, &mut bytes));
    bytes
}

fn write_name(name: &str, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
}
