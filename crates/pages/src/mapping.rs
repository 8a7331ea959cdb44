//! Pages of the system: mapped, moved, given back.
//!
//! Not `malloc`'s: it adapts the size above which a freed block really goes back, so that what is over the limit would
//! stay. A failure is a null pointer, as an allocator has to report it.

use std::ptr;

/// Blocks from here on ask for huge pages: the size of one on x86-64 and on aarch64 with pages of 4 KiB. A first touch
/// then costs a third, and a walk across rows misses fewer translations.
const HUGE_BYTES: usize = 2 << 20;

/// `bytes` of zeros, aligned to a page.
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

/// Asks for huge pages where they fit; a refusal changes nothing but speed.
fn advise(start: *mut u8, bytes: usize) {
    // Miri knows the other calls, but not this one.
    if bytes >= HUGE_BYTES && cfg!(not(miri)) {
        // SAFETY: start and length are those of a mapping; the advice changes no contents.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// Gives a mapping back.
///
/// # Safety
/// `start` and `bytes` are a mapping made here, and nobody uses it any more.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. It fails only when the process has too many mappings; then the pages are lost, and
    // an allocator has nobody to tell.
    unsafe { libc::munmap(start.cast(), bytes) };
}

/// Changes a mapping's length; it may move, with its contents. New bytes are 0. On failure it stays as it was.
///
/// # Safety
/// `start` and `old` are a mapping made here; after success nobody uses `start`.
pub(crate) unsafe fn remap(start: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let moved = unsafe { libc::mremap(start.cast(), old, new, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    advise(moved.cast(), new);
    moved.cast()
}
