//! PNG of 1 bit a pixel, which the `image` crate reads but does not write.
//!
//! Written after the PNG specification, third edition, sections 5 and 11: signature, IHDR, one IDAT, IEND. Rows are
//! unfiltered, as the specification advises below 8 bits a pixel.

use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::{self, Write};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Writes a mask of `width × height` bytes; 1 where a byte is not 0.
pub(super) fn write_bits(file: &mut dyn Write, width: u32, height: u32, mask: &[u8]) -> io::Result<()> {
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Bits a sample, grey, and the only methods of compression, filtering and interlacing there are (none).
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
