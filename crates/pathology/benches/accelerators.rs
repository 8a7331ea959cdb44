//! Operations on a core and on every OpenCL device found: milliseconds and their ratio. Run on any machine with
//! `cargo bench -p pleach-pathology --bench accelerators`.
//!
//! Tile: `tiles/CMU-1_x150_y800_2048.png` of the test data, 2048 × 2048 px, or a made one of the same size without test data.
//! Default parameters. Medians of [`ROUNDS`] rounds after a first run, which compiles the kernels. "with transfers" uploads the
//! inputs each time; "resident" has them on the device from the task before. Outputs are downloaded always. CPU milliseconds are those of
//! all threads of the process: on PoCL, which shares the processor, their ratio is the cost of the kernels on any load.

use pleach_accelerate::{Device, DeviceSpec, find};
use pleach_pathology::{image_io, registry};
use pleach_regions::{DataRegion, Raster};
use pleach_workflow::{Argument, Operation, Value};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// 7 rounds: the median is beyond the reach of three disturbed ones.
const ROUNDS: usize = 7;

/// Operation, default arguments, regions read and written.
type Row = (&'static str, &'static [f64], &'static [&'static str], &'static [&'static str]);

const ROWS: [Row; 9] = [
    ("nuclei.normalize", &[], &["tile"], &["normalized"]),
    ("nuclei.background", &[220.0, 220.0, 220.0, 5.0, 4.0], &["tile"], &["rbc", "background"]),
    ("nuclei.reconstruct", &[8.0], &["tile"], &["rc", "recon"]),
    ("nuclei.candidates", &[80.0, 4.0], &["rc", "recon"], &["diff", "bw1"]),
    ("nuclei.candidate-area", &[11.0, 1000.0], &["bw1"], &["bw1_t"]),
    ("nuclei.nuclei", &[45.0], &["diff", "bw1_t", "rbc", "background"], &["seg_open"]),
    ("nuclei.separate", &[30.0, 8.0], &["seg_open", "tile"], &["seg_nonoverlap"]),
    ("nuclei.final-area", &[21.0, 1000.0, 4.0], &["seg_nonoverlap"], &["mask"]),
    ("compare.masks", &[], &["mask", "seg_open"], &["scores"]),
];

/// Side of the made tile, pixels.
const SIDE_PX: u32 = 2048;

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test` builds and starts benches to check that they run. Only `--bench` requests measurements.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut devices = find(&DeviceSpec::All, None)?;
    devices.remarks.iter().for_each(|remark| println!("{remark}"));
    if devices.devices.is_empty() {
        println!("SKIPPED accelerators: no OpenCL device is present");
    }
    let mut regions = vec![("tile", tile()?)];
    for (name, numbers, reads, writes) in ROWS {
        let operation = registry().get(name, 1).ok_or(name)?.clone();
        let typed = |(number, argument): (&f64, &Argument)| {
            Value::from_f64(*number, argument.accepts.value_type()).ok_or(argument.name)
        };
        let arguments =
            numbers.iter().zip(operation.arguments()).map(typed).collect::<Result<Vec<_>, _>>()?;
        let named = |wanted: &&str| regions.iter().find(|(name, _)| name == wanted).map(|(_, region)| region);
        let inputs = reads.iter().map(named).collect::<Option<Vec<_>>>().ok_or(name)?;
        let outputs = operation.run(&inputs, &arguments)?;
        let core = median(|| operation.run(&inputs, &arguments).map(drop))?;
        println!("{name}: core {:.1} ms, CPU {:.1} ms", core.wall_ms, core.cpu_ms);
        for device in &mut devices.devices {
            measure(&*operation, device.as_mut(), &inputs, &arguments, &outputs, core)?;
        }
        regions.extend(writes.iter().copied().zip(outputs));
    }
    Ok(())
}

/// Prints the milliseconds of an operation on a device. Different bits are an error.
#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn measure(
    operation: &dyn Operation,
    device: &mut dyn Device,
    inputs: &[&DataRegion],
    arguments: &[Value],
    wanted: &[DataRegion],
    core: Cost,
) -> Result<(), Box<dyn Error>> {
    let Some(variant) = operation.accelerated() else { return Ok(()) };
    if variant.run_to_host(device, inputs, arguments)? != wanted {
        return Err(format!("{} on {}: the bits differ", operation.name(), device.name()).into());
    }
    let resident = median(|| variant.run_to_host(device, inputs, arguments).map(drop))?;
    let transferred = median(|| {
        device.clear();
        variant.run_to_host(device, inputs, arguments).map(drop)
    })?;
    println!("  {}: declared {:.1} x", device.name(), variant.gain());
    for (how, cost) in [("with transfers", transferred), ("resident", resident)] {
        let (wall, cpu) = (core.wall_ms / cost.wall_ms, core.cpu_ms / cost.cpu_ms);
        println!("    {how}: {:.1} ms, {wall:.2} x; CPU {:.1} ms, {cpu:.2} x", cost.wall_ms, cost.cpu_ms);
    }
    Ok(())
}

/// Milliseconds of a run.
#[derive(Clone, Copy)]
struct Cost {
    wall_ms: f64,
    /// Of all threads of the process, those of a driver included.
    cpu_ms: f64,
}

/// Returns the medians over [`ROUNDS`] runs.
fn median<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<Cost, E> {
    let mut rounds = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    for _ in 0..ROUNDS {
        let (started, cpu) = (Instant::now(), process_ms());
        run()?;
        rounds[0].push(started.elapsed().as_secs_f64() * 1e3);
        rounds[1].push(process_ms() - cpu);
    }
    let [wall_ms, cpu_ms] = rounds.map(|mut rounds| {
        rounds.sort_by(f64::total_cmp);
        rounds[ROUNDS / 2]
    });
    Ok(Cost { wall_ms, cpu_ms })
}

/// Returns the CPU milliseconds of this process.
#[expect(clippy::cast_precision_loss, reason = "days in nanoseconds are exact")]
fn process_ms() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to the struct passed to it.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
}

fn tile() -> Result<DataRegion, Box<dyn Error>> {
    let data = std::env::var_os("PLEACH_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = data.join("tiles/CMU-1_x150_y800_2048.png");
    if path.exists() {
        return Ok(image_io::read_bgr(&path)?);
    }
    // Dark discs on a bright gradient: objects of the size of nuclei.
    let pixel = |at: u32| {
        let (x, y) = (at % SIDE_PX, at / SIDE_PX);
        let (dx, dy) = ((x % 40).abs_diff(20), (y % 40).abs_diff(20));
        let is_nucleus = dx * dx + dy * dy < 80 + (x / 40 * 31 + y / 40 * 17) % 60;
        if is_nucleus { [120, 60, 90] } else { [215, (150 + x % 64) as u8, (190 + y % 50) as u8] }
    };
    let data = (0..SIDE_PX * SIDE_PX).flat_map(pixel).collect();
    Ok(DataRegion::Bgr8(Raster::new(SIDE_PX, SIDE_PX, 3, data)?))
}
