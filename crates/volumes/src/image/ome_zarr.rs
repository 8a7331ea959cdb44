//! OME-Zarr 0.5: the first image of a Zarr group, at its full resolution.
//!
//! The metadata is in the `zarr.json` of the group (NGFF 0.5, `attributes.ome.multiscales`) and of its array (Zarr 3). Regular grids
//! of chunks are read, by the codecs of [`codecs`]. A missing chunk has the fill value, as Zarr defines it.

mod array;
mod codecs;
mod metadata;
pub(super) mod write;

use super::error::{Problem, VolumeError};
use super::{BlockRange, Format, typed};
use array::{ZarrArray, ZarrPart};
use metadata::{ArrayMetadata, Group, axes, info, read_json};
use pleach_regions::TypedValues;
use pleach_workflow::{VOLUME_METADATA, VolumeInfo};
use std::path::{Path, PathBuf};

/// An open image.
pub(super) struct OmeZarr {
    /// Metadata file of the array.
    path: PathBuf,
    array: ZarrArray,
    /// Role of each axis of the array: x, y, z, time, channel.
    roles: Vec<usize>,
}

/// Role of channels.
const CHANNEL: usize = 4;

impl OmeZarr {
    /// Opens an image by the metadata file of its group.
    pub(super) fn open(path: &Path) -> Result<(Self, VolumeInfo), VolumeError> {
        let fail = |problem| VolumeError::new(path, problem);
        let group: Group = read_json(path).map_err(fail)?;
        let image = group.image().map_err(fail)?;
        let folder = path.parent().unwrap_or(Path::new("")).join(&image.dataset.path);
        let file = folder.join(VOLUME_METADATA);
        let in_array = |problem| VolumeError::new(&file, problem);
        let metadata: ArrayMetadata = read_json(&file).map_err(in_array)?;
        let roles = axes(&image.axes, metadata.shape.len()).map_err(fail)?;
        let array = ZarrArray::new(&folder, &metadata).map_err(in_array)?;
        let info = info(&image, &roles, &array).map_err(in_array)?;
        Ok((Self { path: file, array, roles }, info))
    }
}

impl Format for OmeZarr {
    fn values(
        &mut self,
        info: &VolumeInfo,
        range: &BlockRange,
        channels: &[u32],
    ) -> Result<TypedValues, VolumeError> {
        let low = channels.iter().min().copied().unwrap_or(0);
        let high = channels.iter().max().map_or(1, |channel| channel + 1);
        let span = |role: &usize| match *role {
            axis @ 0..3 => (range.start[axis], range.length[axis]),
            3 => (range.start[3], 1),
            _ => (low, high - low),
        };
        let spans: Vec<(u32, u32)> = self.roles.iter().map(span).collect();
        let mut part = ZarrPart::new(&spans, info.number.bytes(), &self.array.fill);
        self.array.read(&mut part).map_err(|problem| VolumeError::new(&self.path, problem))?;
        // From the order of the array's axes to that of a block.
        let mut strides = [0; 5];
        for (axis, role) in self.roles.iter().enumerate() {
            strides[*role] = part.stride(axis);
        }
        let size = info.number.bytes();
        let [width, height, depth] = range.length.map(|side| side as usize);
        let mut values = Vec::with_capacity(width * height * depth * channels.len() * size);
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let pixel = x * strides[0] + y * strides[1] + z * strides[2];
                    for channel in channels {
                        let at = (pixel + (channel - low) as usize * strides[CHANNEL]) * size;
                        values.extend_from_slice(&part.bytes[at..at + size]);
                    }
                }
            }
        }
        typed(info.number, values).ok_or_else(|| VolumeError::new(&self.path, Problem::Outside))
    }
}
