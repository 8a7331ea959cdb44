//! Data regions as bytes that outlive a process, and back.
//!
//! An encoding begins with a header of [`HEADER_BYTES`]: magic, version, element type, coding, channels, shape and the
//! content's digest; numbers are stored lowest byte first. Which coding pays is decided by trying it
//! (`encode/coding.rs`). What is decoded is digested again: a region that comes out is the one that went in. Where the
//! bytes are kept is no business of this module.

mod coding;
mod decoder;

pub use decoder::Decoder;

use crate::digest::{element_code, table_bytes, write_labels};
use crate::{DataRegion, Digest, ElementType, LabelMap, Raster, Table};
use coding::Coding;
use std::borrow::Cow;
use thiserror::Error;

/// What every encoding begins with.
const MAGIC: [u8; 4] = *b"PLRG";

/// The version written, and the only one read.
const VERSION: u8 = 1;

/// Bytes before the content.
const HEADER_BYTES: usize = 48;

/// Decoding allocates at most this many times the length of what it is given, whatever that claims: a pixel is one bit
/// of a packed mask at least, and a byte of LZ4 stands for 255 bytes at most. The packed form is there as well while a
/// mask is unpacked.
pub const MAX_EXPANSION: u64 = (8 + 1) * coding::LZ4_EXPANSION;

/// Why bytes are no data region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// They are too few, or do not begin as an encoding does.
    #[error("decode a data region: {bytes} bytes that do not begin with its header")]
    NoHeader {
        /// How many there are.
        bytes: usize,
    },
    /// Another program wrote them.
    #[error("decode a data region: version {found}, only {allowed} is known")]
    Version {
        /// The version there.
        found: u8,
        /// The version allowed.
        allowed: u8,
    },
    /// The header names no element type, coding or shape.
    #[error(
        "decode a data region: element type {element} in coding {coding}, {width_px} x {height_px} px of {channels} channels"
    )]
    Header {
        /// Number of the element type.
        element: u8,
        /// Number of the coding.
        coding: u8,
        /// Width, pixels; the columns of a table.
        width_px: u32,
        /// Height, pixels.
        height_px: u32,
        /// Channels.
        channels: u8,
    },
    /// The content is longer or shorter than the header says.
    #[error("decode a data region: {found} bytes of content cannot be the {expected} bytes of its shape")]
    Length {
        /// Bytes after the header.
        found: usize,
        /// Bytes of the decoded content.
        expected: u64,
    },
    /// The content is not that of the digest.
    #[error("decode a data region: content of another digest than {expected}")]
    Digest {
        /// What the header says.
        expected: Digest,
    },
}

impl DataRegion {
    /// This region as bytes, at most 48 more than it takes in memory. `digest` is its own
    /// ([`DataRegion::digest`]), which whoever stores a region knows already; with another one the bytes cannot be
    /// decoded.
    ///
    /// Masks take one bit a pixel; LZ4 is used where it saves at least a tenth of what is left.
    #[must_use]
    pub fn encode(&self, digest: &Digest) -> Vec<u8> {
        let (content, channels) = self.content();
        let (coding, mut bytes) = coding::encode(self.element(), &content, HEADER_BYTES);
        bytes[..HEADER_BYTES].copy_from_slice(&self.head(coding, channels, digest).0);
        bytes
    }

    /// This region as an encoding's head and what follows it. Content that is stored as it is is not copied: all of it
    /// unless `is_small`, and then what [`encode`](Self::encode) cannot make smaller.
    #[must_use]
    pub fn encode_parts(&self, digest: &Digest, is_small: bool) -> (Head, Cow<'_, [u8]>) {
        let (content, channels) = self.content();
        let smaller = if is_small { coding::smaller(self.element(), &content, 0) } else { None };
        let (coding, body) =
            smaller.map_or((Coding::Raw, content), |(coding, bytes)| (coding, Cow::Owned(bytes)));
        (self.head(coding, channels, digest), body)
    }

    fn head(&self, coding: Coding, channels: u8, digest: &Digest) -> Head {
        let (width_px, height_px) = match self {
            Self::Table(table) => (table.columns().count() as u32, 0),
            _ => self.size_px().unwrap_or_default(),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = element_code(self.element());
        bytes[6] = coding.code();
        bytes[7] = channels;
        bytes[8..12].copy_from_slice(&width_px.to_le_bytes());
        bytes[12..16].copy_from_slice(&height_px.to_le_bytes());
        bytes[16..].copy_from_slice(&digest.0);
        Head(bytes)
    }

    /// The region that was encoded as `bytes`, and its digest.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not exactly those of an encoding; at most [`MAX_EXPANSION`] times their length
    /// is allocated to find out.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Digest), DecodeError> {
        let header = Header::read(bytes)?;
        header.region(Cow::Borrowed(&bytes[HEADER_BYTES..]))
    }

    /// The region of which [`encode_parts`](Self::encode_parts) made these parts, and its digest. Pixels that are stored
    /// as they are are not copied.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_parts(head: &Head, body: Vec<u8>) -> Result<(Self, Digest), DecodeError> {
        Header::read(&head.0)?.region(Cow::Owned(body))
    }

    /// The content as bytes, and its channels.
    fn content(&self) -> (Cow<'_, [u8]>, u8) {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => {
                (Cow::Borrowed(raster.data()), raster.channels())
            }
            Self::Labels(map) => {
                let mut bytes = vec![0; size_of_val(map.labels())];
                write_labels(map.labels(), &mut bytes);
                (Cow::Owned(bytes), 1)
            }
            Self::Table(table) => (Cow::Owned(table_bytes(table)), 0),
        }
    }
}

/// What an encoding begins with: the element type, coding, shape and digest of what follows. It may be damaged; decoding
/// tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub [u8; Self::BYTES]);

impl Head {
    /// Its length.
    pub const BYTES: usize = HEADER_BYTES;

    /// The digest of the region, as it says.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(array(&self.0, 16))
    }
}

/// A header that names an element type and a coding; its shape is still to be compared with the content.
#[derive(Debug)]
struct Header {
    element: ElementType,
    coding: Coding,
    channels: u8,
    width_px: u32,
    height_px: u32,
    digest: Digest,
}

/// The first `N` bytes from `start` on; the slice has them.
fn array<const N: usize>(bytes: &[u8], start: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[start..start + N]);
    array
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < HEADER_BYTES || bytes[..4] != MAGIC {
            return Err(DecodeError::NoHeader { bytes: bytes.len() });
        }
        if bytes[4] != VERSION {
            return Err(DecodeError::Version { found: bytes[4], allowed: VERSION });
        }
        let (width_px, height_px) =
            (u32::from_le_bytes(array(bytes, 8)), u32::from_le_bytes(array(bytes, 12)));
        let (element, coding, channels) = (bytes[5], bytes[6], bytes[7]);
        let known = |wanted: &&ElementType| element_code(**wanted) == element;
        match (ElementType::ALL.iter().find(known), Coding::of(coding)) {
            (Some(element), Some(coding)) => {
                let digest = Digest(array(bytes, 16));
                Ok(Self { element: *element, coding, channels, width_px, height_px, digest })
            }
            _ => Err(DecodeError::Header { element, coding, width_px, height_px, channels }),
        }
    }

    fn is_raw(&self) -> bool {
        self.coding == Coding::Raw
    }

    /// This header as the reason why there is no region.
    fn refuse(&self) -> DecodeError {
        let &Self { coding, width_px, height_px, channels, .. } = self;
        let (element, coding) = (element_code(self.element), coding.code());
        DecodeError::Header { element, coding, width_px, height_px, channels }
    }

    /// The region of this header and its content.
    fn region(&self, body: Cow<'_, [u8]>) -> Result<(DataRegion, Digest), DecodeError> {
        let region = self.unchecked(body)?;
        self.check(region.digest())?;
        Ok((region, self.digest))
    }

    fn unchecked(&self, body: Cow<'_, [u8]>) -> Result<DataRegion, DecodeError> {
        if self.element == ElementType::Table { self.table(&body) } else { self.pixels(body) }
    }

    fn check(&self, found: Digest) -> Result<(), DecodeError> {
        if found == self.digest { Ok(()) } else { Err(DecodeError::Digest { expected: self.digest }) }
    }

    fn pixels(&self, body: Cow<'_, [u8]>) -> Result<DataRegion, DecodeError> {
        let labels = self.element == ElementType::Labels;
        let bytes_a_pixel = if labels { size_of::<u32>() as u64 } else { u64::from(self.channels) };
        let pixels = u64::from(self.width_px) * u64::from(self.height_px);
        let expected =
            pixels.checked_mul(bytes_a_pixel).filter(|bytes| *bytes > 0).ok_or_else(|| self.refuse())?;
        if (self.coding.is_packed() && self.element != ElementType::Mask) || (labels && self.channels != 1) {
            return Err(self.refuse());
        }
        let wrong_length = DecodeError::Length { found: body.len(), expected };
        let content = coding::decode(self.coding, body, expected).ok_or(wrong_length)?;
        let (width_px, height_px) = (self.width_px, self.height_px);
        if labels {
            let labels = content.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
            return LabelMap::new(width_px, height_px, labels)
                .map(DataRegion::Labels)
                .map_err(|_| self.refuse());
        }
        let raster = Raster::new(width_px, height_px, self.channels, content).map_err(|_| self.refuse())?;
        Ok(match self.element {
            ElementType::Bgr8 => DataRegion::Bgr8(raster),
            ElementType::Gray8 => DataRegion::Gray8(raster),
            _ => DataRegion::Mask(raster),
        })
    }

    /// Tables are small and stored as they are: the width is the number of columns.
    fn table(&self, body: &[u8]) -> Result<DataRegion, DecodeError> {
        if self.coding != Coding::Raw || self.height_px != 0 || self.channels != 0 {
            return Err(self.refuse());
        }
        let wrong_length = DecodeError::Length { found: body.len(), expected: body.len() as u64 };
        let mut rest = body;
        let mut take = |length: usize| rest.split_off(..length).ok_or(wrong_length);
        let mut columns = Vec::new();
        for _ in 0..self.width_px {
            let length = u32::from_le_bytes(array(take(4)?, 0));
            let name = std::str::from_utf8(take(length as usize)?).map_err(|_| wrong_length)?;
            columns.push((name, f64::from_bits(u64::from_le_bytes(array(take(8)?, 0)))));
        }
        if !rest.is_empty() {
            return Err(wrong_length);
        }
        Ok(DataRegion::Table(Table::new(columns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(region: &DataRegion) -> Vec<u8> {
        region.encode(&region.digest())
    }

    #[test]
    fn what_an_encoding_looks_like() {
        let region = DataRegion::Mask(Raster::new(3, 3, 1, vec![255, 0, 0, 0, 255, 0, 0, 0, 255]).unwrap());
        let bytes = encoded(&region);
        assert_eq!(bytes[..16], [b'P', b'L', b'R', b'G', 1, 3, 1, 1, 3, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[16..48], region.digest().0);
        // Pixels 0, 4 and 8, the first in the lowest bit.
        assert_eq!(bytes[48..], [0b1_0001, 1]);
        assert_eq!(DataRegion::decode(&bytes), Ok((region.clone(), region.digest())));
    }

    #[test]
    fn parts_are_an_encoding_in_two() {
        let mask = DataRegion::Mask(Raster::filled(80, 50, 1, 255).unwrap());
        let noise = (0..4000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let grey = DataRegion::Gray8(Raster::new(80, 50, 1, noise).unwrap());
        for region in [mask, grey, DataRegion::Table(Table::new([("dice", 0.25)]))] {
            let digest = region.digest();
            let (head, body) = region.encode_parts(&digest, true);
            assert_eq!([&head.0[..], &body].concat(), region.encode(&digest));
            assert_eq!(head.digest(), digest);
            let (plain, content) = region.encode_parts(&digest, false);
            assert!(region.element() == ElementType::Table || matches!(content, Cow::Borrowed(_)));
            for (head, body) in [(head, body), (plain, content)] {
                let body = body.into_owned();
                assert_eq!(DataRegion::decode_parts(&head, body), Ok((region.clone(), digest)));
            }
        }
    }

    #[test]
    fn pixels_as_they_are_are_not_copied() {
        let region = DataRegion::Gray8(Raster::filled(80, 50, 1, 7).unwrap());
        let (head, body) = region.encode_parts(&region.digest(), false);
        let body = body.into_owned();
        let place = body.as_ptr();
        let (region, _) = DataRegion::decode_parts(&head, body).unwrap();
        assert_eq!(region.raster(ElementType::Gray8).unwrap().data().as_ptr(), place);
    }

    #[test]
    fn reasons_are_told_apart() {
        let region = DataRegion::Gray8(Raster::new(2, 2, 1, vec![1, 2, 3, 4]).unwrap());
        let bytes = encoded(&region);
        let with = |place: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[place] = value;
            DataRegion::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(with(0, 0), "decode a data region: 52 bytes that do not begin with its header");
        assert_eq!(with(4, 7), "decode a data region: version 7, only 1 is known");
        let header = "decode a data region: element type 9 in coding 0, 2 x 2 px of 1 channels";
        assert_eq!(with(5, 9), header);
        let length = "decode a data region: 4 bytes of content cannot be the 6 bytes of its shape";
        assert_eq!(with(8, 3), length);
        assert!(with(50, 0).starts_with("decode a data region: content of another digest than "));
        // Another type of the same shape.
        assert!(with(5, 3).starts_with("decode a data region: content of another digest than "));
    }

    #[test]
    fn a_table_that_counts_more_columns_than_it_has_is_refused() {
        let mut bytes = encoded(&DataRegion::Table(Table::new([("dice", 0.25)])));
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(DataRegion::decode(&bytes), Err(DecodeError::Length { .. })));
    }
}
