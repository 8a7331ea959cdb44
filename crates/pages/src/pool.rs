//! Allocator behind [`RecyclingAllocator`](crate::RecyclingAllocator): large blocks from the free list or the system, small
//! ones from `malloc`, and metering of both.
//!
//! One lock guards the free list. No code under the lock allocates or panics, and system calls under the lock only unmap.
//! Bytes are counted before they are mapped and discounted after they are unmapped, so the process never maps more than the
//! free list counts.

use crate::free_list::{Block, FreeList};
use crate::size_class::{MIN_BYTES, PAGE_BYTES, class_bytes};
use crate::{mapping, meter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A pool of large blocks. The process has one, and tests create their own.
pub(crate) struct Pool {
    /// The mutex of the standard library is a futex, so locking it never allocates.
    shelf: Mutex<FreeList>,
}

/// Returns whether a block of this layout comes from the pool. Depends on the layout alone, so all calls for one block
/// agree.
fn is_large(layout: Layout) -> bool {
    layout.size() >= MIN_BYTES && layout.align() <= PAGE_BYTES
}

impl Pool {
    pub(crate) const fn new(limit_bytes: u64) -> Self {
        Self { shelf: Mutex::new(FreeList::new(limit_bytes)) }
    }

    pub(crate) fn idle_bytes(&self) -> u64 {
        self.lock().idle_bytes()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.lock().live_bytes()
    }

    pub(crate) fn set_limit(&self, limit_bytes: u64) {
        let mut shelf = self.lock();
        shelf.limit_bytes = limit_bytes;
        give_surplus_back(&mut shelf);
    }

    pub(crate) fn trim(&self) {
        let mut shelf = self.lock();
        while let Some(block) = shelf.oldest() {
            give_back(block);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FreeList> {
        // No code under the lock panics, so the list is consistent, and an allocator must not unwind.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a block of the class `bytes`, null on failure, and whether it is fresh, that is, all zero.
    fn obtain(&self, bytes: usize) -> (*mut u8, bool) {
        let mut shelf = self.lock();
        if let Some(start) = shelf.reuse(bytes) {
            return (start, false);
        }
        // Counted first, so that the surplus to unmap includes the space of this block.
        shelf.grow(bytes);
        give_surplus_back(&mut shelf);
        // Maps without the lock, since the bytes are counted already.
        drop(shelf);
        let mut start = mapping::map(bytes);
        if start.is_null() {
            // Memory or mappings have run out. Unmapping the idle blocks may free enough.
            self.trim();
            start = mapping::map(bytes);
        }
        if start.is_null() {
            self.lock().shrink(bytes);
        }
        (start, true)
    }

    /// Keeps a block as idle, or unmaps it.
    ///
    /// # Safety
    /// `block` came from [`Self::obtain`] or [`Self::resize`], and is no longer in use.
    unsafe fn release(&self, block: Block) {
        if self.lock().add(block) {
            return;
        }
        // SAFETY: guaranteed by the caller. The block is not in the free list, so no other thread can get it.
        unsafe { mapping::unmap(block.start, block.bytes) };
        let mut shelf = self.lock();
        shelf.shrink(block.bytes);
        // Frees a slot for the next block if the list is full.
        give_surplus_back(&mut shelf);
    }

    /// Returns a block of the class `bytes`, which differs from the class of `old`, with the first `used` bytes of `old`.
    /// Copies into an idle block if possible, and moves the pages otherwise. Releases `old` on success. Returns null on
    /// failure and leaves `old` unchanged.
    ///
    /// # Safety
    /// `old` came from this pool and its owner requests this. `used` is at most the size of both.
    unsafe fn resize(&self, old: Block, bytes: usize, used: usize) -> *mut u8 {
        let grown = bytes.saturating_sub(old.bytes);
        let mut shelf = self.lock();
        if let Some(start) = shelf.reuse(bytes) {
            // Copies without the lock: both blocks are live, so no other thread can get them.
            drop(shelf);
            // SAFETY: both blocks are live, distinct, and at least `used` bytes long. After this `old` is unused.
            unsafe {
                ptr::copy_nonoverlapping(old.start, start, used);
                self.release(old);
            }
            return start;
        }
        shelf.grow(grown);
        give_surplus_back(&mut shelf);
        drop(shelf);
        // SAFETY: `old` is a live mapping, and its owner continues with the new address.
        let moved = unsafe { mapping::remap(old.start, old.bytes, bytes) };
        self.lock().shrink(if moved.is_null() { grown } else { old.bytes.saturating_sub(bytes) });
        moved
    }
}

fn give_surplus_back(shelf: &mut FreeList) {
    while let Some(block) = shelf.surplus() {
        give_back(block);
    }
}

/// Unmaps a block that was idle.
fn give_back(block: Block) {
    // SAFETY: an idle block is a whole unused mapping. It has left the free list, so no thread can reuse it.
    unsafe { mapping::unmap(block.start, block.bytes) };
}

// SAFETY: a live block is not in the free list and is one mapping of its own, so it overlaps no other. Its class is at least
// the requested size, and its start is aligned to a page, which is at least the requested alignment (`is_large`). Other
// blocks come from `System` with the same layouts. No call unwinds, since lookups cannot fail and no other code panics.
unsafe impl GlobalAlloc for Pool {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = if is_large(layout) {
            self.obtain(class_bytes(layout.size())).0
        } else {
            // SAFETY: guaranteed by the caller: the size is not 0.
            unsafe { System.alloc(layout) }
        };
        count(start, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            // SAFETY: guaranteed by the caller: the size is not 0.
            return count(unsafe { System.alloc_zeroed(layout) }, layout);
        }
        let (start, fresh) = self.obtain(class_bytes(layout.size()));
        if !fresh {
            // SAFETY: a block of at least this size that only this thread has.
            unsafe { ptr::write_bytes(start, 0, layout.size()) };
        }
        count(start, layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        meter::subtract(layout.size());
        if is_large(layout) {
            // SAFETY: allocated with this layout, so from here and of this class.
            unsafe { self.release(Block { start: block, bytes: class_bytes(layout.size()) }) };
        } else {
            // SAFETY: allocated with this layout, so by `System`.
            unsafe { System.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller: the new size, rounded up to the alignment, does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let used = layout.size().min(new_size);
        match (is_large(layout), is_large(new)) {
            (true, true) => {
                let old = Block { start: block, bytes: class_bytes(layout.size()) };
                let bytes = class_bytes(new_size);
                if bytes == old.bytes {
                    meter::subtract(layout.size());
                    return count(block, new);
                }
                // SAFETY: allocated with this layout, so from here and of this class. `used` is below both sizes.
                let moved = count(unsafe { self.resize(old, bytes, used) }, new);
                if !moved.is_null() {
                    // Subtracts last, as if the block had been copied: the peak must not depend on the idle blocks.
                    meter::subtract(layout.size());
                }
                moved
            }
            (false, false) => {
                // SAFETY: allocated with this layout, so by `System`. The caller guarantees the size.
                let moved = unsafe { System.realloc(block, layout, new_size) };
                if !moved.is_null() {
                    meter::subtract(layout.size());
                }
                count(moved, new)
            }
            // A block that changes between the pool and `System` must be copied.
            _ => {
                // SAFETY: guaranteed by the caller: the new size is not 0.
                let moved = unsafe { self.alloc(new) };
                if !moved.is_null() {
                    // SAFETY: the blocks are distinct and `used` is below both sizes. The old one was allocated with this
                    // layout and is not used again.
                    unsafe {
                        ptr::copy_nonoverlapping(block, moved, used);
                        self.dealloc(block, layout);
                    }
                }
                moved
            }
        }
    }
}

/// Meters a new block unless it is null.
fn count(start: *mut u8, layout: Layout) -> *mut u8 {
    if !start.is_null() {
        meter::add(layout.size());
    }
    start
}
