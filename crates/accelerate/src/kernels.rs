//! Kernels on planes of pixels, with the bits of their CPU variants.
//!
//! A plane is a buffer of `width × height` bytes in row-major order without padding, as in `pleach-pathology`. Kernels use integers,
//! minima and maxima, so results depend neither on the order of work items nor on a device's rounding.

pub mod areas;
pub mod colors;
pub mod distance;
pub mod masks;
pub mod opening;
pub mod overlap;
pub mod reconstruct;
pub mod red;
#[cfg(test)]
mod tests;

use crate::DeviceError;
use crate::Task;

/// Size of an image, pixels. Both sides are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSize {
    /// Width.
    pub width_px: u32,
    /// Height.
    pub height_px: u32,
}

impl ImageSize {
    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(self) -> usize {
        self.width_px as usize * self.height_px as usize
    }

    /// Returns the size with `margin` pixels on every side.
    #[must_use]
    pub fn padded(self, margin: u32) -> Self {
        Self { width_px: self.width_px + 2 * margin, height_px: self.height_px + 2 * margin }
    }

    /// Returns width and height as items of a kernel.
    fn items(self) -> [usize; 2] {
        [self.width_px as usize, self.height_px as usize]
    }
}

/// 2^31 px: kernels number pixels with 32 bits, with room for margins.
const MAX_PIXELS: u64 = 1 << 31;

/// Returns the size of an image that the kernels can number.
///
/// # Errors
/// Returns [`DeviceError::Unsupported`] for 2^31 px and more.
pub fn image_size(task: &Task<'_>, width_px: u32, height_px: u32) -> Result<ImageSize, DeviceError> {
    if u64::from(width_px) * u64::from(height_px) < MAX_PIXELS {
        return Ok(ImageSize { width_px, height_px });
    }
    let cause = format!("{width_px} x {height_px} px; fewer than 2^31 px are allowed");
    Err(DeviceError::Unsupported { device: task.device_name().to_owned(), cause })
}

/// 64 × 1 work items: rows are contiguous, and every device allows groups of 64.
const ROW_GROUP: [usize; 2] = [64, 1];
