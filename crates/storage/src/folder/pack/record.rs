//! Record format of a segment: regions, each a header of [`HEADER_BYTES`] and the encoding, and tombstones, which are
//! headers alone and name a removed region.
//!
//! ```text
//!  0  magic         4 bytes
//!  4  state         0 live, 255 buried, decided by the majority of its bits; the only byte that changes later, in
//!                   private folders only, and not covered by the checksum
//!  5  kind          0 region, 1 tombstone
//!  6  (zero)        2
//!  8  body bytes    4, little-endian
//! 12  key           16
//! 28  id            8, little-endian: distinguishes all records that ever had this key; copies keep it
//! 36  body check    8: BLAKE3 of the body
//! 44  header check  8: BLAKE3 of bytes 0 to 44, with a state of 0
//! ```
//!
//! This module does no I/O.

use pleach_regions::RegionKey;

/// Size of the header before a body.
pub(super) const HEADER_BYTES: usize = 52;

/// Offset of the state byte, and its value in a buried record.
pub(super) const STATE: u64 = 4;
pub(super) const TOMBSTONED: [u8; 1] = [u8::MAX];

const KIND: usize = 5;
const KEY: usize = 12;
const ID: usize = 28;
const BODY_CHECK: usize = 36;

const MAGIC: [u8; 4] = *b"PLPR";
const CHECK_BYTES: usize = 8;
const CHECKED: usize = HEADER_BYTES - CHECK_BYTES;

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) key: RegionKey,
    pub(super) id: u64,
    pub(super) is_live: bool,
    pub(super) is_stone: bool,
    pub(super) body_bytes: u32,
    body_check: [u8; CHECK_BYTES],
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECK_BYTES]);
    check
}

impl Header {
    /// Creates the header of a body of less than 4 GiB.
    pub(super) fn new(key: RegionKey, id: u64, body: &[u8]) -> Self {
        let (body_bytes, body_check) = (body.len() as u32, check(body));
        Self { key, id, is_live: true, is_stone: false, body_bytes, body_check }
    }

    /// Creates a tombstone for the region with this key and id.
    pub(super) fn tombstone(key: RegionKey, id: u64) -> Self {
        Self { is_stone: true, ..Self::new(key, id, &[]) }
    }

    /// Returns the size of the record, including this header.
    pub(super) fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }

    pub(super) fn fits(&self, body: &[u8]) -> bool {
        body.len() as u64 == u64::from(self.body_bytes) && self.body_check == check(body)
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[KIND] = u8::from(self.is_stone);
        bytes[8..KEY].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[KEY..ID].copy_from_slice(&self.key.0);
        bytes[ID..BODY_CHECK].copy_from_slice(&self.id.to_le_bytes());
        bytes[BODY_CHECK..CHECKED].copy_from_slice(&self.body_check);
        let check = check(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check);
        bytes[STATE as usize] = if self.is_live { 0 } else { TOMBSTONED[0] };
        bytes
    }

    /// Parses the header at the start of `bytes`. Returns `None` if there is no valid one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut found: [u8; HEADER_BYTES] = *bytes.first_chunk()?;
        if found[..4] != MAGIC {
            return None;
        }
        let is_live = std::mem::take(&mut found[STATE as usize]).count_ones() < 4;
        if found[CHECKED..] != check(&found[..CHECKED]) {
            return None;
        }
        let (mut length, mut key, mut id, mut body_check) = ([0; 4], [0; 16], [0; 8], [0; CHECK_BYTES]);
        length.copy_from_slice(&found[8..KEY]);
        key.copy_from_slice(&found[KEY..ID]);
        id.copy_from_slice(&found[ID..BODY_CHECK]);
        body_check.copy_from_slice(&found[BODY_CHECK..CHECKED]);
        let (id, body_bytes) = (u64::from_le_bytes(id), u32::from_le_bytes(length));
        Some(Self { key: RegionKey(key), id, is_live, is_stone: found[KIND] == 1, body_bytes, body_check })
    }
}

/// Returns the records of a segment and their offsets, in order. Skips invalid bytes. With `is_doubtful`, the end may never
/// have been synced, so the result ends with the last record whose body matches its checksum.
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
            // Corruption must hide only one record, so the scan continues at the next magic byte.
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

    /// A region record, or a tombstone if `length` is 0.
    fn record(name: u8, length: usize) -> Vec<u8> {
        let (key, id, body) = (RegionKey([name; 16]), u64::from(name) << 40, vec![name; length]);
        let header = if length == 0 { Header::tombstone(key, id) } else { Header::new(key, id, &body) };
        assert_eq!(Header::read(&header.to_bytes()), Some(header));
        [header.to_bytes().to_vec(), body].concat()
    }

    proptest! {
        /// Flips one bit and truncates anywhere: all other records are found.
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
            // One flipped bit does not change the state, and bodies are verified only at a doubtful end.
            let behind = place - whole[hit];
            let is_last = hit + 1 == whole.len();
            let is_seen = behind == STATE as usize || (behind >= HEADER_BYTES && !(is_doubtful && is_last));
            prop_assert_eq!(hidden.map(|(_, header)| header.is_live), is_seen.then_some(true));
        }
    }
}
