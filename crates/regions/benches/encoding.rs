//! Benchmarks digest, encoding and decoding of data regions of 1 and 16 million pixels. If the test data is
//! present, also measures the savings and costs of each effort on real masks, label maps and images.
//! Throughput counts bytes of the region in memory.

#[path = "../../../tests/support/data.rs"]
mod data;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach_regions::{CompressionEffort, DataRegion, DenseArray, LabelMap, Raster};
use std::path::{Path, PathBuf};

/// Discs on a grid, with about as many edges as nuclei have.
fn inside(x: u32, y: u32) -> bool {
    let (dx, dy) = ((x % 29) as i32 - 14, (y % 31) as i32 - 15);
    dx * dx + dy * dy < 100
}

fn regions(side_px: u32) -> Vec<(&'static str, DataRegion)> {
    let pixels = || (0..side_px).flat_map(|y| (0..side_px).map(move |x| (x, y)));
    // Noise: tissue is hardly more compressible.
    let mut state = 1_u32;
    let noise = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    let mask = pixels().map(|(x, y)| if inside(x, y) { 255 } else { 0 }).collect();
    let gray = noise.take((side_px * side_px) as usize).collect();
    let labels = pixels().map(|(x, y)| if inside(x, y) { 1 + x / 29 + y / 31 * 1000 } else { 0 }).collect();
    let raster = |data| Raster::new(side_px, side_px, 1, data).expect("of that shape");
    vec![
        ("mask", DataRegion::Mask(raster(mask))),
        ("gray8", DataRegion::Gray8(raster(gray))),
        ("labels", DataRegion::Labels(LabelMap::new(side_px, side_px, labels).expect("of that shape"))),
    ]
}

fn encoding(criterion: &mut Criterion) {
    for (megapixels, side_px) in [(1, 1024), (16, 4096)] {
        for (name, region) in regions(side_px) {
            let mut group = criterion.benchmark_group("encoding");
            group.sample_size(10).throughput(Throughput::Bytes(region.bytes()));
            let id = |what: &str| BenchmarkId::new(format!("{what} {name}"), format!("{megapixels} Mpx"));
            let digest = region.digest();
            let bytes = region.encode(&digest);
            group.bench_function(id("digest"), |bencher| bencher.iter(|| region.digest()));
            group.bench_function(id("encode"), |bencher| bencher.iter(|| region.encode(&digest)));
            group.bench_function(id("decode"), |bencher| bencher.iter(|| DataRegion::decode(&bytes)));
            group.finish();
        }
    }
}

/// Stacks the images with the width of the first one. Returns the width, and the concatenated `values` of
/// each.
fn stacked<T>(files: &[PathBuf], values: impl Fn(image::DynamicImage) -> Vec<T>) -> Option<(u32, Vec<T>)> {
    let mut images = files.iter().filter_map(|file| image::open(file).ok()).peekable();
    let width = images.peek()?.width();
    Some((width, images.filter(|image| image.width() == width).flat_map(values).collect()))
}

/// Returns the files of a folder whose names end with `end`, sorted.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(end));
    files.sort();
    files
}

/// Real regions: reference masks of one tile, annotated label maps of 512 px, an image with much glass,
/// images of dense tissue, and gray levels of the latter as floats.
fn real(folder: &Path) -> Vec<(&'static str, DataRegion)> {
    let mut regions = Vec::new();
    let masks = files(&folder.join("reference/nscale/masks"), ".png");
    let masks: Vec<PathBuf> =
        masks.into_iter().filter(|file| file.to_string_lossy().contains("_2048__")).take(8).collect();
    let raster = |width, data: Vec<u8>, channels: u8| {
        let height = data.len() as u32 / width / u32::from(channels);
        Raster::new(width, height, channels, data).ok()
    };
    if let Some((width, mask)) = stacked(&masks, |mask| mask.into_luma8().into_raw()) {
        regions.extend(raster(width, mask, 1).map(|mask| ("masks", DataRegion::Mask(mask))));
    }
    let annotated = files(&folder.join("annotated/gbm40"), "_labels.png");
    if let Some((width, labels)) = stacked(&annotated, |labels| labels.into_luma16().into_raw()) {
        let labels: Vec<u32> = labels.into_iter().map(u32::from).collect();
        let map = LabelMap::new(width, labels.len() as u32 / width, labels).ok();
        regions.extend(map.map(|map| ("label maps", DataRegion::Labels(map))));
    }
    let mut dense = files(&folder.join("annotated/monuseg"), ".png");
    dense.retain(|file| !file.to_string_lossy().ends_with("_labels.png"));
    let glass = vec![folder.join("tiles/CMU-1_x150_y800_2048.png")];
    for (name, files) in [("image with glass", &glass), ("dense images", &dense)] {
        let Some((width, mut pixels)) = stacked(files, |image| image.into_rgb8().into_raw()) else {
            continue;
        };
        pixels.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| pixel.reverse());
        regions.extend(raster(width, pixels, 3).map(|image| (name, DataRegion::Bgr8(image))));
    }
    if let Some((width, shades)) = stacked(&dense, |image| image.into_luma8().into_raw()) {
        let shades: Vec<f32> = shades.into_iter().map(f32::from).collect();
        let array = DenseArray::new(&[width, shades.len() as u32 / width], 1, shades.into()).ok();
        regions.extend(array.map(|array| ("real numbers", DataRegion::Array(array))));
    }
    regions
}

fn efforts(criterion: &mut Criterion) {
    let Some(folder) = data::data("efforts") else { return };
    for (name, region) in real(&folder) {
        let digest = region.digest();
        for effort in [CompressionEffort::None, CompressionEffort::Quick, CompressionEffort::Small] {
            let (head, body) = region.encode_with(&digest, effort, None);
            let percent = body.len() as f64 / region.bytes() as f64 * 100.0;
            let mut group = criterion.benchmark_group("effort");
            group.sample_size(10).throughput(Throughput::Bytes(region.bytes()));
            let id = |what: &str| {
                BenchmarkId::new(format!("{what} {name}"), format!("{effort:?}, {percent:.2} %"))
            };
            group.bench_function(id("encode"), |bencher| {
                bencher.iter(|| region.encode_with(&digest, effort, None).1.len());
            });
            // Includes the digest, which every reader computes, and a copy of the body.
            group.bench_function(id("decode"), |bencher| {
                bencher.iter(|| DataRegion::decode_parts(&head, body.to_vec()).is_ok());
            });
            group.finish();
        }
    }
}

criterion_group!(benches, encoding, efforts);
criterion_main!(benches);
