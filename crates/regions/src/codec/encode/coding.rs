//! Compression of content: masks to one bit per pixel, label maps to runs, and LZ4 or Zstandard if they pay off.
//!
//! Only lengths are checked here. The digest verifies the content.

mod filters;
mod packed;

use super::{header, runs};
use crate::{ElementType, Shape};
use packed::{pack, unpack};
use std::borrow::Cow;

/// Compression effort. The benefits are measured on real images, masks and label maps (`benches/RESULTS.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionEffort {
    /// No compression.
    None,
    /// Compression that takes less time than writing the saved bytes to a disk: masks take one bit per pixel,
    /// label maps become runs, and LZ4 is used if it saves at least 1/10.
    Quick,
    /// Compression that takes less time than sending the saved bytes through a slow network: also Zstandard
    /// (level 1), on row differences for images. For remote or small storage: below 70–170 MB/s it pays off
    /// for images.
    Small,
}

/// Storage format of content. The numbers are part of the encoding and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Uncompressed.
    Raw,
    /// A mask of 0 and 255 with one bit per value, the first in the lowest bit.
    Packed,
    /// An LZ4 block.
    Lz4,
    /// [`Packed`](Self::Packed), then an LZ4 block.
    PackedLz4,
    /// Runs of labels. Version 2 only, like all following codings.
    Runs,
    /// A Zstandard frame.
    Zstd,
    /// [`Packed`](Self::Packed), then a Zstandard frame.
    PackedZstd,
    /// [`Runs`](Self::Runs), then a Zstandard frame.
    RunsZstd,
    /// Each row minus the one above, then a Zstandard frame.
    RowsZstd,
    /// Bytes of equal significance grouped, then a Zstandard frame.
    PlanesZstd,
}

impl Coding {
    const ALL: [Self; 10] = [
        Self::Raw,
        Self::Packed,
        Self::Lz4,
        Self::PackedLz4,
        Self::Runs,
        Self::Zstd,
        Self::PackedZstd,
        Self::RunsZstd,
        Self::RowsZstd,
        Self::PlanesZstd,
    ];

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Packed => 1,
            Self::Lz4 => 2,
            Self::PackedLz4 => 3,
            Self::Runs => 4,
            Self::Zstd => 5,
            Self::PackedZstd => 6,
            Self::RunsZstd => 7,
            Self::RowsZstd => 8,
            Self::PlanesZstd => 9,
        }
    }

    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| coding.code() == code)
    }

    pub(super) fn is_in_first(self) -> bool {
        self.code() <= Self::PackedLz4.code()
    }

    pub(super) fn is_runs(self) -> bool {
        matches!(self, Self::Runs | Self::RunsZstd)
    }

    /// Returns whether content of this type can be stored in this format.
    pub(super) fn suits(self, element: ElementType) -> bool {
        match self {
            Self::Raw => true,
            Self::Packed | Self::PackedLz4 | Self::PackedZstd => element == ElementType::Mask,
            Self::Runs | Self::RunsZstd => element == ElementType::Labels,
            Self::Lz4 | Self::Zstd => element != ElementType::Table,
            Self::RowsZstd => has_rows_of_bytes(element),
            Self::PlanesZstd => number_bytes(element) > 1,
        }
    }
}

fn has_rows_of_bytes(element: ElementType) -> bool {
    matches!(element, ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask | ElementType::ArrayU8)
}

/// Returns the bytes per number of a dense array, 0 for other types.
fn number_bytes(element: ElementType) -> usize {
    let number = element.number().filter(|number| ElementType::array_of(*number) == element);
    number.map_or(0, crate::NumberType::bytes)
}

/// Returns the bytes of a row: the last side times the channels.
fn row_bytes(shape: &Shape) -> usize {
    let row = shape.last_chunk::<2>().and_then(|[side, channels]| side.checked_mul(*channels));
    row.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX).max(1)
}

/// Returns whether version 1 can represent regions of this type at this effort.
pub(super) fn is_of_first(element: ElementType, effort: CompressionEffort) -> bool {
    let codings_are = match effort {
        CompressionEffort::None => true,
        CompressionEffort::Quick => element != ElementType::Labels,
        CompressionEffort::Small => element == ElementType::Table,
    };
    header::is_in_first(element) && codings_are
}

/// Maximum expansion of an LZ4 block: a length is extended by bytes of up to 255 each.
pub(super) const LZ4_EXPANSION: u64 = 255;

/// Maximum expansion of a Zstandard frame. Frames could expand more, but the limit bounds unverified length
/// claims. LZ4 handles more regular content.
const ZSTD_EXPANSION: u64 = LZ4_EXPANSION;

/// Zstandard level. Higher levels take several times as long and save almost nothing (`benches/RESULTS.md`).
const ZSTD_LEVEL: i32 = 1;

/// Maximum length for LZ4: the library uses 32-bit positions, so regions above 1 GiB are stored without it.
const LZ4_LIMIT_BYTES: usize = 1 << 30;

/// Compresses content behind `room` zeros. `None` if that does not pay off.
pub(super) fn smaller(
    element: ElementType,
    shape: &Shape,
    content: &[u8],
    effort: CompressionEffort,
    room: usize,
) -> Option<(Coding, Vec<u8>)> {
    // Compressing tables does not pay off: no task waits for their I/O, and the key of a table is as long.
    if effort == CompressionEffort::None || element == ElementType::Table {
        return None;
    }
    if element == ElementType::Mask
        && let Some(bits) = pack(content)
    {
        let smallest = if effort == CompressionEffort::Small { zstd(&bits, room) } else { None };
        return Some(match smallest {
            Some(bytes) => (Coding::PackedZstd, bytes),
            None => match lz4(&bits, room) {
                Some(bytes) => (Coding::PackedLz4, bytes),
                None => (Coding::Packed, zero_prefixed(room, &bits)),
            },
        });
    }
    let smallest =
        if effort == CompressionEffort::Small { filtered(element, shape, content, room) } else { None };
    smallest.or_else(|| lz4(content, room).map(|bytes| (Coding::Lz4, bytes)))
}

/// Returns a Zstandard frame over the best filter of the content.
fn filtered(element: ElementType, shape: &Shape, content: &[u8], room: usize) -> Option<(Coding, Vec<u8>)> {
    let number_bytes = number_bytes(element);
    let (coding, bytes) = if has_rows_of_bytes(element) {
        (Coding::RowsZstd, zstd(&filters::rows(content, row_bytes(shape)), room)?)
    } else if number_bytes > 1 {
        (Coding::PlanesZstd, zstd(&filters::planes(content, number_bytes), room)?)
    } else {
        (Coding::Zstd, zstd(content, room)?)
    };
    Some((coding, bytes))
}

/// Encodes labels as runs behind `room` zeros. `None` if that does not pay off, or LZ4 may be better.
pub(super) fn runs_of(labels: &[u32], effort: CompressionEffort, room: usize) -> Option<(Coding, Vec<u8>)> {
    let content_bytes = size_of_val(labels);
    let runs = runs::encode(labels, room, content_bytes / 10 * 9)?;
    // The decoder rejects such a length claim, and LZ4 handles content this regular.
    if content_bytes as u64 > runs::EXPANSION * (runs.len() - room) as u64 {
        return None;
    }
    let smallest = if effort == CompressionEffort::Small { zstd(&runs[room..], room) } else { None };
    // The decoder checks the length claim against the frame, so it must hold for the frame.
    let smallest =
        smallest.filter(|bytes| content_bytes as u64 <= runs::EXPANSION * (bytes.len() - room) as u64);
    Some(smallest.map_or((Coding::Runs, runs), |bytes| (Coding::RunsZstd, bytes)))
}

/// Decodes content of `expected` bytes. `None` if `body` does not decode to that. Raw content is `body` itself. Nothing is
/// allocated before `body` is known to be long enough.
pub(super) fn decode(
    coding: Coding,
    body: Cow<'_, [u8]>,
    shape: &Shape,
    element: ElementType,
    expected: u64,
) -> Option<Vec<u8>> {
    let packed_bytes = expected.div_ceil(8);
    match coding {
        Coding::Raw => (body.len() as u64 == expected).then(|| body.into_owned()),
        Coding::Packed => (body.len() as u64 == packed_bytes).then(|| unpack(&body, expected as usize)),
        Coding::Lz4 => unlz4(&body, expected),
        Coding::PackedLz4 => Some(unpack(&unlz4(&body, packed_bytes)?, expected as usize)),
        Coding::Zstd => unzstd(&body, expected),
        Coding::PackedZstd => Some(unpack(&unzstd(&body, packed_bytes)?, expected as usize)),
        Coding::RowsZstd => {
            let mut bytes = unzstd(&body, expected)?;
            filters::undo_rows(&mut bytes, row_bytes(shape));
            Some(bytes)
        }
        Coding::PlanesZstd => Some(filters::undo_planes(&unzstd(&body, expected)?, number_bytes(element))),
        // Labels are decoded from runs directly.
        Coding::Runs | Coding::RunsZstd => None,
    }
}

/// Decodes the labels of `expected` bytes that are stored as runs.
pub(super) fn labels(coding: Coding, body: &[u8], expected: u64) -> Option<Vec<u32>> {
    if expected > runs::EXPANSION * body.len() as u64 {
        return None;
    }
    let labels = (expected / size_of::<u32>() as u64) as usize;
    if coding == Coding::Runs {
        return runs::decode(body, labels);
    }
    // The frame states the length of the runs. The claim is checked before it is used.
    let length = zstd::zstd_safe::get_frame_content_size(body).ok()??;
    runs::decode(&unzstd(body, length)?, labels)
}

/// Returns content behind `room` zeros.
pub(super) fn zero_prefixed(room: usize, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(room + content.len());
    bytes.resize(room, 0);
    bytes.extend_from_slice(content);
    bytes
}

/// Number of sample pieces compressed before the whole content.
const PIECES: usize = 16;
const PIECE_BYTES: usize = 16 << 10;

/// Minimum content length for sampling. LZ4 cannot compress photographs of tissue, and detecting this on the
/// whole content takes as long as compressing.
const TRIED_FROM_BYTES: usize = 4 * PIECES * PIECE_BYTES;

/// Returns whether sample pieces shrink by 1/20. Then the whole content may shrink by 1/10.
fn may_save(content: &[u8]) -> bool {
    if content.len() < TRIED_FROM_BYTES {
        return true;
    }
    let mut room = vec![0; lz4_flex::block::get_maximum_output_size(PIECE_BYTES)];
    let stride = (content.len() - PIECE_BYTES) / (PIECES - 1);
    let lengths = (0..PIECES).map(|piece| {
        let piece = &content[piece * stride..][..PIECE_BYTES];
        // A piece that cannot be compressed counts in full.
        lz4_flex::block::compress_into(piece, &mut room).unwrap_or(PIECE_BYTES)
    });
    lengths.sum::<usize>() <= PIECES * PIECE_BYTES / 20 * 19
}

/// Compresses `content` with LZ4 behind `room` bytes, if that saves at least 1/10.
fn lz4(content: &[u8], room: usize) -> Option<Vec<u8>> {
    if content.len() > LZ4_LIMIT_BYTES || !may_save(content) {
        return None;
    }
    let mut bytes = vec![0; room + lz4_flex::block::get_maximum_output_size(content.len())];
    let length = lz4_flex::block::compress_into(content, &mut bytes[room..]).ok()?;
    saving(bytes, room, length, content.len())
}

fn unlz4(body: &[u8], expected: u64) -> Option<Vec<u8>> {
    if expected > LZ4_EXPANSION * body.len() as u64 || expected > LZ4_LIMIT_BYTES as u64 {
        return None;
    }
    let mut content = vec![0; expected as usize];
    let length = lz4_flex::block::decompress_into(body, &mut content).ok()?;
    (length as u64 == expected).then_some(content)
}

/// Compresses `content` with Zstandard behind `room` bytes, if that saves at least 1/10 and stays within the
/// expansion limit.
fn zstd(content: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; room + zstd::zstd_safe::compress_bound(content.len())];
    let length = zstd::bulk::compress_to_buffer(content, &mut bytes[room..], ZSTD_LEVEL).ok()?;
    if content.len() as u64 > ZSTD_EXPANSION * length as u64 {
        return None;
    }
    saving(bytes, room, length, content.len())
}

fn unzstd(body: &[u8], expected: u64) -> Option<Vec<u8>> {
    if expected > ZSTD_EXPANSION * body.len() as u64 {
        return None;
    }
    let mut content = vec![0; usize::try_from(expected).ok()?];
    let length = zstd::bulk::decompress_to_buffer(body, &mut content[..]).ok()?;
    (length as u64 == expected).then_some(content)
}

/// Truncates `bytes` to `length` behind `room` bytes, if that saves at least 1/10 of the content.
fn saving(mut bytes: Vec<u8>, room: usize, length: usize, content_bytes: usize) -> Option<Vec<u8>> {
    if length > content_bytes / 10 * 9 {
        return None;
    }
    bytes.truncate(room + length);
    // The buffer was sized for content that does not compress at all.
    bytes.shrink_to_fit();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: usize) -> Shape {
        Shape::of(&[1, bytes as u64, 1]).unwrap()
    }

    fn noise() -> impl FnMut() -> u8 {
        let mut state = 1_u32;
        move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        }
    }

    fn again(element: ElementType, coding: Coding, bytes: Vec<u8>, content: &[u8]) -> bool {
        decode(coding, bytes.into(), &line(content.len()), element, content.len() as u64).as_deref()
            == Some(content)
    }

    #[test]
    fn a_mask_of_other_values_is_kept_as_it_is() {
        let content: Vec<u8> = (0..64).map(|place| if place == 40 { 254 } else { 255 }).collect();
        let (coding, bytes) =
            smaller(ElementType::Mask, &line(64), &content, CompressionEffort::Quick, 2).unwrap();
        assert_eq!(coding, Coding::Lz4);
        assert!(again(ElementType::Mask, coding, bytes[2..].to_vec(), &content));
    }

    #[test]
    fn lz4_is_used_where_it_saves_a_tenth() {
        // 1/10 of zeros before noise: LZ4 saves slightly less than that.
        let mut noise = noise();
        for (zeros, coding) in [(0, None), (9_000, None), (12_000, Some(Coding::Lz4))] {
            let content: Vec<u8> =
                (0..100_000).map(|place| if place < zeros { 0 } else { noise() }).collect();
            let found = smaller(ElementType::Gray8, &line(100_000), &content, CompressionEffort::Quick, 0);
            assert_eq!(found.as_ref().map(|(coding, _)| *coding), coding, "{zeros} zeros");
            let Some((coding, bytes)) = found else { continue };
            assert!(bytes.len() <= content.len());
            assert!(again(ElementType::Gray8, coding, bytes, &content));
        }
    }

    #[test]
    fn large_content_is_tried_in_pieces() {
        let mut noise = noise();
        let length = TRIED_FROM_BYTES + 12_345;
        for (zeros, coding) in [(0, None), (length / 5, Some(Coding::Lz4)), (length, Some(Coding::Lz4))] {
            // The zeros are at the end, or scattered.
            let at_end: Vec<u8> =
                (0..length).map(|place| if place >= length - zeros { 0 } else { noise() }).collect();
            let all_over: Vec<u8> = (0..length)
                .map(|place| if place % 100_000 < zeros * 100_000 / length { 0 } else { noise() })
                .collect();
            for content in [at_end, all_over] {
                let shape = line(length);
                let found = smaller(ElementType::Gray8, &shape, &content, CompressionEffort::Quick, 0);
                assert_eq!(found.as_ref().map(|(coding, _)| *coding), coding, "{zeros} zeros");
                if let Some((coding, bytes)) = found {
                    assert!(again(ElementType::Gray8, coding, bytes, &content));
                }
            }
        }
    }

    #[test]
    fn with_more_effort_smooth_values_become_smaller() {
        let mut noise = noise();
        // Shades that change little from row to row, as numbers of 1 and of 4 bytes.
        let smooth: Vec<u8> = (0..256_000).map(|place| (place / 512 % 240) as u8 + noise() % 8).collect();
        let numbers: Vec<u8> =
            (0..64_000_u16).flat_map(|place| (f32::from(place) + f32::from(noise())).to_le_bytes()).collect();
        let shape = Shape::of(&[500, 512, 1]).unwrap();
        for (element, content, coding) in [
            (ElementType::Gray8, &smooth, Coding::RowsZstd),
            (ElementType::ArrayF32, &numbers, Coding::PlanesZstd),
            (ElementType::Points, &numbers, Coding::Zstd),
        ] {
            let quick = smaller(element, &shape, content, CompressionEffort::Quick, 0);
            let (found, bytes) = smaller(element, &shape, content, CompressionEffort::Small, 3).unwrap();
            assert_eq!(found, coding, "{element}");
            assert!(quick.is_none_or(|(_, quick)| bytes.len() < quick.len()));
            let body = bytes[3..].to_vec().into();
            assert_eq!(decode(found, body, &shape, element, 256_000).as_ref(), Some(content));
        }
    }

    #[test]
    fn claims_beyond_what_a_block_can_hold_are_refused_before_anything_is_allocated() {
        for coding in Coding::ALL.into_iter().filter(|coding| *coding != Coding::Raw) {
            let decoded =
                |expected| decode(coding, vec![0; 10].into(), &line(1), ElementType::ArrayF64, expected);
            assert_eq!(decoded(2551), None, "{coding:?}");
            assert_eq!(decoded(u64::MAX), None);
            assert!(!coding.is_runs() || labels(coding, &[0; 10], u64::MAX).is_none());
        }
    }

    #[test]
    fn content_beyond_the_zstandard_ratio_limit_uses_lz4() {
        let content = vec![7; 1 << 20];
        let (coding, bytes) =
            smaller(ElementType::Gray8, &line(1 << 20), &content, CompressionEffort::Small, 0).unwrap();
        assert_eq!(coding, Coding::Lz4);
        assert!(again(ElementType::Gray8, coding, bytes, &content));
        assert!(runs_of(&[5; 1 << 16], CompressionEffort::Quick, 0).is_none());
    }
}
