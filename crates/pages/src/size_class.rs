//! Size classes of large blocks: which sizes are interchangeable.
//!
//! A block is freed with the size it was asked for with, so its class has to follow from that size alone; nothing is
//! written beside the block.

/// Blocks from here on are recycled. Below, `malloc` keeps freed blocks itself: it is the size from which glibc, before
/// it adapts, asks the system for each block and gives each back.
pub(crate) const MIN_BYTES: usize = 128 << 10;

/// A page of the system, and so the alignment of every large block. Systems with larger pages align better.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of the blocks that serve `size` (at least [`MIN_BYTES`]): the next of 16 steps between two powers of two.
/// A tile's planes and the same planes with a margin fall into few classes, and less than 1/16 is wasted.
pub(crate) fn class_bytes(size: usize) -> usize {
    let step = (size.next_power_of_two() >> 5).max(PAGE_BYTES);
    size.next_multiple_of(step)
}

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
