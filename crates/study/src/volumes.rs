//! Images of more dimensions of a study: cuts them into blocks, and reads a block.
//!
//! A block is identified by the digest of its numbers, so every image is read once when a study is prepared, block by block.

use pleach_regions::{DataRegion, Digest, ElementType};
pub use pleach_volumes::is_in_folder;
use pleach_volumes::{BlockRange, MAX_BLOCK_VALUES, VolumeError, VolumeFile};
use pleach_workflow::{Study, StudyTile, VolumeBlock, VolumeInfo, Volumes};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum number of blocks of a study, as of tiles of slides.
const MAX_BLOCKS: u64 = 1 << 20;

/// Images of more dimensions cannot be cut into blocks.
#[derive(Debug, Error)]
#[error("{}: input.{}: {problem}", file.display(), problem.field())]
pub struct VolumesError {
    file: PathBuf,
    #[source]
    problem: Box<VolumesProblem>,
}

#[derive(Debug, Error)]
enum VolumesProblem {
    #[error("{0}")]
    Unreadable(#[source] VolumeError),
    #[error("{}: channel {channel} is not allowed; allowed: 0 to {}", image.display(), count - 1)]
    Channel { image: PathBuf, channel: u32, count: u32 },
    #[error(
        "{}: {found} images; region {region} of workflow {workflow} has type {expected}: that of the image is allowed",
        image.display()
    )]
    Element { image: PathBuf, found: ElementType, region: String, workflow: String, expected: ElementType },
    #[error(
        "{}: blocks of {found} numbers; up to {MAX_BLOCK_VALUES} are allowed: smaller sides x, y or z, or fewer channels, reduce them",
        image.display()
    )]
    Large { image: PathBuf, found: u64 },
    #[error(
        "{}: the size of pixels is unknown; region calibration of workflow {workflow} needs its micrometers in the metadata",
        image.display()
    )]
    Calibration { image: PathBuf, workflow: String },
    #[error("blocks beyond {MAX_BLOCKS} in all images; larger sides x, y or z reduce their number")]
    Many,
}

impl VolumesProblem {
    fn field(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::Element { .. } | Self::Calibration { .. } => "images",
            Self::Channel { .. } => "channels",
            Self::Large { .. } | Self::Many => "partition",
        }
    }
}

/// Reads the images block by block. Returns the blocks, image by image, time by time and plane by plane, and the properties of
/// each image.
///
/// # Errors
/// [`VolumesError`] names the image and its plane or chunk, or the field of the study.
pub(crate) fn cut(
    file: &Path,
    study: &Study,
    volumes: &Volumes,
) -> Result<(Vec<StudyTile>, Vec<VolumeInfo>), VolumesError> {
    let fail = |problem| VolumesError { file: file.to_owned(), problem: Box::new(problem) };
    let (mut tiles, mut infos) = (Vec::new(), Vec::new());
    for named in &volumes.files {
        let mut image =
            VolumeFile::open(&named.path).map_err(|cause| fail(VolumesProblem::Unreadable(cause)))?;
        let info = image.info().clone();
        check_elements(study, named, &info).map_err(fail)?;
        let channels = channels(volumes, named, &info).map_err(fail)?;
        let block_px =
            [0, 1, 2].map(|axis| volumes.block_px[axis].unwrap_or(info.sides[axis]).min(info.sides[axis]));
        let found =
            block_px.iter().fold(channels.len() as u64, |all, side| all.saturating_mul((*side).into()));
        if found > MAX_BLOCK_VALUES {
            return Err(fail(VolumesProblem::Large { image: named.path.clone(), found }));
        }
        let cells = [0, 1, 2].map(|axis| info.sides[axis].div_ceil(block_px[axis]));
        let count =
            cells.iter().fold(u64::from(info.sides[3]), |all, side| all.saturating_mul((*side).into()));
        if count.saturating_add(tiles.len() as u64) > MAX_BLOCKS {
            return Err(fail(VolumesProblem::Many));
        }
        for cell in (0..count).map(|number| cell(number, cells)) {
            let start = [0, 1, 2, 3].map(|axis| cell[axis] * block_px.get(axis).copied().unwrap_or(1));
            let length = [0, 1, 2].map(|axis| block_px[axis].min(info.sides[axis] - start[axis]));
            let array = image.read(&named.path, &BlockRange { start, length }, &channels);
            let array = array.map_err(|cause| fail(VolumesProblem::Unreadable(cause)))?;
            let block = VolumeBlock {
                axes: if info.has_z { 3 } else { 2 },
                cell,
                start,
                length,
                channels: channels.clone(),
                digest: DataRegion::Array(array).digest(),
            };
            let (path, name) = (named.path.clone(), name(&named.name, &info, start));
            tiles.push(StudyTile { name, path, slide: None, block: Some(block), fit: None });
        }
        infos.push(info);
    }
    Ok((tiles, infos))
}

/// Returns the cell with a number: x fastest, then y, z and time.
fn cell(number: u64, [columns, rows, planes]: [u32; 3]) -> [u32; 4] {
    let [columns, rows, planes] = [columns, rows, planes].map(u64::from);
    // Below 2^32: within the image.
    [
        (number % columns) as u32,
        (number / columns % rows) as u32,
        (number / columns / rows % planes) as u32,
        (number / columns / rows / planes) as u32,
    ]
}

/// Returns the name of a block: those of its first pixels along the axes that the image has.
fn name(image: &str, info: &VolumeInfo, [x, y, z, t]: [u32; 4]) -> String {
    let mut name = format!("{image}/{x}_{y}");
    if info.has_z {
        name += &format!("_z{z}");
    }
    if info.sides[3] > 1 {
        name += &format!("_t{t}");
    }
    name
}

/// Checks that the workflow reads images of this type.
fn check_elements(study: &Study, named: &StudyTile, info: &VolumeInfo) -> Result<(), VolumesProblem> {
    let workflow = &study.workflow;
    let (calibrations, images): (Vec<_>, Vec<_>) =
        workflow.inputs.iter().partition(|input| input.is_calibration());
    if !calibrations.is_empty() && info.calibration().is_none() {
        let (image, workflow) = (named.path.clone(), workflow.name.clone());
        return Err(VolumesProblem::Calibration { image, workflow });
    }
    let other = images.into_iter().find(|input| input.element != info.element());
    other.map_or(Ok(()), |input| {
        Err(VolumesProblem::Element {
            image: named.path.clone(),
            found: info.element(),
            region: input.region.clone(),
            workflow: workflow.name.clone(),
            expected: input.element,
        })
    })
}

/// Returns the channels to read.
fn channels(volumes: &Volumes, named: &StudyTile, info: &VolumeInfo) -> Result<Vec<u32>, VolumesProblem> {
    let Some(channels) = &volumes.channels else { return Ok((0..info.channels).collect()) };
    match channels.iter().find(|channel| **channel >= info.channels) {
        Some(&channel) => {
            Err(VolumesProblem::Channel { image: named.path.clone(), channel, count: info.channels })
        }
        None => Ok(channels.clone()),
    }
}

/// A block cannot be read.
#[derive(Debug, Error)]
pub enum BlockError {
    /// The image cannot be read.
    #[error("{0}")]
    Unreadable(#[from] VolumeError),
    /// An image in a folder is not on this machine.
    #[error("{0} (an OME-Zarr folder is not transferred: all workers read it from storage that they share)")]
    NotShared(#[source] VolumeError),
    /// Its numbers are others than when the study began.
    #[error("{}: it has changed since the study began", .0.display())]
    Changed(PathBuf),
}

/// Reads a block whose content is that of the start of the study.
///
/// # Errors
/// [`BlockError`] if it cannot be read, or its content has changed.
pub fn read(path: &Path, block: &VolumeBlock) -> Result<DataRegion, BlockError> {
    let not_there = |cause: VolumeError| match cause.is_missing() && is_in_folder(path) {
        true => BlockError::NotShared(cause),
        false => cause.into(),
    };
    let mut file = VolumeFile::open(path).map_err(not_there)?;
    let range = BlockRange { start: block.start, length: block.length };
    let region = DataRegion::Array(file.read(path, &range, &block.channels)?);
    let digest: Digest = region.digest();
    if digest == block.digest { Ok(region) } else { Err(BlockError::Changed(path.to_owned())) }
}

/// Returns a line about each image of more dimensions: its sides, channels and calibration.
pub fn notes(study: &Study) -> Vec<String> {
    let Some(volumes) = &study.volumes else { return Vec::new() };
    let blocks = |path: &Path| study.tiles.iter().filter(|tile| tile.path == path).count();
    let note = |(file, info): (&StudyTile, &VolumeInfo)| {
        let blocks = blocks(&file.path);
        format!("image {}: {info}; {blocks} block{}", file.name, if blocks == 1 { "" } else { "s" })
    };
    volumes.files.iter().zip(&volumes.infos).map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::NumberType;
    use pleach_volumes::{OmeZarrWriter, PlaneIndex};
    use std::fs;

    #[test]
    fn changed_or_absent_block_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("s.zarr");
        let info = VolumeInfo {
            sides: [3, 2, 2, 1],
            has_z: true,
            channels: 1,
            channel_names: Vec::new(),
            number: NumberType::U16,
            pixel_um: [None; 3],
            step_seconds: None,
        };
        let writer = OmeZarrWriter::create(&image, info).unwrap();
        (0..2).for_each(|z| writer.write(PlaneIndex { z, t: 0 }, &[1, 2, 3, 4, 5, 6]).unwrap());
        writer.finish().unwrap();
        let path = image.join("zarr.json");
        let mut block = VolumeBlock {
            axes: 3,
            cell: [1, 0, 0, 0],
            start: [2, 0, 0, 0],
            length: [1, 2, 2],
            channels: vec![0],
            digest: Digest([0; 32]),
        };
        let changed = format!("{}: it has changed since the study began", path.display());
        assert_eq!(read(&path, &block).unwrap_err().to_string(), changed);
        let mut file = VolumeFile::open(&path).unwrap();
        let range = BlockRange { start: block.start, length: block.length };
        let region = DataRegion::Array(file.read(&path, &range, &[0]).unwrap());
        block.digest = region.digest();
        assert_eq!(read(&path, &block).unwrap(), region);
        // Without its chunk, a plane has the fill value.
        fs::remove_file(image.join("0/c/0/1/0/0")).unwrap();
        assert_eq!(read(&path, &block).unwrap_err().to_string(), changed);
        fs::remove_dir_all(&image).unwrap();
        let absent = read(&path, &block).unwrap_err().to_string();
        let cause =
            "(an OME-Zarr folder is not transferred: all workers read it from storage that they share)";
        assert!(absent.ends_with(cause), "{absent}");
    }
}
