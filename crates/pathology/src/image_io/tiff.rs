//! Validates the first directory of a TIFF before the decoder reads the file (TIFF revision 6.0, section 2, and
//! BigTIFF).
//!
//! The decoder trusts the directory: it allocates a value before it reads it, and multiplies sides before it limits
//! them. This module checks values against the file's length, and sides against their limits. The decoder interprets
//! the fields. Other directories are not read.

use super::{MAX_SIDE_PX, TileInfo};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

/// Fields that determine the amount of data read and held. The last two are the sides of tiles.
const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const COMPRESSION: u16 = 259;
const DECIDING: [u16; 5] = [WIDTH, HEIGHT, COMPRESSION, 322, 323];

/// Numeric fields that the decoder reads: those above, and those of samples, strips, tiles and colors.
const READ: [u16; 19] =
    [256, 257, 258, 259, 262, 273, 277, 278, 279, 284, 317, 322, 323, 324, 325, 338, 339, 347, 530];

/// Supported compressions: none, Group 4, LZW, Deflate (two numbers) and PackBits. A JPEG inside a TIFF has its own
/// size, which cannot be checked against the TIFF's.
const COMPRESSIONS: [u64; 6] = [1, 4, 5, 8, 32_773, 32_946];

/// Maximum number of entries of a directory. The 64-bit count is unverified input, and the format defines a few hundred
/// fields.
const MAX_ENTRIES: u64 = 4_096;

/// Reason to reject a file before decoding.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The directory contradicts the file, or the system reports an error.
    Failed(io::Error),
    /// The compression is not supported.
    Compression(u64),
    /// The sides are beyond the limit.
    TooLarge(TileInfo),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reader of numbers in a file's byte order and width.
struct Numbers<R> {
    file: R,
    little: bool,
    big: bool,
}

/// An entry of a directory whose value is not yet read.
struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    /// The value itself if it is short, otherwise its offset.
    field: [u8; 8],
}

/// Checks the first directory of a file of `length` bytes, starting at the beginning of the file.
pub(super) fn check(file: &mut (impl Read + Seek), length: u64) -> Result<(), Refusal> {
    let mut numbers = Numbers { file, little: false, big: false };
    let offset = numbers.header()?;
    numbers.go_to(offset, length)?;
    let entries = if numbers.big { numbers.long8()? } else { numbers.short()?.into() };
    // Checked before the loop, which a hostile count would keep busy.
    if entries > MAX_ENTRIES {
        return Err(invalid(format!("the directory has {entries} entries")));
    }
    let (mut width, mut height) = (0, 0);
    for _ in 0..entries {
        let entry = numbers.entry()?;
        if !READ.contains(&entry.tag) {
            continue;
        }
        numbers.fits(&entry, length)?;
        if !DECIDING.contains(&entry.tag) {
            continue;
        }
        let Some(value) = numbers.inline(&entry) else {
            return Err(invalid(format!("field {} is not one whole number", entry.tag)));
        };
        match entry.tag {
            // If a field occurs twice, the decoder decides which one counts.
            WIDTH => width = value.max(width),
            HEIGHT => height = value.max(height),
            COMPRESSION if COMPRESSIONS.contains(&value) => {}
            COMPRESSION => return Err(Refusal::Compression(value)),
            _ if value > u64::from(MAX_SIDE_PX) => {
                return Err(invalid(format!("tiles of {value} px width or height")));
            }
            _ => {}
        }
    }
    if width.max(height) > u64::from(MAX_SIDE_PX) {
        let side = |px: u64| u32::try_from(px).unwrap_or(u32::MAX);
        return Err(Refusal::TooLarge(TileInfo { width_px: side(width), height_px: side(height) }));
    }
    Ok(())
}

fn invalid(text: String) -> Refusal {
    Refusal::Failed(io::Error::new(ErrorKind::InvalidData, text))
}

/// Returns the bytes per value of a type. Returns `None` for a type without numbers, such as texts (2).
fn bytes_each(kind: u16) -> Option<u64> {
    match kind {
        1 | 6 | 7 => Some(1),
        3 | 8 => Some(2),
        4 | 9 | 11 | 13 => Some(4),
        5 | 10 | 12 | 16..=18 => Some(8),
        _ => None,
    }
}

impl<R: Read + Seek> Numbers<R> {
    /// Reads the byte order, the kind of TIFF, and the offset of the first directory.
    fn header(&mut self) -> Result<u64, Refusal> {
        let [first, second] = self.bytes()?;
        self.little = match (first, second) {
            (b'I', b'I') => true,
            (b'M', b'M') => false,
            _ => return Err(invalid("the TIFF signature is missing".to_owned())),
        };
        match self.short()? {
            42 => Ok(self.long()?.into()),
            43 => {
                self.big = true;
                // The width of offsets, and a 0: 8 and 0 are the only valid values.
                self.long()?;
                Ok(self.long8()?)
            }
            other => Err(invalid(format!("unknown TIFF version {other}"))),
        }
    }

    fn go_to(&mut self, offset: u64, length: u64) -> Result<(), Refusal> {
        if offset >= length {
            let text = format!("the directory starts at byte {offset} of {length}");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text).into());
        }
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(())
    }

    fn entry(&mut self) -> io::Result<Entry> {
        let (tag, kind) = (self.short()?, self.short()?);
        let mut field = [0; 8];
        let count = if self.big { self.long8()? } else { self.long()?.into() };
        let width = if self.big { 8 } else { 4 };
        self.file.read_exact(&mut field[..width])?;
        Ok(Entry { tag, kind, count, field })
    }

    /// Checks that the value of an entry is within the file.
    fn fits(&self, entry: &Entry, length: u64) -> Result<(), Refusal> {
        let Entry { tag, kind, count, .. } = *entry;
        let Some(each) = bytes_each(kind) else {
            return Err(invalid(format!("field {tag} is of type {kind}; a number is allowed")));
        };
        // Saturates: count is unverified, and a wrapped product could look like a short value.
        let bytes = count.saturating_mul(each);
        if bytes <= self.inline_bytes() {
            return Ok(());
        }
        let end = self.offset(entry).saturating_add(bytes);
        if end > length {
            let text = format!("the {count} values of field {tag} end at byte {end} of {length}");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text).into());
        }
        Ok(())
    }

    fn inline_bytes(&self) -> u64 {
        if self.big { 8 } else { 4 }
    }

    fn offset(&self, entry: &Entry) -> u64 {
        let [a, b, c, d, ..] = entry.field;
        if self.big { self.number(entry.field) } else { self.number([a, b, c, d]) }
    }

    /// Returns the only value of an entry, if it is an integer stored in the entry itself.
    fn inline(&self, entry: &Entry) -> Option<u64> {
        let [a, b, c, d, ..] = entry.field;
        match (entry.count, entry.kind) {
            (1, 1) => Some(a.into()),
            (1, 3) => Some(self.number([a, b])),
            (1, 4) => Some(self.number([a, b, c, d])),
            (1, 16) if self.big => Some(self.number(entry.field)),
            _ => None,
        }
    }

    fn number<const N: usize>(&self, mut bytes: [u8; N]) -> u64 {
        if self.little {
            bytes.reverse();
        }
        bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn short(&mut self) -> io::Result<u16> {
        let bytes = self.bytes()?;
        Ok(if self.little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn long(&mut self) -> io::Result<u32> {
        let bytes = self.bytes()?;
        Ok(if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn long8(&mut self) -> io::Result<u64> {
        let bytes = self.bytes::<8>()?;
        Ok(self.number(bytes))
    }
}
