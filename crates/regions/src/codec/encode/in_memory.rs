//! Encoding of data regions that stay in the memory of this process: the compressed content without a head.
//!
//! The bytes never leave the process, so they have no digest, and decoding verifies none.

use super::coding::{Coding, CompressionEffort};
use super::{DecodeError, Header};
use crate::{DataRegion, Digest, ElementType, Shape};
use std::borrow::Cow;

/// Bytes that an encoded region takes besides its content: this struct, its reference counts, the header of the
/// allocation, and its entry in a cache with the keys of its task. Estimated from the sizes of these types.
const FIXED_BYTES: u64 = 512;

/// Maximum share of the region's bytes. Masks and label maps take a few percent, and a region that keeps more than half of
/// its bytes frees too little memory for the time of encoding and decoding.
const MAX_SHARE: u64 = 2;

/// A data region encoded in memory.
#[derive(Debug)]
pub struct EncodedRegion {
    element: ElementType,
    coding: Coding,
    shape: Shape,
    content_bytes: u64,
    region_bytes: u64,
    body: Box<[u8]>,
}

impl EncodedRegion {
    /// Encodes a region. `None` if it keeps more than half of its bytes.
    #[must_use]
    pub fn new(region: &DataRegion) -> Option<Self> {
        let (element, shape, region_bytes) = (region.element(), region.shape(), region.bytes());
        let (coding, body, content_bytes) = region.stored(&shape, CompressionEffort::Quick, 0);
        // Uncompressed content may be borrowed, and is the whole region anyway.
        let Cow::Owned(body) = body else { return None };
        // Copied into a block of its size, because a shortened buffer leaves a gap behind it that no later buffer fits into.
        let body = Box::from(&*body);
        let encoded = Self { element, coding, shape, content_bytes, region_bytes, body };
        (encoded.bytes() <= region_bytes / MAX_SHARE).then_some(encoded)
    }

    /// Decodes the region.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes have changed in memory.
    pub fn decode(&self) -> Result<DataRegion, DecodeError> {
        let Self { element, coding, shape, content_bytes, ref body, .. } = *self;
        // `unchecked` compares no digest.
        let digest = Digest([0; 32]);
        Header { element, coding, shape, content_bytes: Some(content_bytes), digest }
            .unchecked(Cow::Borrowed(body))
    }

    /// Returns the bytes that this encoding takes, including its fixed part.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.body.len() as u64 + FIXED_BYTES
    }

    /// Returns the bytes of the decoded region.
    #[must_use]
    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// Returns the element type of the region.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.element
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelMap, Raster, Table};
    use proptest::prelude::*;

    #[test]
    fn regions_that_keep_half_of_their_bytes_are_not_encoded() {
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let image = Raster::new(100, 100, 1, noise.take(10_000).collect()).unwrap();
        assert!(EncodedRegion::new(&DataRegion::Gray8(image)).is_none());
        let table = DataRegion::Table(Table::new([("x", 1.0)]));
        assert!(EncodedRegion::new(&table).is_none());
        let mask = DataRegion::Mask(Raster::filled(100, 100, 1, 255).unwrap());
        let encoded = EncodedRegion::new(&mask).unwrap();
        assert!(encoded.bytes() <= 5_000 && encoded.region_bytes() == 10_000, "{encoded:?}");
        assert_eq!((encoded.element(), encoded.decode()), (ElementType::Mask, Ok(mask)));
    }

    proptest! {
        #[test]
        fn masks_and_label_maps_round_trip(runs in prop::collection::vec((0..4_u32, 500..3_000_usize), 1..20)) {
            let labels: Vec<u32> =
                runs.into_iter().flat_map(|(label, length)| std::iter::repeat_n(label, length)).collect();
            let width = labels.len() as u32;
            let mask = labels.iter().map(|label| if *label > 1 { 255 } else { 0 }).collect();
            let mask = DataRegion::Mask(Raster::new(width, 1, 1, mask).unwrap());
            let gray = labels.iter().map(|label| *label as u8).collect();
            let gray = DataRegion::Gray8(Raster::new(width, 1, 1, gray).unwrap());
            let labels = DataRegion::Labels(LabelMap::new(width, 1, labels).unwrap());
            for region in [mask, gray, labels] {
                let Some(encoded) = EncodedRegion::new(&region) else { continue };
                prop_assert!(encoded.bytes() <= region.bytes() / 2);
                prop_assert_eq!(encoded.decode(), Ok(region));
            }
        }
    }
}
