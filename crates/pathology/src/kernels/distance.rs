//! Exact Euclidean distance to the background.
//!
//! Meijster, Roerdink & Hesselink, "A general algorithm for computing distance transforms in linear time" (2000), on
//! the object's runs only: inside a run, the background beyond its ends is never nearer than the ends themselves.
//! Pixels outside the image are not background.

use super::{Connectivity, components::Components, height};

/// Vertical distance of a pixel whose column has no background.
const NONE: u32 = u32::MAX;

/// Returns the distance of each object pixel of `mask` to the nearest background pixel, in pixels. Background pixels
/// get `outside`. Returns `None` without background.
///
/// Squares are exact integers. Each distance is the `f32` nearest to the root of the square. Beyond 4096 px the square
/// is first rounded to `f32`.
#[must_use]
pub fn distance_to_background(mask: &[u8], width: usize, outside: f32) -> Option<Vec<f32>> {
    if mask.iter().all(|&value| value != 0) {
        return None;
    }
    let vertical = vertical_distance(mask, width);
    let mut distance = vec![outside; mask.len()];
    let mut envelope = Envelope::default();
    // Runs do not depend on the connectivity, and four costs less.
    Components::of_objects(mask, width, Connectivity::Four).for_each_run(|run, _| {
        let row = run.start / width * width;
        let ends = run.start.saturating_sub(1).max(row)..(run.end + 1).min(row + width);
        envelope.build(&vertical[ends.clone()]);
        envelope.write(run.start - ends.start, &mut distance[run]);
    });
    Some(distance)
}

/// Returns the distance of each pixel to the nearest background pixel of its column, or [`NONE`].
fn vertical_distance(mask: &[u8], width: usize) -> Vec<u32> {
    let rows = height(mask.len(), width);
    let mut vertical: Vec<u32> = mask.iter().map(|&value| if value == 0 { 0 } else { NONE }).collect();
    let mut relax = |from: usize, to: usize| {
        let (low, high) = vertical.split_at_mut(from.max(to) * width);
        let (low, high) = (&mut low[from.min(to) * width..][..width], &mut high[..width]);
        let (source, target) = if from < to { (low, high) } else { (high, low) };
        for (here, &there) in target.iter_mut().zip(source.iter()) {
            // Saturates: `NONE` plus 1 must stay the largest distance.
            *here = (*here).min(there.saturating_add(1));
        }
    };
    (1..rows).for_each(|y| relax(y - 1, y));
    (1..rows).rev().for_each(|y| relax(y, y - 1));
    vertical
}

/// Lower envelope of the parabolas `(x − s)² + v(s)²` of one run.
#[derive(Default)]
struct Envelope {
    /// Position, squared height, and the first pixel where this parabola is the lowest.
    parabolas: Vec<(i64, i64, i64)>,
}

impl Envelope {
    fn build(&mut self, vertical: &[u32]) {
        self.parabolas.clear();
        for (s, &v) in vertical.iter().enumerate().filter(|(_, v)| **v != NONE) {
            let (s, v2) = (s as i64, i64::from(v) * i64::from(v));
            let mut from = 0;
            while let Some(&(t, w2, t_from)) = self.parabolas.last() {
                // Last pixel where t's parabola is at or below s's.
                let last = (s * s - t * t + v2 - w2).div_euclid(2 * (s - t));
                if last >= t_from {
                    from = last + 1;
                    break;
                }
                self.parabolas.pop();
            }
            self.parabolas.push((s, v2, from));
        }
    }

    /// Writes the distances of the pixels from `first`. The envelope holds at least one parabola: a run without
    /// background at its ends or in any of its columns exists only in an image without background.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 4096 px, documented above")]
    fn write(&self, first: usize, distance: &mut [f32]) {
        let mut current = 0;
        for (index, value) in distance.iter_mut().enumerate() {
            let x = (first + index) as i64;
            while self.parabolas.get(current + 1).is_some_and(|(_, _, from)| *from <= x) {
                current += 1;
            }
            let (s, v2, _) = self.parabolas[current];
            *value = (((x - s) * (x - s) + v2) as f32).sqrt();
        }
    }
}
