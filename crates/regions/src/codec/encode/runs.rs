//! Run-length encoding of label maps: run length and label, both as groups of 7 bits, lowest first, the last
//! group below 128. A run may continue in the next row of the map.
//!
//! Objects are wide and background is wider, so runs take a third of the LZ4 output, in less time (`benches/RESULTS.md`).

use crate::{DataRegion, LabelMap, Shape};

/// Maximum expansion of runs in bytes of labels per byte, which bounds unverified length claims. LZ4 handles
/// more regular content.
pub(super) const EXPANSION: u64 = 8 * 255;

/// Encodes labels as runs behind `room` bytes. `None` if the runs exceed `most` bytes.
pub(super) fn encode(labels: &[u32], room: usize, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; room];
    for run in labels.chunk_by(|one, next| one == next) {
        write(run.len() as u64, &mut bytes);
        write(u64::from(run[0]), &mut bytes);
        // Stops early: on noise, runs are longer than the labels.
        if bytes.len() - room > most {
            return None;
        }
    }
    Some(bytes)
}

/// Decodes exactly `expected` labels. `None` if the runs have more or fewer.
pub(super) fn decode(runs: &[u8], expected: usize) -> Option<Vec<u32>> {
    if expected as u64 * size_of::<u32>() as u64 > EXPANSION * runs.len() as u64 {
        return None;
    }
    let mut labels = Vec::with_capacity(expected);
    let mut rest = runs;
    while !rest.is_empty() {
        let (length, label) = (read(&mut rest)?, u32::try_from(read(&mut rest)?).ok()?);
        // An empty run would make the encoding ambiguous.
        if length == 0 {
            return None;
        }
        let end = labels.len().checked_add(usize::try_from(length).ok()?).filter(|end| *end <= expected)?;
        labels.resize(end, label);
    }
    (labels.len() == expected).then_some(labels)
}

/// Creates the label map of a shape.
pub(super) fn map(shape: &Shape, labels: Vec<u32>) -> Option<DataRegion> {
    let &[height, width] = &**shape else { return None };
    let map = LabelMap::new(u32::try_from(width).ok()?, u32::try_from(height).ok()?, labels);
    map.ok().map(DataRegion::Labels)
}

fn write(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *rest.split_off_first()?;
        number |= u64::from(byte & 127).checked_shl(shift)?;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_are_what_they_are_by_hand() {
        let labels = [0, 0, 0, 300, 300, 7];
        let bytes = encode(&labels, 0, 100).unwrap();
        assert_eq!(bytes, [3, 0, 2, 0b1010_1100, 2, 1, 7]);
        assert_eq!(decode(&bytes, 6), Some(labels.to_vec()));
        assert_eq!(encode(&labels, 2, 7).unwrap()[2..], bytes);
        assert_eq!(encode(&labels, 2, 6), None);
    }

    #[test]
    fn runs_beyond_the_claimed_length_are_refused() {
        assert_eq!(decode(&[1, 7], 1 << 40), None, "more labels than two bytes can be");
        // A run of 2^63, one of 2^32 - 1, one without a label, a label of 33 bits, an unterminated number.
        for runs in [
            &[255, 255, 255, 255, 255, 255, 255, 255, 127, 1][..],
            &[255, 255, 255, 255, 15, 1],
            &[3],
            &[3, 255, 255, 255, 255, 31],
            &[255; 12],
        ] {
            assert_eq!(decode(runs, 3), None, "{runs:?}");
        }
        assert_eq!(decode(&[2, 1], 3), None);
        assert_eq!(decode(&[3, 1, 0, 1], 3), None);
        assert_eq!(decode(&[2, 1, 2, 1], 3), None);
    }

    proptest! {
        #[test]
        fn labels_round_trip(runs in prop::collection::vec((any::<u32>(), 1..300_usize), 1..50)) {
            let labels: Vec<u32> =
                runs.into_iter().flat_map(|(label, times)| std::iter::repeat_n(label, times)).collect();
            let bytes = encode(&labels, 0, usize::MAX).unwrap();
            prop_assert_eq!(decode(&bytes, labels.len()), Some(labels));
        }

        #[test]
        fn any_bytes_are_harmless(runs in prop::collection::vec(any::<u8>(), 0..40), expected in 0..5000_usize) {
            let labels = decode(&runs, expected);
            prop_assert!(labels.is_none_or(|labels| labels.len() == expected));
        }
    }
}
