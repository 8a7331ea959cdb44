//! Bounding boxes and centroids of the objects of a region.

use super::{Coordinates, QueryError, padded};
use crate::data::labels::LabelMap;
use crate::data::objects::Outline;
use crate::data::polygons::Position;
use crate::{DataRegion, Raster};
use std::collections::BTreeMap;

/// One object of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) low: Coordinates,
    pub(super) high: Coordinates,
    pub(super) centroid: Coordinates,
}

/// Returns the axes of a region and its objects by ascending id.
pub(super) fn entries(region: &DataRegion) -> Result<(usize, Vec<Entry>), QueryError> {
    Ok(match region {
        DataRegion::Labels(map) => (2, of_labels(map)),
        DataRegion::Mask(mask) => (2, of_mask(mask)),
        DataRegion::Points(points) => {
            let at = |(id, point): (u64, &[f64])| {
                let at = padded(point);
                Entry { id, low: at, high: at, centroid: at }
            };
            (usize::from(points.axes()), (0..).zip(points.iter()).map(at).collect())
        }
        DataRegion::Polygons(polygons) => {
            let outlines = (0..).zip(polygons.iter());
            (2, outlines.filter_map(|(id, rings)| of_rings(id, &rings.collect::<Vec<_>>())).collect())
        }
        DataRegion::Objects(objects) => {
            let outlines = (0..).zip(objects.iter());
            let entry = |(id, object): (u64, crate::AnnotatedObject<'_>)| match object.outline {
                Outline::Polygon(rings) => of_rings(id, &rings.collect::<Vec<_>>()),
                Outline::Box { low, high } => {
                    let centroid = [low[0].midpoint(high[0]), low[1].midpoint(high[1])];
                    Some(Entry { id, low: padded(&low), high: padded(&high), centroid: padded(&centroid) })
                }
            };
            (2, outlines.filter_map(entry).collect())
        }
        other => return Err(QueryError::Element { found: other.element() }),
    })
}

/// Pixels of a label: first and last column and row, sums of the coordinates, number.
struct LabelPixels {
    low: [u32; 2],
    high: [u32; 2],
    sums: [u64; 2],
    pixels: u64,
}

impl LabelPixels {
    const NONE: Self = Self { low: [u32::MAX; 2], high: [0; 2], sums: [0; 2], pixels: 0 };

    /// Adds the pixels of a row from `first` to `last`.
    fn add(&mut self, y: u32, first: u32, last: u32) {
        self.low = [self.low[0].min(first), self.low[1].min(y)];
        self.high = [self.high[0].max(last), self.high[1].max(y)];
        let pixels = u64::from(last - first) + 1;
        self.sums[0] += (u64::from(first) + u64::from(last)) * pixels / 2;
        self.sums[1] += u64::from(y) * pixels;
        self.pixels += pixels;
    }

    fn entry(self, id: u64) -> Entry {
        let at = |position: [u32; 2], add: f64| padded(&position.map(|pixel| f64::from(pixel) + add));
        // The center of a pixel is half a pixel beyond its coordinate.
        let centroid = self.sums.map(|sum| sum as f64 / self.pixels as f64 + 0.5);
        Entry { id, low: at(self.low, 0.0), high: at(self.high, 1.0), centroid: padded(&centroid) }
    }
}

/// Returns the runs of equal pixels of a row that are no background: the value, the first and the last column.
fn runs<T: Copy + PartialEq + Default>(row: &[T]) -> impl Iterator<Item = (T, u32, u32)> {
    let mut end = 0u32;
    let runs = row.chunk_by(|a, b| a == b).map(move |run| {
        let first = end;
        end += run.len() as u32;
        (run[0], first, end - 1)
    });
    runs.filter(|(value, ..)| *value != T::default())
}

fn of_labels(map: &LabelMap) -> Vec<Entry> {
    let mut labels: BTreeMap<u32, LabelPixels> = BTreeMap::new();
    for (y, row) in (0u32..).zip(map.labels().chunks_exact(map.width_px() as usize)) {
        // One look-up for each run of equal pixels.
        for (label, first, last) in runs(row) {
            labels.entry(label).or_insert(LabelPixels::NONE).add(y, first, last);
        }
    }
    labels.into_iter().map(|(label, found)| found.entry(u64::from(label))).collect()
}

/// Returns the 8-connected objects of a mask, by union-find over runs of pixels. Ids are from 1, in the order of first pixels.
fn of_mask(mask: &Raster) -> Vec<Entry> {
    /// Returns the first run of a run's object, and shortens the way there.
    fn root(parents: &mut [u32], mut run: u32) -> u32 {
        while parents[run as usize] != run {
            parents[run as usize] = parents[parents[run as usize] as usize];
            run = parents[run as usize];
        }
        run
    }
    let mut all: Vec<(u32, u32, u32)> = Vec::new();
    let mut parents: Vec<u32> = Vec::new();
    let mut above = 0..0;
    for (y, row) in (0u32..).zip(mask.data().chunks_exact(mask.width_px() as usize)) {
        let begin = all.len();
        let mut near = above.clone();
        // Every value but 0 is the object, so that a mask may have 1 or 255.
        let row: Vec<bool> = row.iter().map(|pixel| *pixel != 0).collect();
        for (_, first, last) in runs(&row) {
            let run = all.len() as u32;
            all.push((y, first, last));
            parents.push(run);
            // Runs of the row above that end before this one touch none of the later runs either.
            while near.start < near.end && all[near.start].2 + 1 < first {
                near.start += 1;
            }
            for other in near.clone().take_while(|other| all[*other].1 <= last + 1) {
                let (a, b) = (root(&mut parents, run), root(&mut parents, other as u32));
                parents[a.max(b) as usize] = a.min(b);
            }
        }
        above = begin..all.len();
    }
    let mut objects: BTreeMap<u32, LabelPixels> = BTreeMap::new();
    for (run, (y, first, last)) in (0u32..).zip(all) {
        // The first run of an object is its root, so the order of roots is that of first pixels.
        let of = root(&mut parents, run);
        objects.entry(of).or_insert(LabelPixels::NONE).add(y, first, last);
    }
    (1..).zip(objects.into_values()).map(|(id, found)| found.entry(id)).collect()
}

/// Returns the object of an outline. `None` without positions.
fn of_rings(id: u64, rings: &[&[Position]]) -> Option<Entry> {
    let all = || rings.iter().copied().flatten();
    let first = *all().next()?;
    let (mut low, mut high) = (first, first);
    for position in all() {
        low = [low[0].min(position[0]), low[1].min(position[1])];
        high = [high[0].max(position[0]), high[1].max(position[1])];
    }
    let centroid = centroid(rings, first).unwrap_or_else(|| {
        // An outline without an area: the mean of its positions.
        let count = all().count() as f64;
        let mean = |axis: usize| all().map(|position| position[axis] / count).sum::<f64>();
        [mean(0), mean(1)]
    });
    // Rounding can move the centroid of a sliver out of its box.
    let centroid = [centroid[0].clamp(low[0], high[0]), centroid[1].clamp(low[1], high[1])];
    Some(Entry { id, low: padded(&low), high: padded(&high), centroid: padded(&centroid) })
}

/// Returns the centroid of the area within rings. A ring in an odd number of the other rings is a hole. Coordinates relative to
/// `origin` keep the precision of small outlines in large images. `None` for an area of 0.
fn centroid(rings: &[&[Position]], origin: Position) -> Option<Position> {
    let (mut area, mut moments) = (0.0, [0.0; 2]);
    for (number, ring) in rings.iter().enumerate() {
        let others = rings.iter().enumerate().filter(|(other, _)| *other != number);
        let around = others.filter(|(_, other)| surrounds(other, ring)).count();
        let (of, [x, y]) = ring_moments(ring, origin);
        // The direction of a ring has no meaning, so its area counts as positive.
        let sign = of.signum() * if around % 2 == 1 { -1.0 } else { 1.0 };
        area += sign * of;
        moments = [moments[0] + sign * x, moments[1] + sign * y];
    }
    let centroid = [origin[0] + moments[0] / area, origin[1] + moments[1] / area];
    (area > 0.0 && centroid.iter().all(|at| at.is_finite())).then_some(centroid)
}

/// Returns the signed area of a ring and its first moments, by the shoelace formula.
fn ring_moments(ring: &[Position], origin: Position) -> (f64, [f64; 2]) {
    let (mut area, mut moments) = (0.0, [0.0; 2]);
    for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let [ax, ay] = [a[0] - origin[0], a[1] - origin[1]];
        let [bx, by] = [b[0] - origin[0], b[1] - origin[1]];
        let cross = ax * by - bx * ay;
        area += cross / 2.0;
        moments[0] += (ax + bx) * cross / 6.0;
        moments[1] += (ay + by) * cross / 6.0;
    }
    (area, moments)
}

/// Returns whether a ring is around another one, which may touch it: most of the edges' centers are inside.
fn surrounds(outer: &[Position], inner: &[Position]) -> bool {
    let edges = inner.iter().zip(inner.iter().cycle().skip(1));
    let inside = edges.filter(|(a, b)| holds(outer, [a[0].midpoint(b[0]), a[1].midpoint(b[1])])).count();
    2 * inside > inner.len()
}

/// Returns whether a ring encloses a point.
fn holds(ring: &[Position], [x, y]: Position) -> bool {
    let crossed = ring
        .iter()
        .zip(ring.iter().cycle().skip(1))
        .filter(|(a, b)| (a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) * (b[0] - a[0]) / (b[1] - a[1]));
    crossed.count() % 2 == 1
}
