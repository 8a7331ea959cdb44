//! Dense two-dimensional arrays of pixels.

mod view;

pub use view::{PartError, PixelRectangle, RasterView};

use crate::Attachment;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An image in row-major order with `channels` values per pixel, without padding between rows.
///
/// Shape: `height_px × width_px × channels`. Both sides are at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raster {
    width_px: u32,
    height_px: u32,
    channels: u8,
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
    #[serde(skip)]
    attachment: Attachment,
}

/// The length of a raster's bytes does not match its shape, or a side is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{width_px} x {height_px} px of {channels} channels do not fit {bytes} bytes")]
pub struct ShapeError {
    /// Requested width, pixels.
    pub width_px: u32,
    /// Requested height, pixels.
    pub height_px: u32,
    /// Requested channels.
    pub channels: u8,
    /// Bytes given.
    pub bytes: usize,
}

impl Raster {
    /// Wraps `data` (row-major, channels interleaved).
    ///
    /// # Errors
    /// Returns [`ShapeError`] if a side or the channel count is 0, or the length of `data` does not match the
    /// shape.
    pub fn new(width_px: u32, height_px: u32, channels: u8, data: Vec<u8>) -> Result<Self, ShapeError> {
        let expected = u64::from(width_px) * u64::from(height_px) * u64::from(channels);
        if expected == 0 || expected != data.len() as u64 {
            return Err(ShapeError { width_px, height_px, channels, bytes: data.len() });
        }
        Ok(Self { width_px, height_px, channels, data, attachment: Attachment::default() })
    }

    /// Creates a raster with all values equal to `value`.
    ///
    /// # Errors
    /// Returns [`ShapeError`] if a side or the channel count is 0.
    pub fn filled(width_px: u32, height_px: u32, channels: u8, value: u8) -> Result<Self, ShapeError> {
        let length = width_px as usize * height_px as usize * usize::from(channels);
        Self::new(width_px, height_px, channels, vec![value; length])
    }

    /// Creates a one-channel raster with the width and height of `self`, from `data`.
    ///
    /// # Errors
    /// Returns [`ShapeError`] if `data` does not have exactly one byte per pixel.
    pub fn plane(&self, data: Vec<u8>) -> Result<Self, ShapeError> {
        Self::new(self.width_px, self.height_px, 1, data)
    }

    /// Returns the width in pixels.
    #[must_use]
    pub fn width_px(&self) -> u32 {
        self.width_px
    }

    /// Returns the height in pixels.
    #[must_use]
    pub fn height_px(&self) -> u32 {
        self.height_px
    }

    /// Returns the values per pixel.
    #[must_use]
    pub fn channels(&self) -> u8 {
        self.channels
    }

    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        u64::from(self.width_px) * u64::from(self.height_px)
    }

    /// Returns the values, row-major, channels interleaved.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the values for writing in place.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.attachment = Attachment::default();
        &mut self.data
    }

    /// Returns what readers keep with the raster.
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Returns the buffer.
    #[must_use]
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_and_length_must_agree() {
        assert!(Raster::new(2, 3, 3, vec![0; 18]).is_ok());
        let error = Raster::new(2, 3, 3, vec![0; 17]).unwrap_err();
        assert_eq!(error.to_string(), "2 x 3 px of 3 channels do not fit 17 bytes");
        assert!(Raster::new(0, 3, 1, vec![]).is_err());
    }
}
