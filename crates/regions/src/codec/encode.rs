//! Encoding of data regions as bytes that outlive a process.
//!
//! An encoding begins with a head of 48 bytes: magic, version, element type, coding, and the content's digest. Two versions
//! exist, and both are read:
//!
//! - Version 1 has the shape in its head, followed by the content. It is used for images, masks and tables.
//! - Version 2 has fields behind its head (`encode/fields.rs`): the shape of any element type, a bounding
//!   box, and additions of later minor versions. It is used for everything else, and for regions with bounds.
//!
//! Compression is in `encode/coding.rs`. Decoding verifies the digest, so a decoded region equals the encoded
//! one. The caller stores the bytes.

mod coding;
mod decoder;
mod description;
mod fields;
mod header;
mod in_memory;
mod runs;

pub use coding::CompressionEffort;
pub use decoder::Decoder;
pub use description::Description;
pub use in_memory::EncodedRegion;

use crate::codec::content;
use crate::codec::digest::element_code;
use crate::{DataRegion, Digest, ElementType, Shape, SpatialBounds};
use coding::{Coding, LZ4_EXPANSION};
use fields::Fields;
use header::{FIRST, HeaderVersion, SECOND};
use std::borrow::Cow;
use thiserror::Error;

/// Decoding allocates at most this many times the input length, for any input: a pixel takes at least one bit
/// of a packed mask, and a byte of a compressed block represents at most 255 bytes. The packed form coexists
/// with the mask while it is unpacked. An empty name takes 4 bytes encoded, 24 in memory, and 8 while names
/// are compared.
pub const MAX_EXPANSION: u64 = (8 + 2) * LZ4_EXPANSION;

/// Maximum overhead of an encoding over the region in memory, in bytes: the head, the fields, and the end of an empty list.
pub const MAX_OVERHEAD_BYTES: u64 = 192;

/// Errors of decoding a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes are too few, or do not begin with the magic.
    #[error("decode a data region: no header in {bytes} bytes")]
    NoHeader {
        /// Number of bytes.
        bytes: usize,
    },
    /// The version is newer than this program, or invalid.
    #[error("decode a data region: encoding version {found}; {FIRST} and {SECOND} are allowed")]
    Version {
        /// The version found.
        found: u8,
    },
    /// The header has an invalid element type, coding or shape, or an invalid combination.
    #[error(
        "decode a data region: invalid header with element type {element}, coding {coding} and shape {shape}"
    )]
    Header {
        /// Number of the element type.
        element: u8,
        /// Number of the coding.
        coding: u8,
        /// Shape, as far as known.
        shape: Shape,
    },
    /// The fields of version 2 are truncated or corrupt.
    #[error("decode a data region: corrupt header fields")]
    Fields,
    /// A later minor version wrote a field that is required to interpret the content.
    #[error("decode a data region: unknown required field {tag} of minor version {minor}")]
    Field {
        /// Number of the field.
        tag: u16,
        /// Minor version of the writer.
        minor: u8,
    },
    /// The content length differs from the header.
    #[error("decode a data region: {found} bytes of content do not match the {expected} bytes of its shape")]
    Length {
        /// Bytes after the header.
        found: usize,
        /// Bytes of the decoded content.
        expected: u64,
    },
    /// The content has the length of its shape, but is inconsistent.
    #[error("decode a data region: invalid content for {element} of shape {shape}")]
    Content {
        /// Expected element type.
        element: ElementType,
        /// Expected shape.
        shape: Shape,
    },
    /// The content does not match the digest.
    #[error("decode a data region: content does not match digest {expected}")]
    Digest {
        /// The digest in the header.
        expected: Digest,
    },
}

impl DecodeError {
    /// Returns whether a later version of the program may be able to decode the bytes: they need not be corrupt.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Version { found } if *found > SECOND) || matches!(self, Self::Field { .. })
    }
}

impl DataRegion {
    /// Encodes this region in at most [`MAX_OVERHEAD_BYTES`] more than it takes in memory. `digest` is its
    /// own ([`DataRegion::digest`]), which callers that store a region have already computed. With another
    /// digest the bytes cannot be decoded.
    ///
    /// Compression is [`CompressionEffort::Quick`].
    #[must_use]
    pub fn encode(&self, digest: &Digest) -> Vec<u8> {
        let (head, body) = self.coded(digest, CompressionEffort::Quick, None, Head::BYTES);
        match body {
            Cow::Owned(mut bytes) => {
                bytes[..Head::BYTES].copy_from_slice(&head.0);
                bytes
            }
            Cow::Borrowed(body) => [&head.0, body].concat(),
        }
    }

    /// Encodes this region as a head and a body. Uncompressed pixels are borrowed: all of them unless `is_small`, and then
    /// those that [`encode`](Self::encode) cannot compress.
    #[must_use]
    pub fn encode_parts(&self, digest: &Digest, is_small: bool) -> (Head, Cow<'_, [u8]>) {
        let effort = if is_small { CompressionEffort::Quick } else { CompressionEffort::None };
        self.encode_with(digest, effort, None)
    }

    /// Encodes like [`encode_parts`](Self::encode_parts), with the given effort and the bounds of the region.
    #[must_use]
    pub fn encode_with(
        &self,
        digest: &Digest,
        effort: CompressionEffort,
        bounds: Option<&SpatialBounds>,
    ) -> (Head, Cow<'_, [u8]>) {
        self.coded(digest, effort, bounds, 0)
    }

    /// Encodes like [`encode_parts`](Self::encode_parts), before the digest is known. `None` if the body
    /// depends on the digest, as for small label maps and all types except images, masks, label maps and
    /// tables.
    #[must_use]
    pub fn encode_undigested(&self, is_small: bool) -> Option<(UndigestedHead, Cow<'_, [u8]>)> {
        let effort = if is_small { CompressionEffort::Quick } else { CompressionEffort::None };
        coding::is_of_first(self.element(), effort).then(|| {
            let (head, body) = self.coded(&Digest([0; 32]), effort, None, 0);
            (UndigestedHead(head), body)
        })
    }

    /// Returns the head, and the body behind `room` bytes. A borrowed body has no such bytes.
    fn coded(
        &self,
        digest: &Digest,
        effort: CompressionEffort,
        bounds: Option<&SpatialBounds>,
        room: usize,
    ) -> (Head, Cow<'_, [u8]>) {
        let (element, shape) = (self.element(), self.shape());
        if bounds.is_none() && coding::is_of_first(element, effort) {
            let (coding, body, _) = self.stored(&shape, effort, room);
            return (header::first(element, coding, &shape, digest), body);
        }
        let fields = Fields { shape, bounds: bounds.copied(), skipped: 0 };
        let room_and_fields = room + fields.encoded_bytes();
        let (coding, body, content_bytes) = self.stored(&shape, effort, room_and_fields);
        let head = header::second(element, coding, content_bytes, digest);
        let mut body = body.into_owned();
        fields.write(&head, &mut body[room..room_and_fields]);
        (head, Cow::Owned(body))
    }

    /// Returns the stored content behind `room` bytes, and its uncompressed length.
    fn stored(&self, shape: &Shape, effort: CompressionEffort, room: usize) -> (Coding, Cow<'_, [u8]>, u64) {
        if let Self::Labels(map) = self
            && effort != CompressionEffort::None
            && let Some((coding, bytes)) = coding::runs_of(map.labels(), effort, room)
        {
            return (coding, Cow::Owned(bytes), self.bytes());
        }
        let content = content::contiguous(self);
        let content_bytes = content.len() as u64;
        match coding::smaller(self.element(), shape, &content, effort, room) {
            Some((coding, bytes)) => (coding, Cow::Owned(bytes), content_bytes),
            None if room == 0 => (Coding::Raw, content, content_bytes),
            None => (Coding::Raw, Cow::Owned(coding::zero_prefixed(room, &content)), content_bytes),
        }
    }

    /// Decodes a region. Returns it with its digest.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not exactly one encoding. Finding out allocates at most [`MAX_EXPANSION`]
    /// times their length.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Digest), DecodeError> {
        let Some((head, body)) = bytes.split_first_chunk() else {
            return Err(DecodeError::NoHeader { bytes: bytes.len() });
        };
        HeaderVersion::read(&Head(*head), bytes.len())?.region(Cow::Borrowed(body))
    }

    /// Decodes the parts of [`encode_parts`](Self::encode_parts). Returns the region with its digest.
    /// Uncompressed pixels are not copied.
    ///
    /// # Errors
    /// Same as [`decode`](Self::decode).
    pub fn decode_parts(head: &Head, body: Vec<u8>) -> Result<(Self, Digest), DecodeError> {
        HeaderVersion::read(head, Head::BYTES + body.len())?.region(Cow::Owned(body))
    }
}

/// Head of an encoding: its version, element type, coding and the digest of the region. It may be corrupt, which decoding
/// detects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub [u8; Self::BYTES]);

impl Head {
    /// Length of the head, bytes.
    pub const BYTES: usize = 48;

    /// Returns the digest of the region, unverified.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digest = [0; 32];
        digest.copy_from_slice(&self.0[Self::DIGEST..]);
        Digest(digest)
    }

    /// Offset of the digest, which extends to the end.
    const DIGEST: usize = 16;
}

/// A head without the digest, which is computed while the body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndigestedHead(Head);

impl UndigestedHead {
    /// Returns the head with the digest of its region.
    #[must_use]
    pub fn with(mut self, digest: &Digest) -> Head {
        self.0.0[Head::DIGEST..].copy_from_slice(&digest.0);
        self.0
    }
}

/// A header with an element type, a coding and a shape, not yet checked against the content.
#[derive(Clone, Copy, Debug)]
struct Header {
    element: ElementType,
    coding: Coding,
    shape: Shape,
    /// Bytes of the content, if the header states them.
    content_bytes: Option<u64>,
    digest: Digest,
}

impl Header {
    /// Returns the error of an invalid header.
    fn refuse(&self) -> DecodeError {
        let (element, coding) = (element_code(self.element), self.coding.code());
        DecodeError::Header { element, coding, shape: self.shape }
    }

    /// Decodes the region of this header and its content.
    fn region(&self, body: Cow<'_, [u8]>) -> Result<(DataRegion, Digest), DecodeError> {
        let region = self.unchecked(body)?;
        self.check(region.digest())?;
        Ok((region, self.digest))
    }

    fn check(&self, found: Digest) -> Result<(), DecodeError> {
        if found == self.digest { Ok(()) } else { Err(DecodeError::Digest { expected: self.digest }) }
    }

    fn unchecked(&self, body: Cow<'_, [u8]>) -> Result<DataRegion, DecodeError> {
        let &Self { element, coding, shape, .. } = self;
        let wanted = content::expected_length(element, &shape).ok_or_else(|| self.refuse())?;
        let expected = match (wanted, self.content_bytes) {
            (content::ExpectedLength::Exactly(bytes), None) => bytes,
            (content::ExpectedLength::Exactly(bytes), Some(said)) if said == bytes => bytes,
            (content::ExpectedLength::AtLeast(least), None) if body.len() as u64 >= least => {
                body.len() as u64
            }
            (content::ExpectedLength::AtLeast(least), Some(said)) if said >= least => said,
            (content::ExpectedLength::Exactly(expected) | content::ExpectedLength::AtLeast(expected), _) => {
                return Err(DecodeError::Length { found: body.len(), expected });
            }
        };
        if !coding.suits(element) {
            return Err(self.refuse());
        }
        let wrong_length = DecodeError::Length { found: body.len(), expected };
        if coding.is_runs() {
            let labels = coding::labels(coding, &body, expected).ok_or(wrong_length)?;
            return runs::map(&shape, labels).ok_or_else(|| self.refuse());
        }
        let content = coding::decode(coding, body, &shape, element, expected).ok_or(wrong_length)?;
        content::read(element, &shape, content).ok_or(DecodeError::Content { element, shape })
    }
}

#[cfg(test)]
mod tests;
