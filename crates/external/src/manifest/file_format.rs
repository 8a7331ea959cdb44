//! Formats of the files that a command reads and writes.

use pleach_regions::ElementType;

/// Format of a file that a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// Image in PNG: color, gray, masks of 0 and 255, and labels of 16 bits.
    Png,
    /// Image in TIFF, as in PNG.
    Tiff,
    /// Array of numpy.
    Npy,
    /// Table: a line of names and a line of numbers. Scalar: a number.
    Csv,
}

impl FileFormat {
    /// Returns the extension of file names.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Tiff => "tiff",
            Self::Npy => "npy",
            Self::Csv => "csv",
        }
    }

    /// Returns the formats of an element type, its default first. Empty for types that no format holds.
    #[must_use]
    pub fn of(element: ElementType) -> &'static [Self] {
        match element {
            ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask | ElementType::Labels => {
                &[Self::Png, Self::Tiff, Self::Npy]
            }
            ElementType::ArrayU8
            | ElementType::ArrayU16
            | ElementType::ArrayI32
            | ElementType::ArrayF32
            | ElementType::ArrayF64 => &[Self::Npy],
            ElementType::Table | ElementType::Scalar => &[Self::Csv],
            ElementType::RaggedU8
            | ElementType::RaggedU16
            | ElementType::RaggedI32
            | ElementType::RaggedF32
            | ElementType::RaggedF64
            | ElementType::Points
            | ElementType::Polygons
            | ElementType::Objects => &[],
        }
    }

    /// Returns the element types with a format.
    pub(super) fn elements() -> impl Iterator<Item = ElementType> {
        ElementType::ALL.into_iter().filter(|element| !Self::of(*element).is_empty())
    }
}
