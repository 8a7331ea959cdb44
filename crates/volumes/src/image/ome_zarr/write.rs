//! Writes OME-Zarr 0.5 images of 16-bit numbers with one channel: one chunk a plane, compressed with zstd.
//!
//! The folder appears under its name once it is complete.

use pleach_workflow::{VOLUME_METADATA, VolumeInfo};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Level of zstd: its default.
const ZSTD_LEVEL: i32 = 3;

/// Path of the array in the group.
const ARRAY: &str = "0";

/// Plane of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneIndex {
    /// Plane along z.
    pub z: u32,
    /// Time.
    pub t: u32,
}

/// An image that is written plane by plane.
pub struct OmeZarrWriter {
    path: PathBuf,
    /// Folder until it is complete. It is removed on drop.
    part: PathBuf,
    info: VolumeInfo,
}

impl OmeZarrWriter {
    /// Begins an image.
    ///
    /// # Errors
    /// The system's error: [`io::ErrorKind::AlreadyExists`] if there is such a file or folder.
    pub fn create(path: &Path, info: VolumeInfo) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        fs::create_dir_all(&part)?;
        Ok(Self { path: path.to_owned(), part, info })
    }

    /// Writes a plane: its numbers row by row.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, plane: PlaneIndex, values: &[u16]) -> io::Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let file = self.part.join(format!("{ARRAY}/c/{}/{}/0/0", plane.t, plane.z));
        fs::create_dir_all(file.parent().unwrap_or(&self.part))?;
        fs::write(file, zstd::bulk::compress(&bytes, ZSTD_LEVEL)?)
    }

    /// Writes the metadata, and gives the folder its name.
    ///
    /// # Errors
    /// The system's error.
    pub fn finish(self) -> io::Result<()> {
        let text = |value: &Value| format!("{value:#}\n");
        fs::create_dir_all(self.part.join(ARRAY))?;
        fs::write(self.part.join(ARRAY).join(VOLUME_METADATA), text(&array(&self.info)))?;
        fs::write(self.part.join(VOLUME_METADATA), text(&group(&self.info)))?;
        fs::rename(&self.part, &self.path)
    }
}

impl Drop for OmeZarrWriter {
    fn drop(&mut self) {
        // After `finish`, the folder has another name.
        drop(fs::remove_dir_all(&self.part));
    }
}

fn array(info: &VolumeInfo) -> Value {
    let [x, y, z, t] = info.sides;
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [t, z, y, x],
        "data_type": "uint16",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1, 1, y, x] } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": 0,
        "codecs": [
            { "name": "bytes", "configuration": { "endian": "little" } },
            { "name": "zstd", "configuration": { "level": ZSTD_LEVEL, "checksum": false } },
        ],
        "dimension_names": ["t", "z", "y", "x"],
        "attributes": {},
    })
}

fn group(info: &VolumeInfo) -> Value {
    let space = |name: &str| json!({ "name": name, "type": "space", "unit": "micrometer" });
    let [x, y, z] = info.pixel_um.map(|size| size.unwrap_or(1.0));
    let scale = [info.step_seconds.unwrap_or(1.0), z, y, x];
    let time = json!({ "name": "t", "type": "time", "unit": "second" });
    let name = info.channel_names.first().map_or("0", String::as_str);
    json!({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": { "ome": {
            "version": "0.5",
            "multiscales": [{
                "axes": [time, space("z"), space("y"), space("x")],
                "datasets": [{
                    "path": ARRAY,
                    "coordinateTransformations": [{ "type": "scale", "scale": scale }],
                }],
            }],
            "omero": { "channels": [{
                "label": name, "color": "FFFFFF", "active": true,
                "window": { "min": 0, "max": u16::MAX, "start": 0, "end": u16::MAX },
            }] },
        } },
    })
}
