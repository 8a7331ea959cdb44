//! Size and calibration of an image.

/// Pixels of an export. Segmentations have analysis pixels: those of the study's magnification. Outlines and tables have slide
/// pixels: those of the slide's first level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Width, analysis pixels.
    pub width_px: u32,
    /// Height, analysis pixels.
    pub height_px: u32,
    /// Slide pixels per analysis pixel, along each axis. 1 for images without pyramid.
    pub slide_px_a_px: f64,
    /// Micrometers per slide pixel. `None` for an image that does not state it.
    pub microns_a_slide_px: Option<f64>,
}

impl Geometry {
    /// Returns the micrometers per analysis pixel.
    #[must_use]
    pub fn microns_a_px(&self) -> Option<f64> {
        self.microns_a_slide_px.map(|microns| microns * self.slide_px_a_px)
    }
}
