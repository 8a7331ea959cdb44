//! Filters that make content more compressible for Zstandard: row differences for values that change little
//! between rows, and byte planes for numbers of several bytes. Both are reversible and keep the length.

/// Subtracts from each row the row above. The first row is unchanged.
pub(super) fn rows(content: &[u8], row_bytes: usize) -> Vec<u8> {
    let mut bytes = content.to_vec();
    if let Some(below) = bytes.get_mut(row_bytes..) {
        for (byte, (value, above)) in below.iter_mut().zip(content[row_bytes..].iter().zip(content)) {
            // Wraps, so that every difference fits into a byte and can be reverted.
            *byte = value.wrapping_sub(*above);
        }
    }
    bytes
}

/// Reverts [`rows`].
pub(super) fn undo_rows(bytes: &mut [u8], row_bytes: usize) {
    let mut start = row_bytes;
    while start < bytes.len() {
        // From the top: each row needs the restored row above it.
        let (above, below) = bytes.split_at_mut(start);
        for (byte, above) in below.iter_mut().zip(&above[start - row_bytes..]) {
            *byte = byte.wrapping_add(*above);
        }
        start += row_bytes;
    }
}

/// Groups the first bytes of all numbers, then the second bytes, and so on.
pub(super) fn planes(content: &[u8], number_bytes: usize) -> Vec<u8> {
    let numbers = content.len() / number_bytes;
    let mut bytes = vec![0; content.len()];
    for (place, number) in content.chunks_exact(number_bytes).enumerate() {
        for (plane, byte) in number.iter().enumerate() {
            bytes[plane * numbers + place] = *byte;
        }
    }
    bytes
}

/// Reverts [`planes`].
pub(super) fn undo_planes(bytes: &[u8], number_bytes: usize) -> Vec<u8> {
    let numbers = bytes.len() / number_bytes;
    let mut content = vec![0; bytes.len()];
    for (place, number) in content.chunks_exact_mut(number_bytes).enumerate() {
        for (plane, byte) in number.iter_mut().enumerate() {
            *byte = bytes[plane * numbers + place];
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn filters_are_what_they_are_by_hand() {
        assert_eq!(rows(&[1, 2, 3, 5, 0, 5], 2), [1, 2, 2, 3, 253, 0]);
        assert_eq!(planes(&[1, 2, 3, 4, 5, 6], 2), [1, 3, 5, 2, 4, 6]);
    }

    proptest! {
        #[test]
        fn filters_are_taken_back(numbers in prop::collection::vec(any::<u64>(), 1..40), row_bytes in 1..99_usize) {
            let content: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            for number_bytes in [2, 4, 8] {
                prop_assert_eq!(undo_planes(&planes(&content, number_bytes), number_bytes), content.clone());
            }
            let mut bytes = rows(&content, row_bytes);
            undo_rows(&mut bytes, row_bytes);
            prop_assert_eq!(bytes, content);
        }
    }
}
