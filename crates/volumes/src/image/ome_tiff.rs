//! OME-TIFF: planes of one channel, z and time as directories of a TIFF, described by OME-XML in the first of them.
//!
//! `TiffData` elements assign directories to planes; without them, directories are in the order of the dimensions
//! (OME model 2016-06, "OME-TIFF specification"). Planes of several samples (RGB) and sets of several files are refused.

mod xml;

use super::error::{Problem, VolumeError};
use super::{BlockRange, Format, typed};
use pleach_regions::{NumberType, TypedValues};
use pleach_workflow::VolumeInfo;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

/// Maximum memory for a strip or tile of a plane: a plane in one strip may have 1 GB.
const MAX_STRIP_BYTES: usize = 1 << 30;

/// An open image.
pub(super) struct OmeTiff {
    path: PathBuf,
    decoder: Decoder<BufReader<File>>,
    planes: xml::Planes,
}

impl OmeTiff {
    pub(super) fn open(path: &Path) -> Result<(Self, VolumeInfo), VolumeError> {
        let fail = |problem: Problem| VolumeError::new(path, problem);
        let file = File::open(path).map_err(|cause| fail(cause.into()))?;
        let decoder = Decoder::new(BufReader::new(file)).map_err(|cause| fail(cause.into()))?;
        let mut limits = Limits::default();
        limits.decoding_buffer_size = MAX_STRIP_BYTES;
        limits.intermediate_buffer_size = MAX_STRIP_BYTES;
        let mut decoder = decoder.with_limits(limits);
        let text = decoder.get_tag_ascii_string(Tag::ImageDescription).ok();
        let text = text
            .filter(|text| text.contains("<OME"))
            .ok_or_else(|| fail(Problem::missing("ImageDescription", "the OME-XML of an OME-TIFF")))?;
        let (info, planes) = xml::described(&text).map_err(fail)?;
        Ok((Self { path: path.to_owned(), decoder, planes }, info))
    }

    /// Finds the directory of a plane and checks its size and type.
    fn seek(&mut self, info: &VolumeInfo, of: [u32; 3]) -> Result<(), Problem> {
        let directory = self.planes.directory(info, of);
        if directory.is_none_or(|directory| self.decoder.seek_to_image(directory).is_err()) {
            let planes = (0..xml::planes(info))
                .take_while(|directory| self.decoder.seek_to_image(*directory).is_ok())
                .count();
            return Err(Problem::NoPlane { of, planes });
        }
        let in_plane = |cause| Problem::Plane { of, cause };
        let (width, height) = self.decoder.dimensions().map_err(in_plane)?;
        let [channel, z, t] = of;
        let plane = || format!("size of the plane of channel {channel}, z {z}, time {t}");
        if [width, height] != info.sides[..2] {
            let allowed = format!("{} x {}, as the OME-XML states", info.sides[0], info.sides[1]);
            return Err(Problem::field(plane(), format!("{width} x {height}"), allowed));
        }
        match self.decoder.colortype().map_err(in_plane)? {
            ColorType::Gray(bits) if usize::from(bits) == 8 * info.number.bytes() => Ok(()),
            found => Err(Problem::field(
                "type of a plane",
                format!("{found:?}"),
                format!("one {} a pixel, as the OME-XML states", info.number),
            )),
        }
    }

    /// Copies the part of the block in one plane, as little-endian bytes.
    fn plane(
        &mut self,
        info: &VolumeInfo,
        range: &BlockRange,
        of: [u32; 3],
        mut put: impl FnMut(usize, &[u8]),
    ) -> Result<(), Problem> {
        self.seek(info, of)?;
        let in_plane = |cause| Problem::Plane { of, cause };
        let (chunk_width, chunk_height) = self.decoder.chunk_dimensions();
        let across = info.sides[0].div_ceil(chunk_width);
        let size = info.number.bytes();
        let cells = |axis: usize, side: u32| {
            range.start[axis] / side..(range.start[axis] + range.length[axis]).div_ceil(side)
        };
        for row in cells(1, chunk_height) {
            for column in cells(0, chunk_width) {
                let number = row * across + column;
                let (width, height) = self.decoder.chunk_data_dimensions(number);
                let chunk = self.decoder.read_chunk(number).map_err(in_plane)?;
                let bytes = little_endian(&chunk, info.number);
                let bytes = bytes.filter(|bytes| bytes.len() == width as usize * height as usize * size);
                let bytes = bytes.ok_or_else(|| {
                    let allowed = format!("{width} x {height} numbers of type {}", info.number);
                    Problem::field("samples of a plane", "another type or number", allowed)
                })?;
                // The common rectangle of chunk and block.
                let (left, top) = (column * chunk_width, row * chunk_height);
                let first = range.start[0].max(left);
                let end = (range.start[0] + range.length[0]).min(left + width);
                for y in range.start[1].max(top)..(range.start[1] + range.length[1]).min(top + height) {
                    let from = ((y - top) as usize * width as usize + (first - left) as usize) * size;
                    let at = (y - range.start[1]) as usize * range.length[0] as usize
                        + (first - range.start[0]) as usize;
                    put(at, &bytes[from..from + end.saturating_sub(first) as usize * size]);
                }
            }
        }
        Ok(())
    }
}

impl Format for OmeTiff {
    fn values(
        &mut self,
        info: &VolumeInfo,
        range: &BlockRange,
        channels: &[u32],
    ) -> Result<TypedValues, VolumeError> {
        let path = self.path.clone();
        let (size, count) = (info.number.bytes(), channels.len());
        let plane_px = range.length[0] as usize * range.length[1] as usize;
        let mut values = vec![0; plane_px * range.length[2] as usize * count * size];
        for depth in 0..range.length[2] {
            for (place, channel) in channels.iter().enumerate() {
                let of = [*channel, range.start[2] + depth, range.start[3]];
                let base = depth as usize * plane_px;
                let put = |at: usize, row: &[u8]| {
                    for (x, pixel) in row.chunks_exact(size).enumerate() {
                        let at = ((base + at + x) * count + place) * size;
                        values[at..at + size].copy_from_slice(pixel);
                    }
                };
                self.plane(info, range, of, put).map_err(|problem| VolumeError::new(&path, problem))?;
            }
        }
        typed(info.number, values).ok_or_else(|| VolumeError::new(&path, Problem::Outside))
    }
}

/// Returns the samples as little-endian bytes, if they have this type.
fn little_endian(chunk: &DecodingResult, number: NumberType) -> Option<Vec<u8>> {
    match (chunk, number) {
        (DecodingResult::U8(values), NumberType::U8) => Some(values.clone()),
        (DecodingResult::U16(values), NumberType::U16) => {
            Some(values.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
        (DecodingResult::F32(values), NumberType::F32) => {
            Some(values.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
        _ => None,
    }
}
