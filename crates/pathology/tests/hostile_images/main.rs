//! Damaged and hostile image files: read correctly or rejected, within memory limits.
//!
//! Maximum memory for a file, at any one time:
//! - to [`probe`] its size: [`PROBE_FACTOR`] times its length, since a TIFF decoder keeps each number of a field,
//!   possibly 1 byte, in 32 bytes, plus [`SMALL`] for buffers and rows.
//! - to read it: additionally [`PIXEL_FACTOR`] times the pixels of its header, which are within the limits of a tile.
//!   That is at most 8 bytes per decoded pixel, the same again in the decoder of a TIFF or as coefficients of a JPEG
//!   (with their padding), and 3 for B, G, R. A PNG or JPEG must also be long enough for the pixels.
//! - for a PNG: 16 MiB of unpacked profiles and texts, in a growing list ([`METADATA`]).

#[path = "../../../../tests/support/allocations.rs"]
mod allocations;
#[path = "../../../../tests/support/images.rs"]
mod images;
#[path = "../../../../tests/support/mutations.rs"]
mod mutations;

use allocations::peak_of;
use flate2::Crc;
use images::{Case, Expected, SIDES, cases};
use mutations::{Mutation, mutated, mutations};
use pleach_pathology::image_io::{TileInfo, check_reference, probe, read_bgr, read_mask};
use pleach_regions::ElementType;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const PROBE_FACTOR: usize = 40;
const PIXEL_FACTOR: usize = 24;
const SMALL: usize = 1 << 20;
const METADATA: usize = 32 << 20;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Reads a file in every way, and asserts that memory is within the limits and an error is one line that begins with
/// the file's name. Returns the pixels or the error.
fn read_within_bounds(path: &Path, metadata: usize) -> Result<Vec<u8>, String> {
    let length = fs::metadata(path).expect("a file").len() as usize;
    let bound = PROBE_FACTOR * length + SMALL + metadata;
    let (probed, peak) = peak_of(|| probe(path));
    assert!(peak <= bound, "probing {length} bytes took {peak}: {probed:?}");
    let pixels = |info: &TileInfo| info.width_px as usize * info.height_px as usize;
    let bound = bound + PIXEL_FACTOR * probed.as_ref().map_or(0, pixels);

    let (image, peak) = peak_of(|| read_bgr(path));
    assert!(
        peak <= bound,
        "reading {length} bytes took {peak} of {bound}: {probed:?} {:?}",
        image.as_ref().err()
    );
    let (mask, peak) = peak_of(|| read_mask(path));
    assert!(peak <= bound, "reading a mask of {length} bytes took {peak} of {bound}: {probed:?}");
    assert_eq!(image.is_ok(), mask.is_ok());
    for error in [probed.as_ref().err(), image.as_ref().err(), mask.as_ref().err()].into_iter().flatten() {
        let text = error.to_string();
        assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
    }
    let image = image.map_err(|error| error.to_string())?;
    let raster = image.raster(ElementType::Bgr8).expect("B, G, R");
    let sides = (raster.width_px(), raster.height_px());
    let probed = probed.expect("what can be read can be probed");
    assert_eq!(sides, (probed.width_px, probed.height_px));
    Ok(raster.data().to_vec())
}

#[test]
fn every_file_kind_is_read_or_refused_within_bounds() {
    let folder = folder();
    for Case { name, bytes, expected } in cases() {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        let found = read_within_bounds(&path, if name == "bomb.png" { METADATA } else { 0 });
        match expected {
            Expected::Pixels(pixels) => assert_eq!(found, Ok(pixels), "{name}"),
            Expected::Near(pixels) => {
                let found = found.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(found.len(), (3 * SIDES[0] * SIDES[1]) as usize);
                assert!(found.iter().zip(&pixels).all(|(a, b)| a.abs_diff(*b) < 4), "{name}: {found:?}");
            }
            Expected::Refused(message) => {
                let said = found.expect_err(name);
                let beginning = format!("{}: {message}", path.display());
                assert!(said.starts_with(&beginning), "{said}\nbut wanted was:\n{beginning}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = folder();
    let path = folder.path().join("pipe.png");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    let said = read_bgr(&path).expect_err("a pipe").to_string();
    assert!(said.ends_with("pipe.png: not a regular file; a PNG, JPEG or TIFF file is allowed"), "{said}");

    let polygons = folder.path().join("pipe.geojson");
    std::fs::rename(&path, &polygons).unwrap();
    let size = TileInfo { width_px: 8, height_px: 8 };
    let refused = check_reference(&polygons, Path::new("tile.png"), size, &Default::default())
        .map(drop)
        .expect_err("a pipe")
        .to_string();
    assert!(refused.ends_with("not a regular file; a GeoJSON file is allowed"), "{refused}");
}

/// Corrects the checksum of every chunk, so that the decoder reads its content.
fn checked(mut png: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while let Some(&[a, b, c, d]) = png.get(at..at + 4).and_then(|bytes| bytes.first_chunk()) {
        let end = u64::from(u32::from_be_bytes([a, b, c, d])) + at as u64 + 8;
        let Ok(end) = usize::try_from(end) else { break };
        if end + 4 > png.len() {
            break;
        }
        let mut check = Crc::new();
        check.update(&png[at + 4..end]);
        png[end..end + 4].copy_from_slice(&check.sum().to_be_bytes());
        at = end + 4;
    }
    png
}

fn good_files() -> Vec<(&'static str, Vec<u8>)> {
    let good = cases().into_iter().filter(|case| !matches!(case.expected, Expected::Refused(_)));
    good.filter(|case| case.name != "bomb.png").map(|case| (case.name, case.bytes)).collect()
}

fn mutated_image(name: &str, good: &[u8], mutations: &[Mutation], check: bool) -> Vec<u8> {
    let bad = mutated(good, mutations);
    if check && name.ends_with("png") { checked(bad) } else { bad }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn corrupt_files_are_read_or_refused_within_bounds(which in any::<prop::sample::Index>(), mutations in mutations(), check: bool) {
        thread_local! {
            static GOOD: (TempDir, Vec<(&'static str, Vec<u8>)>) = (folder(), good_files());
        }
        GOOD.with(|(folder, good)| {
            let (name, bytes) = &good[which.index(good.len())];
            let path = folder.path().join(name);
            fs::write(&path, mutated_image(name, bytes, &mutations, check)).expect("written");
            let _ = read_within_bounds(&path, 0);
        });
    }
}

/// Every byte of a header at its minimum, middle and maximum, and the file truncated there: never beyond the limits.
#[test]
fn changed_header_bytes_stay_within_bounds() {
    let folder = folder();
    for (name, good) in good_files() {
        let path = folder.path().join(name);
        fs::write(&path, &good).expect("written");
        let whole = read_within_bounds(&path, 0).expect("a good file");
        for at in 0..good.len().min(250) {
            for value in [0, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                fs::write(&path, if name.ends_with("png") { checked(bad) } else { bad }).expect("written");
                let _ = read_within_bounds(&path, 0);
            }
            // A truncated file that is still readable lacks no pixel.
            fs::write(&path, &good[..at]).expect("written");
            if let Ok(pixels) = read_within_bounds(&path, 0) {
                assert_eq!(pixels, whole, "{name} cut at {at}");
            }
        }
    }
}
