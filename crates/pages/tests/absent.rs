//! Without `RecyclingAllocator` as the global allocator, all counters are 0 and all calls are harmless.

#[test]
fn everything_is_0_where_it_is_not_installed() {
    let (block, peak) = pleach_pages::metered(|| vec![1_u8; 1 << 20]);
    assert_eq!((block.len(), peak), (1 << 20, 0));
    drop(block);
    pleach_pages::set_limit_bytes(0);
    pleach_pages::trim();
    assert_eq!((pleach_pages::live_bytes(), pleach_pages::idle_bytes()), (0, 0));
}
