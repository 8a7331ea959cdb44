//! Codecs of Zarr 3 chunks: `bytes`, `transpose`, `gzip`, `zstd`, `crc32c` and `sharding_indexed`.
//!
//! Others, such as `blosc`, are refused by name. Of a shard, only the inner chunks that a part meets are read.

use super::array::{ZarrPart, advance, shape_of};
use super::metadata::Extension;
use crate::image::error::{ChunkProblem, Problem};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Codecs that are read.
const ALLOWED: &str = "bytes, transpose, gzip, zstd, crc32c, sharding_indexed";

/// Marks an inner chunk that a shard does not have.
const NO_CHUNK: u64 = u64::MAX;

/// Bytes of a number in the index of a shard.
const INDEX_BYTES: usize = 8;

/// Compressors may enlarge what they cannot compress: by a header and some bytes of each block, far less than this factor
/// and addend.
const MAX_GROWTH: (u64, u64) = (2, 1 << 16);

/// Codecs of an array's chunks.
pub(super) struct Pipeline {
    /// Order of the axes in the encoded chunk: `order[k]` is the axis of the array at place `k`.
    order: Vec<usize>,
    array_to_bytes: ArrayToBytes,
    /// In the order of encoding.
    bytes_to_bytes: Vec<ByteCodec>,
    /// Bytes of a number.
    size: usize,
}

enum ArrayToBytes {
    Bytes { is_big_endian: bool },
    Shards(Box<Shards>),
}

/// Shards: chunks with inner chunks.
struct Shards {
    shape: Vec<u32>,
    cells: Vec<u32>,
    inner: Pipeline,
    index: Pipeline,
    is_index_first: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum ByteCodec {
    Gzip,
    Zstd,
    Crc32c,
}

/// Encoded bytes of a chunk: a file, or a part of one.
pub(super) enum ChunkBytes {
    File(File, u64),
    Read(Vec<u8>),
}

impl ChunkBytes {
    pub(super) fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::File(file, length))
    }

    fn len(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Read(bytes) => bytes.len() as u64,
        }
    }

    /// Reads a range. `None` beyond the end.
    fn range(&self, offset: u64, length: u64) -> Result<Option<Vec<u8>>, io::Error> {
        if offset.checked_add(length).is_none_or(|end| end > self.len()) {
            return Ok(None);
        }
        match self {
            Self::File(file, _) => {
                let mut bytes = vec![0; length as usize];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(Some(bytes))
            }
            Self::Read(bytes) => Ok(Some(bytes[offset as usize..(offset + length) as usize].to_vec())),
        }
    }
}

impl Pipeline {
    /// Reads the codecs of chunks of this shape.
    pub(super) fn new(codecs: &[Extension], shape: &[u32], size: usize) -> Result<Self, Problem> {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        let (mut array_to_bytes, mut bytes_to_bytes) = (None, Vec::new());
        for codec in codecs {
            let misplaced = || Problem::field("codecs", codec.name(), "codecs in the order of Zarr 3");
            match (codec.name(), &array_to_bytes) {
                ("transpose", None) => order = transposed(codec, &order)?,
                ("bytes", None) => {
                    let is_big_endian = match codec.setting("endian") {
                        Value::Null => false,
                        Value::String(text) if text == "little" => false,
                        Value::String(text) if text == "big" => true,
                        other => {
                            let allowed = "\"little\", \"big\"";
                            return Err(Problem::field("codecs.bytes.endian", other.to_string(), allowed));
                        }
                    };
                    array_to_bytes = Some(ArrayToBytes::Bytes { is_big_endian });
                }
                ("sharding_indexed", None) => {
                    array_to_bytes = Some(ArrayToBytes::Shards(Box::new(Shards::new(codec, shape, size)?)));
                }
                ("gzip", Some(_)) => bytes_to_bytes.push(ByteCodec::Gzip),
                ("zstd", Some(_)) => bytes_to_bytes.push(ByteCodec::Zstd),
                ("crc32c", Some(_)) => bytes_to_bytes.push(ByteCodec::Crc32c),
                ("transpose" | "bytes" | "sharding_indexed" | "gzip" | "zstd" | "crc32c", _) => {
                    return Err(misplaced());
                }
                (other, _) => return Err(Problem::field("codecs", format!("\"{other}\""), ALLOWED)),
            }
        }
        let array_to_bytes =
            array_to_bytes.ok_or_else(|| Problem::missing("codecs", "bytes or sharding_indexed"))?;
        let is_plain = order.is_sorted() && bytes_to_bytes.is_empty();
        if matches!(array_to_bytes, ArrayToBytes::Shards(_)) && !is_plain {
            let found = "sharding_indexed with others beside it";
            return Err(Problem::field("codecs", found, "others within the shards"));
        }
        Ok(Self { order, array_to_bytes, bytes_to_bytes, size })
    }

    /// Returns the shape of the parts that are decoded as a whole: of inner chunks, if chunks are shards.
    pub(super) fn part_shape<'a>(&'a self, shape: &'a [u32]) -> &'a [u32] {
        match &self.array_to_bytes {
            ArrayToBytes::Bytes { .. } => shape,
            ArrayToBytes::Shards(shards) => shards.inner.part_shape(&shards.shape),
        }
    }

    /// Decodes a chunk of `shape` at `origin`, and copies what it has of a part.
    pub(super) fn copy(
        &self,
        bytes: ChunkBytes,
        (origin, shape): (&[u32], &[u32]),
        part: &mut ZarrPart,
    ) -> Result<(), ChunkProblem> {
        let is_big_endian = match &self.array_to_bytes {
            ArrayToBytes::Shards(shards) => return shards.copy(&bytes, origin, part),
            ArrayToBytes::Bytes { is_big_endian } => *is_big_endian,
        };
        let values = self.decoded(bytes, shape, is_big_endian)?;
        // Strides of the array's axes in the order of the encoded ones.
        let mut strides = vec![0; shape.len()];
        let mut stride = 1;
        for &axis in self.order.iter().rev() {
            strides[axis] = stride;
            stride *= shape[axis] as usize;
        }
        part.put(&values, (origin, shape), &strides);
        Ok(())
    }

    /// Returns the little-endian numbers of a chunk, in the order of the encoded axes.
    fn decoded(
        &self,
        bytes: ChunkBytes,
        shape: &[u32],
        is_big_endian: bool,
    ) -> Result<Vec<u8>, ChunkProblem> {
        let count = shape.iter().fold(self.size as u64, |all, side| all.saturating_mul((*side).into()));
        let most = count.saturating_mul(MAX_GROWTH.0).saturating_add(MAX_GROWTH.1);
        let found = bytes.len();
        let read = if found > most { None } else { bytes.range(0, found)? };
        let mut bytes = read.ok_or(ChunkProblem::Length { found, allowed: count })?;
        for codec in self.bytes_to_bytes.iter().rev() {
            bytes = codec.decoded(bytes, most)?;
        }
        if bytes.len() as u64 != count {
            return Err(ChunkProblem::Length { found: bytes.len() as u64, allowed: count });
        }
        if is_big_endian {
            bytes.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }
}

/// Returns the order of axes after a transposition.
fn transposed(codec: &Extension, order: &[usize]) -> Result<Vec<usize>, Problem> {
    let list = codec.setting("order");
    let wrong = || Problem::field("codecs.transpose.order", list.to_string(), "each axis once");
    let mut found = Vec::new();
    for place in list.as_array().ok_or_else(wrong)? {
        let place = place.as_u64().and_then(|place| usize::try_from(place).ok());
        match place.filter(|place| *place < order.len() && !found.contains(&order[*place])) {
            Some(place) => found.push(order[place]),
            None => return Err(wrong()),
        }
    }
    if found.len() == order.len() { Ok(found) } else { Err(wrong()) }
}

impl ByteCodec {
    /// Decodes bytes, up to a maximum length.
    fn decoded(self, bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, ChunkProblem> {
        let all = |reader: &mut dyn Read, codec| {
            let mut decoded = Vec::new();
            let read = reader.take(most + 1).read_to_end(&mut decoded);
            read.map_err(|cause| ChunkProblem::Codec { codec, cause })?;
            Ok(decoded)
        };
        match self {
            Self::Gzip => all(&mut MultiGzDecoder::new(&bytes[..]), "gzip"),
            Self::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(&bytes[..]);
                let mut decoder = decoder.map_err(|cause| ChunkProblem::Codec { codec: "zstd", cause })?;
                all(&mut decoder, "zstd")
            }
            Self::Crc32c => {
                let mut bytes = bytes;
                let (found, allowed) = (bytes.len() as u64, 4);
                let Some((content, sum)) = bytes.split_last_chunk::<4>() else {
                    return Err(ChunkProblem::Length { found, allowed });
                };
                if crc32c::crc32c(content) != u32::from_le_bytes(*sum) {
                    return Err(ChunkProblem::Checksum);
                }
                bytes.truncate(bytes.len() - 4);
                Ok(bytes)
            }
        }
    }
}

impl Shards {
    fn new(codec: &Extension, shape: &[u32], size: usize) -> Result<Self, Problem> {
        let inner_shape = shape_of(codec, "codecs.sharding_indexed.chunk_shape", shape.len())?;
        if shape.iter().zip(&inner_shape).any(|(side, inner)| side % inner != 0) {
            let found = format!("{inner_shape:?} in shards of {shape:?}");
            return Err(Problem::field(
                "codecs.sharding_indexed.chunk_shape",
                found,
                "divisors of the shard's sides",
            ));
        }
        let cells: Vec<u32> = shape.iter().zip(&inner_shape).map(|(side, inner)| side / inner).collect();
        let list = |key: &str| {
            let codecs = Vec::<Extension>::deserialize(codec.setting(key)).ok();
            codecs
                .ok_or_else(|| Problem::missing(format!("codecs.sharding_indexed.{key}"), "a list of codecs"))
        };
        let inner = Pipeline::new(&list("codecs")?, &inner_shape, size)?;
        let index_shape: Vec<u32> = cells.iter().copied().chain([2]).collect();
        let index = Pipeline::new(&list("index_codecs")?, &index_shape, INDEX_BYTES)?;
        let is_fixed = index.bytes_to_bytes.iter().all(|codec| *codec == ByteCodec::Crc32c);
        if !is_fixed || !index.order.is_sorted() || matches!(index.array_to_bytes, ArrayToBytes::Shards(_)) {
            let field = "codecs.sharding_indexed.index_codecs";
            return Err(Problem::field(field, "others", "bytes, crc32c"));
        }
        let is_index_first = match codec.setting("index_location") {
            Value::Null => false,
            Value::String(text) if text == "end" => false,
            Value::String(text) if text == "start" => true,
            other => {
                let field = "codecs.sharding_indexed.index_location";
                return Err(Problem::field(field, other.to_string(), "\"start\", \"end\""));
            }
        };
        Ok(Self { shape: inner_shape, cells, inner, index, is_index_first })
    }

    /// Returns offset and length of each inner chunk, the last axis fastest.
    fn index(&self, bytes: &ChunkBytes) -> Result<Vec<[u64; 2]>, ChunkProblem> {
        let shape: Vec<u32> = self.cells.iter().copied().chain([2]).collect();
        let count = shape.iter().fold(INDEX_BYTES as u64, |all, side| all.saturating_mul((*side).into()));
        let length = count.saturating_add(4 * self.index.bytes_to_bytes.len() as u64);
        let found = bytes.len();
        let too_short = || ChunkProblem::Length { found, allowed: length };
        let offset = if self.is_index_first { 0 } else { found.checked_sub(length).ok_or_else(too_short)? };
        let read = bytes.range(offset, length)?.ok_or_else(too_short)?;
        let is_big_endian = matches!(self.index.array_to_bytes, ArrayToBytes::Bytes { is_big_endian: true });
        let numbers = self.index.decoded(ChunkBytes::Read(read), &shape, is_big_endian)?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        Ok(numbers
            .chunks_exact(2 * INDEX_BYTES)
            .map(|pair| [number(&pair[..8]), number(&pair[8..])])
            .collect())
    }

    fn copy(&self, bytes: &ChunkBytes, origin: &[u32], part: &mut ZarrPart) -> Result<(), ChunkProblem> {
        let index = self.index(bytes)?;
        let Some((first, last)) = part.cells(origin, &self.shape, &self.cells) else { return Ok(()) };
        let mut cell = first.clone();
        loop {
            let place =
                cell.iter().zip(&self.cells).fold(0, |place, (at, of)| place * *of as usize + *at as usize);
            let [offset, length] = index[place];
            if [offset, length] != [NO_CHUNK; 2] {
                let bytes_of = bytes.range(offset, length)?;
                let inner = bytes_of.ok_or(ChunkProblem::Inner { offset, length, bytes: bytes.len() })?;
                let sides = cell.iter().zip(&self.shape).zip(origin);
                let at: Vec<u32> = sides
                    .map(|((at, side), origin)| origin.saturating_add(at.saturating_mul(*side)))
                    .collect();
                self.inner.copy(ChunkBytes::Read(inner), (&at, &self.shape), part)?;
            }
            if !advance(&mut cell, &first, &last) {
                return Ok(());
            }
        }
    }
}
