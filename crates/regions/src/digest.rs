//! What a data region's content is known by: 256 bits that do not depend on how the region is encoded.
//!
//! Nothing here says where content comes from; that is what keys are for.

use crate::{DataRegion, ElementType, Table};
use serde::{Deserialize, Serialize};
use std::fmt;

/// BLAKE3 over content. Equal digests mean equal content: of a data region, element type and shape included
/// ([`DataRegion::digest`]), or of a file's bytes ([`Digest::of_bytes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

/// Keeps digests of regions apart from all other uses of BLAKE3. Raised when the byte strings below change.
const REGION_CONTEXT: &str = "pleach data region digest 1";

/// Label maps are digested in pieces of this many labels: 64 KiB of bytes, which fills every lane of the hash and stays
/// in the first caches.
const LABELS_A_PIECE: usize = 16 * 1024;

impl Digest {
    /// The digest of a byte string, such as a file's.
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
    /// The digest of this region's element type, shape and content. Numbers of a table are told apart by their bits.
    ///
    /// Masks are digested as they are, one byte a pixel: the hash is faster than packing them would be.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = hasher();
        let (mut channels, mut length) = (0, 0);
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => {
                hasher.update(raster.data());
                (channels, length) = (raster.channels(), raster.data().len());
            }
            Self::Labels(map) => {
                let mut piece = vec![0; LABELS_A_PIECE.min(map.labels().len()) * size_of::<u32>()];
                for labels in map.labels().chunks(LABELS_A_PIECE) {
                    let bytes = &mut piece[..size_of_val(labels)];
                    write_labels(labels, bytes);
                    hasher.update(bytes);
                    length += bytes.len();
                }
            }
            Self::Table(table) => {
                let bytes = table_bytes(table);
                hasher.update(&bytes);
                length = bytes.len();
            }
        }
        finish(hasher, self.element(), channels, self.size_px().unwrap_or_default(), length)
    }
}

/// A digest that has seen nothing of the content yet.
pub(crate) fn hasher() -> blake3::Hasher {
    blake3::Hasher::new_derive_key(REGION_CONTEXT)
}

/// The digest after `length` bytes of content. What tells equal bytes of another type or shape apart comes last and is
/// always as long: the content then begins where the hash's lanes do.
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

/// The number an element type goes by in digests and encodings. Never reused.
pub(crate) fn element_code(element: ElementType) -> u8 {
    match element {
        ElementType::Bgr8 => 1,
        ElementType::Gray8 => 2,
        ElementType::Mask => 3,
        ElementType::Labels => 4,
        ElementType::Table => 5,
    }
}

/// Labels as bytes, the lowest first; `bytes` is four times as long as `labels`.
pub(crate) fn write_labels(labels: &[u32], bytes: &mut [u8]) {
    for (bytes, label) in bytes.chunks_exact_mut(size_of::<u32>()).zip(labels) {
        bytes.copy_from_slice(&label.to_le_bytes());
    }
}

/// A table as bytes: of each column the name's length (u32), the name, and the number's bits.
pub(crate) fn table_bytes(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in table.columns() {
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelMap, Raster};

    /// A slow counterpart: one buffer, hashed at once.
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
        let colours = Raster::new(2, 1, 3, content.to_vec()).unwrap();
        assert_eq!(DataRegion::Bgr8(colours).digest(), slow(1, 3, 2, 1, &content));
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
    fn it_is_shown_in_hexadecimal() {
        // The published digest of the empty input (BLAKE3's test vectors).
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of_bytes(&[]).to_string(), empty);
    }
}
