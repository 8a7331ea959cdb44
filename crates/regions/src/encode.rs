//! Data regions as bytes that outlive a process, and back.
//!
//! An encoding begins with a head of 48 bytes: magic, version, element type, coding, and the content's digest. There are
//! two versions, and both are read:
//!
//! - Version 1 has the shape in its head, and content behind it. Images, masks and tables are written so.
//! - Version 2 has fields behind its head (`encode/fields.rs`): the shape of any element type, a bounding box, and what a
//!   later minor version adds to them. Everything else is written so, and whatever states where it lies.
//!
//! How content is made smaller is in `encode/coding.rs`. What is decoded is digested again: a region that comes out is the
//! one that went in. Where the bytes are kept is no business of this module.

mod coding;
mod decoder;
mod description;
mod fields;
mod header;
mod runs;

pub use coding::CompressionEffort;
pub use decoder::Decoder;
pub use description::Description;

use crate::digest::element_code;
use crate::{DataRegion, Digest, ElementType, Shape, SpatialBounds, content};
use coding::{Coding, LZ4_EXPANSION};
use fields::Fields;
use header::{FIRST, HeaderVersion, SECOND};
use std::borrow::Cow;
use thiserror::Error;

/// Decoding allocates at most this many times the length of what it is given, whatever that claims: a pixel is one bit
/// of a packed mask at least, and a byte of a compressed block stands for 255 bytes at most. The packed form is there as
/// well while a mask is unpacked; and where a name takes 4 bytes, being empty, it takes 24 in memory and 8 while names are
/// compared.
pub const MAX_EXPANSION: u64 = (8 + 2) * LZ4_EXPANSION;

/// An encoding is at most this many bytes longer than the region is in memory: the head, the fields that are written, and
/// where an empty list ends.
pub const MAX_OVERHEAD_BYTES: u64 = 192;

/// Why bytes are no data region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// They are too few, or do not begin as an encoding does.
    #[error("decode a data region: {bytes} bytes that do not begin with its header")]
    NoHeader {
        /// How many there are.
        bytes: usize,
    },
    /// A later version of the program wrote them, or nobody did.
    #[error("decode a data region: version {found} of its encoding, only {FIRST} and {SECOND} are known")]
    Version {
        /// The version there.
        found: u8,
    },
    /// The header names no element type, coding or shape, or such as do not go together.
    #[error("decode a data region: element type {element} in coding {coding}, shape {shape}")]
    Header {
        /// Number of the element type.
        element: u8,
        /// Number of the coding.
        coding: u8,
        /// Its shape, as far as it is known.
        shape: Shape,
    },
    /// What is behind the head of version 2 is cut short or is not what was written.
    #[error("decode a data region: fields of the header are damaged")]
    Fields,
    /// A later minor version wrote something without which its content is not understood.
    #[error("decode a data region: field {tag} of minor version {minor} has to be known, and is not")]
    Field {
        /// Number of the field.
        tag: u16,
        /// Minor version of what wrote it.
        minor: u8,
    },
    /// The content is longer or shorter than the header says.
    #[error("decode a data region: {found} bytes of content cannot be the {expected} bytes of its shape")]
    Length {
        /// Bytes after the header.
        found: usize,
        /// Bytes of the decoded content.
        expected: u64,
    },
    /// The content has the length of its shape, and contradicts itself.
    #[error("decode a data region: the content is not what {element} of shape {shape} have")]
    Content {
        /// What it should be.
        element: ElementType,
        /// How much of it.
        shape: Shape,
    },
    /// The content is not that of the digest.
    #[error("decode a data region: content of another digest than {expected}")]
    Digest {
        /// What the header says.
        expected: Digest,
    },
}

impl DecodeError {
    /// Whether a later version of the program may know what this one does not: the bytes need not be damaged.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Version { found } if *found > SECOND) || matches!(self, Self::Field { .. })
    }
}

impl DataRegion {
    /// This region as bytes, at most [`MAX_OVERHEAD_BYTES`] more than it takes in memory. `digest` is its own
    /// ([`DataRegion::digest`]), which whoever stores a region knows already; with another one the bytes cannot be
    /// decoded.
    ///
    /// It is made smaller as [`CompressionEffort::Quick`] says.
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

    /// This region as an encoding's head and what follows it. Pixels that are stored as they are are not copied: all of
    /// them unless `is_small`, and then what [`encode`](Self::encode) cannot make smaller.
    #[must_use]
    pub fn encode_parts(&self, digest: &Digest, is_small: bool) -> (Head, Cow<'_, [u8]>) {
        let effort = if is_small { CompressionEffort::Quick } else { CompressionEffort::None };
        self.encode_with(digest, effort, None)
    }

    /// As [`encode_parts`](Self::encode_parts), with as much effort as that is worth, and with where the region lies.
    #[must_use]
    pub fn encode_with(
        &self,
        digest: &Digest,
        effort: CompressionEffort,
        bounds: Option<&SpatialBounds>,
    ) -> (Head, Cow<'_, [u8]>) {
        self.coded(digest, effort, bounds, 0)
    }

    /// As [`encode_parts`](Self::encode_parts), before anybody knows the digest. None where what follows the head depends on
    /// it: of all but images, masks, label maps and tables.
    #[must_use]
    pub fn encode_ahead(&self, is_small: bool) -> Option<(UndigestedHead, Cow<'_, [u8]>)> {
        let effort = if is_small { CompressionEffort::Quick } else { CompressionEffort::None };
        coding::is_of_first(self.element(), effort).then(|| {
            let (head, body) = self.coded(&Digest([0; 32]), effort, None, 0);
            (UndigestedHead(head), body)
        })
    }

    /// The head, and what follows it behind `room` bytes; where it is borrowed, there are none.
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

    /// The content as it is stored, behind `room` bytes, and how long it is when it is not made smaller.
    fn stored(&self, shape: &Shape, effort: CompressionEffort, room: usize) -> (Coding, Cow<'_, [u8]>, u64) {
        if let Self::Labels(map) = self
            && effort != CompressionEffort::None
            && let Some((coding, bytes)) = coding::runs_of(map.labels(), effort, room)
        {
            return (coding, Cow::Owned(bytes), self.bytes());
        }
        let content = content::whole(self);
        let content_bytes = content.len() as u64;
        match coding::smaller(self.element(), shape, &content, effort, room) {
            Some((coding, bytes)) => (coding, Cow::Owned(bytes), content_bytes),
            None if room == 0 => (Coding::Raw, content, content_bytes),
            None => (Coding::Raw, Cow::Owned(coding::behind(room, &content)), content_bytes),
        }
    }

    /// The region that was encoded as `bytes`, and its digest.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not exactly those of an encoding; at most [`MAX_EXPANSION`] times their length
    /// is allocated to find out.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Digest), DecodeError> {
        let Some((head, body)) = bytes.split_first_chunk() else {
            return Err(DecodeError::NoHeader { bytes: bytes.len() });
        };
        HeaderVersion::read(&Head(*head), bytes.len())?.region(Cow::Borrowed(body))
    }

    /// The region of which [`encode_parts`](Self::encode_parts) made these parts, and its digest. Pixels that are stored
    /// as they are are not copied.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_parts(head: &Head, body: Vec<u8>) -> Result<(Self, Digest), DecodeError> {
        HeaderVersion::read(head, Head::BYTES + body.len())?.region(Cow::Owned(body))
    }
}

/// What an encoding begins with: its version, element type, coding and the digest of what follows. It may be damaged;
/// decoding tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub [u8; Self::BYTES]);

impl Head {
    /// Its length.
    pub const BYTES: usize = 48;

    /// The digest of the region, as it says.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digest = [0; 32];
        digest.copy_from_slice(&self.0[Self::DIGEST..]);
        Digest(digest)
    }

    /// Where its digest begins, which goes to its end.
    const DIGEST: usize = 16;
}

/// A head without the digest, which is computed while others write what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndigestedHead(Head);

impl UndigestedHead {
    /// The head, with the digest of its region.
    #[must_use]
    pub fn with(mut self, digest: &Digest) -> Head {
        self.0.0[Head::DIGEST..].copy_from_slice(&digest.0);
        self.0
    }
}

/// A header that names an element type, a coding and a shape; they are still to be compared with the content.
#[derive(Clone, Copy, Debug)]
struct Header {
    element: ElementType,
    coding: Coding,
    shape: Shape,
    /// Bytes of the content, where that says how many.
    content_bytes: Option<u64>,
    digest: Digest,
}

impl Header {
    /// This header as the reason why there is no region.
    fn refuse(&self) -> DecodeError {
        let (element, coding) = (element_code(self.element), self.coding.code());
        DecodeError::Header { element, coding, shape: self.shape }
    }

    /// The region of this header and its content.
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
        let wanted = content::wanted(element, &shape).ok_or_else(|| self.refuse())?;
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
