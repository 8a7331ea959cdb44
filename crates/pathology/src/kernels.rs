//! Image kernels: functions on planes of pixels, independent of parameter names, data regions and files.
//!
//! A *plane* is a slice of `width × height` values in row-major order, passed with its width in pixels. Both sides are
//! at least 1 px. A *mask* is a plane of bytes whose nonzero values are object. Masks made here hold 0 and 255
//! only. All kernels are deterministic and run on the calling thread.

pub mod components;
pub mod distance;
pub(crate) mod hematoxylin;
pub mod label_boundaries;
pub mod level_set;
pub mod mean_shift;
pub mod morphology;
pub mod otsu;
pub mod reconstruct;
pub mod watershed;

/// Neighborhood of a pixel in a square grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// Pixels that share an edge.
    Four,
    /// Pixels that share an edge or a corner.
    Eight,
}

/// Returns the mask of the values strictly above `level`.
#[must_use]
pub fn above(plane: &[u8], level: u8) -> Vec<u8> {
    plane.iter().map(|&value| if value > level { 255 } else { 0 }).collect()
}

/// Returns the number of rows of a plane of `length` pixels. Panics if the plane has an incomplete row, or more pixels
/// than 32 bits can number. Both are errors of the caller, not of the data: the reader bounds the size of tiles.
fn height(length: usize, width: usize) -> usize {
    assert!(width > 0 && length > 0 && length.is_multiple_of(width), "a plane has whole rows");
    assert!(u32::try_from(length).is_ok(), "pixels are numbered with 32 bits");
    length / width
}
