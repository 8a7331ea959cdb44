//! Digest, encoding and decoding of data regions of 1 and 16 million pixels. Figures are bytes of the region in memory a
//! second.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach_regions::{DataRegion, LabelMap, Raster};

/// Discs on a grid: about as many edges as nuclei make.
fn inside(x: u32, y: u32) -> bool {
    let (dx, dy) = ((x % 29) as i32 - 14, (y % 31) as i32 - 15);
    dx * dx + dy * dy < 100
}

fn regions(side_px: u32) -> Vec<(&'static str, DataRegion)> {
    let pixels = || (0..side_px).flat_map(|y| (0..side_px).map(move |x| (x, y)));
    // Noise: tissue compresses by little more.
    let mut state = 1_u32;
    let noise = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    let mask = pixels().map(|(x, y)| if inside(x, y) { 255 } else { 0 }).collect();
    let grey = noise.take((side_px * side_px) as usize).collect();
    let labels = pixels().map(|(x, y)| if inside(x, y) { 1 + x / 29 + y / 31 * 1000 } else { 0 }).collect();
    let raster = |data| Raster::new(side_px, side_px, 1, data).expect("of that shape");
    vec![
        ("mask", DataRegion::Mask(raster(mask))),
        ("gray8", DataRegion::Gray8(raster(grey))),
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

criterion_group!(benches, encoding);
criterion_main!(benches);
