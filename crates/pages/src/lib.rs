//! A global allocator that keeps large freed blocks for the next one who asks, and meters what work allocates.
//!
//! Image operations make and drop buffers of many MB. The system hands each out as untouched pages, and touching them
//! for the first time costs more than most operations do with them (`docs/adr/0006-recycled-pages.md` has the
//! figures). [`RecyclingAllocator`] keeps them instead, touched as they are, up to a limit. Small blocks are
//! [`System`](std::alloc::System)'s business, and so are blocks aligned beyond a page; what foreign code allocates
//! (OpenCV's own scratch) does not come here at all.
//!
//! What is kept belongs to the whole process; what is metered belongs to a thread. Nothing here knows what the bytes
//! are for, or who may have how many: the limit is said by whoever plans memory.

mod free_list;
mod mapping;
mod meter;
mod pool;
mod size_class;

use pool::Pool;
use std::alloc::{GlobalAlloc, Layout};

pub use meter::metered;

/// Live and idle bytes kept before anybody says otherwise. One running task of the segmentation on a 4096 × 4096 tile
/// needs up to 0.3 GB, so this recycles all that two cores work with; and no process is ever more than this larger
/// than it would be without recycling. Unlimited would be faster for nobody, and keep the peak of a whole run.
const DEFAULT_LIMIT_BYTES: u64 = 1 << 30;

static POOL: Pool = Pool::new(DEFAULT_LIMIT_BYTES);

/// The allocator, for a binary's `#[global_allocator]`. All of its values are the same one.
///
/// Blocks of 128 KiB and more come from one pool, in size classes at most 1/16 apart; the rest comes from
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

// SAFETY: every call goes to the one pool, which keeps the contract (see there); a block that one `RecyclingAllocator` handed out
// is known to all of them.
unsafe impl GlobalAlloc for RecyclingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the pool asks for.
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

/// Says how many bytes of large blocks, live and idle together, there may be before freed blocks go back to the system
/// (1 GiB until this is called). Idle blocks beyond it go back at once, the longest idle first. It never makes an
/// allocation fail: when live blocks alone exceed it, nothing is kept.
pub fn set_limit_bytes(limit: u64) {
    POOL.set_limit(limit);
}

/// Bytes of large blocks that nobody uses and that are kept for reuse.
#[must_use]
pub fn idle_bytes() -> u64 {
    POOL.idle_bytes()
}

/// Bytes of large blocks in use, as taken from the system: rounded up to size classes. 0 where [`RecyclingAllocator`] is not the
/// global allocator. Together with [`idle_bytes`] a bound of what large blocks add to the resident set.
#[must_use]
pub fn live_bytes() -> u64 {
    POOL.live_bytes()
}

/// Gives all idle blocks back to the system.
pub fn trim() {
    POOL.trim();
}
