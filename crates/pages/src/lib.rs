//! Global allocator that recycles large freed blocks and meters allocations.
//!
//! Image operations create and drop buffers of many MB. The system returns each as untouched pages, and their first touch
//! costs more time than most operations (`docs/adr/0006-recycled-pages.md` has the measurements). [`RecyclingAllocator`]
//! keeps touched blocks up to a limit instead. Small blocks and blocks aligned beyond a page go to
//! [`System`](std::alloc::System). Allocations of foreign code (OpenCV's own scratch memory) bypass this allocator.
//!
//! The process shares the idle blocks, and each thread has its own meter. The memory planner sets the limit.

mod free_list;
mod mapping;
mod meter;
mod pool;
mod size_class;

use pool::Pool;
use std::alloc::{GlobalAlloc, Layout};

pub use meter::metered;

/// 1 GiB: default limit of live and idle bytes. One running task of the segmentation on a 4096 × 4096 tile needs up to 0.3
/// GB, so this recycles all blocks of 2 cores, and recycling grows no process by more than this. A higher limit would be no
/// faster and would retain the peak of a whole run.
const DEFAULT_LIMIT_BYTES: u64 = 1 << 30;

static POOL: Pool = Pool::new(DEFAULT_LIMIT_BYTES);

/// The allocator, for `#[global_allocator]` in a binary. All of its values share one pool.
///
/// Blocks of 128 KiB and more come from the pool, in size classes at most 1/16 apart. Smaller ones come from
/// [`System`](std::alloc::System).
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;
///
/// drop(vec![1_u8; 1 << 20]);
/// assert_eq!(pleach_pages::idle_bytes(), 1 << 20);
/// let again = vec![0_u8; 1 << 20]; // the same pages, made zero
/// assert_eq!((pleach_pages::live_bytes(), pleach_pages::idle_bytes()), (1 << 20, 0));
/// # drop(again);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RecyclingAllocator;

// SAFETY: every call goes to one pool, which upholds the contract (`pool.rs`). All `RecyclingAllocator` values share it, so
// a block of one value can be freed by another.
unsafe impl GlobalAlloc for RecyclingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract, which is also the pool's.
        unsafe { POOL.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { POOL.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { POOL.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { POOL.realloc(block, layout, new_size) }
    }
}

/// Sets the maximum of live and idle bytes of large blocks (1 GiB by default). Unmaps idle blocks beyond it at once, the
/// longest idle first. The limit never fails an allocation. If live blocks alone exceed it, no freed block is kept.
pub fn set_limit_bytes(limit: u64) {
    POOL.set_limit(limit);
}

/// Returns the idle bytes of large blocks, kept for reuse.
#[must_use]
pub fn idle_bytes() -> u64 {
    POOL.idle_bytes()
}

/// Returns the live bytes of large blocks as mapped, rounded up to size classes. 0 if [`RecyclingAllocator`] is not the
/// global allocator. The sum with [`idle_bytes`] bounds what large blocks add to the resident set.
#[must_use]
pub fn live_bytes() -> u64 {
    POOL.live_bytes()
}

/// Returns the bytes of all live blocks, large and small, by their requested sizes and within 64 KiB for each thread. 0 if
/// [`RecyclingAllocator`] is not the global allocator. Allocations of foreign code are not counted.
#[must_use]
pub fn allocated_bytes() -> u64 {
    meter::allocated_bytes()
}

/// Unmaps all idle blocks.
pub fn trim() {
    POOL.trim();
}
