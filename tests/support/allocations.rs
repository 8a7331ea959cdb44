//! How much memory a piece of work holds at most, counted where memory is asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread what it hands out.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes held now, and the most since the last look.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more, and nobody looks.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call is the system allocator's, with its own arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promised us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promised us.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there for a moment.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised us.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised us.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Does the work, and tells the most bytes that this thread held for it at once.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.with(|held| {
        let (now, _) = held.get();
        held.set((now, now));
        now
    });
    let result = work();
    let most = HELD.with(|held| held.get().1);
    (result, usize::try_from(most - before).unwrap_or(0))
}
