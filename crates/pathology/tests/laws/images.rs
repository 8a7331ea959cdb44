//! Small tissue-like images, and edge cases of the tasks.

use proptest::prelude::*;

/// Pixels B, G, R in row-major order.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) what: &'static str,
    pub(crate) width: usize,
    pub(crate) pixels: Vec<[u8; 3]>,
}

/// Shows size and kind. The pixels follow from the failed seed.
impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} x {} px: {:?}",
            self.what,
            self.width,
            self.pixels.len() / self.width,
            self.pixels
        )
    }
}

/// Glass, stroma, two kinds of nuclei, red blood cell.
const COLORS: [[u8; 3]; 5] = [[250, 248, 252], [200, 150, 215], [90, 40, 70], [140, 90, 130], [30, 20, 150]];

/// Sides of up to 44 px. 1 in 4 images is a line 1 px wide or high.
fn size() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![
        6 => (2..44_usize, 2..44_usize),
        1 => (Just(1), 1..120_usize),
        1 => (1..120_usize, Just(1)),
    ]
}

/// Numbers below a limit, from a seed (splitmix64: Steele, Lea & Flood 2014).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    /// Returns a channel at most `most` levels away.
    fn near(&mut self, value: u8, most: usize) -> u8 {
        (usize::from(value) + self.below(2 * most + 1)).saturating_sub(most).min(255) as u8
    }

    fn color(&mut self) -> [u8; 3] {
        std::array::from_fn(|_| self.below(256) as u8)
    }
}

/// Draws overlapping and touching discs over the pixels.
fn discs(draw: &mut Draw, pixels: &mut [[u8; 3]], width: usize, colors: &[[u8; 3]]) {
    let rows = pixels.len() / width;
    for _ in 0..2 + pixels.len() / 120 {
        let (cx, cy, radius) = (draw.below(width), draw.below(rows), 1 + draw.below(8));
        let color = colors[draw.below(colors.len())];
        for (at, pixel) in pixels.iter_mut().enumerate() {
            let (dx, dy) = ((at % width).abs_diff(cx), (at / width).abs_diff(cy));
            if dx * dx + dy * dy <= radius * radius {
                *pixel = color;
            }
        }
    }
}

fn noise(draw: &mut Draw, pixels: &mut [[u8; 3]], most: usize) {
    for channel in pixels.as_flattened_mut() {
        *channel = draw.near(*channel, most);
    }
}

fn make(kind: usize, (width, rows): (usize, usize), seed: u64) -> Image {
    let draw = &mut Draw(seed);
    let [glass, stroma, nucleus, other, _] = COLORS;
    let mut pixels = vec![stroma; width * rows];
    let what = match kind {
        0 => {
            let color = [glass, nucleus, draw.color()][draw.below(3)];
            pixels.fill(color);
            "one color"
        }
        1 => {
            pixels.iter_mut().for_each(|pixel| *pixel = draw.color());
            "noise"
        }
        2 => {
            let (dx, dy) = (1 + draw.below(9), 1 + draw.below(9));
            for (at, pixel) in pixels.iter_mut().enumerate() {
                let level = at % width * dx + at / width * dy;
                *pixel = [255 - level.min(200) as u8, 120, (level % 256) as u8];
            }
            "gradients"
        }
        3 | 4 => {
            discs(draw, &mut pixels, width, &[nucleus, other]);
            "flat discs"
        }
        5..=8 => {
            discs(draw, &mut pixels, width, &[nucleus, other]);
            let most = 1 + draw.below(30);
            noise(draw, &mut pixels, most);
            "discs and noise"
        }
        9 => {
            discs(draw, &mut pixels, width, &COLORS);
            noise(draw, &mut pixels, 6);
            "discs, red blood cells, glass"
        }
        10 => {
            let side = 1 + draw.below(6);
            let seed = draw.0;
            for (at, pixel) in pixels.iter_mut().enumerate() {
                let cell = (at % width / side, at / width / side);
                *pixel = COLORS[Draw(seed ^ (cell.0 << 20 | cell.1) as u64).below(COLORS.len())];
            }
            "plateaus"
        }
        _ => {
            pixels.fill(nucleus);
            noise(draw, &mut pixels, 3);
            "all object"
        }
    };
    Image { what, width, pixels }
}

/// Returns an image of any kind.
pub(crate) fn image() -> impl Strategy<Value = Image> {
    image_of(size())
}

/// Returns an image of any kind, of these widths and heights.
pub(crate) fn image_of(sizes: impl Strategy<Value = (usize, usize)>) -> impl Strategy<Value = Image> {
    (0..12_usize, sizes, any::<u64>()).prop_map(|(kind, size, seed)| make(kind, size, seed))
}
