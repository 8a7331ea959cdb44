//! Bytes a thread has allocated less those it has freed, and their peak.
//!
//! Two cells a thread, without a destructor, so that they need no memory and outlive everything that allocates. A block
//! freed by another thread than the one that made it counts on both.

use std::cell::Cell;

thread_local! {
    /// Allocated less freed; below 0 where a thread frees what others made.
    static HELD: Cell<i64> = const { Cell::new(0) };
    /// The most of it since the innermost [`metered`] began.
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Counts a block of `size` bytes, which is never above `isize::MAX`.
pub(crate) fn add(size: usize) {
    // Without destructors the cells are always there; were they not, nothing would be counted.
    let _ = HELD.try_with(|held| {
        let now = held.get().wrapping_add(size as i64);
        held.set(now);
        PEAK.try_with(|peak| peak.set(peak.get().max(now)))
    });
}

/// Counts a block of `size` bytes as freed.
pub(crate) fn subtract(size: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_sub(size as i64)));
}

/// Runs `work` on this thread and says how many bytes this thread had allocated at most at one time beyond what it had
/// at the start. Counted are all Rust allocations of this thread, large and small, by the sizes asked for, recycled or
/// fresh; what was freed meanwhile is subtracted, whoever had made it. A large block that grows counts twice while it does,
/// as if it were copied, whether it is or not.
///
/// Costs nothing but the counting that goes on anyway: a few instructions an allocation. Calls may be nested. A panic
/// passes through and leaves the counters right.
///
/// Says 0 where [`RecyclingAllocator`](crate::RecyclingAllocator) is not the global allocator. Work given to other threads and memory that
/// foreign code allocates are not seen.
pub fn metered<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let span = Span::begin();
    let result = work();
    let peak = span.peak_bytes();
    (result, peak)
}

/// A stretch with a peak of its own; when it ends, by return or panic, the stretch around it learns of that peak.
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
    fn drop(&mut self) {
        PEAK.set(PEAK.get().max(self.outer_peak));
    }
}
