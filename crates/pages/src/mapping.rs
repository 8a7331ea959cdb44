//! Maps, moves and unmaps pages of the system.
//!
//! `malloc` is not used: it adapts the size above which freed blocks return to the system, so that bytes over the limit would
//! stay. Failures are null pointers, as an allocator must report them.

use std::ptr;

/// Minimum block size for huge pages: 2 MiB is their size on x86-64, and on aarch64 with 4 KiB pages. With them a first touch
/// costs a third, and a walk across rows causes fewer TLB misses.
const HUGE_BYTES: usize = 2 << 20;

/// Maps `bytes` of zeros, aligned to a page.
pub(crate) fn map(bytes: usize) -> *mut u8 {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address of the system's choice touches no memory that is in use.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    advise(start.cast(), bytes);
    start.cast()
}

/// Requests huge pages if they fit. A refusal only affects speed.
fn advise(start: *mut u8, bytes: usize) {
    // Miri supports the other calls, but not this one.
    if bytes >= HUGE_BYTES && cfg!(not(miri)) {
        // SAFETY: start and length describe a mapping, and the advice changes no content.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// Unmaps a mapping.
///
/// # Safety
/// `start` and `bytes` describe a mapping created here that is no longer in use.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: guaranteed by the caller. The call fails only if the process has too many mappings. Then the pages leak, since an
    // allocator cannot report it.
    unsafe { libc::munmap(start.cast(), bytes) };
}

/// Resizes a mapping, which may move with its content. New bytes are 0. On failure it is unchanged.
///
/// # Safety
/// `start` and `old` describe a mapping created here. After success `start` is no longer used.
pub(crate) unsafe fn remap(start: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: guaranteed by the caller.
    let moved = unsafe { libc::mremap(start.cast(), old, new, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    advise(moved.cast(), new);
    moved.cast()
}
