//! Pyramids of any size in a small file: a tiled BigTIFF with shared tiles.
//!
//! Each tile is one of a few images, chosen by its position. The file contains each image once. Only fields that slide
//! readers need are written.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Content of a pyramid.
pub(crate) struct Pyramid<'a> {
    /// Width and height of the first level in pixels. Each further level is half as large, rounded down.
    pub(crate) size_px: [u32; 2],
    pub(crate) levels: usize,
    /// Side of a tile in pixels, a multiple of 16.
    pub(crate) tile_px: u32,
    /// Tile images: `tile_px × tile_px` pixels of R, G, B.
    pub(crate) images: &'a [Vec<u8>],
    /// Index of a tile's image, by level, column and row.
    pub(crate) image_of: &'a dyn Fn(usize, u32, u32) -> usize,
    /// Image description: more than 8 letters, or empty.
    pub(crate) description: &'a str,
}

/// A field of a directory: number, type, count, and the value or its offset.
type Field = (u16, u16, u64, u64);

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const LONG8: u16 = 16;

impl Pyramid<'_> {
    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) {
        let mut file = Output { file: BufWriter::new(File::create(path).expect("a file made")), at: 0 };
        // BigTIFF, little endian. The offset of the first directory is written last, when it is known.
        let images: Vec<Vec<u8>> = self.images.iter().map(|image| deflated(image)).collect();
        let mut at = 16;
        let placed: Vec<[u64; 2]> = images
            .iter()
            .map(|image| {
                let place = [at, image.len() as u64];
                at += image.len() as u64;
                place
            })
            .collect();
        let bits_at = at.next_multiple_of(8);
        let description_at = bits_at + 8;
        let description = [self.description.as_bytes(), &[0]].concat();
        let mut tables_at = (description_at + description.len() as u64).next_multiple_of(8);
        let mut tables: Vec<(u64, Vec<[u64; 2]>)> = Vec::new();
        for level in 0..self.levels {
            let [columns, rows] = self.level_px(level).map(|side| side.div_ceil(self.tile_px));
            let tiles = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
            let tiles: Vec<[u64; 2]> =
                tiles.map(|(column, row)| placed[(self.image_of)(level, column, row)]).collect();
            tables.push((tables_at, tiles));
            tables_at += 16 * u64::from(columns) * u64::from(rows);
        }
        let first_directory = tables_at;
        file.put(b"II");
        file.put(&43_u16.to_le_bytes());
        file.put(&8_u16.to_le_bytes());
        file.put(&0_u16.to_le_bytes());
        file.put(&first_directory.to_le_bytes());
        images.iter().for_each(|image| file.put(image));
        file.pad_to(bits_at);
        file.put(&[8, 0, 8, 0, 8, 0, 0, 0]);
        file.put(&description);
        file.pad_to(tables[0].0);
        for (_, tiles) in &tables {
            for place in 0..2 {
                tiles.iter().for_each(|tile| file.put(&tile[place].to_le_bytes()));
            }
        }
        for (level, (table_at, tiles)) in tables.iter().enumerate() {
            let [width, height] = self.level_px(level).map(u64::from);
            let (count, tile_px) = (tiles.len() as u64, u64::from(self.tile_px));
            // A single value is stored in the field itself.
            let table = |place: u64| match tiles.as_slice() {
                [tile] => tile[place as usize],
                _ => table_at + place * 8 * count,
            };
            let mut fields: Vec<Field> = vec![
                (254, LONG, 1, u64::from(level > 0)),
                (256, LONG, 1, width),
                (257, LONG, 1, height),
                // All three values fit into the field.
                (258, SHORT, 3, 0x0008_0008_0008),
                (259, SHORT, 1, 8),
                (262, SHORT, 1, 2),
                (277, SHORT, 1, 3),
                (284, SHORT, 1, 1),
                (322, LONG, 1, tile_px),
                (323, LONG, 1, tile_px),
                (324, LONG8, count, table(0)),
                (325, LONG8, count, table(1)),
                (339, SHORT, 3, 0x0001_0001_0001),
            ];
            if !self.description.is_empty() {
                // Fields are sorted by number.
                fields.insert(6, (270, ASCII, description.len() as u64, description_at));
            }
            file.put(&(fields.len() as u64).to_le_bytes());
            for (tag, kind, count, value) in fields {
                file.put(&tag.to_le_bytes());
                file.put(&kind.to_le_bytes());
                file.put(&count.to_le_bytes());
                file.put(&value.to_le_bytes());
            }
            let is_last = level + 1 == self.levels;
            let next = if is_last { 0 } else { file.at + 8 };
            file.put(&next.to_le_bytes());
        }
        file.file.flush().expect("a file written");
    }

    fn level_px(&self, level: usize) -> [u32; 2] {
        self.size_px.map(|side| (side >> level).max(1))
    }
}

struct Output {
    file: BufWriter<File>,
    at: u64,
}

impl Output {
    fn put(&mut self, bytes: &[u8]) {
        self.file.write_all(bytes).expect("a file written");
        self.at += bytes.len() as u64;
    }

    fn pad_to(&mut self, at: u64) {
        while self.at < at {
            self.put(&[0]);
        }
    }
}

fn deflated(image: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(image).expect("deflated");
    encoder.finish().expect("deflated")
}

/// Image description of Aperio scanners for a slide of magnification 20.
pub(crate) const AT_20: &str = "Aperio Image Library v10\r\n|AppMag = 20|MPP = 0.5000";

/// Side of the tiles of [`write_image`].
const IMAGE_TILE_PX: usize = 64;

/// Writes a slide of one level with the pixels of an image, `width` pixels of R, G, B per row.
pub(crate) fn write_image(path: &Path, pixels: &[u8], width: usize, description: &str) {
    let height = pixels.len() / 3 / width;
    let [columns, rows] = [width, height].map(|side| side.div_ceil(IMAGE_TILE_PX));
    let tile = |place: usize| -> Vec<u8> {
        let (left, top) = (place % columns * IMAGE_TILE_PX, place / columns * IMAGE_TILE_PX);
        let mut tile = vec![255; IMAGE_TILE_PX * IMAGE_TILE_PX * 3];
        for (row, out) in tile.chunks_exact_mut(IMAGE_TILE_PX * 3).enumerate().take(height - top) {
            let length = IMAGE_TILE_PX.min(width - left) * 3;
            let start = ((top + row) * width + left) * 3;
            out[..length].copy_from_slice(&pixels[start..start + length]);
        }
        tile
    };
    let images: Vec<Vec<u8>> = (0..columns * rows).map(tile).collect();
    let pyramid = Pyramid {
        size_px: [width as u32, height as u32],
        levels: 1,
        tile_px: IMAGE_TILE_PX as u32,
        images: &images,
        image_of: &|_, column, row| row as usize * columns + column as usize,
        description,
    };
    pyramid.write(path);
}
