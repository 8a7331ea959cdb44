//! Packs masks of 0 and 255 into bits, the first pixel in the lowest bit, and unpacks them.

/// Packs a mask. `None` if it contains values other than 0 and 255.
pub(super) fn pack(content: &[u8]) -> Option<Vec<u8>> {
    // Collects the bits that differ from 0 or 255, whichever the lowest bit selects, without a branch per
    // value.
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
        // The lowest bit of byte i moves to bit 56 + i. No other product of a bit and the factor reaches
        // these bits.
        let lowest = u64::from_le_bytes(values) & 0x0101_0101_0101_0101;
        (lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    }));
    if !rest.is_empty() {
        bits.push(rest.iter().rev().fold(0, |bits, &value| bits << 1 | (value & 1)));
    }
    Some(bits)
}

/// The eight values of each byte of a packed mask.
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

/// Unpacks `length` values of 0 or 255. `bits` contains as many.
pub(super) fn unpack(bits: &[u8], length: usize) -> Vec<u8> {
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
            assert_eq!(pack(&values), Some(vec![byte]));
            assert_eq!(unpack(&[byte], 8), values);
            assert_eq!(unpack(&[byte], 5), values[..5]);
            assert_eq!(pack(&values[..5]), Some(vec![byte & 31]));
        }
        assert_eq!(pack(&[0, 255, 254]), None);
    }
}
