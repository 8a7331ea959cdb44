//! How content is made smaller: masks to one bit a pixel, and LZ4 where it pays.
//!
//! Only lengths are checked here; whether the content is the right one, its digest tells.

use crate::ElementType;
use std::borrow::Cow;

/// How content is stored. The numbers are part of the encoding and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it is.
    Raw,
    /// A mask of 0 and 255, one bit a value, the first in the lowest bit.
    Packed,
    /// An LZ4 block.
    Lz4,
    /// [`Packed`](Self::Packed), then an LZ4 block.
    PackedLz4,
}

impl Coding {
    const ALL: [Self; 4] = [Self::Raw, Self::Packed, Self::Lz4, Self::PackedLz4];

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Packed => 1,
            Self::Lz4 => 2,
            Self::PackedLz4 => 3,
        }
    }

    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| coding.code() == code)
    }

    pub(super) fn is_packed(self) -> bool {
        matches!(self, Self::Packed | Self::PackedLz4)
    }
}

/// A byte of an LZ4 block stands for at most this many bytes: a length is continued by bytes of up to 255.
pub(super) const LZ4_EXPANSION: u64 = 255;

/// The LZ4 library works with 32-bit positions; a region of more than 1 GiB is stored without.
const LZ4_LIMIT_BYTES: usize = 1 << 30;

/// Content as it is to be stored, behind `header_bytes` zeros.
pub(super) fn encode(element: ElementType, content: &[u8], header_bytes: usize) -> (Coding, Vec<u8>) {
    smaller(element, content, header_bytes)
        .unwrap_or_else(|| (Coding::Raw, behind_header(content, header_bytes)))
}

/// Content made smaller, behind `header_bytes` zeros; none where that does not pay.
pub(super) fn smaller(
    element: ElementType,
    content: &[u8],
    header_bytes: usize,
) -> Option<(Coding, Vec<u8>)> {
    match packed(element, content) {
        Some(bits) => Some(match lz4(&bits, header_bytes) {
            Some(bytes) => (Coding::PackedLz4, bytes),
            None => (Coding::Packed, behind_header(&bits, header_bytes)),
        }),
        // Nobody waits for a table to be read, and it is stored beside a key that is as long.
        None if element == ElementType::Table => None,
        None => lz4(content, header_bytes).map(|bytes| (Coding::Lz4, bytes)),
    }
}

/// Content of `expected` bytes again; none when that cannot be made of `body`, which is the content already where it is
/// raw. Nothing is allocated before `body` is known to be long enough for it.
pub(super) fn decode(coding: Coding, body: Cow<'_, [u8]>, expected: u64) -> Option<Vec<u8>> {
    let packed_bytes = expected.div_ceil(8);
    match coding {
        Coding::Raw => (body.len() as u64 == expected).then(|| body.into_owned()),
        Coding::Packed => (body.len() as u64 == packed_bytes).then(|| unpack(&body, expected as usize)),
        Coding::Lz4 => unlz4(&body, expected),
        Coding::PackedLz4 => Some(unpack(&unlz4(&body, packed_bytes)?, expected as usize)),
    }
}

fn behind_header(content: &[u8], header_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header_bytes + content.len());
    bytes.resize(header_bytes, 0);
    bytes.extend_from_slice(content);
    bytes
}

/// An LZ4 block of `content` behind a header's room, if it saves at least a tenth.
fn lz4(content: &[u8], header_bytes: usize) -> Option<Vec<u8>> {
    if content.len() > LZ4_LIMIT_BYTES {
        return None;
    }
    let mut bytes = vec![0; header_bytes + lz4_flex::block::get_maximum_output_size(content.len())];
    let length = lz4_flex::block::compress_into(content, &mut bytes[header_bytes..]).ok()?;
    if length > content.len() / 10 * 9 {
        return None;
    }
    bytes.truncate(header_bytes + length);
    // The buffer was sized for content that does not compress at all.
    bytes.shrink_to_fit();
    Some(bytes)
}

fn unlz4(body: &[u8], expected: u64) -> Option<Vec<u8>> {
    if expected > LZ4_EXPANSION * body.len() as u64 || expected > LZ4_LIMIT_BYTES as u64 {
        return None;
    }
    let mut content = vec![0; expected as usize];
    let length = lz4_flex::block::decompress_into(body, &mut content).ok()?;
    (length as u64 == expected).then_some(content)
}

/// The bits of a mask; none when it holds anything but 0 and 255, or is no mask.
fn packed(element: ElementType, content: &[u8]) -> Option<Vec<u8>> {
    if element != ElementType::Mask {
        return None;
    }
    // Bits by which a value differs from 0 or 255, whichever its lowest bit says; without a branch a value.
    let strange = content.iter().fold(0, |strange, &value| strange | (value ^ (value & 1).wrapping_neg()));
    if strange != 0 {
        return None;
    }
    let eights = content.chunks_exact(8);
    let rest = eights.remainder();
    let mut bits: Vec<u8> = Vec::with_capacity(content.len().div_ceil(8));
    bits.extend(eights.map(|eight| {
        let mut values = [0; 8];
        values.copy_from_slice(eight);
        // The lowest bit of byte i moves to bit 56 + i; no other product of a bit with the factor comes there.
        let lowest = u64::from_le_bytes(values) & 0x0101_0101_0101_0101;
        (lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    }));
    if !rest.is_empty() {
        bits.push(rest.iter().rev().fold(0, |bits, &value| bits << 1 | (value & 1)));
    }
    Some(bits)
}

/// The eight values of every byte of a packed mask.
static VALUES: [[u8; 8]; 256] = {
    let mut values = [[0; 8]; 256];
    let mut place = 0;
    while place < 256 * 8 {
        if (place / 8) >> (place % 8) & 1 == 1 {
            values[place / 8][place % 8] = 255;
        }
        place += 1;
    }
    values
};

/// `length` values of 0 or 255; `bits` holds as many.
fn unpack(bits: &[u8], length: usize) -> Vec<u8> {
    let mut content = Vec::with_capacity(bits.len() * 8);
    bits.iter().for_each(|byte| content.extend_from_slice(&VALUES[usize::from(*byte)]));
    content.truncate(length);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_bits_packs_and_unpacks_as_counted_by_hand() {
        for byte in 0..=255_u8 {
            let values: Vec<u8> = (0..8).map(|bit| if byte & (1 << bit) == 0 { 0 } else { 255 }).collect();
            assert_eq!(packed(ElementType::Mask, &values), Some(vec![byte]));
            assert_eq!(unpack(&[byte], 8), values);
            assert_eq!(unpack(&[byte], 5), values[..5]);
            assert_eq!(packed(ElementType::Mask, &values[..5]), Some(vec![byte & 31]));
        }
    }

    #[test]
    fn a_mask_of_other_values_is_kept_as_it_is() {
        let content: Vec<u8> = (0..64).map(|place| if place == 40 { 254 } else { 255 }).collect();
        assert_eq!(packed(ElementType::Mask, &content), None);
        let (coding, bytes) = encode(ElementType::Mask, &content, 2);
        assert_eq!(coding, Coding::Lz4);
        assert_eq!(decode(coding, bytes[2..].into(), 64), Some(content));
    }

    #[test]
    fn lz4_is_used_where_it_saves_a_tenth() {
        // A tenth of zeros before noise: LZ4 saves a little less than that.
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for (zeros, coding) in [(0, Coding::Raw), (9_000, Coding::Raw), (12_000, Coding::Lz4)] {
            let content: Vec<u8> =
                (0..100_000).map(|place| if place < zeros { 0 } else { noise() }).collect();
            let (found, bytes) = encode(ElementType::Gray8, &content, 0);
            assert_eq!(found, coding, "{zeros} zeros");
            assert!(bytes.len() <= content.len());
            assert_eq!(decode(found, bytes.into(), content.len() as u64), Some(content));
        }
    }

    #[test]
    fn claims_beyond_what_a_block_can_hold_are_refused_before_anything_is_allocated() {
        assert_eq!(decode(Coding::Lz4, vec![0; 10].into(), 2551), None);
        assert_eq!(decode(Coding::PackedLz4, vec![0; 10].into(), u64::MAX), None);
        assert_eq!(decode(Coding::Packed, vec![0; 10].into(), u64::MAX), None);
    }
}
