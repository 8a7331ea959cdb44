//! Writes PNG with 1 bit per pixel, which the `image` crate reads but does not write, and computes the minimum length
//! of a PNG.
//!
//! Follows the PNG specification, third edition, sections 5 and 11: signature, IHDR, one IDAT, IEND. Rows are
//! unfiltered, as the specification advises below 8 bits per pixel.

use super::TileInfo;
use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::{self, Read, Write};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Maximum bytes that 1 byte of Deflate can unpack to (RFC 1951): four codes of 2 bits for 258 bytes each.
const MAX_INFLATED: u64 = 1_032;

/// Content of a PNG's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) info: TileInfo,
    /// Bits per pixel. Too few for an invalid header, which the decoder rejects.
    pixel_bits: u64,
}

impl Header {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(super) fn read(file: &mut impl Read) -> io::Result<Self> {
        let mut start = [0; 26];
        file.read_exact(&mut start)?;
        let side = |at: usize| u32::from_be_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
        // Color types 0, 2, 3, 4, 6: gray, color, palette, gray with alpha, color with alpha.
        let channels = match start[25] {
            2 => 3,
            4 => 2,
            6 => 4,
            _ => 1,
        };
        let info = TileInfo { width_px: side(16), height_px: side(20) };
        Ok(Self { info, pixel_bits: u64::from(start[24]).clamp(1, 16) * channels })
    }

    /// Returns the length of the shortest file that can hold the image, in bytes. Rows are rounded up and have an extra
    /// byte, which only makes the file longer.
    pub(super) fn min_bytes(self) -> u64 {
        let pixels = u64::from(self.info.width_px) * u64::from(self.info.height_px);
        pixels.saturating_mul(self.pixel_bits) / 8 / MAX_INFLATED
    }
}

/// Writes a mask of `width × height` bytes, 1 where a byte is not 0.
pub(super) fn write_bits(file: &mut dyn Write, width: u32, height: u32, mask: &[u8]) -> io::Result<()> {
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // 1 bit per sample, gray, and the only defined methods of compression and filtering. No interlacing.
    header.extend([1, 0, 0, 0, 0]);

    let mut data = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut line = Vec::new();
    for row in mask.chunks_exact(width as usize) {
        line.clear();
        // Filter type 0: none.
        line.push(0);
        let pack = |pixels: &[u8]| {
            pixels.iter().enumerate().fold(0, |byte, (bit, pixel)| byte | u8::from(*pixel != 0) << (7 - bit))
        };
        line.extend(row.chunks(8).map(pack));
        data.write_all(&line)?;
    }
    file.write_all(&SIGNATURE)?;
    chunk(file, b"IHDR", &header)?;
    chunk(file, b"IDAT", &data.finish()?)?;
    chunk(file, b"IEND", &[])
}

fn chunk(file: &mut dyn Write, kind: &[u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(|_| io::Error::other("too large for a PNG chunk"))?;
    let mut check = Crc::new();
    check.update(kind);
    check.update(data);
    file.write_all(&length.to_be_bytes())?;
    file.write_all(kind)?;
    file.write_all(data)?;
    file.write_all(&check.sum().to_be_bytes())
}
