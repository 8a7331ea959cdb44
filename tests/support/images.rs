//! Small images of every kind that a study may contain, written byte by byte: readable ones with their pixels, and invalid
//! ones with the reason of the refusal.

use flate2::{Compression, Crc, write::ZlibEncoder};
use image::{ImageFormat, RgbImage};
use std::io::{Cursor, Write};

/// Width and height of the readable images.
pub(crate) const SIDES: [u32; 2] = [5, 3];

/// A file and the expected result.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Expected,
}

/// Expected result of reading a file.
pub(crate) enum Expected {
    /// B, G, R of every pixel.
    Pixels(Vec<u8>),
    /// B, G, R of every pixel, within the loss of the format.
    Near(Vec<u8>),
    /// A refusal in a line that begins so.
    Refused(&'static str),
}

/// All kinds of files.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = png_cases();
    cases.extend(tiff_cases());
    cases.extend(float_cases());
    cases.extend(jpeg_cases());
    cases
}

fn refused(name: &'static str, bytes: Vec<u8>, message: &'static str) -> Case {
    Case { name, bytes, expected: Expected::Refused(message) }
}

/// R, G, B of a pixel. The colors are few enough for a palette.
fn rgb(x: u32, y: u32) -> [u8; 3] {
    [40 * x as u8 + 1, 60 * y as u8 + 2, 7 * x as u8 + 9 * y as u8 + 3]
}

fn gray(x: u32, y: u32) -> u8 {
    rgb(x, y)[0]
}

/// Values of all pixels, row by row.
fn each<T>(of: impl Fn(u32, u32) -> T) -> Vec<T> {
    (0..SIDES[1]).flat_map(|y| (0..SIDES[0]).map(move |x| (x, y))).map(|(x, y)| of(x, y)).collect()
}

fn colors() -> Expected {
    Expected::Pixels(each(|x, y| rgb(x, y).into_iter().rev()).into_iter().flatten().collect())
}

fn grays(of: impl Fn(u32, u32) -> u8) -> Expected {
    Expected::Pixels(each(|x, y| [of(x, y); 3]).concat())
}

// --- PNG (third edition): signature, chunks.

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut check = Crc::new();
    check.update(kind);
    check.update(data);
    [&(data.len() as u32).to_be_bytes()[..], kind, data, &check.sum().to_be_bytes()].concat()
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

/// A PNG of these sides, bits, color type and interlacing. The chunks in `more` precede the pixels.
fn png(sides: [u32; 2], [bits, color, interlaced]: [u8; 3], more: &[Vec<u8>], rows: &[u8]) -> Vec<u8> {
    let [width, height] = sides.map(u32::to_be_bytes);
    let header = [&width[..], &height, &[bits, color, 0, 0, interlaced]].concat();
    let chunks =
        [chunk(b"IHDR", &header), more.concat(), chunk(b"IDAT", &deflated(rows)), chunk(b"IEND", &[])];
    [&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()
}

/// Unfiltered rows of whole bytes.
fn rows(pixel: impl Fn(u32, u32) -> Vec<u8>) -> Vec<u8> {
    (0..SIDES[1])
        .flat_map(|y| [vec![0], (0..SIDES[0]).flat_map(|x| pixel(x, y)).collect()].concat())
        .collect()
}

fn doubled(bytes: [u8; 3]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [*byte, *byte]).collect()
}

/// The seven passes of Adam7: first column and row, and distances of columns and rows.
const ADAM7: [[u32; 4]; 7] =
    [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];

fn interlaced() -> Vec<u8> {
    let mut passes = Vec::new();
    for [left, top, across, down] in ADAM7 {
        for y in (top..SIDES[1]).step_by(down as usize) {
            let row: Vec<u8> = (left..SIDES[0]).step_by(across as usize).flat_map(|x| rgb(x, y)).collect();
            if !row.is_empty() {
                passes.extend([&[0], &row[..]].concat());
            }
        }
    }
    png(SIDES, [8, 2, 1], &[], &passes)
}

/// An animation of two frames. The first frame is the image itself.
fn animated() -> Vec<u8> {
    let [width, height] = SIDES.map(u32::to_be_bytes);
    let frame = |number: u32| {
        let place = [&number.to_be_bytes()[..], &width, &height, &[0; 8], &[0, 1, 0, 10, 0, 0]].concat();
        chunk(b"fcTL", &place)
    };
    let still = png(
        SIDES,
        [8, 2, 0],
        &[chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]), frame(0)],
        &rows(|x, y| rgb(x, y).to_vec()),
    );
    let black = [&2_u32.to_be_bytes()[..], &deflated(&rows(|_, _| vec![0; 3]))].concat();
    let end = still.len() - 12;
    [&still[..end], &frame(1), &chunk(b"fdAT", &black), &still[end..]].concat()
}

fn png_cases() -> Vec<Case> {
    let rgb8 = || rows(|x, y| rgb(x, y).to_vec());
    let palette = chunk(b"PLTE", &each(rgb).concat());
    let number = |x: u32, y: u32| (y * SIDES[0] + x) as u8;
    let mut wrong = png(SIDES, [8, 2, 0], &[], &rgb8());
    let check = wrong.len() - 13;
    wrong[check] ^= 1;
    let read = |name, bytes, expected| Case { name, bytes, expected };
    let bits = |y: u32| (0..SIDES[0]).fold(0, |byte, x| byte | (((x + y) % 2) as u8) << (7 - x));
    let one_bit: Vec<u8> = (0..SIDES[1]).flat_map(|y| [0, bits(y)]).collect();
    let nibbles =
        |y| [0, number(0, y) << 4 | number(1, y), number(2, y) << 4 | number(3, y), number(4, y) << 4];
    let four_bits: Vec<u8> = (0..SIDES[1]).flat_map(nibbles).collect();
    // A color profile that decompresses to 40 MB, a thousand times its length.
    let bomb = chunk(b"iCCP", &[&b"bomb\0\0"[..], &deflated(&vec![0; 40_000_000])].concat());
    vec![
        read("rgb8.png", png(SIDES, [8, 2, 0], &[], &rgb8()), colors()),
        read(
            "rgba8.png",
            png(SIDES, [8, 6, 0], &[], &rows(|x, y| [&rgb(x, y)[..], &[9]].concat())),
            colors(),
        ),
        read("rgb16.png", png(SIDES, [16, 2, 0], &[], &rows(|x, y| doubled(rgb(x, y)))), colors()),
        read("gray8.png", png(SIDES, [8, 0, 0], &[], &rows(|x, y| vec![gray(x, y)])), grays(gray)),
        read(
            "palette8.png",
            png(SIDES, [8, 3, 0], std::slice::from_ref(&palette), &rows(|x, y| vec![number(x, y)])),
            colors(),
        ),
        read("palette4.png", png(SIDES, [4, 3, 0], &[palette], &four_bits), colors()),
        read("bits.png", png(SIDES, [1, 0, 0], &[], &one_bit), grays(|x, y| ((x + y) % 2) as u8 * 255)),
        read("interlaced.png", interlaced(), colors()),
        read("animated.png", animated(), colors()),
        read("bomb.png", png(SIDES, [8, 2, 0], &[bomb], &rgb8()), colors()),
        refused("check.png", wrong, "corrupt or truncated image: "),
        refused("zero.png", png([0, 3], [8, 2, 0], &[], &[]), "corrupt or truncated image: "),
        refused(
            "wide.png",
            png([60_000, 60_000], [8, 2, 0], &[], &[]),
            "60000 x 60000 px is too large; up to 65536 px per side and 2048 MiB decoded are allowed",
        ),
        refused(
            "short.png",
            png([60_000, 10_000], [8, 2, 0], &[], &[]),
            "corrupt or truncated image: 65 bytes are too short for the size in the header; at least 1744186 are needed",
        ),
    ]
}

// --- TIFF (revision 6.0, and BigTIFF): header, strips or tiles, one directory.

/// A field of a directory: number, type (3 is 16 bits, 4 is 32 bits), values.
type Field = (u16, u16, Vec<u64>);

/// Layout of a TIFF file.
#[derive(Clone, Copy)]
struct Layout {
    big: bool,
    little: bool,
    tiled: bool,
    /// Whether the directory names itself as the next one.
    loops: bool,
}

const PLAIN: Layout = Layout { big: false, little: true, tiled: false, loops: false };

impl Layout {
    fn number(self, number: u64, bytes: usize) -> Vec<u8> {
        let all = number.to_be_bytes();
        let mut bytes = all[8 - bytes..].to_vec();
        if self.little {
            bytes.reverse();
        }
        bytes
    }

    fn write(self, fields: &[Field], chunks: &[Vec<u8>]) -> Vec<u8> {
        let wide = if self.big { 8 } else { 4 };
        let start = if self.big { 16 } else { 8 };
        let data = chunks.concat();
        let offsets = chunks.iter().scan(start, |at, chunk| {
            *at += chunk.len() as u64;
            Some(*at - chunk.len() as u64)
        });
        let (offset_tag, length_tag) = if self.tiled { (324, 325) } else { (273, 279) };
        let mut fields = fields.to_vec();
        fields.push((offset_tag, 4, offsets.collect()));
        fields.push((length_tag, 4, chunks.iter().map(|chunk| chunk.len() as u64).collect()));
        fields.sort_by_key(|(tag, ..)| *tag);

        let directory = start + data.len() as u64;
        let head = if self.big { 8 } else { 2 };
        let length = head + fields.len() * (4 + 2 * wide) + wide;
        let mut far = Vec::new();
        let mut entries = self.number(fields.len() as u64, head);
        for (tag, kind, values) in &fields {
            let each = if *kind == 3 { 2 } else { 4 };
            let value: Vec<u8> = values.iter().flat_map(|value| self.number(*value, each)).collect();
            entries.extend([self.number((*tag).into(), 2), self.number((*kind).into(), 2)].concat());
            entries.extend(self.number(values.len() as u64, wide));
            if value.len() <= wide {
                entries.extend(value.iter().copied().chain(std::iter::repeat(0)).take(wide));
            } else {
                entries.extend(self.number(directory + (length + far.len()) as u64, wide));
                far.extend(value);
            }
        }
        entries.extend(self.number(if self.loops { directory } else { 0 }, wide));
        let order = if self.little { b"II" } else { b"MM" };
        let version = if self.big {
            [self.number(43, 2), self.number(8, 2), self.number(0, 2)].concat()
        } else {
            self.number(42, 2)
        };
        [&order[..], &version, &self.number(directory, wide), &data, &entries, &far].concat()
    }
}

/// Fields of an image with these channels, bits and photometric interpretation (1 gray, 2 R, G, B, 3 palette, 5 inks).
fn fields(channels: u64, bits: u64, photometric: u64) -> Vec<Field> {
    vec![
        (256, 4, vec![SIDES[0].into()]),
        (257, 4, vec![SIDES[1].into()]),
        (258, 3, vec![bits; channels as usize]),
        (259, 3, vec![1]),
        (262, 3, vec![photometric]),
        (277, 3, vec![channels]),
    ]
}

fn with(mut fields: Vec<Field>, field: Field) -> Vec<Field> {
    fields.retain(|(tag, ..)| *tag != field.0);
    fields.push(field);
    fields
}

fn tiff_cases() -> Vec<Case> {
    let color = || with(fields(3, 8, 2), (278, 3, vec![1]));
    let strips: Vec<Vec<u8>> =
        (0..SIDES[1]).map(|y| (0..SIDES[0]).flat_map(|x| rgb(x, y)).collect()).collect();
    let tile: Vec<u8> = (0..16)
        .flat_map(|y| {
            (0..16).flat_map(move |x| if x < SIDES[0] && y < SIDES[1] { rgb(x, y) } else { [0; 3] })
        })
        .collect();
    let tiled = || with(with(fields(3, 8, 2), (322, 3, vec![16])), (323, 3, vec![16]));
    let planes: Vec<Vec<u8>> = (0..3).map(|channel| each(|x, y| rgb(x, y)[channel])).collect();
    let deep = each(|x, y| [gray(x, y); 2]).concat();
    let read = |name, bytes, expected| Case { name, bytes, expected };
    let damaged = "corrupt or truncated image: ";
    vec![
        read("strips.tif", PLAIN.write(&color(), &strips), colors()),
        read(
            "tiles.tif",
            Layout { tiled: true, ..PLAIN }.write(&tiled(), std::slice::from_ref(&tile)),
            colors(),
        ),
        read("big.tif", Layout { big: true, ..PLAIN }.write(&color(), &strips), colors()),
        read(
            "big-tiles.tif",
            Layout { big: true, little: false, tiled: true, ..PLAIN }.write(&tiled(), &[tile]),
            colors(),
        ),
        read("order.tif", Layout { little: false, ..PLAIN }.write(&fields(1, 16, 1), &[deep]), grays(gray)),
        read("planes.tif", PLAIN.write(&with(fields(3, 8, 2), (284, 3, vec![2])), &planes), colors()),
        refused(
            "inks.tif",
            PLAIN.write(&fields(4, 8, 5), &[vec![7; 60]]),
            "Cmyk8 pixels are not supported; gray and color of 8 or 16 bits per channel are allowed",
        ),
        refused(
            "palette.tif",
            PLAIN.write(&with(fields(1, 8, 3), (320, 3, vec![0; 768])), &[vec![7; 15]]),
            "this kind of image (Photometric interpretation RGBPalette ",
        ),
        refused(
            "jpeg.tif",
            PLAIN.write(&with(color(), (259, 3, vec![7])), &strips),
            "TIFF with compression 7 is not supported; TIFF without compression or with LZW, Deflate, PackBits or Group 4 is allowed",
        ),
        refused(
            "wide.tif",
            PLAIN.write(&with(color(), (256, 4, vec![4_000_000_000])), &strips),
            "4000000000 x 3 px is too large; up to 65536 px per side and 2048 MiB decoded are allowed",
        ),
        refused("zero.tif", PLAIN.write(&with(color(), (256, 4, vec![0])), &strips), damaged),
        refused(
            "tile-sides.tif",
            Layout { tiled: true, ..PLAIN }.write(&with(tiled(), (322, 4, vec![u32::MAX.into()])), &strips),
            damaged,
        ),
        refused("loop.tif", Layout { loops: true, ..PLAIN }.write(&color(), &strips), damaged),
        refused("lost.tif", lost(&PLAIN.write(&color(), &strips)), damaged),
    ]
}

/// Images of 32-bit floats, which tag 339 (sample format 3) distinguishes from whole numbers.
fn float_cases() -> Vec<Case> {
    let floats = |channels: u64, photometric: u64| {
        let fields = with(fields(channels, 32, photometric), (339, 3, vec![3; channels as usize]));
        let halves = each(|_, _| 0.5_f32.to_le_bytes().repeat(channels as usize)).concat();
        PLAIN.write(&fields, &[halves])
    };
    vec![
        refused(
            "floats.tif",
            floats(3, 2),
            "Rgb32F pixels are not supported; gray and color of 8 or 16 bits per channel are allowed",
        ),
        refused(
            "gray-floats.tif",
            floats(1, 1),
            "palette or other 32-bit pixels are not supported; gray and color of 8 or 16 bits per channel are allowed",
        ),
    ]
}

/// The same file with a directory whose first field claims 2^31 values.
fn lost(tiff: &[u8]) -> Vec<u8> {
    let directory = u32::from_le_bytes([tiff[4], tiff[5], tiff[6], tiff[7]]) as usize;
    let mut tiff = tiff.to_vec();
    tiff[directory + 6..directory + 10].copy_from_slice(&(1_u32 << 31).to_le_bytes());
    tiff
}

// --- JPEG (ITU-T T.81): segments.

/// A JPEG that ends after the frame header: kind of frame, bits per channel, sides, channels.
fn frame(kind: u8, bits: u8, [width, height]: [u16; 2], channels: u8) -> Vec<u8> {
    let [width, height] = [width, height].map(u16::to_be_bytes);
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xc0 + kind, 0, 8 + 3 * channels, bits];
    bytes.extend([height, width].concat());
    bytes.push(channels);
    bytes.extend((0..channels).flat_map(|channel| [channel + 1, 0x11, 0]));
    bytes.extend([0xff, 0xd9]);
    bytes
}

fn jpeg_cases() -> Vec<Case> {
    // JPEG nearly preserves flat blocks.
    let mut bytes = Cursor::new(Vec::new());
    let plain = RgbImage::from_pixel(SIDES[0], SIDES[1], image::Rgb([200, 100, 50]));
    plain.write_to(&mut bytes, ImageFormat::Jpeg).expect("memory");
    let near = Expected::Near([50, 100, 200].repeat((SIDES[0] * SIDES[1]) as usize));
    let inks = "CMYK pixels are not supported; gray and color of 8 or 16 bits per channel are allowed";
    vec![
        Case { name: "rgb.jpg", bytes: bytes.into_inner(), expected: near },
        refused("inks.jpg", frame(0, 8, [5, 3], 4), inks),
        refused(
            "deep.jpg",
            frame(1, 12, [5, 3], 3),
            "JPEG with 12 bits per channel is not supported; baseline or progressive JPEG of 8 bits per channel is allowed",
        ),
        refused(
            "lossless.jpg",
            frame(3, 8, [5, 3], 3),
            "JPEG with frames of kind 3 is not supported; baseline or progressive JPEG of 8 bits per channel is allowed",
        ),
        refused("zero.jpg", frame(0, 8, [5, 0], 3), "corrupt or truncated image: the image has no pixels"),
        refused(
            "wide.jpg",
            frame(0, 8, [60_000, 60_000], 3),
            "60000 x 60000 px is too large; up to 65536 px per side and 2048 MiB decoded are allowed",
        ),
        refused(
            "short.jpg",
            frame(0, 8, [20_000, 20_000], 3),
            "corrupt or truncated image: 23 bytes are too short for the size in the header; at least 2343750 are needed",
        ),
    ]
}
