//! Parses untrusted content into a region. Parsing checks everything, and allocates no more than the bytes
//! justify.

use crate::data::number::{LittleEndian, read_numbers};
use crate::data::polygons::Outlines;
use crate::{
    AnnotatedObjects, DataRegion, DenseArray, ElementType, LabelMap, NumberType, Points, Polygons,
    RaggedArray, Raster, Shape, Table, TypedValues,
};

/// Length of the content of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedLength {
    Exactly(u64),
    /// A lower bound: the content also includes names.
    AtLeast(u64),
}

/// Returns the content length of this type and shape. `None` if the type cannot have that shape.
pub(crate) fn expected_length(element: ElementType, shape: &Shape) -> Option<ExpectedLength> {
    let exactly = |counts: &[(u64, u64)]| {
        let sum =
            counts.iter().try_fold(0_u64, |sum, (count, bytes)| sum.checked_add(count.checked_mul(*bytes)?));
        sum.map(ExpectedLength::Exactly)
    };
    match (element, &**shape) {
        (ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask, [_, _, _]) => {
            Some(ExpectedLength::Exactly(shape.product().filter(|bytes| *bytes > 0)?))
        }
        (ElementType::Labels, [_, _]) => {
            Some(ExpectedLength::Exactly(shape.product().filter(|labels| *labels > 0)?.checked_mul(4)?))
        }
        // A length and a number per column.
        (ElementType::Table, [columns]) => Some(ExpectedLength::AtLeast(columns.checked_mul(12)?)),
        (
            ElementType::ArrayU8
            | ElementType::ArrayU16
            | ElementType::ArrayI32
            | ElementType::ArrayF32
            | ElementType::ArrayF64,
            [_, _] | [_, _, _] | [_, _, _, _],
        ) => {
            let values = shape.product().filter(|values| *values > 0)?;
            Some(ExpectedLength::Exactly(values.checked_mul(bytes_of(element.number()?))?))
        }
        (
            ElementType::RaggedU8
            | ElementType::RaggedU16
            | ElementType::RaggedI32
            | ElementType::RaggedF32
            | ElementType::RaggedF64,
            &[rows, values],
        ) => exactly(&[(rows, 8), (values, bytes_of(element.number()?))]),
        (ElementType::Points, &[points, axes]) => exactly(&[(points.checked_mul(axes)?, 8)]),
        (ElementType::Polygons, &[polygons, rings, positions]) => {
            exactly(&[(polygons, 4), (rings, 4), (positions, 16)])
        }
        (ElementType::Objects, &[objects, rings, positions, classes, columns]) => {
            let numbers = objects.checked_mul(columns)?;
            let names = classes.checked_add(columns)?;
            match exactly(&[(objects, 8), (rings, 4), (positions, 16), (numbers, 8), (names, 4)])? {
                ExpectedLength::Exactly(bytes) | ExpectedLength::AtLeast(bytes) => {
                    Some(ExpectedLength::AtLeast(bytes))
                }
            }
        }
        (ElementType::Scalar, []) => Some(ExpectedLength::Exactly(8)),
        _ => None,
    }
}

fn bytes_of(number: NumberType) -> u64 {
    number.bytes() as u64
}

/// Returns the region of this type, shape and content. `None` if they do not fit, in ways that [`expected_length`] may
/// not detect: sides beyond a type's limit, ends that decrease, names that are not UTF-8, or coordinates that
/// are not finite.
pub(crate) fn read(element: ElementType, shape: &Shape, content: Vec<u8>) -> Option<DataRegion> {
    let side = |count: u64| u32::try_from(count).ok();
    match (element, &**shape) {
        (ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask, &[height, width, channels]) => {
            let raster =
                Raster::new(side(width)?, side(height)?, u8::try_from(channels).ok()?, content).ok()?;
            Some(match element {
                ElementType::Bgr8 => DataRegion::Bgr8(raster),
                ElementType::Gray8 => DataRegion::Gray8(raster),
                _ => DataRegion::Mask(raster),
            })
        }
        (ElementType::Labels, &[height, width]) => {
            LabelMap::new(side(width)?, side(height)?, read_numbers(&content)).ok().map(DataRegion::Labels)
        }
        (ElementType::Table, &[columns]) => table(&content, columns).map(DataRegion::Table),
        (ElementType::Points, &[_, axes]) => {
            Points::new(u8::try_from(axes).ok()?, read_numbers(&content)).ok().map(DataRegion::Points)
        }
        (ElementType::Polygons, &[polygons, rings, positions]) => {
            let outlines = outlines(&mut Bytes(&content), polygons, rings, positions)?;
            Some(DataRegion::Polygons(Box::new(Polygons::of_outlines(outlines).ok()?)))
        }
        (ElementType::Objects, &[objects, rings, positions, classes, columns]) => {
            let mut bytes = Bytes(&content);
            let class_of = bytes.numbers(objects)?;
            let outlines = outlines(&mut bytes, objects, rings, positions)?;
            let numbers = bytes.numbers(objects.checked_mul(columns)?)?;
            let (classes, columns) = (bytes.names(classes)?, bytes.names(columns)?);
            let found = AnnotatedObjects::of_parts(outlines, class_of, classes, columns, numbers).ok()?;
            bytes.0.is_empty().then(|| DataRegion::Objects(Box::new(found)))
        }
        (ElementType::Scalar, []) => Some(DataRegion::Scalar(f64::from_le_bytes(content.try_into().ok()?))),
        (_, &[rows, _]) if element == ElementType::ragged_of(element.number()?) => {
            let mut bytes = Bytes(&content);
            let ends = bytes.numbers(rows)?;
            let values = TypedValues::from_bytes(element.number()?, bytes.0.to_vec());
            RaggedArray::new(ends, values).ok().map(DataRegion::Ragged)
        }
        (_, [sides @ .., channels]) => {
            let extents: Option<Vec<u32>> = sides.iter().rev().map(|count| side(*count)).collect();
            let values = TypedValues::from_bytes(element.number()?, content);
            let array = DenseArray::new(&extents?, u16::try_from(*channels).ok()?, values);
            array.ok().map(DataRegion::Array)
        }
        _ => None,
    }
}

fn outlines(bytes: &mut Bytes<'_>, outlines: u64, rings: u64, positions: u64) -> Option<Outlines> {
    let (ends, ring_ends) = (bytes.numbers(outlines)?, bytes.numbers(rings)?);
    let coordinates: Vec<f64> = bytes.numbers(positions.checked_mul(2)?)?;
    Outlines::of_parts(ends, ring_ends, coordinates.as_chunks().0.to_vec()).ok()
}

fn table(content: &[u8], columns: u64) -> Option<Table> {
    let mut bytes = Bytes(content);
    let mut found = Vec::new();
    for _ in 0..columns {
        let name = bytes.name()?;
        found.push((name, f64::from_le_bytes(bytes.take(8)?.try_into().ok()?)));
    }
    bytes.0.is_empty().then(|| Table::new(found))
}

/// Unread content.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        self.0.split_off(..length)
    }

    /// Reads `count` numbers. `None` if there are fewer, which is checked before any allocation.
    fn numbers<T: LittleEndian>(&mut self, count: u64) -> Option<Vec<T>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(size_of::<T>())?;
        self.take(bytes).map(read_numbers)
    }

    fn name(&mut self) -> Option<&'a str> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        std::str::from_utf8(self.take(length as usize)?).ok()
    }

    fn names(&mut self, count: u64) -> Option<Vec<String>> {
        // Each name takes at least its length prefix.
        let count = usize::try_from(count).ok().filter(|count| *count <= self.0.len() / 4)?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            names.push(self.name()?.to_owned());
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(counts: &[u64]) -> Shape {
        Shape::of(counts).unwrap()
    }

    #[test]
    fn counts_beyond_64_bits_are_no_shape() {
        for (element, counts) in [
            (ElementType::Mask, &[u64::MAX, 2, 1][..]),
            (ElementType::Labels, &[1 << 62, 1]),
            (ElementType::ArrayF64, &[1 << 32, 1 << 31, 1]),
            (ElementType::RaggedU8, &[1 << 61, 1]),
            (ElementType::Objects, &[1 << 60, 0, 0, 0, 1 << 60]),
            (ElementType::Mask, &[0, 1, 1]),
            (ElementType::ArrayU8, &[4]),
            (ElementType::Scalar, &[1]),
        ] {
            assert_eq!(expected_length(element, &shape(counts)), None, "{element} of {counts:?}");
        }
    }

    #[test]
    fn inconsistent_content_returns_none() {
        let ragged = |ends: [u64; 2]| {
            let mut content: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
            content.extend([1, 2, 3]);
            read(ElementType::RaggedU8, &shape(&[2, 3]), content)
        };
        assert!(ragged([1, 3]).is_some() && ragged([3, 1]).is_none() && ragged([1, 2]).is_none());
        let nan = f64::NAN.to_le_bytes().to_vec();
        assert_eq!(read(ElementType::Points, &shape(&[1, 1]), nan), None);
        assert_eq!(read(ElementType::Points, &shape(&[0, 300]), Vec::new()), None);
        assert_eq!(read(ElementType::Scalar, &shape(&[]), vec![0; 7]), None);
    }
}
