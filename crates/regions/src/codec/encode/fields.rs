//! Fields behind the head of version 2: their total length (u32), the fields, and a checksum of 8 bytes over
//! the head and all of that.
//!
//! A field is a tag (u16), a length (u32) and as many bytes. A reader skips unknown fields with tags of
//! 32,768 or more, and rejects other unknown fields. Later minor versions can thus add fields while their
//! output stays readable. This module does not read the content.

use super::header::MINOR;
use super::{DecodeError, Head};
use crate::{Interval, Resolution, Shape, SpatialBounds};

/// Maximum size of all fields of an encoding, for this minor version and every later one.
const MAX_FIELDS_BYTES: usize = 64 * 1024;

/// First tag of the optional fields.
const OPTIONAL: u16 = 1 << 15;

/// The shape: 64 bits per count.
const SHAPE: u16 = 1;

/// The bounding box: the number of axes (u8), start and end of each (i64), and femtometers per pixel (u64), 0 if unknown.
const BOUNDS: u16 = OPTIONAL + 1;

/// Size of the checksum.
const CHECK_BYTES: usize = 8;

/// Bytes before each field.
const FIELD_BYTES: usize = 6;

/// Domain separation from all other uses of BLAKE3.
const CHECK_CONTEXT: &str = "pleach data region header 2";

/// Parsed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) shape: Shape,
    pub(super) bounds: Option<SpatialBounds>,
    /// Number of unknown optional fields.
    pub(super) skipped: usize,
}

impl Fields {
    fn bounds_bytes(&self) -> Option<usize> {
        self.bounds.map(|bounds| 1 + 16 * bounds.dimensions() + 8)
    }

    /// Returns their length behind the head.
    pub(super) fn encoded_bytes(&self) -> usize {
        let bounds = self.bounds_bytes().map_or(0, |bytes| FIELD_BYTES + bytes);
        4 + FIELD_BYTES + 8 * self.shape.len() + bounds + CHECK_BYTES
    }

    /// Writes them behind `head`. `place` has exactly their length.
    pub(super) fn write(&self, head: &Head, place: &mut [u8]) {
        let mut bytes = Vec::with_capacity(place.len());
        // Cannot truncate: a shape and a box take less than 200 bytes.
        bytes.extend_from_slice(&((place.len() - 4 - CHECK_BYTES) as u32).to_le_bytes());
        field(&mut bytes, SHAPE, 8 * self.shape.len());
        self.shape.iter().for_each(|count| bytes.extend_from_slice(&count.to_le_bytes()));
        if let (Some(bounds), Some(length)) = (self.bounds, self.bounds_bytes()) {
            field(&mut bytes, BOUNDS, length);
            bytes.push(bounds.dimensions() as u8);
            for axis in bounds.axes() {
                bytes.extend_from_slice(&axis.start().to_le_bytes());
                bytes.extend_from_slice(&axis.end().to_le_bytes());
            }
            let femtometres = bounds.resolution().map_or(0, Resolution::femtometres);
            bytes.extend_from_slice(&femtometres.to_le_bytes());
        }
        let check = check(head, &bytes);
        bytes.extend_from_slice(&check);
        place.copy_from_slice(&bytes);
    }

    /// Parses the fields at the start of `body`. Returns them with their length.
    pub(super) fn read(head: &Head, body: &[u8]) -> Result<(Self, usize), DecodeError> {
        let (length, rest) = body.split_first_chunk().ok_or(DecodeError::Fields)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FIELDS_BYTES {
            return Err(DecodeError::Fields);
        }
        let (fields, rest) = rest.split_at_checked(length).ok_or(DecodeError::Fields)?;
        let found: &[u8; CHECK_BYTES] = rest.first_chunk().ok_or(DecodeError::Fields)?;
        // Before parsing: corruption must not look like a field of a later minor version, which counts as intact.
        if *found != check(head, &body[..4 + length]) {
            return Err(DecodeError::Fields);
        }
        Ok((Self::parse(head.0[7], fields)?, 4 + length + CHECK_BYTES))
    }

    fn parse(minor: u8, mut rest: &[u8]) -> Result<Self, DecodeError> {
        let (mut shape, mut bounds, mut skipped) = (None, None, 0);
        while !rest.is_empty() {
            let (tag, payload) = next(&mut rest).ok_or(DecodeError::Fields)?;
            match tag {
                SHAPE if shape.is_none() => shape = Some(read_shape(payload).ok_or(DecodeError::Fields)?),
                BOUNDS if bounds.is_none() => bounds = Some(read_bounds(payload).ok_or(DecodeError::Fields)?),
                SHAPE | BOUNDS => return Err(DecodeError::Fields),
                tag if tag >= OPTIONAL => skipped += 1,
                // The same minor version knows all fields.
                _ if minor == MINOR => return Err(DecodeError::Fields),
                tag => return Err(DecodeError::Field { tag, minor }),
            }
        }
        Ok(Self { shape: shape.ok_or(DecodeError::Fields)?, bounds, skipped })
    }
}

fn field(bytes: &mut Vec<u8>, tag: u16, length: usize) {
    bytes.extend_from_slice(&tag.to_le_bytes());
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
}

/// Returns tag and content of the next field.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let tag = u16::from_le_bytes(*rest.split_off(..2)?.first_chunk()?);
    let length = u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?);
    Some((tag, rest.split_off(..length as usize)?))
}

fn read_shape(payload: &[u8]) -> Option<Shape> {
    let (counts, rest) = payload.as_chunks();
    let counts: Vec<u64> = counts.iter().map(|count| u64::from_le_bytes(*count)).collect();
    Shape::of(&counts).filter(|_| rest.is_empty())
}

fn read_bounds(payload: &[u8]) -> Option<SpatialBounds> {
    let (&dimensions, rest) = payload.split_first()?;
    let (numbers, rest) = rest.as_chunks();
    let (femtometres, ends) = numbers.split_last()?;
    if !rest.is_empty() || ends.len() != 2 * usize::from(dimensions) {
        return None;
    }
    let ends: Vec<i64> = ends.iter().map(|end| i64::from_le_bytes(*end)).collect();
    let axes: Option<Vec<Interval>> = ends.chunks(2).map(|end| Interval::new(end[0], end[1]).ok()).collect();
    let resolution = match u64::from_le_bytes(*femtometres) {
        0 => None,
        femtometres => Some(Resolution::from_femtometres(femtometres)?),
    };
    SpatialBounds::new(&axes?, resolution).ok()
}

fn check(head: &Head, fields: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key(CHECK_CONTEXT);
    let hash = hasher.update(&head.0).update(fields).finalize();
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hash.as_bytes()[..CHECK_BYTES]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        let axes = [Interval::new(-5, 7).unwrap(), Interval::new(0, 3).unwrap()];
        let resolution = Resolution::from_microns_per_px(0.252_584_99).unwrap();
        let bounds = SpatialBounds::new(&axes, Some(resolution)).unwrap();
        Fields { shape: Shape::of(&[3, 12, 1]).unwrap(), bounds: Some(bounds), skipped: 0 }
    }

    fn head(minor: u8) -> Head {
        let mut head = Head([9; Head::BYTES]);
        head.0[7] = minor;
        head
    }

    /// Fields as a later minor version may write them.
    fn with_field(minor: u8, tag: u16) -> Result<(Fields, usize), DecodeError> {
        let mut bytes = vec![0; fields().encoded_bytes()];
        fields().write(&head(0), &mut bytes);
        bytes.truncate(bytes.len() - CHECK_BYTES);
        field(&mut bytes, tag, 3);
        bytes.extend([1, 2, 3]);
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let check = check(&head(minor), &bytes);
        bytes.extend(check);
        Fields::read(&head(minor), &bytes)
    }

    #[test]
    fn fields_round_trip() {
        for fields in [fields(), Fields { bounds: None, shape: Shape::default(), skipped: 0 }] {
            let mut bytes = vec![0; fields.encoded_bytes()];
            fields.write(&head(0), &mut bytes);
            let length = bytes.len();
            bytes.extend([7; 5]);
            assert_eq!(Fields::read(&head(0), &bytes), Ok((fields, length)));
            for cut in 0..length {
                assert_eq!(Fields::read(&head(0), &bytes[..cut]), Err(DecodeError::Fields), "{cut} bytes");
            }
        }
    }

    #[test]
    fn optional_fields_of_later_versions_are_skipped() {
        let (found, _) = with_field(3, OPTIONAL + 900).unwrap();
        assert_eq!(found, Fields { skipped: 1, ..fields() });
        let error = with_field(3, 900).unwrap_err();
        assert!(error.is_newer());
        let text = "decode a data region: unknown required field 900 of minor version 3";
        assert_eq!(error.to_string(), text);
        assert_eq!(with_field(0, 900), Err(DecodeError::Fields), "this version wrote no such field");
        assert_eq!(with_field(0, SHAPE), Err(DecodeError::Fields), "a second shape");
    }

    #[test]
    fn changed_head_is_detected() {
        let mut bytes = vec![0; fields().encoded_bytes()];
        fields().write(&head(0), &mut bytes);
        for place in 0..Head::BYTES {
            let mut other = head(0);
            other.0[place] ^= 64;
            assert_eq!(Fields::read(&other, &bytes), Err(DecodeError::Fields));
        }
    }
}
