//! Maps, moves and unmaps pages of the system.
//!
//! This module does not use `malloc`, which adapts its threshold for returning freed blocks to the system and could retain
//! bytes beyond the limit. Failures are null pointers, as an allocator must report them.

use crate::size_class::{MIN_BYTES, PAGE_BYTES};
use std::ptr;

/// 2 MiB: minimum block size for huge pages, and their size on x86-64 and on aarch64 with 4 KiB pages. With them a first
/// touch costs 1/3, and a walk across rows causes fewer TLB misses.
const HUGE_BYTES: usize = 2 << 20;

const _: () = assert!(HUGE_BYTES.is_multiple_of(PAGE_BYTES), "a huge page has whole pages");
const _: () = assert!(HUGE_BYTES > MIN_BYTES, "small blocks get no huge pages");

/// Maps `bytes` of zeros, aligned to a page. Returns null on failure.
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

/// Requests huge pages for a mapping of at least their size. A refusal only affects speed.
fn advise(start: *mut u8, bytes: usize) {
    // Miri does not support `madvise`.
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
    // SAFETY: guaranteed by the caller. The call fails only if the process has too many mappings. Then the pages leak, since
    // an allocator cannot report it.
    unsafe { libc::munmap(start.cast(), bytes) };
}

/// Resizes a mapping, which may move with its content. New bytes are 0. Returns null on failure and leaves the mapping
/// unchanged.
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
