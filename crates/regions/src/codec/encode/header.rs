//! The 48 bytes that an encoding begins with, in both versions.
//!
//! | bytes | version 1 | version 2 |
//! | --- | --- | --- |
//! | 0..4 | `PLRG` | `PLRG` |
//! | 4 | 1 | 2 |
//! | 5 | element type | element type |
//! | 6 | coding | coding |
//! | 7 | channels | minor version |
//! | 8..12 | width, pixels; the columns of a table | bytes of the content when it is decoded … |
//! | 12..16 | height, pixels | … as one number of 64 bits |
//! | 16..48 | digest of the region | digest of the region |
//!
//! Numbers are little-endian. A minor version adds fields, and a program of an earlier one reads its output
//! unless a field is marked as required. A version changes the meaning of the existing bytes.

use super::coding::Coding;
use super::fields::Fields;
use super::{DecodeError, Head, Header};
use crate::codec::digest::{element_code, element_of};
use crate::{DataRegion, Digest, ElementType, Shape};
use std::borrow::Cow;

/// First bytes of every encoding.
const MAGIC: [u8; 4] = *b"PLRG";

/// Version with the shape in the head.
pub(super) const FIRST: u8 = 1;

/// Version with fields.
pub(super) const SECOND: u8 = 2;

/// Minor version that is written.
pub(super) const MINOR: u8 = 0;

/// Returns the head of version 1. The shape is that of an image, a label map or a table.
pub(super) fn first(element: ElementType, coding: Coding, shape: &Shape, digest: &Digest) -> Head {
    let (height, width, channels) = match **shape {
        [height, width, channels] => (height, width, channels),
        [height, width] => (height, width, 1),
        [columns] => (0, columns, 0),
        _ => (0, 0, 0),
    };
    let mut bytes = header_start(FIRST, element, coding, channels as u8, digest);
    bytes[8..12].copy_from_slice(&(width as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&(height as u32).to_le_bytes());
    Head(bytes)
}

/// Returns the head of version 2.
pub(super) fn second(element: ElementType, coding: Coding, content_bytes: u64, digest: &Digest) -> Head {
    let mut bytes = header_start(SECOND, element, coding, MINOR, digest);
    bytes[8..16].copy_from_slice(&content_bytes.to_le_bytes());
    Head(bytes)
}

fn header_start(
    version: u8,
    element: ElementType,
    coding: Coding,
    seventh: u8,
    digest: &Digest,
) -> [u8; Head::BYTES] {
    let mut bytes = [0; Head::BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = version;
    bytes[5] = element_code(element);
    bytes[6] = coding.code();
    bytes[7] = seventh;
    bytes[16..].copy_from_slice(&digest.0);
    bytes
}

/// Parsed head: complete in version 1, and in version 2 everything except the fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum HeaderVersion {
    First(Header),
    Second {
        head: Head,
        /// Header without its shape.
        header: Header,
    },
}

impl HeaderVersion {
    /// Parses the head of an encoding of `bytes` bytes.
    pub(super) fn read(head: &Head, bytes: usize) -> Result<Self, DecodeError> {
        let Head(head_bytes) = head;
        if head_bytes[..4] != MAGIC {
            return Err(DecodeError::NoHeader { bytes });
        }
        let (version, element, coding) = (head_bytes[4], head_bytes[5], head_bytes[6]);
        let mut number = [0; 8];
        number.copy_from_slice(&head_bytes[8..16]);
        let number = u64::from_le_bytes(number);
        let shape = match version {
            FIRST => shape_of_first(element, number, head_bytes[7]),
            SECOND => Shape::default(),
            found => return Err(DecodeError::Version { found }),
        };
        let refusal = DecodeError::Header { element, coding, shape };
        let (element, coding) = element_of(element).zip(Coding::of(coding)).ok_or(refusal)?;
        let digest = head.digest();
        if version == SECOND {
            let content_bytes = Some(number);
            return Ok(Self::Second {
                head: *head,
                header: Header { element, coding, shape, content_bytes, digest },
            });
        }
        // Bytes that a type does not use have fixed values: the digest does not cover them, so only this check finds
        // corruption there.
        let is_columns = element == ElementType::Table && (head_bytes[7] != 0 || number >> 32 != 0);
        let is_channels = element == ElementType::Labels && head_bytes[7] != 1;
        if !coding.is_in_first() || !is_in_first(element) || is_columns || is_channels {
            return Err(refusal);
        }
        Ok(Self::First(Header { element, coding, shape, content_bytes: None, digest }))
    }

    /// Returns the header, the fields if there are any, and their length in the body.
    pub(super) fn header(&self, body: &[u8]) -> Result<(Header, Option<(Fields, usize)>), DecodeError> {
        match self {
            Self::First(header) => Ok((*header, None)),
            Self::Second { head, header } => {
                let (fields, bytes) = Fields::read(head, body)?;
                Ok((Header { shape: fields.shape, ..*header }, Some((fields, bytes))))
            }
        }
    }

    /// Decodes the region of this head and `body`.
    pub(super) fn region(&self, body: Cow<'_, [u8]>) -> Result<(DataRegion, Digest), DecodeError> {
        let (header, fields) = self.header(&body)?;
        let Some((_, bytes)) = fields else { return header.region(body) };
        header.region(match body {
            Cow::Borrowed(body) => Cow::Borrowed(&body[bytes..]),
            Cow::Owned(mut body) => {
                body.drain(..bytes);
                Cow::Owned(body)
            }
        })
    }

    pub(super) fn digest(&self) -> Digest {
        match self {
            Self::First(header) | Self::Second { header, .. } => header.digest,
        }
    }
}

/// Returns whether version 1 supports this element type.
pub(super) fn is_in_first(element: ElementType) -> bool {
    matches!(
        element,
        ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask | ElementType::Labels | ElementType::Table
    )
}

/// Returns the shape in the head of version 1. Unknown element types count as pixels.
fn shape_of_first(element: u8, sides: u64, channels: u8) -> Shape {
    let (width, height) = (sides & u64::from(u32::MAX), sides >> 32);
    let counts: &[u64] = match element_of(element) {
        Some(ElementType::Table) => &[width],
        Some(ElementType::Labels) => &[height, width],
        _ => &[height, width, u64::from(channels)],
    };
    Shape::of(counts).unwrap_or_default()
}

/// Returns the header of pixels that can be digested while they arrive: uncompressed, without fields.
pub(super) fn seen_pixels(start: &HeaderVersion) -> Option<&Header> {
    match start {
        HeaderVersion::First(header) if header.coding == Coding::Raw => {
            matches!(header.element, ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask)
                .then_some(header)
        }
        _ => None,
    }
}
