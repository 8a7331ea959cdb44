//! Zero-copy view of a part of a raster.

use super::{Attachment, Raster};
use thiserror::Error;

/// A borrowed rectangle of a raster's pixels: rows of `width_px × channels` values, [`stride_bytes`] apart.
///
/// Shape: `height_px × width_px × channels`. Both sides are at least 1.
///
/// [`stride_bytes`]: RasterView::stride_bytes
#[derive(Clone, Copy, Debug)]
pub struct RasterView<'a> {
    width_px: u32,
    height_px: u32,
    channels: u8,
    stride_bytes: usize,
    /// From the first value to the last one, including the bytes between rows.
    data: &'a [u8],
}

/// A rectangle of pixels, by its top left corner and its sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelRectangle {
    /// Columns to the left of the rectangle.
    pub x_px: u32,
    /// Rows above the rectangle.
    pub y_px: u32,
    /// Width, pixels.
    pub width_px: u32,
    /// Height, pixels.
    pub height_px: u32,
}

/// A rectangle is empty, or exceeds the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{} x {} px at {}, {}; a non-empty part of {width_px} x {height_px} px is allowed",
    part.width_px, part.height_px, part.x_px, part.y_px
)]
pub struct PartError {
    /// The requested rectangle.
    pub part: PixelRectangle,
    /// Width of the view, pixels.
    pub width_px: u32,
    /// Height of the view, pixels.
    pub height_px: u32,
}

impl Raster {
    /// Returns the whole raster as a view.
    #[must_use]
    pub fn view(&self) -> RasterView<'_> {
        let (width_px, height_px, channels) = (self.width_px, self.height_px, self.channels);
        let stride_bytes = width_px as usize * usize::from(channels);
        RasterView { width_px, height_px, channels, stride_bytes, data: &self.data }
    }
}

impl<'a> RasterView<'a> {
    /// Returns a part of this view.
    ///
    /// # Errors
    /// Returns a [`PartError`] if the part is empty or exceeds the view.
    pub fn part(&self, part: PixelRectangle) -> Result<Self, PartError> {
        let (width_px, height_px) = (self.width_px, self.height_px);
        let within = |start: u32, length: u32, of: u32| {
            length > 0 && start.checked_add(length).is_some_and(|end| end <= of)
        };
        if !within(part.x_px, part.width_px, width_px) || !within(part.y_px, part.height_px, height_px) {
            return Err(PartError { part, width_px, height_px });
        }
        let channels = usize::from(self.channels);
        let start = part.y_px as usize * self.stride_bytes + part.x_px as usize * channels;
        // The last row ends with its pixels: a whole stride would exceed the data at the lower right corner.
        let length = (part.height_px as usize - 1) * self.stride_bytes + part.width_px as usize * channels;
        let data = &self.data[start..start + length];
        Ok(Self { width_px: part.width_px, height_px: part.height_px, data, ..*self })
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

    /// Returns the distance between the starts of two rows.
    #[must_use]
    pub fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// Returns the values from the first to the last, including those between rows: the memory of a matrix over this view.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the rows from the top, each without the values between rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let width = self.width_px as usize * usize::from(self.channels);
        // The last row ends with its values, so its chunk is shorter.
        self.data.chunks(self.stride_bytes).map(move |row| &row[..width])
    }

    /// Copies these pixels into a new raster.
    #[must_use]
    pub fn to_raster(&self) -> Raster {
        let (width_px, height_px, channels) = (self.width_px, self.height_px, self.channels);
        let data = self.rows().collect::<Vec<_>>().concat();
        Raster { width_px, height_px, channels, data, attachment: Attachment::default() }
    }
}

/// Views are equal if their shapes and pixels are equal, independent of their position in memory.
impl PartialEq for RasterView<'_> {
    fn eq(&self, other: &Self) -> bool {
        let shape = |view: &Self| (view.width_px, view.height_px, view.channels);
        shape(self) == shape(other) && self.rows().eq(other.rows())
    }
}

impl Eq for RasterView<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(x_px: u32, y_px: u32, width_px: u32, height_px: u32) -> PixelRectangle {
        PixelRectangle { x_px, y_px, width_px, height_px }
    }

    #[test]
    fn a_part_of_a_part_borrows_the_same_pixels() {
        let raster = Raster::new(4, 3, 2, (0..24).collect()).unwrap();
        let part = raster.view().part(rectangle(1, 0, 3, 3)).unwrap();
        assert_eq!(
            part.rows().collect::<Vec<_>>(),
            [&raster.data()[2..8], &raster.data()[10..16], &raster.data()[18..24]]
        );
        let corner = part.part(rectangle(2, 1, 1, 2)).unwrap();
        assert_eq!(corner.rows().flatten().copied().collect::<Vec<_>>(), [14, 15, 22, 23]);
        assert!(std::ptr::eq(corner.data(), &raster.data()[14..24]));
        assert_eq!(corner.to_raster().view(), corner);
        assert_eq!(raster.view().to_raster(), raster);
    }

    #[test]
    fn part_outside_the_raster_is_refused() {
        let raster = Raster::filled(4, 3, 1, 0).unwrap();
        for part in [
            rectangle(0, 0, 0, 1),
            rectangle(0, 0, 5, 1),
            rectangle(1, 3, 1, 1),
            rectangle(2, 0, u32::MAX, 1),
        ] {
            assert!(raster.view().part(part).is_err());
        }
        let error = raster.view().part(rectangle(3, 1, 2, 1)).unwrap_err();
        let expected = "2 x 1 px at 3, 1; a non-empty part of 4 x 3 px is allowed";
        assert_eq!(error.to_string(), expected);
    }
}
