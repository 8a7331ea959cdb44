//! Other programs open the files of an export: shapely, zarr, tifffile and polars read the objects that pleach wrote.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use pleach_export::{ExportFormat, ExportOptions, ExportedObject, Geometry, ImageExport, owned_objects};
use pleach_regions::{DataRegion, LabelMap};
use pleach_workflow::SlideTile;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECK: &str = include_str!("check.py");

const CHECK_SPATIALDATA: &str = include_str!("spatialdata.py");

/// Interpreter with the package spatialdata, which needs 2 GB and so is not among those of `scripts/install-python`.
const SPATIALDATA_PYTHON: &str = "PLEACH_SPATIALDATA_PYTHON";

/// Width and height of the slide, pixels: more than two chunks across, and a reduced level.
const SIZE_PX: [u32; 2] = [2_500, 1_300];

const TILE_PX: u32 = 640;
const HALO_PX: u32 = 64;

/// Returns the environment that `scripts/install-python` installs. `None`, with a line that names the test, if it cannot.
#[expect(clippy::print_stdout, reason = "a test that does not run prints it")]
fn python(test: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-python");
    let output = Command::new(script).output().unwrap();
    let folder = String::from_utf8(output.stdout).unwrap();
    if output.status.success() {
        return Some(PathBuf::from(folder.trim()).join("bin/python"));
    }
    println!("SKIPPED {test}: no Python environment");
    None
}

/// Returns the label image of the whole slide: ellipses with holes and objects of two parts that touch at a corner. Some cross the
/// borders of tiles and chunks.
fn slide() -> Vec<u32> {
    let [width, height] = SIZE_PX;
    let mut labels = vec![0; (width * height) as usize];
    let mut label = 0;
    for (y, x) in
        (20..height - 20).step_by(46).flat_map(|y| (20..width - 20).step_by(50).map(move |x| (y, x)))
    {
        label += 1;
        let (a, b) = (6 + (x * 3 + y) % 13, 6 + (x + y * 5) % 13);
        for (dy, dx) in (0..2 * b).flat_map(|dy| (0..2 * a).map(move |dx| (dy, dx))) {
            let [u, v] = [f64::from(dx) - f64::from(a), f64::from(dy) - f64::from(b)];
            let distance = (u / f64::from(a)).powi(2) + (v / f64::from(b)).powi(2);
            // A hole in the middle of every third object, and a corner cut of every fifth.
            let is_hole = label % 3 == 0 && distance < 0.1;
            let is_cut = label % 5 == 0 && (u < 0.0) != (v < 0.0);
            if distance <= 1.0 && !is_hole && !is_cut {
                labels[((y + dy - b) * width + x + dx - a) as usize] = label;
            }
        }
    }
    labels
}

/// Exports the slide tile by tile.
fn export(folder: &Path, labels: &[u32], formats: &[ExportFormat]) -> u64 {
    let [width, height] = SIZE_PX;
    let geometry =
        Geometry { width_px: width, height_px: height, slide_px_a_px: 2.0, microns_a_slide_px: Some(0.25) };
    let options = ExportOptions { formats: formats.to_vec(), class: "Nucleus".to_owned(), gzip: true };
    let mut export = ImageExport::create(folder, "slide", true, geometry, &options).unwrap();
    for top in (0..height).step_by(TILE_PX as usize) {
        for left in (0..width).step_by(TILE_PX as usize) {
            let core = [left, top, TILE_PX.min(width - left), TILE_PX.min(height - top)];
            let start = [left.saturating_sub(HALO_PX), top.saturating_sub(HALO_PX)];
            let end = [(left + core[2] + HALO_PX).min(width), (top + core[3] + HALO_PX).min(height)];
            let window = [start[0], start[1], end[0] - start[0], end[1] - start[1]];
            let tile = SlideTile { magnification: None, core, window };
            let rows = (start[1]..end[1]).flat_map(|y| {
                labels[(y * width + start[0]) as usize..(y * width + end[0]) as usize].iter().copied()
            });
            let map = LabelMap::new(window[2], window[3], rows.collect()).unwrap();
            export.add(&owned_objects(&DataRegion::Labels(map), Some(&tile), true).unwrap()).unwrap();
        }
    }
    let written = export.finish().unwrap();
    assert_eq!(written.shared_px, 0);
    written.objects
}

#[test]
fn other_programs_read_the_objects_of_a_slide() {
    let Some(python) = python("other_programs_read_the_objects_of_a_slide") else { return };
    let folder = tempfile::tempdir().unwrap();
    let labels = slide();
    let formats: Vec<ExportFormat> = ExportFormat::ALL.to_vec();
    let objects = export(folder.path(), &labels, &formats);
    assert_eq!(objects, u64::from(*labels.iter().max().unwrap()));
    reads_equal(Path::new(&python), CHECK, folder.path(), &labels, objects);
}

/// Runs a script in Python that compares the exported files of a folder with the labels.
fn reads_equal(python: &Path, script: &str, folder: &Path, labels: &[u32], objects: u64) {
    let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    fs::write(folder.join("expected"), bytes).unwrap();
    let output = Command::new(python)
        .args(["-c", script, &SIZE_PX[0].to_string(), &SIZE_PX[1].to_string(), &objects.to_string()])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.trim(), "equal");
}

#[test]
fn spatialdata_reads_the_objects_of_a_slide() {
    let Some(python) = std::env::var_os(SPATIALDATA_PYTHON) else {
        println!("SKIPPED spatialdata_reads_the_objects_of_a_slide: {SPATIALDATA_PYTHON} is not set");
        return;
    };
    let labels = slide();
    // With the label image of another format, whose arrays are copied, and without.
    for formats in [&[ExportFormat::Spatialdata, ExportFormat::OmeZarr][..], &[ExportFormat::Spatialdata]] {
        let folder = tempfile::tempdir().unwrap();
        let objects = export(folder.path(), &labels, formats);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), formats.len());
        reads_equal(Path::new(&python), CHECK_SPATIALDATA, folder.path(), &labels, objects);
    }
}

#[test]
fn files_appear_when_they_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = Geometry { width_px: 40, height_px: 40, slide_px_a_px: 1.0, microns_a_slide_px: None };
    let names = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let formats = ExportFormat::ALL.to_vec();
    let options = ExportOptions { formats, class: "Nucleus".to_owned(), gzip: false };
    let create = || ImageExport::create(folder.path(), "tile", false, geometry, &options).unwrap();
    let object = ExportedObject::new(vec![([3, 4], 5)], true);
    let mut export = create();
    export.add(std::slice::from_ref(&object)).unwrap();
    assert!(names().iter().all(|name| name.ends_with(".part")), "{:?}", names());
    // An export that is given up leaves nothing.
    drop(export);
    assert_eq!(names(), Vec::<String>::new());
    let mut export = create();
    export.add(&[object]).unwrap();
    let files = export.finish().unwrap().files;
    assert_eq!(files.len(), ExportFormat::ALL.len());
    let mut files = files;
    files.sort();
    assert_eq!(names(), files);
}
