//! The scale of a slide at one magnification: its level, and the number of level pixels per pixel.

use crate::PyramidLevel;
use pleach_regions::{PartError, PixelRectangle};

/// Relative tolerance within which a level is used without resampling. Levels are cut to whole pixels, so a
/// downsampling of 4 becomes 4.00012, and a difference of 1 % is invisible.
const SAME: f64 = 0.01;

/// Level and resampling factor for reading a slide at one magnification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Index of the level.
    pub level: usize,
    /// Pixels of the level per pixel, along each axis: exactly 1, or more.
    pub level_px_a_px: f64,
    /// Width of the slide, pixels.
    pub width_px: u32,
    /// Height of the slide, pixels.
    pub height_px: u32,
}

impl Scale {
    /// Returns the scale with `factor` (at least 1) pixels of the first level per pixel along each axis. Selects the
    /// coarsest level that is not coarser. Returns `None` if the slide would have no pixel.
    pub(crate) fn at(levels: &[PyramidLevel], factor: f64) -> Option<Self> {
        let is_fine_enough = |level: &PyramidLevel| level.downsample <= factor * (1.0 + SAME);
        let finest = (0, *levels.first()?);
        let fine = levels.iter().copied().enumerate().filter(|(_, level)| is_fine_enough(level));
        let (number, level) =
            fine.max_by(|(_, a), (_, b)| a.downsample.total_cmp(&b.downsample)).unwrap_or(finest);
        let ratio = factor / level.downsample;
        let level_px_a_px = if ratio <= 1.0 + SAME { 1.0 } else { ratio };
        // Partly covered pixels do not count.
        let side = |level_px: u32| (f64::from(level_px) / level_px_a_px).floor() as u32;
        let (width_px, height_px) = (side(level.width_px), side(level.height_px));
        (width_px > 0 && height_px > 0).then_some(Self { level: number, level_px_a_px, width_px, height_px })
    }

    /// Checks that a rectangle has pixels, all of them within the slide.
    pub(crate) fn check(&self, part: PixelRectangle) -> Result<(), PartError> {
        let within = |start: u32, length: u32, all: u32| {
            length > 0 && start.checked_add(length).is_some_and(|end| end <= all)
        };
        let (width_px, height_px) = (self.width_px, self.height_px);
        if within(part.x_px, part.width_px, width_px) && within(part.y_px, part.height_px, height_px) {
            return Ok(());
        }
        Err(PartError { part, width_px, height_px })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: &[(u32, f64)]) -> Vec<PyramidLevel> {
        let level = |&(side, downsample)| PyramidLevel { width_px: side, height_px: side / 2, downsample };
        of.iter().map(level).collect()
    }

    #[test]
    fn the_coarsest_level_that_is_fine_enough_is_read() {
        let levels = levels(&[(10_003, 1.0), (2_500, 4.0012), (625, 16.005)]);
        let at = |factor| Scale::at(&levels, factor).unwrap();
        assert_eq!(at(1.0), Scale { level: 0, level_px_a_px: 1.0, width_px: 10_003, height_px: 5_001 });
        assert_eq!(at(2.0), Scale { level: 0, level_px_a_px: 2.0, width_px: 5_001, height_px: 2_500 });
        // Without resampling: 4.0012 is within the tolerance of 4.
        assert_eq!(at(4.0), Scale { level: 1, level_px_a_px: 1.0, width_px: 2_500, height_px: 1_250 });
        assert_eq!((at(15.0).level, at(16.0).level, at(16.0).level_px_a_px), (1, 2, 1.0));
        assert_eq!((at(64.02).level, at(64.02).width_px), (2, 156));
        assert_eq!(Scale::at(&levels, 6_000.0), None);
        assert_eq!(Scale::at(&[], 1.0), None);
    }

    #[test]
    fn rectangle_outside_the_slide_is_refused() {
        let scale = Scale { level: 0, level_px_a_px: 1.0, width_px: 10, height_px: 8 };
        let part = |x_px, y_px, width_px, height_px| PixelRectangle { x_px, y_px, width_px, height_px };
        assert_eq!(scale.check(part(0, 0, 10, 8)), Ok(()));
        assert_eq!(scale.check(part(9, 7, 1, 1)), Ok(()));
        for outside in [part(0, 0, 11, 8), part(9, 0, 2, 1), part(0, 0, 0, 1), part(u32::MAX, 0, 1, 1)] {
            assert!(scale.check(outside).is_err());
        }
    }
}
