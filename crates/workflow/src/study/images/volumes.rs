//! Images of more dimensions: files found by pattern, and their partition into blocks.
//!
//! This module opens no image. The reader of an image checks its properties and cuts it into blocks.

use super::super::inputs::{StudyTile, found};
use super::super::wording::{SECTION, fail};
use super::super::{Study, StudyError, StudyProblem};
use crate::toml_fields::Section;
use crate::workflow::RegionDecl;
use pleach_regions::{Digest, ElementType, NumberType, Table, UnitBox};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Metadata file of an OME-Zarr folder. A path with this name stands for the folder.
pub const VOLUME_METADATA: &str = "zarr.json";

/// Allowed sides of blocks, pixels. The number of values of a block has a limit of its own.
const SIDES_PX: std::ops::RangeInclusive<u64> = 1..=65_536;

/// Maximum channels that a study reads.
const MAX_CHANNELS: u32 = 65_535;

/// Images of a study and their partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Volumes {
    /// The images, in order of their paths, each once. Of an OME-Zarr folder, the metadata file.
    pub files: Vec<StudyTile>,
    /// Properties of each image. Empty until the images are read.
    #[serde(default)]
    pub infos: Vec<VolumeInfo>,
    /// Sides of blocks along x, y and z, pixels. `None` does not divide an axis. A block has one time.
    pub block_px: [Option<u32>; 3],
    /// Channels to read. `None` reads all.
    pub channels: Option<Vec<u32>>,
}

/// Properties of an image that its metadata states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeInfo {
    /// Sides along x, y, z and time. 1 for missing axes.
    pub sides: [u32; 4],
    /// The image has an axis z.
    pub has_z: bool,
    /// Number of channels.
    pub channels: u32,
    /// Names of channels, if the metadata has some.
    #[serde(default)]
    pub channel_names: Vec<String>,
    /// Type of the numbers.
    pub number: NumberType,
    /// Size of a pixel along x, y and z, micrometers. `None` if the metadata does not state it.
    pub pixel_um: [Option<f64>; 3],
    /// Seconds between times. `None` if the metadata does not state them.
    pub step_seconds: Option<f64>,
}

impl VolumeInfo {
    /// Returns the element type of blocks.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self.number {
            NumberType::U8 => ElementType::ArrayU8,
            NumberType::U16 => ElementType::ArrayU16,
            NumberType::I32 => ElementType::ArrayI32,
            NumberType::F32 => ElementType::ArrayF32,
            NumberType::F64 => ElementType::ArrayF64,
        }
    }
}

/// Name of the workflow input with the calibration of an image.
const CALIBRATION: &str = "calibration";

/// Columns of a calibration: size of a pixel along x, y and z in micrometers, and seconds between times.
pub const CALIBRATION_COLUMNS: [&str; 4] = ["x_um", "y_um", "z_um", "step_seconds"];

impl RegionDecl {
    /// Returns whether this is the calibration of an image, a table.
    #[must_use]
    pub fn is_calibration(&self) -> bool {
        self.region == CALIBRATION && self.element == ElementType::Table
    }
}

impl VolumeInfo {
    /// Returns the calibration as a table: 1 µm along a missing axis z, and 0 s without known times. `None` if the size of
    /// pixels is unknown.
    #[must_use]
    pub fn calibration(&self) -> Option<Table> {
        let [x, y, z] = self.pixel_um;
        let z = if self.has_z { z? } else { z.unwrap_or(1.0) };
        let values = [x?, y?, z, self.step_seconds.unwrap_or(0.0)];
        Some(Table::new(CALIBRATION_COLUMNS.into_iter().zip(values)))
    }
}

impl Study {
    /// Returns the calibration that a tile has as this workflow input. `None` for other inputs.
    #[must_use]
    pub fn calibration_of(&self, input: &RegionDecl, tile: &StudyTile) -> Option<Table> {
        let volumes = self.volumes.as_ref().filter(|_| input.is_calibration() && tile.block.is_some())?;
        let place = volumes.files.iter().position(|file| file.path == tile.path)?;
        volumes.infos.get(place)?.calibration()
    }
}

impl fmt::Display for VolumeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z, t] = self.sides;
        let axes = if self.has_z { 3 } else { 2 };
        write!(f, "{x} x {y}")?;
        if self.has_z {
            write!(f, " x {z}")?;
        }
        write!(f, " px of {}", self.number)?;
        if t > 1 {
            write!(f, ", {t} times")?;
        }
        if let Some(step) = self.step_seconds.filter(|_| t > 1) {
            write!(f, " every {step} s")?;
        }
        if self.channels > 1 {
            write!(f, ", {} channels", self.channels)?;
        }
        let names: Vec<&str> =
            self.channel_names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        if !names.is_empty() {
            write!(f, " ({})", names.join(", "))?;
        }
        let sizes: Option<Vec<String>> =
            self.pixel_um[..axes].iter().map(|size| size.map(|size| size.to_string())).collect();
        match sizes {
            Some(sizes) => write!(f, ", pixels of {} µm", sizes.join(" x ")),
            None => f.write_str(", size of pixels unknown"),
        }
    }
}

/// A block of an image: its position in pixels, and its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VolumeBlock {
    /// Number of axes without time: 2, or 3 with z.
    pub axes: u8,
    /// Number of the block along x, y, z and time.
    pub cell: [u32; 4],
    /// First pixel along x, y, z and time.
    pub start: [u32; 4],
    /// Sides along x, y and z.
    pub length: [u32; 3],
    /// Channels, in this order.
    pub channels: Vec<u32>,
    /// Digest of its numbers, their type and shape.
    pub digest: Digest,
}

impl VolumeBlock {
    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.bounds().pixels()
    }

    /// Returns the bounds in pixels of the image, at its time.
    #[must_use]
    pub fn bounds(&self) -> UnitBox {
        let [x, y, z, _] = self.start;
        UnitBox { start: [x, y, z], length: self.length }
    }

    /// Returns whether the block has pixels and channels, no more than allowed, and fits its axes.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_flat = self.axes == 3 || (self.start[2], self.length[2]) == (0, 1);
        let fits =
            |axis: usize| self.length[axis] > 0 && self.start[axis].checked_add(self.length[axis]).is_some();
        (2..=3).contains(&self.axes)
            && is_flat
            && (0..3).all(fits)
            && (1..=MAX_CHANNELS as usize).contains(&self.channels.len())
    }
}

/// Keys of `[input]` that require images.
pub(crate) const KEYS: [&str; 3] = ["images", "partition", "channels"];

/// Reads the images of a study. Returns `None` for a study of tiles or slides.
pub(super) fn volumes(input: &Section<'_>) -> Result<Option<Volumes>, StudyError> {
    if !input.has("images") {
        return match KEYS.into_iter().find(|key| input.has(key)) {
            Some(key) => fail(input, key, StudyProblem::ImagesOnly),
            None => Ok(None),
        };
    }
    if let Some(other) = ["tiles", "slides"].into_iter().find(|key| input.has(key)) {
        return fail(input, "images", StudyProblem::BesideImages(other));
    }
    let mut files = found(input, "images")?;
    for file in &mut files {
        if file.path.is_dir() {
            file.path.push(VOLUME_METADATA);
        }
        // Of X.ome.zarr and X.ome.tif, the ending is removed in part.
        if let Some(name) = file.name.strip_suffix(".ome") {
            file.name = name.to_owned();
        }
    }
    let mut block_px = [None; 3];
    if let Some(partition) = input.section("partition", SECTION)? {
        partition.allow(&["x", "y", "z", "t"])?;
        for (side, key) in block_px.iter_mut().zip(["x", "y", "z"]) {
            *side = partition.integer(key, *SIDES_PX.start(), *SIDES_PX.end())?.map(|px| px as u32);
        }
        partition.integer::<u64>("t", 1, 1)?;
    }
    let channels = input.list("channels", "a list of channels, from 0", |value| {
        let channel = value.as_integer().and_then(|channel| u32::try_from(channel).ok());
        channel.filter(|channel| *channel < MAX_CHANNELS)
    })?;
    if channels.as_ref().is_some_and(Vec::is_empty) {
        return input.not_allowed("channels", "an empty list", "one or more channels; all without the key");
    }
    if input.text("reference", "a text")?.is_some_and(|reference| reference != "defaults") {
        return input.not_allowed("reference", "a folder", "\"defaults\" in a study of images");
    }
    Ok(Some(Volumes { files, infos: Vec::new(), block_px, channels }))
}
