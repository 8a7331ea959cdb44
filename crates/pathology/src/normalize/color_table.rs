//! Numbers by color: counts of the colors of images, or the result of each color.

/// Table of one number for each of the 2^24 colors, in blocks of 4,096 neighboring colors. Blocks without a color of
/// the image are omitted. A tile's colors are close together, so the table is much smaller than a full one, and faster
/// to visit.
#[derive(Debug)]
pub(super) struct ColorTable {
    /// Start of the block for the upper 12 bits of a color (red, and half of green), or [`NO_BLOCK`].
    starts: Vec<u32>,
    entries: Vec<u32>,
}

const BLOCK: usize = 1 << 12;
const NO_BLOCK: u32 = u32::MAX;

/// Returns the block of a color.
fn upper_bits(&[_, g, r]: &[u8; 3]) -> usize {
    usize::from(r) << 4 | usize::from(g >> 4)
}

impl ColorTable {
    /// Creates a table without blocks. [`grow`](Self::grow) adds them.
    pub(super) fn empty() -> Self {
        Self { starts: vec![NO_BLOCK; BLOCK], entries: Vec::new() }
    }

    /// Adds the missing blocks of the colors of `pixels`, with all numbers 0.
    pub(super) fn grow(&mut self, pixels: &[[u8; 3]]) {
        for pixel in pixels {
            let start = &mut self.starts[upper_bits(pixel)];
            if *start == NO_BLOCK {
                *start = self.entries.len() as u32;
                self.entries.resize(self.entries.len() + BLOCK, 0);
            }
        }
    }

    /// Creates a table of the colors of `pixels`, with all numbers 0. Like all large buffers here it has its final size
    /// from the start: growing would copy it and take twice the memory.
    pub(super) fn of(pixels: &[[u8; 3]]) -> Self {
        let mut starts = vec![NO_BLOCK; BLOCK];
        pixels.iter().for_each(|pixel| starts[upper_bits(pixel)] = 0);
        let mut length = 0;
        for start in starts.iter_mut().filter(|start| **start != NO_BLOCK) {
            *start = length as u32;
            length += BLOCK;
        }
        Self { starts, entries: vec![0; length] }
    }

    /// Returns the number of a color. The color must occur in the image.
    pub(super) fn entry(&mut self, pixel: &[u8; 3]) -> &mut u32 {
        let [b, g, _] = pixel.map(usize::from);
        let start = self.starts[upper_bits(pixel)] as usize;
        &mut self.entries[start + ((g & 15) << 8 | b)]
    }

    /// Returns the number of colors with a nonzero entry.
    pub(super) fn colors(&self) -> usize {
        self.entries.iter().filter(|entry| **entry != 0).count()
    }

    /// Visits the colors with a nonzero entry, in ascending order, as R, G, B in 0..=255.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut([f64; 3], &mut u32)) {
        for (upper, &start) in self.starts.iter().enumerate().filter(|(_, start)| **start != NO_BLOCK) {
            let block = &mut self.entries[start as usize..][..BLOCK];
            for (lower, entry) in block.iter_mut().enumerate().filter(|(_, entry)| **entry != 0) {
                let color = upper * BLOCK + lower;
                visit([color >> 16, color >> 8, color].map(|channel| (channel & 0xff) as f64), entry);
            }
        }
    }
}
