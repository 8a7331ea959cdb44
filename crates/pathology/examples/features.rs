//! Measures the operations `features.*` on generated tissue: CPU seconds on one core for 100,000 nuclei. Run with
//! `cargo run --release -p pleach-pathology --example features`.

use pleach_pathology::{registry, tissue};
use pleach_regions::{DataRegion, LabelMap};
use pleach_workflow::{Registry, Value, ValueType};
use std::collections::BTreeMap;

/// As in the program.
#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

/// Nuclei to measure.
const NUCLEI: usize = 100_000;

/// Side of a tile, pixels. Tiles are generated and measured one after the other, so that memory stays small.
const SIDE_PX: u32 = 1024;

/// Number of different tiles, which are measured in turn.
const TILES: u32 = 8;

/// Operation, inputs, output.
type Step = (&'static str, &'static [&'static str], &'static str);

const STEPS: [Step; 12] = [
    ("features.channels", &["tile"], "channels"),
    ("features.gradient", &["channels"], "gradient"),
    ("features.sobel", &["channels"], "sobel"),
    ("features.canny", &["channels"], "edges"),
    ("features.labels", &["mask"], "labels"),
    ("features.shape", &["labels"], "shapes"),
    ("features.rings", &["labels"], "rings"),
    ("features.nucleus-statistics", &["labels", "channels", "gradient", "sobel", "edges"], "nucleus"),
    ("features.ring-statistics", &["rings", "channels", "gradient", "sobel", "edges"], "ring"),
    ("features.texture", &["labels", "channels"], "texture"),
    ("features.collect", &["shapes", "nucleus", "ring", "texture"], "nuclei"),
    ("features.summary", &["nuclei"], "summary"),
];

/// Steps before this one do not depend on the mask.
const FIRST_OF_MASK: usize = 4;

#[expect(clippy::print_stdout, reason = "an example prints its figures")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry();
    let mut tiles = Vec::new();
    for index in 0..TILES {
        let tile = tissue::generate(1, index, SIDE_PX)?;
        let labels = tile.labels.data.iter().map(|label| u32::from(*label)).collect();
        let mask = DataRegion::Labels(LabelMap::new(SIDE_PX, SIDE_PX, labels)?);
        tiles.push((DataRegion::Bgr8(tile.image), mask));
    }
    let (mut seconds, mut nuclei, mut measured) = ([0.0; STEPS.len()], 0, 0_u64);
    while nuclei < NUCLEI {
        let (tile, mask) = &tiles[(measured % u64::from(TILES)) as usize];
        nuclei += measure(&registry, tile.clone(), mask.clone(), &mut seconds)?;
        measured += 1;
    }
    let pixels = (measured * u64::from(SIDE_PX) * u64::from(SIDE_PX)) as f64;
    println!("{nuclei} nuclei on {measured} tiles of {SIDE_PX} x {SIDE_PX} px, CPU seconds on one core");
    println!("| operation | seconds | ns a pixel | us a nucleus |\n| --- | --- | --- | --- |");
    for ((name, ..), seconds) in STEPS.iter().zip(&seconds) {
        println!(
            "| {name} | {seconds:.2} | {:.2} | {:.2} |",
            seconds * 1e9 / pixels,
            seconds * 1e6 / nuclei as f64
        );
    }
    let (of_tile, of_mask) = seconds.split_at(FIRST_OF_MASK);
    println!("independent of the mask: {:.2} s", of_tile.iter().sum::<f64>());
    println!("of the mask: {:.2} s", of_mask.iter().sum::<f64>());
    Ok(())
}

/// Adds the seconds of each step. Returns the number of nuclei.
fn measure(
    registry: &Registry,
    tile: DataRegion,
    mask: DataRegion,
    seconds: &mut [f64; STEPS.len()],
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut regions = BTreeMap::from([("tile", tile), ("mask", mask)]);
    for ((name, reads, writes), seconds) in STEPS.iter().zip(seconds) {
        let operation = registry.get(name, 1).ok_or("not linked in")?;
        let levels = Value::from_f64(32.0, ValueType::Integer);
        let arguments: Vec<Value> = levels.into_iter().take(operation.arguments().len()).collect();
        let inputs: Vec<&DataRegion> = reads.iter().filter_map(|name| regions.get(name)).collect();
        let start = thread_seconds();
        let outputs = operation.run(&inputs, &arguments)?;
        *seconds += thread_seconds() - start;
        regions.extend(outputs.into_iter().map(|output| (*writes, output)));
    }
    match regions.get("nuclei") {
        Some(DataRegion::Objects(objects)) => Ok(objects.len()),
        _ => Err("no objects".into()),
    }
}

/// Returns the CPU seconds of this thread.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to the struct passed to it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
