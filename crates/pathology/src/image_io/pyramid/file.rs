//! The file of a pyramid: tiles in the order of their arrival, then the directories (BigTIFF; TIFF 6.0 and the BigTIFF
//! design of libtiff).

use super::{PYRAMID_TILE_PX, PyramidFormat};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

/// A field of a directory: number, type, count, and the value or its offset.
type Field = (u16, u16, u64, u64);

/// Types of values.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;
const LONG8: u16 = 16;

/// Offset of the offset of the first directory.
const FIRST_DIRECTORY: u64 = 8;

/// Offset and length of each tile of a level. The offset 0 is the blank tile.
#[derive(Debug)]
struct Tiles {
    size_px: [usize; 2],
    columns: usize,
    places: Vec<[u64; 2]>,
}

/// A pyramid without its directories.
#[derive(Debug)]
pub(super) struct PyramidFile<'a> {
    file: BufWriter<&'a File>,
    at: u64,
    levels: Vec<Tiles>,
}

impl<'a> PyramidFile<'a> {
    /// Writes the header of a pyramid with levels of these sides.
    pub(super) fn new(file: &'a File, sizes: &[[usize; 2]]) -> io::Result<Self> {
        let level = |size_px: &[usize; 2]| {
            let [columns, rows] = size_px.map(|side| side.div_ceil(PYRAMID_TILE_PX));
            Tiles { size_px: *size_px, columns, places: vec![[0; 2]; columns * rows] }
        };
        let levels = sizes.iter().map(level).collect();
        let mut pyramid = Self { file: BufWriter::with_capacity(1 << 20, file), at: 0, levels };
        // Little endian, BigTIFF, offsets of 8 bytes.
        pyramid.write(b"II\x2b\0\x08\0\0\0")?;
        pyramid.write(&[0; 8])?;
        Ok(pyramid)
    }

    /// Stores a tile.
    pub(super) fn put(&mut self, level: usize, [column, row]: [usize; 2], bytes: &[u8]) -> io::Result<()> {
        let place = [self.at, bytes.len() as u64];
        let tiles = &mut self.levels[level];
        tiles.places[row * tiles.columns + column] = place;
        self.write(bytes)
    }

    /// Writes the blank tile for all places without one, and the directories. Returns the length of the file.
    pub(super) fn finish(
        &mut self,
        blank: &[u8],
        format: PyramidFormat,
        microns_per_px: f64,
    ) -> io::Result<u64> {
        let place = [self.at, blank.len() as u64];
        self.write(blank)?;
        let levels = std::mem::take(&mut self.levels);
        let mut tables = Vec::with_capacity(levels.len());
        for level in &levels {
            self.align()?;
            tables.push(self.at);
            for part in 0..2 {
                for tile in &level.places {
                    let value = if tile[0] == 0 { place[part] } else { tile[part] };
                    self.write(&value.to_le_bytes())?;
                }
            }
        }
        self.align()?;
        let first = self.at;
        for (number, (level, table)) in levels.iter().zip(tables).enumerate() {
            let scale = levels[0].size_px[0] as f64 / level.size_px[0] as f64;
            let single = level.places.len() == 1;
            let table = |part: u64| match level.places.first() {
                // A single value is in the field itself.
                Some(tile) if single => {
                    if tile[0] == 0 {
                        place[part as usize]
                    } else {
                        tile[part as usize]
                    }
                }
                _ => table + part * 8 * level.places.len() as u64,
            };
            let fields = fields(level, number, [table(0), table(1)], format, microns_per_px * scale);
            self.directory(&fields, number + 1 == levels.len())?;
        }
        let length = self.at;
        self.file.seek(SeekFrom::Start(FIRST_DIRECTORY))?;
        self.file.write_all(&first.to_le_bytes())?;
        self.file.flush()?;
        Ok(length)
    }

    fn directory(&mut self, fields: &[Field], is_last: bool) -> io::Result<()> {
        self.write(&(fields.len() as u64).to_le_bytes())?;
        for (tag, kind, count, value) in fields {
            self.write(&tag.to_le_bytes())?;
            self.write(&kind.to_le_bytes())?;
            self.write(&count.to_le_bytes())?;
            self.write(&value.to_le_bytes())?;
        }
        let next = if is_last { 0 } else { self.at + 8 };
        self.write(&next.to_le_bytes())
    }

    fn align(&mut self) -> io::Result<()> {
        let missing = (self.at.next_multiple_of(8) - self.at) as usize;
        self.write(&[0; 8][..missing])
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// Returns the fields of a level, in the order of their numbers.
fn fields(
    level: &Tiles,
    number: usize,
    [offsets, lengths]: [u64; 2],
    format: PyramidFormat,
    microns_per_px: f64,
) -> Vec<Field> {
    let [width, height] = level.size_px.map(|side| side as u64);
    let (tile_px, count) = (PYRAMID_TILE_PX as u64, level.places.len() as u64);
    let (compression, color) = match format {
        PyramidFormat::Jpeg(_) => (7, 6),
        PyramidFormat::Deflate => (8, 2),
    };
    // Pixels per centimeter: numerator and denominator, 32 bits each.
    let resolution = (1e4 / microns_per_px * 1e3).round() as u64 | 1_000 << 32;
    let mut fields = vec![
        (254, LONG, 1, u64::from(number > 0)),
        (256, LONG, 1, width),
        (257, LONG, 1, height),
        // Three values of 16 bits fit into the field.
        (258, SHORT, 3, 0x0008_0008_0008),
        (259, SHORT, 1, compression),
        (262, SHORT, 1, color),
        (277, SHORT, 1, 3),
        (282, RATIONAL, 1, resolution),
        (283, RATIONAL, 1, resolution),
        (284, SHORT, 1, 1),
        (296, SHORT, 1, 3),
        (322, LONG, 1, tile_px),
        (323, LONG, 1, tile_px),
        (324, LONG8, count, offsets),
        (325, LONG8, count, lengths),
    ];
    if color == 6 {
        // The encoder does not subsample chroma.
        fields.push((530, SHORT, 2, 0x0001_0001));
    }
    fields
}
