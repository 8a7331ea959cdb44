//! Image kernels: functions of planes of pixels, without parameters' names, data regions or files.
//!
//! A *plane* is a slice of `width × height` values in row-major order, handed over with its width in pixels; both
//! sides are at least 1. A *mask* is a plane of bytes in which every value but 0 is object; masks made here hold 0
//! and 255 only. Everything is deterministic and runs on the calling thread.

pub mod components;
pub mod distance;
pub mod morphology;
pub mod reconstruct;
pub mod watershed;

/// Which pixels of a square grid touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// Those that share an edge.
    Four,
    /// Those that share an edge or a corner.
    Eight,
}

/// The mask of values strictly above `level`.
#[must_use]
pub fn above(plane: &[u8], level: u8) -> Vec<u8> {
    plane.iter().map(|&value| if value > level { 255 } else { 0 }).collect()
}

/// Rows of a plane of `length` pixels. A plane that has no whole rows, or more pixels than 32 bits can number, is a
/// mistake of the caller and not of the data: tiles are bounded where they are read.
fn height(length: usize, width: usize) -> usize {
    assert!(width > 0 && length > 0 && length.is_multiple_of(width), "a plane has whole rows");
    assert!(u32::try_from(length).is_ok(), "pixels are numbered with 32 bits");
    length / width
}
