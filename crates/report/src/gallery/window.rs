//! Selects the window of a tile shown at full resolution, and reduces images.

use pleach_regions::{Raster, ShapeError};

/// Part of a tile, in pixels of the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Side of a window. It shows some dozens of nuclei at 40x or 20x, each large enough to distinguish its
/// outlines.
const SIDE_PX: u32 = 256;

/// Sides up to this length are shown completely: cropping them would hide more than it magnifies.
const WHOLE_PX: u32 = 320;

/// Returns the window with most pixels that differ, in a tile of `width` × `height` pixels. `differs` receives the
/// index of a pixel in raster order. Of equal windows, takes the uppermost, then the leftmost. Then centers the
/// window on these pixels as far as the tile allows. Without such pixels, takes the middle of the tile.
pub(crate) fn with_most_differences(width: u32, height: u32, differs: impl Fn(usize) -> bool) -> Window {
    let side = |all: u32| if all <= WHOLE_PX { all } else { SIDE_PX };
    let mut best = Window { left: 0, top: 0, width: side(width), height: side(height) };
    let (columns, across, down) = (width as usize, best.width as usize, best.height as usize);
    // Differing pixels of each column within the rows of the window. The counts slide down row by row.
    let mut counts = vec![0_u64; columns];
    let add = |counts: &mut [u64], y: usize| {
        counts.iter_mut().enumerate().for_each(|(x, count)| *count += u64::from(differs(y * columns + x)));
    };
    (0..down).for_each(|y| add(&mut counts, y));
    let mut most = None;
    for top in 0..=height as usize - down {
        if top > 0 {
            let gone = |x: usize| u64::from(differs((top - 1) * columns + x));
            counts.iter_mut().enumerate().for_each(|(x, count)| *count -= gone(x));
            add(&mut counts, top + down - 1);
        }
        let mut inside: u64 = counts[..across].iter().sum();
        for left in 0..=columns - across {
            if left > 0 {
                // Adds before it subtracts: the sum is unsigned.
                inside = inside + counts[left + across - 1] - counts[left - 1];
            }
            // On ties the first window in raster order, so that the report is the same each time.
            if most.is_none_or(|most| inside > most) {
                most = Some(inside);
                best = Window { left: left as u32, top: top as u32, ..best };
            }
        }
    }
    best.centered(width, height, differs)
}

impl Window {
    /// Returns the window centered on its pixels that differ. It still contains all of them.
    fn centered(self, width: u32, height: u32, differs: impl Fn(usize) -> bool) -> Self {
        let (columns, rows) = (self.left..self.left + self.width, self.top..self.top + self.height);
        let places = rows.flat_map(|y| columns.clone().map(move |x| [x, y]));
        let held = places.filter(|&[x, y]| differs(y as usize * width as usize + x as usize));
        let ends = held.fold(None, |ends: Option<[u32; 4]>, [x, y]| {
            let [left, top, right, bottom] = ends.unwrap_or([x, y, x, y]);
            Some([left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)])
        });
        let [left, top, right, bottom] = ends.unwrap_or([0, 0, width, height]);
        let place = |low: u32, high: u32, side: u32, all: u32| {
            ((low + high) / 2).saturating_sub(side / 2).min(all - side)
        };
        Self {
            left: place(left, right, self.width, width),
            top: place(top, bottom, self.height, height),
            ..self
        }
    }

    /// Returns whether the window is the whole tile.
    pub(crate) fn covers_tile(&self, width: u32, height: u32) -> bool {
        (self.width, self.height) == (width, height)
    }

    /// Returns the window enlarged by up to `rim` pixels on each side, within the tile.
    pub(crate) fn with_rim(&self, rim: u32, width: u32, height: u32) -> Self {
        let (left, top) = (self.left.saturating_sub(rim), self.top.saturating_sub(rim));
        let right = (self.left + self.width + rim).min(width);
        let bottom = (self.top + self.height + rim).min(height);
        Self { left, top, width: right - left, height: bottom - top }
    }

    /// Returns the pixels of a raster within the window.
    pub(crate) fn of(&self, raster: &Raster) -> Result<Raster, ShapeError> {
        let channels = usize::from(raster.channels());
        let line = raster.width_px() as usize * channels;
        let (from, length) = (self.left as usize * channels, self.width as usize * channels);
        let lines = raster.data().chunks_exact(line).skip(self.top as usize).take(self.height as usize);
        let data = lines.flat_map(|line| &line[from..from + length]).copied().collect();
        Raster::new(self.width, self.height, raster.channels(), data)
    }
}

/// Reduces a raster to sides of at most `side` pixels. Each pixel is the mean of the pixels that it covers.
pub(crate) fn small(raster: &Raster, side: u32) -> Result<Raster, ShapeError> {
    let (width, height, channels) = (raster.width_px(), raster.height_px(), usize::from(raster.channels()));
    let longest = u64::from(width.max(height));
    if longest <= u64::from(side) {
        return Ok(raster.clone());
    }
    let scaled = |length: u32| ((u64::from(length) * u64::from(side) / longest) as u32).max(1);
    let (across, down) = (scaled(width), scaled(height));
    let span = |place: u32, of: u32, length: u32| {
        let edge = |place: u32| (u64::from(place) * u64::from(length) / u64::from(of)) as usize;
        edge(place)..edge(place + 1)
    };
    let mut data = Vec::with_capacity(across as usize * down as usize * channels);
    for y in 0..down {
        for x in 0..across {
            let (rows, columns) = (span(y, down, height), span(x, across, width));
            let count = (rows.len() * columns.len()) as u64;
            for channel in 0..channels {
                let value =
                    |(y, x): (usize, usize)| raster.data()[(y * width as usize + x) * channels + channel];
                let places = rows.clone().flat_map(|y| columns.clone().map(move |x| (y, x)));
                let sum: u64 = places.map(|place| u64::from(value(place))).sum();
                data.push(((sum + count / 2) / count) as u8);
            }
        }
    }
    Raster::new(across, down, raster.channels(), data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_tiles_are_whole() {
        let window = with_most_differences(320, 13, |_| false);
        assert_eq!(window, Window { left: 0, top: 0, width: 320, height: 13 });
        assert!(window.covers_tile(320, 13));
    }

    #[test]
    fn downscaled_pixels_are_means() {
        let raster = Raster::new(4, 2, 1, vec![0, 10, 20, 30, 2, 10, 20, 31]).unwrap();
        assert_eq!(small(&raster, 2).unwrap().data(), [6, 25]);
        assert_eq!(small(&raster, 4).unwrap(), raster);
        let thin = Raster::filled(1000, 1, 3, 7).unwrap();
        assert_eq!(small(&thin, 10).unwrap(), Raster::filled(10, 1, 3, 7).unwrap());
    }

    #[test]
    fn a_part_is_cut_out_of_every_channel() {
        let raster = Raster::new(3, 2, 2, (0..12).collect()).unwrap();
        let window = Window { left: 1, top: 1, width: 2, height: 1 };
        assert_eq!(window.of(&raster).unwrap().data(), [8, 9, 10, 11]);
        assert_eq!(window.with_rim(1, 3, 2), Window { left: 0, top: 0, width: 3, height: 2 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn chosen_window_holds_most_differences(
            size in (1..450_u32, 321..450_u32),
            places in prop::collection::vec((0..450_u32, 0..450_u32), 0..40),
        ) {
            let (width, height) = size;
            let places: Vec<(u32, u32)> = places.into_iter().map(|(x, y)| (x % width, y % height)).collect();
            let differs = |pixel: usize| places.contains(&(pixel as u32 % width, pixel as u32 / width));
            let inside = |window: Window| {
                let mut distinct = places.clone();
                distinct.sort_unstable();
                distinct.dedup();
                let within = |(x, y): &(u32, u32)| {
                    (window.left..window.left + window.width).contains(x)
                        && (window.top..window.top + window.height).contains(y)
                };
                distinct.iter().filter(|place| within(place)).count()
            };
            let best = with_most_differences(width, height, differs);
            prop_assert!(best.left + best.width <= width && best.top + best.height <= height);
            for left in (0..=width - best.width).step_by(7) {
                for top in (0..=height - best.height).step_by(7) {
                    let other = inside(Window { left, top, ..best });
                    prop_assert!(other <= inside(best));
                }
            }
        }
    }
}
