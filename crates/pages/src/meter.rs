//! Meters the bytes that a thread has allocated minus the bytes it has freed, and their peak.
//!
//! Each thread has two cells without a destructor, so that they need no allocation and outlive every allocating destructor.
//! A block freed by another thread counts on both threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// Allocated minus freed bytes of all threads, as far as they have added theirs.
static ALL: AtomicI64 = AtomicI64::new(0);

/// 64 KiB: a thread adds its bytes to those of all threads after this change, because an atomic addition for each small block
/// would be seen in the time of a task.
const STEP_BYTES: i64 = 64 << 10;

thread_local! {
    /// Allocated minus freed bytes, negative if the thread frees blocks of other threads.
    static HELD: Cell<i64> = const { Cell::new(0) };
    /// Peak since the innermost [`metered`] began.
    static PEAK: Cell<i64> = const { Cell::new(0) };
    /// The part of `HELD` that is in `ALL`.
    static ADDED: Cell<i64> = const { Cell::new(0) };
}

/// Returns the allocated minus freed bytes of the process, within 64 KiB for each thread that it has had.
pub(crate) fn allocated_bytes() -> u64 {
    u64::try_from(ALL.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Adds the bytes of this thread to those of all, if they have changed enough.
fn add_to_all(held: i64) {
    let _ = ADDED.try_with(|added| {
        let change = held.wrapping_sub(added.get());
        if change.unsigned_abs() >= STEP_BYTES as u64 {
            added.set(held);
            // Relaxed: a sum that no other memory access depends on.
            ALL.fetch_add(change, Ordering::Relaxed);
        }
    });
}

/// Counts a block of `size` bytes, which never exceeds `isize::MAX`.
pub(crate) fn add(size: usize) {
    // Cells without destructors are always accessible, so the error is ignored.
    let _ = HELD.try_with(|held| {
        // Wraps, since an allocator must not panic.
        let now = held.get().wrapping_add(size as i64);
        held.set(now);
        add_to_all(now);
        PEAK.try_with(|peak| peak.set(peak.get().max(now)))
    });
}

/// Counts a block of `size` bytes as freed.
pub(crate) fn subtract(size: usize) {
    let _ = HELD.try_with(|held| {
        let now = held.get().wrapping_sub(size as i64);
        held.set(now);
        add_to_all(now);
    });
}

/// Runs `work` on this thread. Returns its result and the thread's peak of allocated bytes above the start. All Rust
/// allocations of this thread count by their requested sizes, large and small, recycled and fresh. Blocks that this thread
/// frees are subtracted, even if another thread allocated them. A large block counts with both sizes while it grows, as if
/// it were copied.
///
/// Counting takes a few instructions per allocation, metered or not. Calls may be nested. A panic passes through and leaves
/// the counters correct.
///
/// Returns 0 if [`RecyclingAllocator`](crate::RecyclingAllocator) is not the global allocator. Work on other threads and
/// allocations of foreign code are not counted.
pub fn metered<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let span = Span::begin();
    let result = work();
    let peak = span.peak_bytes();
    (result, peak)
}

/// A metered span with its own peak. On return or panic, it passes the peak on to the enclosing span.
struct Span {
    start: i64,
    outer_peak: i64,
}

impl Span {
    fn begin() -> Self {
        let start = HELD.get();
        Self { start, outer_peak: PEAK.replace(start) }
    }

    fn peak_bytes(&self) -> u64 {
        u64::try_from(PEAK.get() - self.start).unwrap_or(0)
    }
}

impl Drop for Span {
    // Restored in Drop, so that a panic of the work keeps the peak of the enclosing span.
    fn drop(&mut self) {
        PEAK.set(PEAK.get().max(self.outer_peak));
    }
}
