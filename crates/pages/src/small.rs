//! Blocks that are too small for the pool: up to 2 KiB from mimalloc, larger ones from the system's `malloc`.
//!
//! Plans and the manager's maps are millions of small blocks, which mimalloc serves from lists of each thread. It would hold
//! larger ones longer than the system does, so that a process kept several times its live bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use mimalloc::MiMalloc;

/// Largest block of mimalloc.
const MAX_BYTES: usize = 2 << 10;

/// Alignment of all blocks of `malloc`.
const MAX_ALIGN: usize = 16;

/// Allocator of small blocks.
pub(crate) struct Small;

/// Returns whether mimalloc serves a layout. Miri cannot run foreign code, and has `System` for all.
fn is_tiny(layout: Layout) -> bool {
    !cfg!(miri) && layout.size() <= MAX_BYTES && layout.align() <= MAX_ALIGN
}

// SAFETY: both allocators uphold the contract, and the layout alone decides between them, so that a block returns to its own.
unsafe impl GlobalAlloc for Small {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract, which is also that of both allocators.
        unsafe { if is_tiny(layout) { MiMalloc.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { if is_tiny(layout) { MiMalloc.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above, and the same layout chose the allocator.
        unsafe {
            if is_tiny(layout) { MiMalloc.dealloc(block, layout) } else { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller: the new size, rounded up to the alignment, does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (is_tiny(layout), is_tiny(new)) {
            // SAFETY: as for `dealloc`.
            (true, true) => unsafe { MiMalloc.realloc(block, layout, new_size) },
            // SAFETY: as for `dealloc`.
            (false, false) => unsafe { System.realloc(block, layout, new_size) },
            _ => {
                // SAFETY: guaranteed by the caller: the new size is not 0.
                let moved = unsafe { self.alloc(new) };
                if !moved.is_null() {
                    // SAFETY: the blocks are distinct and both sizes are this or more. The old block is not used again.
                    unsafe {
                        ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                        self.dealloc(block, layout);
                    }
                }
                moved
            }
        }
    }
}
