//! Zarr 3 arrays on a regular grid of chunks: reads the chunks of a part.

use super::codecs::{ChunkBytes, Pipeline};
use super::metadata::{ArrayMetadata, Extension, number};
use crate::image::error::Problem;
use pleach_regions::NumberType;
use serde_json::Value;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum numbers of a chunk or of an inner chunk of a shard: as many as a block may have.
const MAX_CHUNK_VALUES: u64 = crate::image::MAX_BLOCK_VALUES;

/// An array in a folder.
pub(super) struct ZarrArray {
    folder: PathBuf,
    pub(super) shape: Vec<u32>,
    pub(super) number: NumberType,
    /// Bytes of the fill value, little-endian.
    pub(super) fill: Vec<u8>,
    chunk_shape: Vec<u32>,
    keys: KeyEncoding,
    codecs: Pipeline,
}

/// Names of the files of chunks.
struct KeyEncoding {
    prefix: &'static str,
    separator: char,
}

impl ZarrArray {
    pub(super) fn new(folder: &Path, metadata: &ArrayMetadata) -> Result<Self, Problem> {
        if (metadata.zarr_format, metadata.node_type.as_str()) != (3, "array") {
            let found = format!("{} of format {}", metadata.node_type, metadata.zarr_format);
            return Err(Problem::field("node_type, zarr_format", found, "an array of format 3"));
        }
        if !metadata.storage_transformers.is_empty() {
            return Err(Problem::field("storage_transformers", "a transformer", "none"));
        }
        let number = number(&metadata.data_type)?;
        let shape = sides("shape", metadata.shape.iter().map(|side| Some(*side)))?;
        let grid = &metadata.chunk_grid;
        if grid.name() != "regular" {
            return Err(Problem::field("chunk_grid", format!("\"{}\"", grid.name()), "\"regular\""));
        }
        let chunk_shape = shape_of(grid, "chunk_grid.chunk_shape", shape.len())?;
        let codecs = Pipeline::new(&metadata.codecs, &chunk_shape, number.bytes())?;
        let values = codecs
            .part_shape(&chunk_shape)
            .iter()
            .fold(1, |all: u64, side| all.saturating_mul((*side).into()));
        if values > MAX_CHUNK_VALUES {
            let allowed = format!("up to {MAX_CHUNK_VALUES}");
            return Err(Problem::field("chunk_grid.chunk_shape", format!("{values} numbers"), allowed));
        }
        let fill = fill(&metadata.fill_value, number)?;
        let keys = KeyEncoding::new(&metadata.chunk_key_encoding)?;
        Ok(Self { folder: folder.to_owned(), shape, number, fill, chunk_shape, keys, codecs })
    }

    /// Reads the chunks of a part, which is within the array and begins with the fill value.
    pub(super) fn read(&self, part: &mut ZarrPart) -> Result<(), Problem> {
        let first: Vec<u32> = part.start.iter().zip(&self.chunk_shape).map(|(at, side)| at / side).collect();
        let last: Vec<u32> = (0..self.shape.len())
            .map(|axis| (part.start[axis] + part.length[axis] - 1) / self.chunk_shape[axis])
            .collect();
        let mut cell = first.clone();
        loop {
            let key = self.keys.key(&cell);
            let in_chunk = |cause| Problem::Chunk { key: key.clone(), cause };
            match File::open(self.folder.join(&key)) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                Err(cause) => return Err(in_chunk(cause.into())),
                Ok(file) => {
                    let origin: Vec<u32> = cell
                        .iter()
                        .zip(&self.chunk_shape)
                        .map(|(at, side)| at.saturating_mul(*side))
                        .collect();
                    let bytes = ChunkBytes::of_file(file).map_err(|cause| in_chunk(cause.into()))?;
                    self.codecs.copy(bytes, (&origin, &self.chunk_shape), part).map_err(in_chunk)?;
                }
            }
            if !advance(&mut cell, &first, &last) {
                return Ok(());
            }
        }
    }
}

/// Moves a cell to the next one between two corners, the last axis fastest. Returns whether there was one.
pub(super) fn advance(cell: &mut [u32], first: &[u32], last: &[u32]) -> bool {
    for axis in (0..cell.len()).rev() {
        if cell[axis] < last[axis] {
            cell[axis] += 1;
            return true;
        }
        cell[axis] = first[axis];
    }
    false
}

impl KeyEncoding {
    fn new(encoding: &Extension) -> Result<Self, Problem> {
        let (prefix, usual) = match encoding.name() {
            "default" => ("c", '/'),
            "v2" => ("", '.'),
            other => {
                let found = format!("\"{other}\"");
                return Err(Problem::field("chunk_key_encoding", found, "\"default\", \"v2\""));
            }
        };
        let separator = match encoding.setting("separator") {
            Value::Null => usual,
            Value::String(text) if text == "/" => '/',
            Value::String(text) if text == "." => '.',
            other => {
                let allowed = "\"/\", \".\"";
                return Err(Problem::field("chunk_key_encoding.separator", other.to_string(), allowed));
            }
        };
        Ok(Self { prefix, separator })
    }

    /// Returns the file of a chunk, relative to the array.
    fn key(&self, cell: &[u32]) -> String {
        let mut key = self.prefix.to_owned();
        for place in cell {
            if !key.is_empty() {
                key.push(self.separator);
            }
            key += &place.to_string();
        }
        key
    }
}

/// Returns sides of 1 to 2^32 - 1.
fn sides(field: &str, sides: impl Iterator<Item = Option<u64>>) -> Result<Vec<u32>, Problem> {
    let side = |side: Option<u64>| {
        let checked = side.and_then(|side| u32::try_from(side).ok()).filter(|side| *side > 0);
        let found = || side.map_or_else(|| "no number".to_owned(), |side| side.to_string());
        checked.ok_or_else(|| Problem::field(field, found(), "1 to 2^32 - 1"))
    };
    sides.map(side).collect()
}

/// Returns the sides of chunks, one for each axis.
pub(super) fn shape_of(of: &Extension, field: &str, axes: usize) -> Result<Vec<u32>, Problem> {
    let list = of.setting("chunk_shape").as_array();
    let list = list.filter(|list| list.len() == axes);
    let list = list.ok_or_else(|| {
        Problem::field(field, of.setting("chunk_shape").to_string(), format!("a list of {axes} sides"))
    })?;
    sides(field, list.iter().map(Value::as_u64))
}

/// Returns the bytes of a fill value.
fn fill(value: &Value, number: NumberType) -> Result<Vec<u8>, Problem> {
    let real = match value.as_str() {
        None => value.as_f64(),
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
    };
    let whole = value.as_u64();
    #[expect(clippy::cast_possible_truncation, reason = "a number of 32 bits, rounded as the file's")]
    let bytes = match number {
        NumberType::U8 => {
            whole.and_then(|whole| u8::try_from(whole).ok()).map(|of| of.to_le_bytes().to_vec())
        }
        NumberType::U16 => {
            whole.and_then(|whole| u16::try_from(whole).ok()).map(|of| of.to_le_bytes().to_vec())
        }
        _ => real.map(|real| (real as f32).to_le_bytes().to_vec()),
    };
    bytes.ok_or_else(|| Problem::field("fill_value", value.to_string(), format!("a number of type {number}")))
}

/// A part of an array, the last axis fastest.
pub(super) struct ZarrPart {
    start: Vec<u32>,
    length: Vec<u32>,
    size: usize,
    /// Little-endian numbers.
    pub(super) bytes: Vec<u8>,
}

impl ZarrPart {
    /// Creates a part with the fill value in all places. `spans` are the start and the length along each axis.
    pub(super) fn new(spans: &[(u32, u32)], size: usize, fill: &[u8]) -> Self {
        let (start, length): (Vec<u32>, Vec<u32>) = spans.iter().copied().unzip();
        let count = length.iter().map(|side| *side as usize).product();
        Self { start, length, size, bytes: fill.repeat(count) }
    }

    /// Returns the distance of neighbors along an axis, in numbers.
    pub(super) fn stride(&self, axis: usize) -> usize {
        self.length[axis + 1..].iter().map(|side| *side as usize).product()
    }

    /// Returns the first and the last cell of a grid of `shape` at `origin` that the part meets, of `cells` cells along each axis.
    /// `None` if it meets none.
    pub(super) fn cells(&self, origin: &[u32], shape: &[u32], cells: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
        let range = |axis: usize| {
            let end = u64::from(self.start[axis]) + u64::from(self.length[axis]);
            let from = self.start[axis].saturating_sub(origin[axis]) / shape[axis];
            let behind = end.checked_sub(u64::from(origin[axis])).filter(|behind| *behind > 0)?;
            let to =
                u32::try_from((behind - 1) / u64::from(shape[axis])).unwrap_or(u32::MAX).min(cells[axis] - 1);
            (from <= to).then_some((from, to))
        };
        let ranges: Option<Vec<(u32, u32)>> = (0..self.start.len()).map(range).collect();
        Some(ranges?.into_iter().unzip())
    }

    /// Copies the common part of a decoded chunk, whose axes have these strides.
    pub(super) fn put(&mut self, chunk: &[u8], (origin, shape): (&[u32], &[u32]), strides: &[usize]) {
        let axes = self.start.len();
        let mut first = Vec::with_capacity(axes);
        let mut last = Vec::with_capacity(axes);
        for axis in 0..axes {
            let low = self.start[axis].max(origin[axis]);
            let high = (u64::from(self.start[axis]) + u64::from(self.length[axis]))
                .min(u64::from(origin[axis]) + u64::from(shape[axis]));
            if u64::from(low) >= high {
                return;
            }
            first.push(low);
            // Below 2^32: within the part.
            last.push((high - 1) as u32);
        }
        let part_strides: Vec<usize> = (0..axes).map(|axis| self.stride(axis)).collect();
        // Numbers that are consecutive in both: along the last axis, unless the chunk is transposed.
        let run = if strides[axes - 1] == 1 { (last[axes - 1] - first[axes - 1] + 1) as usize } else { 1 };
        if run > 1 {
            last[axes - 1] = first[axes - 1];
        }
        let mut at = first.clone();
        loop {
            let (mut from, mut to) = (0, 0);
            for axis in 0..axes {
                from += (at[axis] - origin[axis]) as usize * strides[axis];
                to += (at[axis] - self.start[axis]) as usize * part_strides[axis];
            }
            let (from, to, length) = (from * self.size, to * self.size, run * self.size);
            self.bytes[to..to + length].copy_from_slice(&chunk[from..from + length]);
            if !advance(&mut at, &first, &last) {
                return;
            }
        }
    }
}
