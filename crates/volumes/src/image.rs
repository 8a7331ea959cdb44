//! Files of images of up to five dimensions: x, y, z, time and channels.
//!
//! Two formats: OME-Zarr 0.5, a folder, and OME-TIFF, a file. A block is read by itself, so an image may be larger than
//! memory. Lower resolutions of an image are not read.

mod error;
mod ome_tiff;
mod ome_zarr;

pub use error::VolumeError;
pub use ome_zarr::write::{OmeZarrWriter, PlaneIndex};

use error::Problem;
use ome_tiff::OmeTiff;
use ome_zarr::OmeZarr;
use pleach_regions::{DenseArray, NumberType, TypedValues};
use pleach_workflow::{VOLUME_METADATA, VolumeInfo};
use std::path::Path;

/// Maximum number of values of a block: 1 GB of 32-bit numbers. A block is in memory as a whole.
pub const MAX_BLOCK_VALUES: u64 = 1 << 28;

/// Pixels of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// First pixel along x, y, z and time.
    pub start: [u32; 4],
    /// Sides along x, y and z. A block has one time.
    pub length: [u32; 3],
}

/// Reader of one format.
trait Format {
    /// Reads the pixels of a block: the channels fastest, then x, y and z. The range is within the image.
    fn values(
        &mut self,
        info: &VolumeInfo,
        range: &BlockRange,
        channels: &[u32],
    ) -> Result<TypedValues, VolumeError>;
}

/// An open image.
pub struct VolumeFile {
    info: VolumeInfo,
    format: Box<dyn Format>,
}

impl VolumeFile {
    /// Reads the metadata of an image: of an OME-Zarr folder if `path` names its `zarr.json`, else of an OME-TIFF.
    ///
    /// # Errors
    /// [`VolumeError`] names the file, the field, its value and the allowed ones.
    pub fn open(path: &Path) -> Result<Self, VolumeError> {
        if is_in_folder(path) {
            let (zarr, info) = OmeZarr::open(path)?;
            return Ok(Self { info, format: Box::new(zarr) });
        }
        let (tiff, info) = OmeTiff::open(path)?;
        Ok(Self { info, format: Box::new(tiff) })
    }

    /// Returns the sides, the type of the numbers, and the calibration.
    #[must_use]
    pub fn info(&self) -> &VolumeInfo {
        &self.info
    }

    /// Reads a block of an image. Shape: `[z ×] y × x × channels`.
    ///
    /// # Errors
    /// [`VolumeError`] if the block is not within the image, or a plane or chunk is missing or invalid.
    pub fn read(
        &mut self,
        path: &Path,
        range: &BlockRange,
        channels: &[u32],
    ) -> Result<DenseArray, VolumeError> {
        let outside = || VolumeError::new(path, Problem::Outside);
        let is_within = (0..4).all(|axis| {
            let length = range.length.get(axis).copied().unwrap_or(1);
            length > 0
                && range.start[axis].checked_add(length).is_some_and(|end| end <= self.info.sides[axis])
        });
        let has_channels =
            !channels.is_empty() && channels.iter().all(|channel| *channel < self.info.channels);
        let values =
            range.length.iter().fold(channels.len() as u64, |all, side| all.saturating_mul((*side).into()));
        if !is_within || !has_channels || values > MAX_BLOCK_VALUES {
            return Err(outside());
        }
        let values = self.format.values(&self.info, range, channels)?;
        let axes = if self.info.has_z { 3 } else { 2 };
        let count = u16::try_from(channels.len()).map_err(|_| outside())?;
        DenseArray::new(&range.length[..axes], count, values).map_err(|_| outside())
    }
}

/// Returns whether an image is a folder, of which the path names the metadata: many files, read where they are.
#[must_use]
pub fn is_in_folder(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == VOLUME_METADATA)
}

/// Returns the numbers of little-endian bytes. `None` for a type that images do not have here.
fn typed(number: NumberType, bytes: Vec<u8>) -> Option<TypedValues> {
    Some(match number {
        NumberType::U8 => bytes.into(),
        NumberType::U16 => {
            bytes.as_chunks::<2>().0.iter().map(|of| u16::from_le_bytes(*of)).collect::<Vec<_>>().into()
        }
        NumberType::F32 => {
            bytes.as_chunks::<4>().0.iter().map(|of| f32::from_le_bytes(*of)).collect::<Vec<_>>().into()
        }
        NumberType::I32 | NumberType::F64 => return None,
    })
}
