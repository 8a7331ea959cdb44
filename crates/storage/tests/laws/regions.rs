//! Regions to store: each is known by its number, and so is its key.

use pleach_regions::{DataRegion, LabelMap, Raster, RegionKey, Table};
use pleach_storage::files::{Disk, Files};
use pleach_storage::{FolderKind, FolderSettings, FolderTier, TierError};
use std::path::Path;
use std::sync::Arc;

/// More than any test stores.
pub(crate) const AMPLE_BYTES: u64 = 1 << 30;

/// Keys of two leaves.
pub(crate) fn key(number: u32) -> RegionKey {
    let mut bytes = [0; 16];
    bytes[0] = 0xa7 + (number % 2) as u8;
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    RegionKey(bytes)
}

/// Of every type, between some and some thousand bytes.
pub(crate) fn region(number: u32) -> Arc<DataRegion> {
    let (width, height) = (1 + number * 37 % 90, 1 + number * 11 % 50);
    let noise = |length: u32| -> Vec<u8> {
        (0..length).map(|place| ((place + 1).wrapping_mul(number ^ 0x9e37_79b9) >> 24) as u8).collect()
    };
    let raster =
        |channels: u32| Raster::new(width, height, channels as u8, noise(width * height * channels)).unwrap();
    Arc::new(match number % 5 {
        0 => DataRegion::Bgr8(raster(3)),
        1 => DataRegion::Gray8(raster(1)),
        2 => DataRegion::Mask(Raster::filled(width, height, 1, 255).unwrap()),
        3 => {
            let labels = noise(width * height).into_iter().map(u32::from).collect();
            DataRegion::Labels(LabelMap::new(width, height, labels).unwrap())
        }
        _ => DataRegion::Table(Table::new([("number", f64::from(number))])),
    })
}

/// A grey region of that many bytes, which LZ4 makes no smaller.
pub(crate) fn noise(number: u32, bytes: u32) -> Arc<DataRegion> {
    let mut state = number.wrapping_mul(2_654_435_761) | 1;
    let data = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    Arc::new(DataRegion::Gray8(Raster::new(bytes, 1, 1, data.take(bytes as usize).collect()).unwrap()))
}

pub(crate) fn open_on(files: Arc<dyn Files>, path: &Path, kind: FolderKind) -> Result<FolderTier, TierError> {
    FolderTier::open(files, path, FolderSettings::new(kind, AMPLE_BYTES))
}

pub(crate) fn open(path: &Path, kind: FolderKind) -> FolderTier {
    open_on(Arc::new(Disk), path, kind).unwrap()
}
