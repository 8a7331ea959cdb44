//! Readers of images of more dimensions: equal numbers for images that independent plain code and Python programs write.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod python;
mod tiff;
mod zarr;

use pleach_regions::{DenseArray, TypedValues};
use pleach_volumes::{BlockRange, VolumeFile};
use std::path::Path;

/// Number at x, y, z, time and channel: all are different in a small image.
fn value([x, y, z, t, c]: [u32; 5]) -> u16 {
    (x + 7 * y + 61 * z + 331 * t + 1511 * c) as u16
}

/// Reads a block of an image.
fn read(path: &Path, start: [u32; 4], length: [u32; 3], channels: &[u32]) -> Result<DenseArray, String> {
    let mut file = VolumeFile::open(path).map_err(|error| error.to_string())?;
    let array = file.read(path, &BlockRange { start, length }, channels);
    array.map_err(|error| error.to_string())
}

/// The block that is expected, of 16-bit numbers.
fn expected(start: [u32; 4], length: [u32; 3], channels: &[u32], axes: usize) -> DenseArray {
    let mut values = Vec::new();
    for z in 0..length[2] {
        for y in 0..length[1] {
            for x in 0..length[0] {
                for c in channels {
                    values.push(value([start[0] + x, start[1] + y, start[2] + z, start[3], *c]));
                }
            }
        }
    }
    DenseArray::new(&length[..axes], channels.len() as u16, TypedValues::U16(values)).unwrap()
}
