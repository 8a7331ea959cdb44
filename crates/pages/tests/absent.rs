//! Without `RecyclingAllocator` as the global allocator, all counters are 0 and all calls are harmless.

#[test]
fn all_counters_are_0_without_the_allocator() {
    let (block, peak) = pleach_pages::metered(|| vec![1_u8; 1 << 20]);
    assert_eq!((block.len(), peak), (1 << 20, 0));
    drop(block);
    pleach_pages::set_limit_bytes(0);
    pleach_pages::trim();
    assert_eq!((pleach_pages::live_bytes(), pleach_pages::idle_bytes()), (0, 0));
}
