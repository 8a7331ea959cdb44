//! The element types a data region can have: what a descriptor may declare and an operation may ask for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What one data region holds; the names are those used in stage descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// Colour image: 8 bits a channel, interleaved B, G, R (OpenCV's order).
    Bgr8,
    /// Grey image: one channel of 8 bits.
    Gray8,
    /// Binary mask: one channel of 8 bits, 0 or 255.
    Mask,
    /// Label map: 32 bits a pixel, 0 is background, every other value one object.
    Labels,
    /// A table of named numbers, such as the metrics of one comparison.
    Table,
}

impl ElementType {
    /// Every element type, in the order error messages list them.
    pub const ALL: [Self; 5] = [Self::Bgr8, Self::Gray8, Self::Mask, Self::Labels, Self::Table];

    /// The name used in descriptors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bgr8 => "bgr8",
            Self::Gray8 => "gray8",
            Self::Mask => "mask",
            Self::Labels => "labels",
            Self::Table => "table",
        }
    }

    /// Whether a region that holds `found` may be read where this type is wanted: a mask passes for a label map,
    /// since its connected components are its objects. Whoever reads it labels it.
    #[must_use]
    pub fn accepts(self, found: Self) -> bool {
        self == found || (self == Self::Labels && found == Self::Mask)
    }

    /// Bytes that a region of this type takes for an image of `pixels` pixels (a table: a small constant).
    #[must_use]
    pub fn bytes(self, pixels: u64) -> u64 {
        match self {
            Self::Bgr8 => 3 * pixels,
            Self::Gray8 | Self::Mask => pixels,
            Self::Labels => 4 * pixels,
            // A handful of names and numbers.
            Self::Table => 256,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
