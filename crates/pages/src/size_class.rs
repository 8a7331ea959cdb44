//! Size classes of large blocks: sizes in one class are interchangeable.
//!
//! Blocks have no header. The caller frees a block with its requested size, so the class must follow from that size alone.

/// 128 KiB: minimum size of recycled blocks. `malloc` keeps smaller freed blocks itself. From this size on, glibc in its
/// initial state maps and unmaps each block.
pub(crate) const MIN_BYTES: usize = 128 << 10;

/// 4 KiB: minimum page size, and so the minimum alignment of every large block.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Returns the block size for `size` (at least [`MIN_BYTES`]): the next of 16 steps between two powers of two. The planes of
/// a tile with different margins fall into few classes, and less than 1/16 is wasted.
pub(crate) fn class_bytes(size: usize) -> usize {
    // 1/32 of the next power of two is below 1/16 of the size, which exceeds half of that power.
    let step = (size.next_power_of_two() >> 5).max(PAGE_BYTES);
    size.next_multiple_of(step)
}

// The compiler evaluates assertions of the allocator, since an allocator must not panic.
const _: () = assert!(PAGE_BYTES.is_power_of_two(), "alignments up to a page are those of a page");
const _: () = assert!(MIN_BYTES.is_multiple_of(PAGE_BYTES), "the smallest large block has whole pages");
const _: () = assert!(MIN_BYTES.is_power_of_two(), "the smallest large block is a class");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn classes_waste_little(size in MIN_BYTES..=isize::MAX as usize) {
            let class = class_bytes(size);
            prop_assert!(class >= size && class.is_multiple_of(PAGE_BYTES));
            prop_assert!((class - size) < size / 16);
            prop_assert_eq!(class_bytes(class), class);
        }
    }

    #[test]
    fn planes_are_not_rounded_and_margins_share_a_class() {
        assert_eq!(class_bytes(MIN_BYTES), MIN_BYTES);
        assert_eq!(class_bytes(4096 * 4096), 4096 * 4096);
        assert_eq!(class_bytes(3 * 4096 * 4096), 3 * 4096 * 4096);
        assert_eq!(class_bytes(4098 * 4098), class_bytes(4114 * 4114));
    }
}
