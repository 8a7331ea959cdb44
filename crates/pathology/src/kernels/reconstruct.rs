//! Morphological reconstruction by dilation of gray planes.
//!
//! Vincent's hybrid algorithm ("Morphological grayscale reconstruction in image analysis", 1993, section 4.4): a raster
//! scan, an anti-raster scan, then a queue for the remaining pixels. The result is the one fixed point, so it depends
//! neither on the order within the scans nor on that of the queue.

use super::{Connectivity, height};
use std::collections::VecDeque;

/// A totally ordered pixel value: bytes, and floats without NaN.
pub trait PixelLevel: Copy + PartialOrd {
    /// The largest value of the type.
    const TOP: Self;
}

impl PixelLevel for u8 {
    const TOP: Self = u8::MAX;
}

impl PixelLevel for f32 {
    const TOP: Self = f32::INFINITY;
}

fn low<T: PixelLevel>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

fn high<T: PixelLevel>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// Replaces `marker` by its reconstruction under `mask`: the largest plane that is nowhere above `mask` and spreads
/// from `marker` through neighbors. Values of `marker` above `mask` are lowered to `mask` first. No value spreads from
/// outside the image.
///
/// # Panics
/// Panics if the planes differ in length or are not rows of `width` pixels.
pub fn reconstruct<T: PixelLevel>(marker: &mut [T], mask: &[T], width: usize, connectivity: Connectivity) {
    assert_eq!(marker.len(), mask.len(), "marker and mask are of one size");
    let rows = height(marker.len(), width);
    for (value, &limit) in marker.iter_mut().zip(mask) {
        *value = low(*value, limit);
    }
    for y in 0..rows {
        let (above, here) = marker.split_at_mut(y * width);
        let (row, limit) = (&mut here[..width], &mask[y * width..][..width]);
        if y > 0 {
            spread_vertically(&above[(y - 1) * width..], row, limit, connectivity);
        }
        spread_right(row, limit);
    }
    let mut queue = VecDeque::new();
    let mut scratch = vec![T::TOP; width];
    for y in (0..rows).rev() {
        let (here, below) = marker.split_at_mut((y + 1) * width);
        let (row, limit) = (&mut here[y * width..], &mask[y * width..][..width]);
        if y + 1 < rows {
            spread_vertically(&below[..width], row, limit, connectivity);
        }
        spread_left(row, limit);
        if y + 1 < rows {
            let limit_below = &mask[(y + 1) * width..][..width];
            enqueue(row, limit, Some((&below[..width], limit_below)), connectivity, &mut scratch, |x| {
                queue.push_back((y as u32, x as u32));
            });
        } else {
            enqueue(row, limit, None, connectivity, &mut scratch, |x| queue.push_back((y as u32, x as u32)));
        }
    }
    drain(marker, mask, width, connectivity, queue);
}

/// Spreads from the row above or below into `row`.
fn spread_vertically<T: PixelLevel>(beside: &[T], row: &mut [T], limit: &[T], connectivity: Connectivity) {
    match connectivity {
        Connectivity::Four => {
            for ((value, &limit), &from) in row.iter_mut().zip(limit).zip(beside) {
                *value = low(limit, high(*value, from));
            }
        }
        Connectivity::Eight => {
            let last = row.len() - 1;
            let mut edge = |x: usize| {
                let from =
                    beside[x.saturating_sub(1)..=(x + 1).min(last)].iter().copied().fold(beside[x], high);
                row[x] = low(limit[x], high(row[x], from));
            };
            edge(0);
            edge(last);
            if last >= 2 {
                let inner = row[1..last].iter_mut().zip(&limit[1..last]);
                let from = beside.iter().zip(&beside[1..]).zip(&beside[2..]);
                for ((value, &limit), ((&a, &b), &c)) in inner.zip(from) {
                    *value = low(limit, high(*value, high(b, high(a, c))));
                }
            }
        }
    }
}

/// Pixels tested together: if all have reached their limit, no value can spread into them.
const BLOCK: usize = 16;

fn spread_right<T: PixelLevel>(row: &mut [T], limit: &[T]) {
    let mut carry = row[0];
    for (values, limits) in row.chunks_mut(BLOCK).zip(limit.chunks(BLOCK)) {
        if at_limit(values, limits) {
            carry = values[values.len() - 1];
            continue;
        }
        for (value, &limit) in values.iter_mut().zip(limits) {
            carry = low(limit, high(*value, carry));
            *value = carry;
        }
    }
}

fn spread_left<T: PixelLevel>(row: &mut [T], limit: &[T]) {
    let mut carry = row[row.len() - 1];
    for (values, limits) in row.rchunks_mut(BLOCK).zip(limit.rchunks(BLOCK)) {
        if at_limit(values, limits) {
            carry = values[0];
            continue;
        }
        for (value, &limit) in values.iter_mut().zip(limits).rev() {
            carry = low(limit, high(*value, carry));
            *value = carry;
        }
    }
}

fn at_limit<T: PixelLevel>(values: &[T], limits: &[T]) -> bool {
    // `&` instead of `&&` has no branch per pixel, so the comparison vectorizes.
    values.iter().zip(limits).fold(true, |all, (value, limit)| all & (value == limit))
}

/// Calls `push(x)` for pixels of `row` that can still raise their right neighbor or a neighbor in the row below.
fn enqueue<T: PixelLevel>(
    row: &[T],
    limit: &[T],
    below: Option<(&[T], &[T])>,
    connectivity: Connectivity,
    scratch: &mut [T],
    mut push: impl FnMut(usize),
) {
    // Lowest value among the later neighbors that are below their limit.
    let open = |value: T, limit: T| if value < limit { value } else { T::TOP };
    let last = row.len() - 1;
    for (x, lowest) in scratch[..last].iter_mut().enumerate() {
        *lowest = open(row[x + 1], limit[x + 1]);
    }
    scratch[last] = T::TOP;
    if let Some((values, limits)) = below {
        for ((lowest, &value), &limit) in scratch.iter_mut().zip(values).zip(limits) {
            *lowest = low(*lowest, open(value, limit));
        }
        if connectivity == Connectivity::Eight {
            for ((lowest, &value), &limit) in scratch[1..].iter_mut().zip(values).zip(limits) {
                *lowest = low(*lowest, open(value, limit));
            }
            for ((lowest, &value), &limit) in scratch.iter_mut().zip(&values[1..]).zip(&limits[1..]) {
                *lowest = low(*lowest, open(value, limit));
            }
        }
    }
    for (index, (lowest, values)) in scratch.chunks(BLOCK).zip(row.chunks(BLOCK)).enumerate() {
        // Most blocks have no hit: one vectorized test skips the search for pixels.
        let any = lowest.iter().zip(values).fold(false, |any, (lowest, value)| any | (lowest < value));
        if any {
            let hits = lowest.iter().zip(values).enumerate().filter(|(_, (lowest, value))| lowest < value);
            hits.for_each(|(x, _)| push(index * BLOCK + x));
        }
    }
}

/// Spreads from the queued pixels (row, column) until no value rises.
fn drain<T: PixelLevel>(
    marker: &mut [T],
    mask: &[T],
    width: usize,
    connectivity: Connectivity,
    mut queue: VecDeque<(u32, u32)>,
) {
    const STEPS: [(i32, i32); 8] = [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)];
    let steps = if connectivity == Connectivity::Four { &STEPS[..4] } else { &STEPS[..] };
    let rows = marker.len() / width;
    while let Some((y, x)) = queue.pop_front() {
        let value = marker[y as usize * width + x as usize];
        for &(dy, dx) in steps {
            // A step below 0 wraps around to a number beyond the last row or column.
            let (ny, nx) = (y.wrapping_add_signed(dy), x.wrapping_add_signed(dx));
            if ny as usize >= rows || nx as usize >= width {
                continue;
            }
            let next = ny as usize * width + nx as usize;
            let limit = mask[next];
            // A pixel is queued only when it rises, so the loop ends: values are bounded by the mask.
            if marker[next] < value && marker[next] < limit {
                marker[next] = low(value, limit);
                queue.push_back((ny, nx));
            }
        }
    }
}
