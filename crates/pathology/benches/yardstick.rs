//! Compares the segmentation with the original program's published times, in yardsticks. Run with `cargo bench -p
//! pleach-pathology --bench yardstick`.
//!
//! A yardstick is OpenCV's `medianBlur` with a 7 × 7 window on the same tile, on one thread. It is timed in the same
//! process, right before and after each operation, because ratios are nearly independent of the machine and times are
//! not.
//! All work runs on one thread. Seconds are the CPU time of this thread, including system calls: other processes on the
//! machine delay it but do not add to it.
//! Tile: `tiles/CMU-1_x150_y800_2048.png` of the test data, mirrored to 4096 × 4096 px. Default parameters, one core,
//! medians of [`ROUNDS`] rounds. Page faults are those of one round. Bytes per pixel are its metered peak.

use opencv::core::{Mat, Vec3b};
use opencv::imgproc;
use pleach_pages::RecyclingAllocator;
use pleach_pathology::{image_io, registry};
use pleach_regions::{DataRegion, ElementType, Raster};
use pleach_workflow::Value;
use std::hint::black_box;
use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

/// Number of rounds of the original program's timing.
const ROUNDS: usize = 5;

/// Operation, default arguments, regions read and written, yardsticks of the original program.
type Row = (&'static str, &'static [f64], &'static [&'static str], &'static [&'static str], f64);

const ROWS: [Row; 8] = [
    ("nuclei.normalize", &[], &["tile"], &["normalized"], 2.46),
    ("nuclei.background", &[220.0, 220.0, 220.0, 5.0, 4.0], &["tile"], &["rbc", "background"], 0.224),
    ("nuclei.reconstruct", &[8.0], &["tile"], &["rc", "recon"], 0.426),
    ("nuclei.candidates", &[80.0, 4.0], &["rc", "recon"], &["diff", "bw1"], 0.175),
    ("nuclei.candidate-area", &[11.0, 1000.0], &["bw1"], &["bw1_t"], 0.119),
    ("nuclei.nuclei", &[45.0], &["diff", "bw1_t", "rbc", "background"], &["seg_open"], 0.235),
    ("nuclei.separate", &[30.0, 8.0], &["seg_open", "tile"], &["seg_nonoverlap"], 1.770),
    ("nuclei.final-area", &[21.0, 1000.0, 4.0], &["seg_nonoverlap"], &["mask"], 0.233),
];

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test` builds and starts benches to check that they run. Only `--bench` requests measurements.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let data = std::env::var_os("PLEACH_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = data.join("tiles/CMU-1_x150_y800_2048.png");
    if !path.exists() {
        println!("SKIPPED yardstick: no test data at {}", data.display());
        return Ok(());
    }
    opencv::core::set_num_threads(1)?;
    let tile = mirrored(image_io::read_bgr(&path)?.raster(ElementType::Bgr8)?)?;
    let mut regions = vec![("tile", DataRegion::Bgr8(tile))];
    let mut yardsticks = vec![yardstick(&regions[0].1)?];
    let pixels = regions[0].1.raster(ElementType::Bgr8)?.pixels();
    let mut lines = Vec::new();
    for (name, numbers, reads, writes, original) in ROWS {
        let registry = registry();
        let operation = registry.get(name, 1).ok_or("not linked in")?;
        let arguments: Vec<Value> = operation
            .arguments()
            .iter()
            .zip(numbers)
            .filter_map(|(argument, number)| Value::from_f64(*number, argument.accepts.value_type()))
            .collect();
        let find = |region: &&str| regions.iter().find(|(name, _)| name == region).map(|(_, region)| region);
        let inputs: Vec<&DataRegion> = reads.iter().filter_map(find).collect();
        let (outputs, peak_bytes) = pleach_pages::metered(|| operation.run(&inputs, &arguments));
        let mut outputs = outputs?;
        let mut seconds = Vec::new();
        let faults = page_faults();
        for _ in 0..ROUNDS {
            let start = thread_seconds();
            outputs = black_box(operation.run(black_box(&inputs), &arguments)?);
            seconds.push(thread_seconds() - start);
        }
        let faults = (page_faults() - faults) / ROUNDS as u64;
        yardsticks.push(yardstick(&regions[0].1)?);
        lines.push(Line { name, seconds: median(&mut seconds), original, faults, peak_bytes });
        regions.extend(writes.iter().copied().zip(outputs));
    }
    let tasks = &lines[1..];
    lines.push(Line {
        name: "t1 to t7",
        seconds: tasks.iter().map(|line| line.seconds).sum(),
        original: 3.18,
        faults: tasks.iter().map(|line| line.faults).sum(),
        peak_bytes: tasks.iter().map(|line| line.peak_bytes).max().unwrap_or_default(),
    });
    let unit = median(&mut yardsticks);
    println!("one yardstick: {:.0} ms (median of {}), the original's 1350 ms", unit * 1e3, yardsticks.len());
    println!(
        "| operation | ms | yardsticks | the original's | ratio | ns a pixel | bytes a pixel | page faults |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for Line { name, seconds, original, faults, peak_bytes } in lines {
        let measured = seconds / unit;
        let (nanoseconds, bytes) = (seconds * 1e9 / pixels as f64, peak_bytes as f64 / pixels as f64);
        println!(
            "| {name} | {:.1} | {measured:.3} | {original:.3} | {:.2} | {nanoseconds:.1} | {bytes:.2} | {faults} |",
            seconds * 1e3,
            measured / original
        );
    }
    Ok(())
}

/// Measurements of one operation, and the yardsticks of the original program.
struct Line {
    name: &'static str,
    seconds: f64,
    original: f64,
    faults: u64,
    peak_bytes: u64,
}

/// Returns the CPU seconds of this thread.
#[expect(clippy::cast_precision_loss, reason = "days in nanoseconds are exact")]
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to the struct passed to it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the minor page faults of this process. 0 if the system does not report them.
fn page_faults() -> u64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Minor faults are the eighth field after the program's name, which is in parentheses and may contain any
    // character.
    let numbers = status.rsplit(')').next().unwrap_or_default();
    numbers.split_whitespace().nth(7).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

/// Returns the CPU seconds of one median filter.
fn yardstick(tile: &DataRegion) -> Result<f64, Box<dyn std::error::Error>> {
    let tile = tile.raster(ElementType::Bgr8)?;
    let (pixels, _) = tile.data().as_chunks::<3>();
    let pixels: Vec<Vec3b> = pixels.iter().map(|&pixel| Vec3b::from(pixel)).collect();
    let (rows, columns) = (i32::try_from(tile.height_px())?, i32::try_from(tile.width_px())?);
    let image = Mat::new_rows_cols_with_data(rows, columns, &pixels)?;
    let mut blurred = Mat::default();
    let start = thread_seconds();
    imgproc::median_blur(&image, &mut blurred, 7)?;
    black_box(&blurred);
    Ok(thread_seconds() - start)
}

/// Returns the tile with its left-right mirror image beside it, and both mirrored below.
fn mirrored(tile: &Raster) -> Result<Raster, pleach_regions::ShapeError> {
    let (width, height) = (tile.width_px() as usize, tile.height_px() as usize);
    let mut data = Vec::with_capacity(4 * tile.data().len());
    for y in (0..height).chain((0..height).rev()) {
        let row = &tile.data()[y * width * 3..][..width * 3];
        data.extend_from_slice(row);
        data.extend(row.chunks_exact(3).rev().flatten());
    }
    Raster::new(2 * tile.width_px(), 2 * tile.height_px(), 3, data)
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
