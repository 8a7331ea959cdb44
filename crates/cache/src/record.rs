//! Record format: a header of [`HEADER_BYTES`], then a body, each with its own checksum.
//!
//! ```text
//!  0  magic           4 bytes; zeros where no record has been written
//!  4  state           0 live, anything else buried; the only byte that changes later, not covered by the checksum
//!  5  kind            1 trace, 2 blob
//!  6  (zero)          2
//!  8  body bytes      8, little-endian like all numbers
//! 16  id              32: key or digest
//! 48  tag             8: operation
//! 56  written         8: seconds since 1970
//! 64  body check      16: BLAKE3 of the body; zeros for a blob, whose id is the digest of its content
//! 80  header check    8: BLAKE3 of bytes 0 to 80, with a state of 0
//! ```
//!
//! A body is written before its header, so that concurrent readers see whole records or none. This module knows neither the
//! meaning of bodies nor the location of records.

/// Size of the header before a body.
pub(crate) const HEADER_BYTES: usize = 88;

const MAGIC: [u8; 4] = *b"PLRC";

/// Offset of the state byte.
const STATE: usize = 4;

/// State of a buried record.
const BURIED: u8 = 1;

/// Offset of the header checksum, which covers all bytes before it.
const CHECK: usize = 80;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A trace under its key.
    Trace,
    /// A data region under its digest.
    Blob,
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) id: [u8; 32],
    pub(crate) tag: u64,
    pub(crate) written_seconds: u64,
    pub(crate) body_bytes: u64,
    pub(crate) body_check: [u8; 16],
}

/// Content at the offset of a possible header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordState {
    /// Unwritten space.
    Nothing,
    /// A live record.
    Live(Header),
    /// A buried record.
    Buried(Header),
    /// Neither unwritten space nor a header.
    Broken,
}

/// Returns the first `N` bytes of the BLAKE3 hash of `bytes`.
fn check<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut check = [0; N];
    check.copy_from_slice(&blake3::hash(bytes).as_bytes()[..N]);
    check
}

impl Header {
    /// Creates the header of a trace.
    pub(crate) fn of_trace(key: [u8; 32], tag: u64, body: &[u8], written_seconds: u64) -> Self {
        let (body_bytes, body_check) = (body.len() as u64, check(body));
        Self { kind: Kind::Trace, id: key, tag, written_seconds, body_bytes, body_check }
    }

    /// Creates the header of a blob.
    pub(crate) fn of_blob(digest: [u8; 32], body: &[u8], written_seconds: u64) -> Self {
        let body_bytes = body.len() as u64;
        Self { kind: Kind::Blob, id: digest, tag: 0, written_seconds, body_bytes, body_check: [0; 16] }
    }

    /// Returns the size of the record, including this header.
    pub(crate) fn record_bytes(&self) -> u64 {
        (HEADER_BYTES as u64).saturating_add(self.body_bytes)
    }

    /// Returns whether `body` has the length and, for a trace, the checksum in this header.
    pub(crate) fn fits(&self, body: &[u8]) -> bool {
        match self.kind {
            Kind::Trace => body.len() as u64 == self.body_bytes && self.body_check == check(body),
            // The reader verifies a blob by the digest of its content.
            Kind::Blob => body.len() as u64 == self.body_bytes,
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[5] = match self.kind {
            Kind::Trace => 1,
            Kind::Blob => 2,
        };
        bytes[8..16].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.id);
        bytes[48..56].copy_from_slice(&self.tag.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.written_seconds.to_le_bytes());
        bytes[64..CHECK].copy_from_slice(&self.body_check);
        let check: [u8; HEADER_BYTES - CHECK] = check(&bytes[..CHECK]);
        bytes[CHECK..].copy_from_slice(&check);
        bytes
    }
}

impl RecordState {
    /// Parses a header.
    pub(crate) fn in_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        if bytes[..4] == [0; 4] {
            return Self::Nothing;
        }
        let mut checked = [0; CHECK];
        checked.copy_from_slice(&bytes[..CHECK]);
        checked[STATE] = 0;
        let kind = match bytes[5] {
            1 => Kind::Trace,
            2 => Kind::Blob,
            _ => return Self::Broken,
        };
        if bytes[..4] != MAGIC || bytes[CHECK..] != check::<{ HEADER_BYTES - CHECK }>(&checked) {
            return Self::Broken;
        }
        let header = Header {
            kind,
            id: array(bytes, 16),
            tag: u64::from_le_bytes(array(bytes, 48)),
            written_seconds: u64::from_le_bytes(array(bytes, 56)),
            body_bytes: u64::from_le_bytes(array(bytes, 8)),
            body_check: array(bytes, 64),
        };
        if bytes[STATE] == 0 { Self::Live(header) } else { Self::Buried(header) }
    }
}

/// Returns the offset of the state byte in a record, and the byte that buries the record.
pub(crate) fn tombstone() -> (u64, [u8; 1]) {
    (STATE as u64, [BURIED])
}

/// Returns `N` bytes from `start` on.
fn array<const N: usize>(bytes: &[u8; HEADER_BYTES], start: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[start..start + N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header::of_trace([7; 32], 9, b"body", 1_700_000_000)
    }

    #[test]
    fn header_round_trips() {
        assert_eq!(RecordState::in_bytes(&header().to_bytes()), RecordState::Live(header()));
        let blob = Header::of_blob([8; 32], b"content", 5);
        assert_eq!(RecordState::in_bytes(&blob.to_bytes()), RecordState::Live(blob));
        assert_eq!(RecordState::in_bytes(&[0; HEADER_BYTES]), RecordState::Nothing);
    }

    #[test]
    fn deleted_record_keeps_the_offset_of_the_next() {
        let mut bytes = header().to_bytes();
        let (place, state) = tombstone();
        bytes[place as usize] = state[0];
        assert_eq!(RecordState::in_bytes(&bytes), RecordState::Buried(header()));
    }

    #[test]
    fn a_trace_knows_its_body() {
        assert!(header().fits(b"body"));
        assert!(!header().fits(b"bodY"));
        assert!(!Header::of_blob([8; 32], b"content", 5).fits(b"conten"));
    }

    proptest! {
        /// One changed byte makes a header invalid, except for the state byte, which buries the record.
        #[test]
        fn changed_bytes_are_found(place in 0..HEADER_BYTES, change in 1..=255_u8) {
            let mut bytes = header().to_bytes();
            bytes[place] ^= change;
            let expected = if place == STATE { RecordState::Buried(header()) } else { RecordState::Broken };
            prop_assert_eq!(RecordState::in_bytes(&bytes), expected);
        }
    }
}
