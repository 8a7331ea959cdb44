//! What an encoding says of itself, for people: version, coding, where it lies.
//!
//! The content is not looked at; decoding it tells whether all of this is true.

use super::coding::Coding;
use super::header::{FIRST, HeaderVersion, MINOR, SECOND};
use super::{DecodeError, Head};
use crate::{DataRegion, Digest, ElementType, Shape, SpatialBounds};

/// The header of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Version of the encoding.
    pub version: u8,
    /// Minor version; 0 where versions had none.
    pub minor: u8,
    /// What it holds.
    pub element: ElementType,
    /// How much of it.
    pub shape: Shape,
    /// Where it lies, where that is stated.
    pub bounds: Option<SpatialBounds>,
    /// How its content is stored, in words.
    pub coding: &'static str,
    /// Bytes of the content as it is stored.
    pub stored_bytes: u64,
    /// Digest of the region.
    pub digest: Digest,
    /// Fields that are not known here, and were passed over.
    pub fields_skipped: usize,
}

impl Description {
    /// What `bytes` say of themselves.
    ///
    /// # Errors
    /// [`DecodeError`] where they do not begin as an encoding does.
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

    /// Whether a later minor version wrote it.
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

/// A region that was read with what its encoding said.
impl DataRegion {
    /// The region that was encoded as `bytes`, and what they say of it.
    ///
    /// # Errors
    /// As [`DataRegion::decode`].
    pub fn decode_described(bytes: &[u8]) -> Result<(Self, Description), DecodeError> {
        let description = Description::read(bytes)?;
        Ok((Self::decode(bytes)?.0, description))
    }
}
