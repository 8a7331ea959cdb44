//! One small region in a file with others: a header of [`HEADER_BYTES`], then the region's encoding.
//!
//! ```text
//!  0  magic         4 bytes
//!  4  state         0 live, 255 buried, whatever more of its bits say; the only byte that is changed later, and no part
//!                   of the check
//!  5  (zero)        3
//!  8  body bytes    4, lowest first
//! 12  key           16
//! 28  body check    8: BLAKE3 of the body
//! 36  header check  8: BLAKE3 of bytes 0 to 36, with a state of 0
//! ```
//!
//! Nothing here touches a file.

use pleach_regions::RegionKey;

/// Bytes before a body.
pub(super) const HEADER_BYTES: usize = 44;

/// Where the state is, and what it is of a record that is not there any more.
pub(super) const STATE: u64 = 4;
pub(super) const BURIED: [u8; 1] = [u8::MAX];

const MAGIC: [u8; 4] = *b"PLPK";
const CHECK_BYTES: usize = 8;
const CHECKED: usize = HEADER_BYTES - CHECK_BYTES;

/// What is known of a record without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) key: RegionKey,
    pub(super) is_live: bool,
    pub(super) body_bytes: u32,
    body_check: [u8; CHECK_BYTES],
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECK_BYTES]);
    check
}

impl Header {
    /// Of a body of less than 4 GiB.
    pub(super) fn new(key: RegionKey, body: &[u8]) -> Self {
        Self { key, is_live: true, body_bytes: body.len() as u32, body_check: check(body) }
    }

    /// Bytes of the record, this header included.
    pub(super) fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }

    pub(super) fn fits(&self, body: &[u8]) -> bool {
        body.len() as u64 == u64::from(self.body_bytes) && self.body_check == check(body)
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.key.0);
        bytes[28..CHECKED].copy_from_slice(&self.body_check);
        let check = check(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check);
        bytes[STATE as usize] = if self.is_live { 0 } else { BURIED[0] };
        bytes
    }

    /// The header that `bytes` begin with, if they begin with one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut found: [u8; HEADER_BYTES] = *bytes.first_chunk()?;
        if found[..4] != MAGIC {
            return None;
        }
        let is_live = std::mem::take(&mut found[STATE as usize]).count_ones() < 4;
        let (mut length, mut key, mut body_check) = ([0; 4], [0; 16], [0; CHECK_BYTES]);
        length.copy_from_slice(&found[8..12]);
        key.copy_from_slice(&found[12..28]);
        body_check.copy_from_slice(&found[28..CHECKED]);
        let (key, body_bytes) = (RegionKey(key), u32::from_le_bytes(length));
        (found[CHECKED..] == check(&found[..CHECKED])).then_some(Self {
            key,
            is_live,
            body_bytes,
            body_check,
        })
    }
}

/// The records of a file and where they begin, in order. What is no record is skipped. With `is_doubtful`, the end may never
/// have been synced: it is with the last record whose body is the one that its header was made for.
pub(super) fn records(bytes: &[u8], is_doubtful: bool) -> Vec<(usize, Header)> {
    let body = |offset: usize, header: &Header| {
        bytes.get(offset + HEADER_BYTES..offset.checked_add(header.record_bytes() as usize)?)
    };
    let (mut found, mut offset) = (Vec::new(), 0);
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        offset += match Header::read(rest).filter(|header| body(offset, header).is_some()) {
            Some(header) => {
                found.push((offset, header));
                header.record_bytes() as usize
            }
            // Damage hides one record, and none behind it.
            None => 1 + rest[1..].iter().position(|byte| *byte == MAGIC[0]).unwrap_or(rest.len() - 1),
        };
    }
    let is_whole =
        |(offset, header): &(usize, Header)| body(*offset, header).is_some_and(|body| header.fits(body));
    while is_doubtful && found.pop_if(|last| !is_whole(last)).is_some() {}
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(name: u8, length: usize) -> Vec<u8> {
        let body = vec![name; length];
        [Header::new(RegionKey([name; 16]), &body).to_bytes().to_vec(), body].concat()
    }

    proptest! {
        /// Whatever happens to one byte, and wherever the file ends, all other records are found.
        #[test]
        fn damage_hides_one_record(
            lengths in prop::collection::vec(0..200_usize, 1..8), place: prop::sample::Index, bit in 0..8_u8,
            is_doubtful: bool,
        ) {
            let mut bytes = Vec::new();
            let mut starts = Vec::new();
            for (name, length) in lengths.iter().enumerate() {
                starts.push(bytes.len());
                bytes.extend(record(name as u8, *length));
            }
            let whole: Vec<usize> = records(&bytes, true).iter().map(|(offset, _)| *offset).collect();
            prop_assert_eq!(&whole, &starts);
            let place = place.index(bytes.len());
            let hit = starts.iter().rposition(|start| *start <= place).unwrap();
            let cut: Vec<usize> = records(&bytes[..place], true).iter().map(|(offset, _)| *offset).collect();
            prop_assert_eq!(&cut, &starts[..hit]);
            bytes[place] ^= 1 << bit;
            let found = records(&bytes, is_doubtful);
            let others: Vec<usize> =
                found.iter().map(|(offset, _)| *offset).filter(|offset| *offset != starts[hit]).collect();
            starts.remove(hit);
            prop_assert_eq!(others, starts);
            let hidden = found.iter().find(|(_, header)| header.key.0[0] == hit as u8);
            // One bit is not enough for another state, and nobody looks at a body unless it is the last in doubt.
            let behind = place - whole[hit];
            let is_last = hit + 1 == whole.len();
            let is_seen = behind == STATE as usize || (behind >= HEADER_BYTES && !(is_doubtful && is_last));
            prop_assert_eq!(hidden.map(|(_, header)| header.is_live), is_seen.then_some(true));
        }
    }
}
