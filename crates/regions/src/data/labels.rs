//! Label maps: the object of each pixel.

use crate::{Attachment, ShapeError};
use serde::{Deserialize, Serialize};

/// One number per pixel in row-major order. 0 is background, and equal numbers are one object. Numbers need
/// be neither consecutive nor small, and an object need not be connected.
///
/// Shape: `height_px × width_px`. Both sides are at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelMap {
    width_px: u32,
    height_px: u32,
    labels: Vec<u32>,
    #[serde(skip)]
    attachment: Attachment,
}

impl LabelMap {
    /// Wraps `labels` (row-major).
    ///
    /// # Errors
    /// Returns [`ShapeError`] if a side is 0, or the length of `labels` does not match the shape.
    pub fn new(width_px: u32, height_px: u32, labels: Vec<u32>) -> Result<Self, ShapeError> {
        let expected = u64::from(width_px) * u64::from(height_px);
        if expected == 0 || expected != labels.len() as u64 {
            let bytes = size_of_val(labels.as_slice());
            return Err(ShapeError { width_px, height_px, channels: 1, bytes });
        }
        Ok(Self { width_px, height_px, labels, attachment: Attachment::default() })
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

    /// Returns the labels, row-major.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Returns what readers keep with the map.
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataRegion, ElementType};

    #[test]
    fn shape_and_length_must_agree() {
        let error = LabelMap::new(2, 3, vec![0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "2 x 3 px of 1 channels do not fit 20 bytes");
        assert!(LabelMap::new(0, 0, vec![]).is_err());
    }

    #[test]
    fn planned_bytes_equal_stored_bytes() {
        let region = DataRegion::Labels(LabelMap::new(7, 5, vec![9; 35]).unwrap());
        assert_eq!(region.bytes(), 140);
        assert_eq!(region.element(), ElementType::Labels);
        assert_eq!(region.bytes(), ElementType::Labels.bytes(35));
        assert_eq!(region.size_px(), Some((7, 5)));
    }

    #[test]
    fn a_mask_passes_for_a_label_map_and_nothing_else_for_another() {
        for wanted in ElementType::ALL {
            for found in ElementType::ALL {
                let passes = (wanted, found) == (ElementType::Labels, ElementType::Mask);
                assert_eq!(wanted.accepts(found), passes || wanted == found, "{wanted} from {found}");
            }
        }
    }
}
