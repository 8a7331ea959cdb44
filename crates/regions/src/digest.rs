//! What a region holds, in 256 bits.

use crate::{DataRegion, Raster};
use std::fmt;

/// A BLAKE3 hash of a region's element type, shape and content: equal digests mean equal regions, in whichever encoding
/// they travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Raised when the bytes that are hashed change.
const SCHEME: &[u8] = b"pleach region 1";

impl DataRegion {
    /// Hashes the region, at the speed of BLAKE3: gigabytes a second.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hash = blake3::Hasher::new();
        hash.update(SCHEME);
        let name = self.element().name();
        hash.update(&[name.len() as u8]);
        hash.update(name.as_bytes());
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => of_raster(&mut hash, raster),
            Self::Labels(map) => {
                shape(&mut hash, map.width_px(), map.height_px());
                let mut bytes = Vec::with_capacity(4 * BLOCK);
                for block in map.labels().chunks(BLOCK) {
                    bytes.clear();
                    block.iter().for_each(|label| bytes.extend_from_slice(&label.to_le_bytes()));
                    hash.update(&bytes);
                }
            }
            Self::Table(table) => {
                for (name, value) in table.columns() {
                    hash.update(&(name.len() as u64).to_le_bytes());
                    hash.update(name.as_bytes());
                    hash.update(&value.to_bits().to_le_bytes());
                }
            }
        }
        Digest(*hash.finalize().as_bytes())
    }
}

/// Labels that are turned into bytes at a time: as many as BLAKE3 hashes side by side.
const BLOCK: usize = 4096;

fn shape(hash: &mut blake3::Hasher, width_px: u32, height_px: u32) {
    hash.update(&width_px.to_le_bytes());
    hash.update(&height_px.to_le_bytes());
}

fn of_raster(hash: &mut blake3::Hasher, raster: &Raster) {
    shape(hash, raster.width_px(), raster.height_px());
    hash.update(raster.data());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelMap, Table};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn region() -> impl Strategy<Value = DataRegion> {
        let shape = (1u32..4, 1u32..4);
        let raster = |channels: u8| {
            shape.clone().prop_flat_map(move |(w, h)| {
                let bytes = prop::collection::vec(0u8..2, (w * h) as usize * usize::from(channels));
                bytes.prop_map(move |data| Raster::new(w, h, channels, data).unwrap())
            })
        };
        let labels = shape.clone().prop_flat_map(|(w, h)| {
            let labels = prop::collection::vec(0u32..2, (w * h) as usize);
            labels.prop_map(move |labels| LabelMap::new(w, h, labels).unwrap())
        });
        let column = ("[ab]{0,2}", prop_oneof![Just(0.0), Just(-0.0), Just(1.0)]);
        prop_oneof![
            raster(3).prop_map(DataRegion::Bgr8),
            raster(1).prop_map(DataRegion::Gray8),
            raster(1).prop_map(DataRegion::Mask),
            labels.prop_map(DataRegion::Labels),
            prop::collection::vec(column, 0..3).prop_map(|columns| DataRegion::Table(Table::new(columns))),
        ]
    }

    proptest! {
        #[test]
        fn equal_regions_alone_have_equal_digests(regions in prop::collection::vec(region(), 1..40)) {
            let mut seen: HashMap<Digest, String> = HashMap::new();
            for region in regions {
                let shown = format!("{region:?}");
                let before = seen.entry(region.digest()).or_insert_with(|| shown.clone());
                prop_assert_eq!(before, &shown);
            }
        }
    }

    #[test]
    fn one_pixel_of_a_large_region_tells() {
        let mut labels = vec![0; 3 * BLOCK + 5];
        let map = |labels: &[u32]| {
            DataRegion::Labels(LabelMap::new(labels.len() as u32, 1, labels.to_vec()).unwrap())
        };
        let before = map(&labels).digest();
        labels[2 * BLOCK + 1] = 1 << 24;
        assert_ne!(before, map(&labels).digest());
    }
}
