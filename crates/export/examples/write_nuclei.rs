//! Measures the writing of exports: `write_nuclei COUNT FORMAT,… [OUT]` writes nuclei on a generated slide, tile by tile.
//!
//! Nuclei are ellipses of about 450 px on a grid, on a slide as large as their number needs: 32 px each way. Prints seconds, objects
//! per second, bytes of the files and the peak resident memory of the process.

use pleach_export::{ExportFormat, ExportOptions, ExportedObject, Geometry, ImageExport};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Distance of nuclei, pixels.
const STEP_PX: u32 = 32;

/// Nuclei along a side of a tile of 4,096 px.
const NUCLEI_A_TILE: u32 = 4_096 / STEP_PX;

#[expect(clippy::print_stdout, reason = "it prints its measurements")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u32 = arguments.next().ok_or("COUNT is missing")?.parse()?;
    let formats = arguments.next().ok_or("FORMAT is missing")?;
    let formats = formats.split(',').map(str::parse).collect::<Result<Vec<ExportFormat>, _>>()?;
    let out =
        arguments.next().map_or_else(|| std::env::temp_dir().join("pleach-write-nuclei"), PathBuf::from);
    fs::create_dir_all(&out)?;
    let side = f64::from(count).sqrt().ceil() as u32;
    let side_px = side * STEP_PX;
    let geometry = Geometry {
        width_px: side_px,
        height_px: side_px,
        slide_px_a_px: 1.0,
        microns_a_slide_px: Some(0.25),
    };
    let options = ExportOptions { formats, class: "Nucleus".to_owned(), gzip: false };
    let (start, mut tracing) = (Instant::now(), 0.0);
    let mut export = ImageExport::create(&out, "nuclei", true, geometry, &options)?;
    let tiles = side.div_ceil(NUCLEI_A_TILE);
    for (row, column) in (0..tiles).flat_map(|row| (0..tiles).map(move |column| (row, column))) {
        let before = Instant::now();
        let range = |tile: u32| tile * NUCLEI_A_TILE..((tile + 1) * NUCLEI_A_TILE).min(side);
        let places = range(row).flat_map(|y| range(column).map(move |x| (x, y)));
        let places = places.filter(|(x, y)| y * side + x < count);
        let objects: Vec<_> =
            places.map(|(x, y)| ExportedObject::new(nucleus(x, y), options.needs_polygons())).collect();
        tracing += before.elapsed().as_secs_f64();
        export.add(&objects)?;
    }
    let written = export.finish()?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes: u64 = written.files.iter().map(|file| size(&out.join(file))).sum();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!(
        "{} objects on {side_px} x {side_px} px as {}: {seconds:.1} s, of them {tracing:.1} s to make the objects; {:.0} objects/s, \
         {:.1} MB, peak memory {peak}",
        written.objects,
        written.files.join(", "),
        f64::from(count) / seconds,
        bytes as f64 / 1e6,
    );
    Ok(())
}

/// Returns an ellipse whose axes depend on its position.
fn nucleus(x: u32, y: u32) -> Vec<([u32; 2], u32)> {
    let (a, b) = (f64::from(10 + (x * 7 + y) % 5), f64::from(10 + (x + y * 5) % 5));
    let (left, top) = (x * STEP_PX, y * STEP_PX);
    let rows = (0..STEP_PX).filter_map(|row| {
        let down = (f64::from(row) + 0.5 - 16.0) / b;
        let half = a * (1.0 - down * down).max(0.0).sqrt();
        let (from, to) = ((16.0 - half).ceil() as u32, (16.0 + half).floor() as u32);
        (to > from).then(|| ([left + from, top + row], to - from))
    });
    rows.collect()
}

fn size(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| size(&entry.path())).sum(),
        Err(_) => fs::metadata(path).map_or(0, |meta| meta.len()),
    }
}
