//! Reads the frame header of a JPEG, and checks that the file is complete (ITU-T T.81).
//!
//! These checks run before the decoder opens the file: the decoder reads the whole file into memory to determine its
//! size, and accepts a truncated file as complete. This module decodes nothing.

use super::{MAX_BYTES, TileInfo};
use std::io::{self, ErrorKind, Read, Seek};

/// Markers (table B.1).
const START: [u8; 2] = [0xff, 0xd8];
const SCAN_START: u8 = 0xda;
const END: [u8; 2] = [0xff, 0xd9];

/// Content of a frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) info: TileInfo,
    /// Channels: 1 is gray, 3 is color.
    pub(super) components: u8,
    /// Number of blocks of 8 × 8 coefficients in all components.
    blocks: u64,
}

impl Frame {
    /// Reads the markers up to the frame header: a few bytes of each segment, whatever its length.
    ///
    /// # Errors
    /// Returns [`ErrorKind::UnexpectedEof`] or [`ErrorKind::InvalidData`] for a file without a frame header. Returns
    /// [`ErrorKind::Unsupported`] for unsupported kinds of JPEG (table B.1: lossless, hierarchical, arithmetic coding,
    /// or not 8 bits). Otherwise returns the system's error.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> io::Result<Self> {
        if bytes::<2>(file)? != START {
            return Err(io::Error::new(ErrorKind::InvalidData, "the JPEG start marker is missing"));
        }
        loop {
            let [mark, mut kind] = bytes(file)?;
            if mark != 0xff {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "a marker is missing before the frame header",
                ));
            }
            // A marker may have any number of 0xff fill bytes before it.
            while kind == 0xff {
                [kind] = bytes(file)?;
            }
            match kind {
                // Markers without a segment: TEM and restarts.
                0x01 | 0xd0..=0xd7 => continue,
                0xc0..=0xc2 => return Self::of_segment(file),
                // The codes of DHT and DAC are in the range of the frame markers.
                0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                    let text = format!("frames of kind {}", kind - 0xc0);
                    return Err(io::Error::new(ErrorKind::Unsupported, text));
                }
                SCAN_START | 0xd8 | 0xd9 => {
                    return Err(io::Error::new(ErrorKind::InvalidData, "the frame header is missing"));
                }
                _ => {
                    let length = u16::from_be_bytes(bytes(file)?);
                    let rest = length.checked_sub(2).ok_or_else(|| {
                        io::Error::new(ErrorKind::InvalidData, "a segment is shorter than its length")
                    })?;
                    file.seek_relative(i64::from(rest))?;
                }
            }
        }
    }

    fn of_segment(file: &mut impl Read) -> io::Result<Self> {
        let [_, _, precision, y1, y0, x1, x0, components] = bytes(file)?;
        if precision != 8 {
            return Err(io::Error::new(ErrorKind::Unsupported, format!("{precision} bits per channel")));
        }
        let info = TileInfo {
            width_px: u16::from_be_bytes([x1, x0]).into(),
            height_px: u16::from_be_bytes([y1, y0]).into(),
        };
        let mut factors = Vec::new();
        for _ in 0..components {
            let [_, factor, _] = bytes(file)?;
            factors.push((u64::from(factor >> 4).max(1), u64::from(factor & 15).max(1)));
        }
        let most = factors.iter().fold((1, 1), |(h, v), factor| (h.max(factor.0), v.max(factor.1)));
        let side = |px: u32, factor: u64, most: u64| (u64::from(px) * factor).div_ceil(most).div_ceil(8);
        let of = |(h, v): (u64, u64)| side(info.width_px, h, most.0) * side(info.height_px, v, most.1);
        Ok(Self { info, components, blocks: factors.into_iter().map(of).sum() })
    }

    /// Returns the length of the shortest file that can hold the image, in bytes. A Huffman code has at least one bit,
    /// and every block of every component needs one for its first coefficient (annexes F.1.2.1 and G.1.2.1).
    pub(super) fn min_bytes(self) -> u64 {
        self.blocks / 8
    }
}

/// Returns whether the file is complete. The decoder fills the missing part of a truncated file with gray and reports
/// no error. Compressed data contains no marker except restarts. The first other marker after the last start of a scan
/// therefore ends that scan, and the file is complete if an end marker follows.
///
/// # Errors
/// Returns the system's error.
pub(super) fn is_complete(file: &mut impl Read) -> io::Result<bool> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let last_scan = bytes.windows(2).rposition(|pair| pair == [0xff, SCAN_START]).unwrap_or(0);
    Ok(bytes[last_scan..].windows(2).any(|pair| pair == END))
}

fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
