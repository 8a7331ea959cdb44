//! Objects made of pixels, from label maps and masks, as sorted runs.
//!
//! Construction makes one pass over the image. Later operations use runs only. Areas and overlaps are exact.

use super::{BoundingBox, ObjectSet};
use crate::kernels::Connectivity;
use crate::kernels::components::Components;
use pleach_regions::{Centroid, PixelRectangle};
use std::collections::HashMap;
use std::ops::Range;

/// Connectivity that joins the pixels of a mask to objects: that of `pleach segment`'s count.
pub const OBJECT_CONNECTIVITY: Connectivity = Connectivity::Eight;

/// The objects of one image, numbered in raster order of their first pixels.
#[derive(Clone, Debug)]
pub struct PixelObjects {
    width: usize,
    /// Runs of all objects, object after object, those of one object in raster order.
    runs: Vec<Run>,
    /// Index in `runs` of each object's first run, followed by the length of `runs`.
    first_run: Vec<usize>,
    area_px: Vec<u64>,
}

/// A horizontal stretch: pixels `start..end` of the plane.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: u32,
    end: u32,
}

impl PixelObjects {
    /// Finds the connected components ([`OBJECT_CONNECTIVITY`]) of the nonzero pixels of a mask with `width` pixels per
    /// row.
    #[must_use]
    pub fn of_mask(mask: &[u8], width: usize) -> Self {
        let components = Components::of_objects(mask, width, OBJECT_CONNECTIVITY);
        let mut found = Vec::new();
        components.for_each_run(|pixels, component| found.push((run(pixels), component)));
        Self::of_runs(width, components.count(), &found)
    }

    /// Creates one object for each nonzero number of a label map with `width` pixels per row, whether connected or not.
    #[must_use]
    pub fn of_labels(labels: &[u32], width: usize) -> Self {
        let mut found = Vec::new();
        let mut numbers = Numbers::new(labels.len());
        for (y, row) in labels.chunks_exact(width).enumerate() {
            let mut x = find_label(row);
            while let Some(label) = row.get(x) {
                let end = x + row[x..].iter().take_while(|other| *other == label).count();
                found.push((run(y * width + x..y * width + end), numbers.of(*label)));
                x = end + find_label(&row[end..]);
            }
        }
        Self::of_runs(width, numbers.count as usize, &found)
    }

    /// Groups runs in raster order by object. A counting sort keeps the raster order within each object.
    fn of_runs(width: usize, count: usize, found: &[(Run, u32)]) -> Self {
        let mut first_run = vec![0; count + 1];
        let mut area_px = vec![0; count];
        for (run, object) in found {
            first_run[*object as usize + 1] += 1;
            area_px[*object as usize] += u64::from(run.end - run.start);
        }
        for object in 0..count {
            first_run[object + 1] += first_run[object];
        }
        let mut next = first_run.clone();
        let mut runs = vec![Run::default(); found.len()];
        for (run, object) in found {
            let place = &mut next[*object as usize];
            runs[*place] = *run;
            *place += 1;
        }
        Self { width, runs, first_run, area_px }
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn count(&self) -> usize {
        self.area_px.len()
    }

    /// Returns the pixels of an object as horizontal stretches, in raster order.
    pub(crate) fn pixels_of(&self, object: usize) -> impl Iterator<Item = Range<usize>> {
        self.runs(object).iter().map(|run| run.start as usize..run.end as usize)
    }

    /// Returns the area of each object, pixels.
    #[must_use]
    pub fn areas_px(&self) -> &[u64] {
        &self.area_px
    }

    /// Returns for each object whether its centroid is in `part` of the image.
    #[must_use]
    pub fn within(&self, part: PixelRectangle) -> Vec<bool> {
        let holds = |start: u32, length: u32, at: i64| {
            (i64::from(start)..i64::from(start) + i64::from(length)).contains(&at)
        };
        self.centroids()
            .map(|centroid| {
                centroid.is_some_and(|[x, y]| {
                    holds(part.x_px, part.width_px, x) && holds(part.y_px, part.height_px, y)
                })
            })
            .collect()
    }

    /// Returns for each object whether its centroid is a nonzero pixel of a mask of the image.
    #[must_use]
    pub fn counted(&self, mask: &[u8]) -> Vec<bool> {
        let is_counted = |[x, y]: [i64; 2]| {
            let place = usize::try_from(y).ok()? * self.width + usize::try_from(x).ok()?;
            mask.get(place).map(|value| *value != 0)
        };
        self.centroids().map(|centroid| centroid.and_then(is_counted) == Some(true)).collect()
    }

    /// Returns the pixel of each object's centroid.
    fn centroids(&self) -> impl Iterator<Item = Option<[i64; 2]>> {
        let width = self.width as u32;
        (0..self.count()).map(move |object| {
            let mut centroid = Centroid::default();
            for run in self.runs(object) {
                centroid.add_run([run.start % width, run.start / width].map(i64::from), run.end - run.start);
            }
            centroid.pixel()
        })
    }

    /// Returns the pixels of an object as horizontal runs in raster order: the x and y of the first pixel, and the length.
    pub fn pixels(&self, object: usize) -> impl ExactSizeIterator<Item = ([u32; 2], u32)> + '_ {
        let width = self.width as u32;
        self.runs(object).iter().map(move |run| ([run.start % width, run.start / width], run.end - run.start))
    }

    fn runs(&self, object: usize) -> &[Run] {
        &self.runs[self.first_run[object]..self.first_run[object + 1]]
    }
}

/// Numbers of labels in the order of their first occurrence.
struct Numbers {
    /// Number by label, plus 1, for labels below `dense_end`: nearly all label maps count from 1.
    dense: Vec<u32>,
    dense_end: usize,
    sparse: HashMap<u32, u32>,
    count: u32,
}

impl Numbers {
    fn new(dense_end: usize) -> Self {
        Self { dense: Vec::new(), dense_end, sparse: HashMap::new(), count: 0 }
    }

    fn of(&mut self, label: u32) -> u32 {
        let index = label as usize;
        let known = if index < self.dense_end {
            if index >= self.dense.len() {
                self.dense.resize(index + 1, 0);
            }
            &mut self.dense[index]
        } else {
            self.sparse.entry(label).or_default()
        };
        if *known == 0 {
            self.count += 1;
            *known = self.count;
        }
        *known - 1
    }
}

/// Returns the position of the first label, or the length. Compares 8 pixels at a time.
fn find_label(row: &[u32]) -> usize {
    let (chunks, rest) = row.as_chunks::<8>();
    let empty = chunks.iter().take_while(|chunk| chunk.iter().fold(0, |all, label| all | label) == 0).count();
    let tail = chunks.get(empty).map_or(rest, |chunk| &chunk[..]);
    let skipped = tail.iter().take_while(|label| **label == 0).count();
    empty * 8 + skipped
}

/// Converts a range of pixels. 32 bits suffice: the reader allows fewer than 2^31 pixels.
fn run(pixels: Range<usize>) -> Run {
    Run { start: pixels.start as u32, end: pixels.end as u32 }
}

impl ObjectSet for PixelObjects {
    /// Boxes reach from pixel center to pixel center, in pixels, so boxes side by side have no point in common.
    fn bounds(&self) -> Vec<BoundingBox> {
        let width = self.width as u32;
        let bounds = |object: usize| {
            let mut bounds = BoundingBox { low: [f64::INFINITY; 2], high: [f64::NEG_INFINITY; 2] };
            for run in self.runs(object) {
                let [x, y] = [run.start % width, run.start / width];
                let (left, right, y) = (f64::from(x), f64::from(x + (run.end - run.start) - 1), f64::from(y));
                bounds.low = [bounds.low[0].min(left), bounds.low[1].min(y)];
                bounds.high = [bounds.high[0].max(right), bounds.high[1].max(y)];
            }
            bounds
        };
        (0..self.count()).map(bounds).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "an image has far fewer than 2^53 pixels")]
    fn area(&self, object: usize) -> f64 {
        self.area_px[object] as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "an image has far fewer than 2^53 pixels")]
    fn shared_area(&self, object: usize, other: &Self, of_other: usize) -> f64 {
        let (mut one, mut other) = (self.runs(object), other.runs(of_other));
        // Skips the runs before the first run of the other object at once: one of the two may extend over the whole
        // image.
        if let (Some(a), Some(b)) = (one.first(), other.first()) {
            let (a, b) = (*a, *b);
            one = &one[one.partition_point(|run| run.end <= b.start)..];
            other = &other[other.partition_point(|run| run.end <= a.start)..];
        }
        let mut shared = 0_u64;
        while let ([a, rest_of_one @ ..], [b, rest_of_other @ ..]) = (one, other) {
            shared += u64::from(a.end.min(b.end).saturating_sub(a.start.max(b.start)));
            // The run that ends first cannot meet a later run of the other object.
            if a.end <= b.end {
                one = rest_of_one;
            } else {
                other = rest_of_other;
            }
        }
        shared as f64
    }
}
