//! Test regions and their keys, each derived from a number.

use pleach_regions::{
    AnnotatedObjects, DataRegion, DenseArray, LabelMap, Points, Polygons, RaggedArray, Raster, RegionKey,
    Table,
};
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{FolderKind, FolderSettings, FolderTier, TierError};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// 1 GiB: more than any test stores.
pub(crate) const AMPLE_BYTES: u64 = 1 << 30;

/// 30 s: within this time a started process has reached `exec`.
const STARTED: Duration = Duration::from_secs(30);

/// Returns a key in one of two leaf folders.
pub(crate) fn key(number: u32) -> RegionKey {
    let mut bytes = [0; 16];
    bytes[0] = 0xa7 + (number % 2) as u8;
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    RegionKey(bytes)
}

/// Returns a region between a few bytes and 20 kB. The number selects type, shape and content.
pub(crate) fn region(number: u32) -> Arc<DataRegion> {
    let (width, height) = (1 + number * 37 % 90, 1 + number * 11 % 50);
    let noise = |length: u32| -> Vec<u8> {
        (0..length).map(|place| ((place + 1).wrapping_mul(number ^ 0x9e37_79b9) >> 24) as u8).collect()
    };
    let raster =
        |channels: u32| Raster::new(width, height, channels as u8, noise(width * height * channels)).unwrap();
    Arc::new(match number % 11 {
        0 => DataRegion::Bgr8(raster(3)),
        1 => DataRegion::Gray8(raster(1)),
        2 => DataRegion::Mask(Raster::filled(width, height, 1, 255).unwrap()),
        3 => {
            let labels = noise(width * height).into_iter().map(u32::from).collect();
            DataRegion::Labels(LabelMap::new(width, height, labels).unwrap())
        }
        4 => DataRegion::Table(Table::new([("number", f64::from(number))])),
        5 => {
            let values: Vec<f32> = noise(width * height).into_iter().map(f32::from).collect();
            DataRegion::Array(DenseArray::new(&[width, height], 1, values.into()).unwrap())
        }
        6 => {
            let ends = vec![0, u64::from(width), u64::from(width + height)];
            DataRegion::Ragged(RaggedArray::new(ends, noise(width + height).into()).unwrap())
        }
        7 => {
            let coordinates = noise(2 * width).into_iter().map(f64::from).collect();
            DataRegion::Points(Points::new(2, coordinates).unwrap())
        }
        8 => {
            let ring = |x: u32| vec![[f64::from(x), 0.0], [f64::from(x), 1.0], [f64::from(number), 2.0]];
            DataRegion::Polygons(Box::new(Polygons::new((0..width).map(|x| [ring(x)])).unwrap()))
        }
        9 => {
            let mut objects = AnnotatedObjects::new(["number"]).unwrap();
            (0..width).for_each(|x| {
                let low = [f64::from(x), 0.0];
                objects.push_box(low, [f64::from(x + 1), 3.0], "nucleus", &[f64::from(number)]).unwrap();
            });
            DataRegion::Objects(Box::new(objects))
        }
        _ => DataRegion::Scalar(f64::from(number)),
    })
}

/// Returns a gray region of `bytes` bytes that LZ4 cannot compress.
pub(crate) fn noise(number: u32, bytes: u32) -> Arc<DataRegion> {
    let mut state = number.wrapping_mul(2_654_435_761) | 1;
    let data = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    Arc::new(DataRegion::Gray8(Raster::new(bytes, 1, 1, data.take(bytes as usize).collect()).unwrap()))
}

pub(crate) fn open_on(
    files: Arc<dyn FileSystem>,
    path: &Path,
    kind: FolderKind,
) -> Result<FolderTier, TierError> {
    FolderTier::open(files, path, FolderSettings::new(kind, AMPLE_BYTES))
}

/// Opens a folder that has been closed. A process that another test is starting inherits the open files of this one, and
/// with them the lock, until it calls `exec`. So this retries.
pub(crate) fn open_settled(files: &Arc<dyn FileSystem>, path: &Path, settings: FolderSettings) -> FolderTier {
    let begun = Instant::now();
    loop {
        match FolderTier::open(Arc::clone(files), path, settings) {
            Err(TierError::InUse { .. }) if begun.elapsed() < STARTED => thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

/// Opens a folder on disk like [`open_settled`].
pub(crate) fn open_with(path: &Path, settings: FolderSettings) -> FolderTier {
    open_settled(&(Arc::new(OsFileSystem) as Arc<dyn FileSystem>), path, settings)
}

pub(crate) fn open(path: &Path, kind: FolderKind) -> FolderTier {
    open_with(path, FolderSettings::new(kind, AMPLE_BYTES))
}
