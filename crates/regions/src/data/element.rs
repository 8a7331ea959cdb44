//! Element types of data regions, which descriptors declare and operations require.

use crate::NumberType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Element type of a data region. The names are those used in stage descriptors.
///
/// The order is part of the protocol between manager and workers: new types come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElementType {
    /// Color image: 8 bits per channel, interleaved B, G, R (OpenCV's order).
    Bgr8,
    /// Gray image: one channel of 8 bits.
    Gray8,
    /// Binary mask: one channel of 8 bits, 0 or 255.
    Mask,
    /// Label map: 32 bits per pixel, 0 is background, every other value one object.
    Labels,
    /// Table of named numbers, such as the metrics of one comparison.
    Table,
    /// Dense array of 1–3 axes: 8-bit unsigned integers.
    ArrayU8,
    /// Dense array: 16-bit unsigned integers.
    ArrayU16,
    /// Dense array: 32-bit signed integers.
    ArrayI32,
    /// Dense array: 32-bit floats.
    ArrayF32,
    /// Dense array: 64-bit floats.
    ArrayF64,
    /// Rows of different lengths: 8-bit unsigned integers.
    RaggedU8,
    /// Rows of different lengths: 16-bit unsigned integers.
    RaggedU16,
    /// Rows of different lengths: 32-bit signed integers.
    RaggedI32,
    /// Rows of different lengths: 32-bit floats.
    RaggedF32,
    /// Rows of different lengths: 64-bit floats.
    RaggedF64,
    /// Positions of 1–3 coordinates.
    Points,
    /// Outlines of objects, with holes and parts.
    Polygons,
    /// Annotated objects: polygons or boxes with a class and named numbers.
    Objects,
    /// One number.
    Scalar,
}

/// Pixels per nucleus in crowded tissue, fewer than on any known annotated tile (439 px).
const PIXELS_A_NUCLEUS: u64 = 400;

/// Bytes of a nucleus: the outline along the edges of its pixels, 60 positions, plus a class and 8 numbers.
const BYTES_AN_OBJECT: u64 = 60 * 16 + 80;

impl ElementType {
    /// Every element type, in the order error messages list them.
    pub const ALL: [Self; 19] = [
        Self::Bgr8,
        Self::Gray8,
        Self::Mask,
        Self::Labels,
        Self::Table,
        Self::ArrayU8,
        Self::ArrayU16,
        Self::ArrayI32,
        Self::ArrayF32,
        Self::ArrayF64,
        Self::RaggedU8,
        Self::RaggedU16,
        Self::RaggedI32,
        Self::RaggedF32,
        Self::RaggedF64,
        Self::Points,
        Self::Polygons,
        Self::Objects,
        Self::Scalar,
    ];

    /// Returns the type of a dense array of these numbers.
    #[must_use]
    pub const fn array_of(number: NumberType) -> Self {
        match number {
            NumberType::U8 => Self::ArrayU8,
            NumberType::U16 => Self::ArrayU16,
            NumberType::I32 => Self::ArrayI32,
            NumberType::F32 => Self::ArrayF32,
            NumberType::F64 => Self::ArrayF64,
        }
    }

    /// Returns the type of a ragged array of these numbers.
    #[must_use]
    pub const fn ragged_of(number: NumberType) -> Self {
        match number {
            NumberType::U8 => Self::RaggedU8,
            NumberType::U16 => Self::RaggedU16,
            NumberType::I32 => Self::RaggedI32,
            NumberType::F32 => Self::RaggedF32,
            NumberType::F64 => Self::RaggedF64,
        }
    }

    /// Returns the number type of a dense or ragged array. `None` for other types.
    #[must_use]
    pub fn number(self) -> Option<NumberType> {
        NumberType::ALL
            .into_iter()
            .find(|kind| self == Self::array_of(*kind) || self == Self::ragged_of(*kind))
    }

    /// Returns the name used in descriptors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bgr8 => "bgr8",
            Self::Gray8 => "gray8",
            Self::Mask => "mask",
            Self::Labels => "labels",
            Self::Table => "table",
            Self::ArrayU8 => "array-u8",
            Self::ArrayU16 => "array-u16",
            Self::ArrayI32 => "array-i32",
            Self::ArrayF32 => "array-f32",
            Self::ArrayF64 => "array-f64",
            Self::RaggedU8 => "ragged-u8",
            Self::RaggedU16 => "ragged-u16",
            Self::RaggedI32 => "ragged-i32",
            Self::RaggedF32 => "ragged-f32",
            Self::RaggedF64 => "ragged-f64",
            Self::Points => "points",
            Self::Polygons => "polygons",
            Self::Objects => "objects",
            Self::Scalar => "scalar",
        }
    }

    /// Returns whether a region of type `found` can be read as this type: a mask is accepted as a label map, since its
    /// connected components are its objects. The reader labels it.
    #[must_use]
    pub fn accepts(self, found: Self) -> bool {
        self == found || (self == Self::Labels && found == Self::Mask)
    }

    /// Returns the bytes of a region of this type for an image of `pixels` pixels (a table: a small constant). Arrays count
    /// with one channel. Object types are estimated for crowded nuclei.
    #[must_use]
    pub fn bytes(self, pixels: u64) -> u64 {
        let objects = pixels.div_ceil(PIXELS_A_NUCLEUS);
        match self {
            Self::Bgr8 => 3 * pixels,
            Self::Gray8 | Self::Mask | Self::ArrayU8 => pixels,
            Self::ArrayU16 => 2 * pixels,
            Self::Labels | Self::ArrayI32 | Self::ArrayF32 => 4 * pixels,
            Self::ArrayF64 => 8 * pixels,
            // A few names and numbers.
            Self::Table => 256,
            Self::Points => 16 * objects,
            Self::RaggedU8
            | Self::RaggedU16
            | Self::RaggedI32
            | Self::RaggedF32
            | Self::RaggedF64
            | Self::Polygons
            | Self::Objects => BYTES_AN_OBJECT * objects,
            Self::Scalar => size_of::<f64>() as u64,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_know_them_by_their_names() {
        for element in ElementType::ALL {
            let text = format!("\"{element}\"");
            assert_eq!(serde_json::to_string(&element).unwrap(), text);
            assert_eq!(serde_json::from_str::<ElementType>(&text).unwrap(), element);
        }
    }

    #[test]
    fn kinds_of_numbers_and_types_lead_to_each_other() {
        for number in NumberType::ALL {
            for element in [ElementType::array_of(number), ElementType::ragged_of(number)] {
                assert_eq!(element.number(), Some(number));
                assert!(element.name().ends_with(number.name()));
            }
        }
        assert_eq!(ElementType::Bgr8.number(), None);
    }
}
