//! Content digest of a data region: 256 bits, independent of the encoding.
//!
//! Keys identify provenance. Digests identify content only.

use crate::codec::content;
use crate::{DataRegion, ElementType};
use serde::{Deserialize, Serialize};
use std::fmt;

/// BLAKE3 over content. Equal digests mean equal content: of a data region, element type and shape included
/// ([`DataRegion::digest`]), or of a file's bytes ([`Digest::of_bytes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

/// Domain separation of region digests from all other uses of BLAKE3. The number increases when the byte
/// strings below change.
const REGION_CONTEXT: &str = "pleach data region digest 1";

impl Digest {
    /// Returns the digest of a byte string, such as a file's.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl DataRegion {
    /// Returns the digest of this region's element type, shape and content. Numbers of a table are compared by their bits.
    ///
    /// Masks are digested unpacked, at one byte per pixel: the hash is faster than packing.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = hasher();
        let mut length = 0;
        content::pieces(self, &mut |piece| {
            hasher.update(piece);
            length += piece.len();
        });
        let channels = match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => raster.channels(),
            Self::Labels(_) | Self::Table(_) => 0,
            _ => return finish_shaped(hasher, self, length),
        };
        finish(hasher, self.element(), channels, self.size_px().unwrap_or_default(), length)
    }
}

/// Creates the hasher for the content of a region.
pub(crate) fn hasher() -> blake3::Hasher {
    blake3::Hasher::new_derive_key(REGION_CONTEXT)
}

/// Finishes the digest after `length` bytes of content. Type and shape come last with a fixed length, so that the content is
/// aligned with the lanes of the hash.
pub(crate) fn finish(
    mut hasher: blake3::Hasher,
    element: ElementType,
    channels: u8,
    (width_px, height_px): (u32, u32),
    length: usize,
) -> Digest {
    let mut shape = [0; 18];
    shape[0] = element_code(element);
    shape[1] = channels;
    shape[2..6].copy_from_slice(&width_px.to_le_bytes());
    shape[6..10].copy_from_slice(&height_px.to_le_bytes());
    shape[10..].copy_from_slice(&(length as u64).to_le_bytes());
    hasher.update(&shape);
    Digest(*hasher.finalize().as_bytes())
}

/// Returns the digest of all types other than images, label maps and tables: the shape follows the content,
/// 64 bits per count, and the number of counts takes the place of the channels.
fn finish_shaped(mut hasher: blake3::Hasher, region: &DataRegion, length: usize) -> Digest {
    let shape = region.shape();
    for count in shape.iter() {
        hasher.update(&count.to_le_bytes());
    }
    // Cannot truncate: a shape has at most 5 counts.
    finish(hasher, region.element(), shape.len() as u8, (0, 0), length)
}

/// Returns the number of an element type in digests and encodings. Never reused.
pub(crate) fn element_code(element: ElementType) -> u8 {
    match element {
        ElementType::Bgr8 => 1,
        ElementType::Gray8 => 2,
        ElementType::Mask => 3,
        ElementType::Labels => 4,
        ElementType::Table => 5,
        ElementType::ArrayU8 => 6,
        ElementType::ArrayU16 => 7,
        ElementType::ArrayI32 => 8,
        ElementType::ArrayF32 => 9,
        ElementType::ArrayF64 => 10,
        ElementType::RaggedU8 => 11,
        ElementType::RaggedU16 => 12,
        ElementType::RaggedI32 => 13,
        ElementType::RaggedF32 => 14,
        ElementType::RaggedF64 => 15,
        ElementType::Points => 16,
        ElementType::Polygons => 17,
        ElementType::Objects => 18,
        ElementType::Scalar => 19,
    }
}

/// Returns the element type of a number. `None` for unassigned numbers.
pub(crate) fn element_of(code: u8) -> Option<ElementType> {
    ElementType::ALL.into_iter().find(|element| element_code(*element) == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DenseArray, LabelMap, Raster, Table};

    /// Slow reference implementation: one buffer, hashed at once.
    fn slow(element: u8, channels: u8, width_px: u32, height_px: u32, content: &[u8]) -> Digest {
        let mut bytes = content.to_vec();
        bytes.extend([element, channels]);
        bytes.extend(width_px.to_le_bytes());
        bytes.extend(height_px.to_le_bytes());
        bytes.extend((content.len() as u64).to_le_bytes());
        Digest(blake3::derive_key("pleach data region digest 1", &bytes))
    }

    #[test]
    fn type_shape_and_content_are_digested() {
        let raster = |width, height| Raster::new(width, height, 1, vec![255, 0, 0, 255, 0, 0]).unwrap();
        let content = [255, 0, 0, 255, 0, 0];
        assert_eq!(DataRegion::Mask(raster(2, 3)).digest(), slow(3, 1, 2, 3, &content));
        assert_eq!(DataRegion::Gray8(raster(2, 3)).digest(), slow(2, 1, 2, 3, &content));
        assert_eq!(DataRegion::Mask(raster(3, 2)).digest(), slow(3, 1, 3, 2, &content));
        let colors = Raster::new(2, 1, 3, content.to_vec()).unwrap();
        assert_eq!(DataRegion::Bgr8(colors).digest(), slow(1, 3, 2, 1, &content));
    }

    /// Slow reference implementation for types whose shape follows the content.
    fn slow_shaped(element: u8, shape: &[u64], content: &[u8]) -> Digest {
        let mut bytes = content.to_vec();
        bytes.extend(shape.iter().flat_map(|count| count.to_le_bytes()));
        bytes.extend([element, shape.len() as u8]);
        bytes.extend([0; 8]);
        bytes.extend((content.len() as u64).to_le_bytes());
        Digest(blake3::derive_key("pleach data region digest 1", &bytes))
    }

    #[test]
    fn arrays_are_digested_with_their_shape() {
        let array = |extents: &[u32], channels| {
            let values = vec![0x0102_u16, 0x0304, 5, 6].into();
            DataRegion::Array(DenseArray::new(extents, channels, values).unwrap()).digest()
        };
        let content = [2, 1, 4, 3, 5, 0, 6, 0];
        assert_eq!(array(&[2, 1], 2), slow_shaped(7, &[1, 2, 2], &content));
        assert_eq!(array(&[4], 1), slow_shaped(7, &[4, 1], &content));
        let scalar = DataRegion::Scalar(0.5).digest();
        assert_eq!(scalar, slow_shaped(19, &[], &0.5_f64.to_le_bytes()));
    }

    #[test]
    fn labels_are_digested_piece_by_piece_as_if_at_once() {
        for (width_px, height_px) in [(1, 1), (128, 128), (129, 127), (300, 257)] {
            let labels: Vec<u32> =
                (0..width_px * height_px).map(|label: u32| label.wrapping_mul(2_654_435_761)).collect();
            let content: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            let region = DataRegion::Labels(LabelMap::new(width_px, height_px, labels).unwrap());
            assert_eq!(region.digest(), slow(4, 0, width_px, height_px, &content));
        }
    }

    #[test]
    fn columns_of_a_table_do_not_run_into_each_other() {
        let digest =
            |columns: &[(&str, f64)]| DataRegion::Table(Table::new(columns.iter().copied())).digest();
        let all = [
            digest(&[]),
            digest(&[("dice", 0.5)]),
            digest(&[("dice", -0.5)]),
            digest(&[("dic", 0.5), ("e", 0.5)]),
            digest(&[("dice", 0.0)]),
            digest(&[("dice", -0.0)]),
        ];
        for (place, digest) in all.iter().enumerate() {
            assert!(!all[..place].contains(digest), "number {place} has another's digest");
        }
    }

    #[test]
    fn digest_is_displayed_in_hexadecimal() {
        // The published digest of the empty input (BLAKE3's test vectors).
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of_bytes(&[]).to_string(), empty);
    }
}
