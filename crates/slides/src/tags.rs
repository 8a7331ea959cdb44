//! Checks TIFF fields whose damage would give wrong pixels, as the specification defines them.
//!
//! libtiff ignores a field with an impossible type, count or value, and decodes with the default instead: the region
//! has wrong colors, and no error. This module skips fields that libtiff rejects, and files that are not TIFF. A
//! damaged field with a possible value is not detectable.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum number of directories checked in a file. Slides have up to some tens. OME-TIFF has one for each plane.
const MAX_DIRECTORIES: usize = 4_096;

/// Maximum number of fields of a directory. Scanners write about 30.
const MAX_FIELDS: u64 = 4_096;

const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const COMPRESSION: u16 = 259;
const PREDICTOR: u16 = 317;
const TILE_WIDTH: u16 = 322;

/// Compressions with a predictor: LZW, both numbers of Deflate, LZMA and Zstandard.
const PREDICTED: [u64; 5] = [5, 8, 32_946, 34_925, 50_000];

/// Fields with a single number: tag, name, smallest and largest value.
const FIELDS: [(u16, &str, u64, u64); 4] = [
    (266, "FillOrder", 1, 2),
    (274, "Orientation", 1, 8),
    (284, "PlanarConfiguration", 1, 2),
    (PREDICTOR, "Predictor", 1, 3),
];

/// A damaged level of a slide, whose pixels would be wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CorruptLevel {
    /// Width and height in the directory, pixels.
    pub(crate) size_px: [u64; 2],
    /// The field, and the kind of its damage.
    pub(crate) cause: String,
}

/// Returns the damaged directories with tiles of a file. Empty for files that are not TIFF or whose directories cannot
/// be followed: OpenSlide reports those.
pub(crate) fn damages(path: &Path) -> Vec<CorruptLevel> {
    let mut damages = Vec::new();
    let read = File::open(path).and_then(|file| {
        let length = file.metadata()?.len();
        follow(&mut BufReader::new(file), length, &mut damages)
    });
    // Ignores the error: damage found before the end of the chain still counts.
    drop(read);
    damages
}

/// A field of a directory: tag, type, count, and its value if it is a single integer.
type Field = (u16, u16, u64, Option<u64>);

fn follow(file: &mut (impl Read + Seek), length: u64, damages: &mut Vec<CorruptLevel>) -> io::Result<()> {
    let mut reader = Reader::open(file)?;
    let mut at = reader.first;
    // Also ends a chain that damage has closed to a cycle.
    for _ in 0..MAX_DIRECTORIES {
        if at == 0 || at >= length {
            break;
        }
        let (fields, next) = reader.directory(at)?;
        damages.extend(damage(&fields));
        at = next;
    }
    Ok(())
}

fn damage(fields: &[Field]) -> Option<CorruptLevel> {
    let field = |number: u16| fields.iter().find(|field| field.0 == number);
    let value = |number: u16| field(number).and_then(|field| field.3);
    // Labels and thumbnails have no tiles and are no levels.
    field(TILE_WIDTH)?;
    let is_predicted = value(COMPRESSION).is_some_and(|number| PREDICTED.contains(&number));
    let cause = FIELDS.iter().find_map(|&(number, name, low, high)| {
        let &(_, kind, count, value) = field(number)?;
        if number == PREDICTOR && !is_predicted {
            return None;
        }
        match value {
            _ if count != 1 => Some(format!("field {name} has {count} values; 1 is allowed")),
            None => Some(format!("field {name} is of type {kind}; a whole number is allowed")),
            Some(value) if !(low..=high).contains(&value) => {
                Some(format!("field {name} is {value}; {low} to {high} are allowed"))
            }
            Some(_) => None,
        }
    })?;
    Some(CorruptLevel { size_px: [value(WIDTH)?, value(HEIGHT)?], cause })
}

struct Reader<'a, F> {
    file: &'a mut F,
    is_little: bool,
    is_big_tiff: bool,
    first: u64,
}

impl<'a, F: Read + Seek> Reader<'a, F> {
    fn open(file: &'a mut F) -> io::Result<Self> {
        let mut reader = Self { file, is_little: true, is_big_tiff: false, first: 0 };
        let mark = reader.bytes::<2>()?;
        reader.is_little = &mark == b"II";
        let version = reader.number(2)?;
        match (&mark, version) {
            (b"II" | b"MM", 42) => reader.first = reader.number(4)?,
            (b"II" | b"MM", 43) => {
                reader.is_big_tiff = true;
                reader.number(4)?;
                reader.first = reader.number(8)?;
            }
            _ => {}
        }
        Ok(reader)
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads an integer of up to 8 bytes.
    fn number(&mut self, bytes: usize) -> io::Result<u64> {
        let mut number = [0; 8];
        self.file.read_exact(&mut number[..bytes])?;
        Ok(self.whole(&number[..bytes]))
    }

    fn whole(&self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) }
    }

    /// Reads the fields of the directory at an offset, and the offset of the next directory.
    fn directory(&mut self, at: u64) -> io::Result<(Vec<Field>, u64)> {
        self.file.seek(SeekFrom::Start(at))?;
        let word = if self.is_big_tiff { 8 } else { 4 };
        let count = self.number(if self.is_big_tiff { 8 } else { 2 })?;
        if count > MAX_FIELDS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut fields = Vec::new();
        for _ in 0..count {
            let (number, kind) = (self.number(2)? as u16, self.number(2)? as u16);
            let values = self.number(word)?;
            let mut value = [0; 8];
            self.file.read_exact(&mut value[..word])?;
            // Integers have types 1, 3, 4 and 16, and signed ones 6, 8, 9 and 17.
            let bytes = match kind {
                1 | 6 => 1,
                3 | 8 => 2,
                4 | 9 => 4,
                16 | 17 => 8,
                // Longer than any word, so values of other types are not read.
                _ => 9,
            };
            // A value shorter than the word is at its start, in either byte order (TIFF 6.0, section 2).
            let value = (values == 1 && bytes <= word).then(|| self.whole(&value[..bytes]));
            fields.push((number, kind, values, value));
        }
        Ok((fields, self.number(word)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Returns a little-endian TIFF with one directory of these fields.
    fn tiff(fields: &[(u16, u16, u32, u32)]) -> Vec<u8> {
        let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
        bytes.extend((fields.len() as u16).to_le_bytes());
        for (number, kind, count, value) in fields {
            bytes.extend(number.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(count.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend([0; 4]);
        bytes
    }

    fn found(bytes: Vec<u8>) -> Vec<String> {
        let (mut damages, length) = (Vec::new(), bytes.len() as u64);
        let _ = follow(&mut Cursor::new(bytes), length, &mut damages);
        damages.into_iter().map(|damage| damage.cause).collect()
    }

    const LEVEL: [(u16, u16, u32, u32); 4] =
        [(256, 4, 1, 640), (257, 3, 1, 480), (259, 3, 1, 8), (322, 3, 1, 64)];

    fn with(field: (u16, u16, u32, u32)) -> Vec<String> {
        found(tiff(&[&LEVEL[..], &[field]].concat()))
    }

    #[test]
    fn impossible_fields_are_damage() {
        for good in [(317, 3, 1, 1), (317, 3, 1, 2), (317, 4, 1, 2), (284, 3, 1, 1), (65_000, 2, 9, 0)] {
            assert_eq!(with(good), [] as [&str; 0], "{good:?}");
        }
        assert_eq!(with((317, 2, 1, 2)), ["field Predictor is of type 2; a whole number is allowed"]);
        assert_eq!(with((317, 3, 3, 2)), ["field Predictor has 3 values; 1 is allowed"]);
        assert_eq!(with((317, 4, 1, 70_000)), ["field Predictor is 70000; 1 to 3 are allowed"]);
        assert_eq!(
            with((284, 5, 1, 8)),
            ["field PlanarConfiguration is of type 5; a whole number is allowed"]
        );
    }

    #[test]
    fn fields_without_effect_are_passed_over() {
        // JPEG has no predictor, and a thumbnail has no tiles.
        let mut jpeg = LEVEL;
        jpeg[2].3 = 7;
        let bad = (317, 2, 1, 2);
        assert_eq!(found(tiff(&[&jpeg[..], &[bad]].concat())), [] as [&str; 0]);
        assert_eq!(found(tiff(&[&LEVEL[..3], &[bad]].concat())), [] as [&str; 0]);
    }

    #[test]
    fn files_that_cannot_be_followed_end_by_themselves() {
        let whole = tiff(&[&LEVEL[..], &[(317, 2, 1, 2)]].concat());
        for length in 0..whole.len() {
            found(whole[..length].to_vec());
        }
        // A directory that is its own successor.
        let mut endless = whole;
        let end = endless.len() - 4;
        endless[end] = 8;
        assert_eq!(found(endless).len(), MAX_DIRECTORIES);
    }
}
