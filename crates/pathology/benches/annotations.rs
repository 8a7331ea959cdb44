//! Annotations of a slide of 120,000 px: seconds and bytes to read them, and seconds a tile. Prints a line for each number
//! of nuclei.
//!
//! `cargo bench -p pleach-pathology --bench annotations -- 100000 1000000`. A compressed file is read too.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints its figures, and ends at the first error"
)]

use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_pathology::image_io::{MAX_SLIDE_GEOJSON_BYTES, read_annotations};
use pleach_pathology::objects::View;
use pleach_regions::PixelRectangle;
use pleach_workflow::AnnotationRules;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// Side of the slide, pixels.
const SIDE_PX: u32 = 120_000;

/// Positions of a nucleus: QuPath's detections have 20 to 40.
const POSITIONS: usize = 25;

/// Side of a tile's window, pixels.
const TILE_PX: u32 = 4_096;

/// Writes nuclei on a grid, with the members and decimals that QuPath writes.
fn write(path: &Path, nuclei: usize) {
    let mut file: Box<dyn Write> = match path.extension().is_some_and(|extension| extension == "gz") {
        true => Box::new(GzEncoder::new(File::create(path).unwrap(), Compression::fast())),
        false => Box::new(BufWriter::new(File::create(path).unwrap())),
    };
    file.write_all(br#"{"type":"FeatureCollection","features":["#).unwrap();
    let columns = (nuclei as f64).sqrt().ceil() as usize;
    let step = f64::from(SIDE_PX) / columns as f64;
    for number in 0..nuclei {
        let center = [(number % columns) as f64 + 0.5, (number / columns) as f64 + 0.5].map(|at| at * step);
        let position = |corner: usize| {
            let angle = (corner % POSITIONS) as f64 / POSITIONS as f64 * std::f64::consts::TAU;
            format!("[{:.2},{:.2}]", center[0] + 14.0 * angle.cos(), center[1] + 11.0 * angle.sin())
        };
        let positions: Vec<String> = (0..=POSITIONS).map(position).collect();
        let comma = if number > 0 { "," } else { "" };
        write!(
            file,
            r#"{comma}{{"type":"Feature","id":"5f0c2a3e-2d54-4d8b-9a54-{number:012}","geometry":{{"type":"Polygon","coordinates":[[{}]]}},"properties":{{"objectType":"detection","classification":{{"name":"Tumor","color":[200,0,0]}}}}}}"#,
            positions.join(",")
        )
        .unwrap();
    }
    file.write_all(b"]}").unwrap();
    file.flush().unwrap();
}

/// Returns the peak resident memory of the process, MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1000
}

fn main() {
    let counts: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let rules = AnnotationRules { classes: vec!["Tumor".to_owned()], ..AnnotationRules::default() };
    let folder = tempfile::tempdir().unwrap();
    for nuclei in if counts.is_empty() { vec![100_000] } else { counts } {
        for name in ["slide.geojson", "slide.geojson.gz"] {
            let path = folder.path().join(name);
            write(&path, nuclei);
            let start = Instant::now();
            let set = read_annotations(&path, &rules, MAX_SLIDE_GEOJSON_BYTES).unwrap();
            let read = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let found = set.count(&View::whole(SIDE_PX, SIDE_PX), None);
            let counted = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let starts = (0..SIDE_PX - TILE_PX).step_by(4 * TILE_PX as usize);
            let windows: Vec<PixelRectangle> = starts
                .clone()
                .flat_map(|y_px| {
                    starts.clone().map(move |x_px| PixelRectangle {
                        x_px,
                        y_px,
                        width_px: TILE_PX,
                        height_px: TILE_PX,
                    })
                })
                .collect();
            for window in &windows {
                set.labels(&path, &View { positions_a_px: 1.0, window: *window }).unwrap();
            }
            let tile = start.elapsed().as_secs_f64() / windows.len() as f64;
            println!(
                "{nuclei} nuclei, {name} of {} MB: read in {read:.2} s to {} MB (peak of the process {} MB), counted {} in \
                 {counted:.2} s, {:.1} ms a tile of {TILE_PX} px",
                path.metadata().unwrap().len() / 1_000_000,
                set.bytes() / 1_000_000,
                peak_mb(),
                found.objects,
                tile * 1e3
            );
        }
    }
}
