//! Header description of an encoding for users: version, coding, bounds.
//!
//! The content is not read. Only decoding verifies the header.

use super::coding::Coding;
use super::header::{FIRST, HeaderVersion, MINOR, SECOND};
use super::{DecodeError, Head};
use crate::{DataRegion, Digest, ElementType, Shape, SpatialBounds};

/// The header of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Version of the encoding.
    pub version: u8,
    /// Minor version. 0 in version 1, which has none.
    pub minor: u8,
    /// Element type.
    pub element: ElementType,
    /// Shape.
    pub shape: Shape,
    /// Bounds, if stated.
    pub bounds: Option<SpatialBounds>,
    /// Storage format of the content, in words.
    pub coding: &'static str,
    /// Stored size of the content.
    pub stored_bytes: u64,
    /// Digest of the region.
    pub digest: Digest,
    /// Number of unknown fields that were skipped.
    pub fields_skipped: usize,
}

impl Description {
    /// Parses the header of `bytes`.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if they do not begin like an encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some((head, body)) = bytes.split_first_chunk() else {
            return Err(DecodeError::NoHeader { bytes: bytes.len() });
        };
        let start = HeaderVersion::read(&Head(*head), bytes.len())?;
        let (header, fields) = start.header(body)?;
        let (bounds, fields_skipped, taken) =
            fields.map_or((None, 0, 0), |(fields, taken)| (fields.bounds, fields.skipped, taken));
        let (version, minor) = if fields.is_some() { (SECOND, head[7]) } else { (FIRST, 0) };
        Ok(Self {
            version,
            minor,
            element: header.element,
            shape: header.shape,
            bounds,
            coding: header.coding.words(),
            stored_bytes: (body.len() - taken) as u64,
            digest: header.digest,
            fields_skipped,
        })
    }

    /// Returns whether a later minor version wrote it.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        self.version == SECOND && self.minor > MINOR
    }
}

impl Coding {
    fn words(self) -> &'static str {
        match self {
            Self::Raw => "as it is",
            Self::Packed => "one bit a pixel",
            Self::Lz4 => "LZ4",
            Self::PackedLz4 => "one bit a pixel, LZ4",
            Self::Runs => "runs",
            Self::Zstd => "Zstandard",
            Self::PackedZstd => "one bit a pixel, Zstandard",
            Self::RunsZstd => "runs, Zstandard",
            Self::RowsZstd => "differences between rows, Zstandard",
            Self::PlanesZstd => "planes of bytes, Zstandard",
        }
    }
}

/// Decoding together with the description.
impl DataRegion {
    /// Decodes a region. Returns it with its description.
    ///
    /// # Errors
    /// Same as [`DataRegion::decode`].
    pub fn decode_described(bytes: &[u8]) -> Result<(Self, Description), DecodeError> {
        let description = Description::read(bytes)?;
        Ok((Self::decode(bytes)?.0, description))
    }
}
