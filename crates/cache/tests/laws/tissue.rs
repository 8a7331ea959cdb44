//! Real tiles and masks: the cache returns them unchanged, and their size on disk is limited.

use crate::data::data;
use crate::entries::open;
use pleach_cache::InsertOutcome;
use pleach_regions::{DataRegion, Raster};
use std::path::Path;

/// Returns the images in a folder with this file name ending as regions. `None`, with a note on stderr, if the test data is
/// missing.
fn regions(folder: &str, ending: &str, make: fn(&Path) -> DataRegion) -> Option<Vec<DataRegion>> {
    let folder = data("tissue_comes_back")?.join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    paths.sort();
    // 20 images suffice to measure their size. More would only take longer.
    paths.truncate(20);
    assert!(!paths.is_empty());
    Some(paths.iter().map(|path| make(path)).collect())
}

fn mask(path: &Path) -> DataRegion {
    let image = image::open(path).unwrap().into_luma8();
    let (width_px, height_px) = image.dimensions();
    // Some of the files encode masks as 0 and 1.
    let data = image.into_raw().iter().map(|value| if *value == 0 { 0 } else { 255 }).collect();
    DataRegion::Mask(Raster::new(width_px, height_px, 1, data).unwrap())
}

fn colors(path: &Path) -> DataRegion {
    let mut image = image::open(path).unwrap().into_rgb8();
    let (width_px, height_px) = image.dimensions();
    image.pixels_mut().for_each(|pixel| pixel.0.reverse());
    DataRegion::Bgr8(Raster::new(width_px, height_px, 3, image.into_raw()).unwrap())
}

#[test]
fn tissue_comes_back() {
    let Some(masks) = regions("reference/nscale/masks", ".png", mask) else { return };
    let Some(tiles) = regions("reference/nscale/normalized", ".png", colors) else { return };
    for (name, regions) in [("masks", masks), ("normalized tiles", tiles)] {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path());
        for region in &regions {
            assert_ne!(cache.store(&region.digest(), region, ""), InsertOutcome::Not);
        }
        drop(cache);
        let cache = open(folder.path());
        assert!(regions.iter().all(|region| cache.load(&region.digest()).as_ref() == Some(region)));
        let in_memory: u64 = regions.iter().map(DataRegion::bytes).sum();
        let on_disk = cache.statistics().bytes;
        println!("{name}: {} of them, {in_memory} bytes in memory, {on_disk} on disk", regions.len());
        // A mask takes at most 1/8 of its bytes in memory, an image at most all of them. Records add up to 1,000 bytes each.
        let most = if name == "masks" { in_memory / 8 } else { in_memory };
        assert!(on_disk < most + 1000 * regions.len() as u64);
    }
}
