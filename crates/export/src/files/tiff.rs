//! Tiled BigTIFF of label images and masks, with reduced levels as sub-images: OME-TIFF if it has a description.
//!
//! Tiles are the chunks of the label arrays, so one chunk is in memory at a time. All empty tiles share one piece of the file. The
//! header refers to the directories, which follow the tiles. Sources: TIFF 6.0, `BigTIFF`, OME-TIFF (`SubIFDs` of pyramids).

use crate::files::plane::{CHUNK_PX, LabelPlane};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::{self, Seek, SeekFrom, Write};

/// Pixel type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TiffPixels {
    /// Unsigned 32-bit labels.
    Labels,
    /// 8 bits: 255 in objects, 0 elsewhere.
    Mask,
}

impl TiffPixels {
    fn bits(self) -> u64 {
        match self {
            Self::Labels => 32,
            Self::Mask => 8,
        }
    }

    fn bytes(self, labels: &[u32]) -> Vec<u8> {
        match self {
            Self::Labels => labels.iter().flat_map(|label| label.to_le_bytes()).collect(),
            Self::Mask => labels.iter().map(|label| if *label == 0 { 0 } else { 255 }).collect(),
        }
    }
}

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;
const LONG8: u16 = 16;
const IFD8: u16 = 18;

/// Field of a directory: tag, type, number of values, and the values in little endian.
type Field = (u16, u16, u64, Vec<u8>);

/// Stored level.
struct Level {
    size_px: [u32; 2],
    offsets: Vec<u64>,
    lengths: Vec<u64>,
}

/// Writes levels, the finest first. `description` is the text of the first level, `microns_a_px` the side of its pixels.
///
/// # Errors
/// The error of the file or of the arrays.
pub(crate) fn write<W: Write + Seek>(
    file: W,
    levels: &[&LabelPlane],
    pixels: TiffPixels,
    description: &str,
    microns_a_px: Option<f64>,
) -> io::Result<W> {
    let mut file = Output { file, at: 0 };
    // BigTIFF in little endian, offsets of 8 bytes. The position of the first directory is written last.
    file.put(&[0x49, 0x49, 43, 0, 8, 0, 0, 0])?;
    file.put(&[0; 8])?;
    let side = CHUNK_PX as usize;
    let empty = deflated(&pixels.bytes(&vec![0; side * side]))?;
    let empty = (file.put(&empty)?, empty.len() as u64);
    let mut stored = Vec::new();
    for level in levels {
        let [columns, rows] = level.grid();
        let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let (offset, length) = match level.read([column, row])? {
                None => empty,
                Some(labels) => {
                    let bytes = deflated(&pixels.bytes(&labels))?;
                    (file.put(&bytes)?, bytes.len() as u64)
                }
            };
            offsets.push(offset);
            lengths.push(length);
        }
        stored.push(Level { size_px: [level.width_px, level.height_px], offsets, lengths });
    }
    let reduced: Vec<u64> = stored
        .iter()
        .skip(1)
        .map(|level| file.directory(fields(level, pixels, 1)))
        .collect::<io::Result<_>>()?;
    let Some(first) = stored.first() else { return Err(io::Error::other("an image without levels")) };
    let mut fields = fields(first, pixels, 0);
    if !description.is_empty() {
        let text = [description.as_bytes(), &[0]].concat();
        fields.push((270, ASCII, text.len() as u64, text));
    }
    if let Some(microns) = microns_a_px {
        let resolution = rational(10_000.0 / microns);
        fields.extend([(282, RATIONAL, 1, resolution.clone()), (283, RATIONAL, 1, resolution)]);
        // Centimeters.
        fields.push((296, SHORT, 1, short(3)));
    }
    if !reduced.is_empty() {
        fields.push((330, IFD8, reduced.len() as u64, words(&reduced)));
    }
    let start = file.directory(fields)?;
    file.file.seek(SeekFrom::Start(8))?;
    file.file.write_all(&start.to_le_bytes())?;
    file.file.seek(SeekFrom::End(0))?;
    Ok(file.file)
}

/// Returns the fields that all levels have. `kind` is 1 for a reduced image.
fn fields(level: &Level, pixels: TiffPixels, kind: u32) -> Vec<Field> {
    let long = |number: u32| number.to_le_bytes().to_vec();
    let [width, height] = level.size_px;
    let tiles = level.offsets.len() as u64;
    vec![
        (254, LONG, 1, long(kind)),
        (256, LONG, 1, long(width)),
        (257, LONG, 1, long(height)),
        (258, SHORT, 1, short(pixels.bits() as u16)),
        // Deflate.
        (259, SHORT, 1, short(8)),
        // Black is zero.
        (262, SHORT, 1, short(1)),
        (277, SHORT, 1, short(1)),
        (305, ASCII, 7, b"pleach\0".to_vec()),
        (322, LONG, 1, long(CHUNK_PX)),
        (323, LONG, 1, long(CHUNK_PX)),
        (324, LONG8, tiles, words(&level.offsets)),
        (325, LONG8, tiles, words(&level.lengths)),
        // Unsigned integers.
        (339, SHORT, 1, short(1)),
    ]
}

fn short(number: u16) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns a number as numerator and denominator, to 1/1000.
fn rational(number: f64) -> Vec<u8> {
    let numerator = (number * 1e3).round().clamp(1.0, f64::from(u32::MAX)) as u32;
    [numerator, 1_000].iter().flat_map(|part| part.to_le_bytes()).collect()
}

fn deflated(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// File and its position.
struct Output<W> {
    file: W,
    at: u64,
}

impl<W: Write> Output<W> {
    /// Writes bytes and returns their position.
    fn put(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let start = self.at;
        self.file.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(start)
    }

    /// Writes a directory without successor and returns its position. Values of more than 8 bytes precede it.
    fn directory(&mut self, mut fields: Vec<Field>) -> io::Result<u64> {
        fields.sort_by_key(|(tag, ..)| *tag);
        let mut entries = (fields.len() as u64).to_le_bytes().to_vec();
        for (tag, kind, count, mut value) in fields {
            if value.len() > 8 {
                self.align()?;
                value = self.put(&value)?.to_le_bytes().to_vec();
            }
            value.resize(8, 0);
            entries.extend(tag.to_le_bytes());
            entries.extend(kind.to_le_bytes());
            entries.extend(count.to_le_bytes());
            entries.extend(value);
        }
        entries.extend([0; 8]);
        self.align()?;
        self.put(&entries)
    }

    /// Continues at a multiple of 8: directories and values begin at word boundaries.
    fn align(&mut self) -> io::Result<()> {
        let missing = self.at.next_multiple_of(8) - self.at;
        self.put(&[0; 8][..missing as usize]).map(drop)
    }
}
