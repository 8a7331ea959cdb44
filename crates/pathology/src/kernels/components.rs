//! Connected components of masks, as unions of runs: area filter, selection by seeds, hole filling, labels.
//!
//! Work is proportional to the number of runs (maximal horizontal stretches), after one fast pass over the bytes. Area
//! is the only measurement, and no label plane is built.

use super::{Connectivity, height};
use std::ops::Range;

/// The components of a mask, or of its background.
#[derive(Debug)]
pub struct Components {
    runs: Vec<Run>,
    /// Component of each run, from 0, numbered in raster order of their first pixels.
    component: Vec<u32>,
    count: usize,
}

/// A maximal stretch of object or background pixels in one row: pixels `start..end` of the plane.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u32,
    end: u32,
}

impl Run {
    fn pixels(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Components {
    /// Finds the components of the object pixels of `mask` (nonzero values).
    #[must_use]
    pub fn of_objects(mask: &[u8], width: usize, connectivity: Connectivity) -> Self {
        Self::of(mask, width, connectivity, true)
    }

    /// Finds the components of the background pixels of `mask` (value 0).
    #[must_use]
    pub fn of_background(mask: &[u8], width: usize, connectivity: Connectivity) -> Self {
        Self::of(mask, width, connectivity, false)
    }

    fn of(mask: &[u8], width: usize, connectivity: Connectivity, objects: bool) -> Self {
        height(mask.len(), width);
        // Reach of a run beyond its ends in the next row, pixels.
        let reach = if connectivity == Connectivity::Eight { 1 } else { 0 };
        let mut runs = Vec::new();
        let mut parent: Vec<u32> = Vec::new();
        let mut previous = 0..0;
        for (y, row) in mask.chunks_exact(width).enumerate() {
            let first = runs.len();
            find_runs(row, y * width, objects, &mut runs);
            parent.extend(first as u32..runs.len() as u32);
            let mut above = previous;
            for here in first..runs.len() {
                // Ends of the run, moved one row up.
                let (start, end) =
                    (runs[here].start as i64 - width as i64, runs[here].end as i64 - width as i64);
                // Runs above are visited once per row: those before this run cannot touch a later one.
                while above.start < above.end && i64::from(runs[above.start].end) + reach <= start {
                    above.start += 1;
                }
                let touching = above.clone().take_while(|&up| i64::from(runs[up].start) < end + reach);
                touching.for_each(|up| union(&mut parent, up as u32, here as u32));
            }
            previous = first..runs.len();
        }
        // A root is the first run of its tree, so a parent has its component number before its children need it.
        let mut component = vec![0; runs.len()];
        let mut count = 0;
        for run in 0..runs.len() {
            let up = parent[run] as usize;
            component[run] = if up == run { count } else { component[up] };
            count += u32::from(up == run);
        }
        Self { runs, component, count: count as usize }
    }

    /// Returns the number of components.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the area of each component, pixels.
    #[must_use]
    pub fn areas(&self) -> Vec<u64> {
        let mut areas = vec![0; self.count];
        for (run, &component) in self.runs.iter().zip(&self.component) {
            areas[component as usize] += u64::from(run.end - run.start);
        }
        areas
    }

    /// Returns for each component whether `found` holds for one of its runs, passed as a range of pixel numbers.
    fn any(&self, found: impl Fn(Range<usize>) -> bool) -> Vec<bool> {
        let mut any = vec![false; self.count];
        for (run, &component) in self.runs.iter().zip(&self.component) {
            let known = &mut any[component as usize];
            // Short-circuits: `found` scans pixels, and one hit decides.
            *known = *known || found(run.pixels());
        }
        any
    }

    /// Writes `value` to the pixels of the components whose entry in `keep` is true.
    fn paint(&self, plane: &mut [u8], value: u8, keep: &[bool]) {
        for (run, &component) in self.runs.iter().zip(&self.component) {
            if keep[component as usize] {
                plane[run.pixels()].fill(value);
            }
        }
    }

    /// Calls `each(pixels, component)` for every run, in raster order.
    pub fn for_each_run(&self, mut each: impl FnMut(Range<usize>, u32)) {
        for (run, &component) in self.runs.iter().zip(&self.component) {
            each(run.pixels(), component);
        }
    }
}

/// Appends the runs of one row. `offset` is the number of its first pixel.
fn find_runs(row: &[u8], offset: usize, objects: bool, runs: &mut Vec<Run>) {
    let mut x = 0;
    loop {
        let start = x + find(&row[x..], objects);
        if start == row.len() {
            return;
        }
        x = start + find(&row[start..], !objects);
        runs.push(Run { start: (offset + start) as u32, end: (offset + x) as u32 });
    }
}

/// Returns the position of the first object (or background) value, or the length. Reads 8 bytes at a time.
fn find(bytes: &[u8], object: bool) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest set bit of either pattern is in the first matching byte. Higher bytes may be wrong.
        let hits = if object { word } else { word.wrapping_sub(LOW) & !word & (LOW << 7) };
        if hits != 0 {
            return index * 8 + hits.trailing_zeros() as usize / 8;
        }
    }
    let tail = rest.iter().position(|&byte| (byte != 0) == object).unwrap_or(rest.len());
    bytes.len() - rest.len() + tail
}

/// Returns the root of `run`'s tree, and halves the path to it.
fn root(parent: &mut [u32], mut run: u32) -> u32 {
    while parent[run as usize] != run {
        let up = parent[parent[run as usize] as usize];
        parent[run as usize] = up;
        run = up;
    }
    run
}

/// Joins two trees under the smaller root.
fn union(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parent, a), root(parent, b));
    parent[a.max(b) as usize] = a.min(b);
}

/// Returns the objects of `mask` whose area in pixels is within `areas`.
#[must_use]
pub fn filter_by_area(mask: &[u8], width: usize, connectivity: Connectivity, areas: Range<u64>) -> Vec<u8> {
    let components = Components::of_objects(mask, width, connectivity);
    let keep: Vec<bool> = components.areas().into_iter().map(|area| areas.contains(&area)).collect();
    let mut kept = vec![0; mask.len()];
    components.paint(&mut kept, 255, &keep);
    kept
}

/// Returns the objects of `mask` that contain an object pixel of `seeds`.
#[must_use]
pub fn select(mask: &[u8], seeds: &[u8], width: usize, connectivity: Connectivity) -> Vec<u8> {
    let components = Components::of_objects(mask, width, connectivity);
    let keep = components.any(|run| find(&seeds[run.clone()], true) < run.len());
    let mut kept = vec![0; mask.len()];
    components.paint(&mut kept, 255, &keep);
    kept
}

/// Returns `mask` with its holes filled. A hole is background that no path of background pixels with this connectivity
/// connects to the image's border.
#[must_use]
pub fn fill_holes(mask: &[u8], width: usize, connectivity: Connectivity) -> Vec<u8> {
    let background = Components::of_background(mask, width, connectivity);
    let last_row = mask.len() - width;
    let open = background.any(|run| {
        run.start < width || run.start >= last_row || run.start % width == 0 || run.end % width == 0
    });
    let mut filled = vec![255; mask.len()];
    background.paint(&mut filled, 0, &open);
    filled
}
