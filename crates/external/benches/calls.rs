//! Time of calls of Python functions: a scalar, and tiles into Python and back. Prints percentiles.
//!
//! `PLEACH_PYTHON` is the environment, such as the one that `scripts/install-python` prints.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use pleach_external::Pool;
use pleach_regions::{DataRegion, Raster};
use std::hint::black_box;
use std::time::{Duration, Instant};

const MANIFEST: &str = r#"
[[operation]]
name = "python:m.scalar"
version = 1
outputs = [{ name = "out", type = "scalar" }]

[[operation]]
name = "python:m.same"
version = 1
inputs = [{ name = "tile", type = "bgr8" }]
outputs = [{ name = "out", type = "bgr8" }]

[[operation]]
name = "python:m.flipped"
function = "m:same"
version = 1
inputs = [{ name = "tile", type = "bgr8", channels = "rgb" }]
outputs = [{ name = "out", type = "bgr8", channels = "rgb" }]

[[operation]]
name = "python:m.inverted"
version = 1
inputs = [{ name = "tile", type = "bgr8", channels = "rgb" }]
outputs = [{ name = "out", type = "bgr8", channels = "rgb" }]

[[operation]]
name = "python:m.highest"
version = 1
inputs = [{ name = "tile", type = "bgr8" }]
outputs = [{ name = "out", type = "scalar" }]
"#;

const MODULE: &str = "def scalar():\n    return 1.0\ndef same(tile):\n    return tile\ndef inverted(tile):\n    return (~tile).copy(order='C')\ndef highest(tile):\n    return tile.max()\n";

/// As in pleach: regions are in memory that is used again.
#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

fn measure(name: &str, rounds: usize, mut call: impl FnMut()) {
    measure_with(name, rounds, || (), |()| call());
}

/// Measures calls with an argument that is made before each, outside of its time.
fn measure_with<T>(name: &str, rounds: usize, mut make: impl FnMut() -> T, mut call: impl FnMut(&T)) {
    call(&make());
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let argument = make();
            let start = Instant::now();
            call(&argument);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| times[(rounds - 1) * percent / 100].as_secs_f64() * 1000.0;
    println!("{name:32} p50 {:9.3} ms   p99 {:9.3} ms", at(50), at(99));
}

fn main() {
    let Ok(python) = std::env::var("PLEACH_PYTHON") else {
        println!("PLEACH_PYTHON is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pleach.toml"), MANIFEST).unwrap();
    std::fs::write(folder.path().join("m.py"), MODULE).unwrap();
    let pool = Pool::new();
    let manifest = folder.path().join("pleach.toml");
    let operations = pleach_external::load(&manifest, Some(python.as_ref()), &pool).unwrap();
    let run = |name: &str, inputs: &[&DataRegion]| {
        let found = operations.iter().find(|found| found.operation.name().starts_with(name)).unwrap();
        black_box(found.operation.run(inputs, &[]).unwrap());
    };
    measure("scalar", 2000, || run("python:m.scalar@", &[]));
    for side in [512, 4096] {
        let tile = DataRegion::Bgr8(Raster::filled(side, side, 3, 7).unwrap());
        let rounds = if side == 512 { 200 } else { 20 };
        for function in ["same", "flipped", "inverted", "highest"] {
            let name = format!("python:m.{function}@");
            measure(&format!("{function} {side}"), rounds, || run(&name, &[&tile]));
            let first = format!("{function} {side}, first reader");
            measure_with(&first, rounds, || tile.clone(), |tile| run(&name, &[tile]));
        }
        let content = tile.content().into_owned();
        let mut target = content.clone();
        measure(&format!("memcpy {side}"), rounds, || {
            black_box(&mut target).copy_from_slice(black_box(&content))
        });
        measure(&format!("memcpy to new memory {side}"), rounds, || {
            pleach_pages::trim();
            drop(black_box(content.clone()));
        });
    }
}
