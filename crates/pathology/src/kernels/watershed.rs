//! Marker-controlled watershed of a color image, equal to OpenCV's `cv::watershed` in every value.
//!
//! Meyer's flooding (1992) with 256 first-in-first-out queues: a pixel waits in the queue of its largest channel
//! difference to the neighbor that reached it, and becomes line if two labels touch it. A separate implementation
//! avoids creating the image with everything outside the objects blacked out. The thinning of the lines is the
//! segmentation's own and follows below.

use super::height;

/// A line between two basins.
pub const LINE: i32 = -1;

/// A pixel that no label has reached.
pub const UNLABELED: i32 = 0;

/// A pixel that waits in a queue.
const QUEUED: i32 = -2;

/// End of a queue.
const NIL: u32 = u32::MAX;

/// Floods `labels` (positive: markers, 0: unlabeled) with 4-connectivity on the image `bgr`, which counts as black
/// where `inside` is 0. Afterwards every pixel that a marker can reach holds a label or [`LINE`].
///
/// Shapes: `bgr` has three bytes per pixel, `inside` and `labels` one value. The result is that of an image with an
/// additional margin of 1 px of line.
///
/// # Panics
/// Panics if the lengths do not match, or a label is negative.
pub fn watershed(bgr: &[u8], inside: &[u8], labels: &mut [i32], width: usize) {
    let rows = height(labels.len(), width);
    assert!(bgr.len() == 3 * labels.len() && inside.len() == labels.len(), "all planes are of one size");
    assert!(labels.iter().all(|label| *label >= 0), "markers are positive");
    let image = Image { bgr, inside };
    let mut queues = Queues::new(labels.len());
    for y in 0..rows {
        for x in 0..width {
            let here = y * width + x;
            if labels[here] != UNLABELED {
                continue;
            }
            let marked = neighbors(here, x, width, labels.len()).into_iter().flatten();
            // A pixel beside several markers waits at its smallest difference, as in OpenCV.
            let nearest = marked.filter(|&n| labels[n] > 0).map(|n| image.difference(here, n)).min();
            if let Some(level) = nearest {
                queues.push(level, here);
                labels[here] = QUEUED;
            }
        }
    }
    while let Some(here) = queues.pop() {
        let around = neighbors(here, here % width, width, labels.len());
        let mut label = UNLABELED;
        for next in around.into_iter().flatten() {
            let other = labels[next];
            if other > 0 && other != label {
                label = if label == UNLABELED { other } else { LINE };
            }
        }
        labels[here] = label;
        if label == LINE {
            continue;
        }
        for next in around.into_iter().flatten() {
            if labels[next] == UNLABELED {
                // A pixel is queued once, by the first neighbor that floods, even if a later one differs less.
                queues.push(image.difference(here, next), next);
                labels[next] = QUEUED;
            }
        }
    }
}

/// Returns the left, right, upper and lower neighbor, in the order that OpenCV visits them.
fn neighbors(here: usize, x: usize, width: usize, length: usize) -> [Option<usize>; 4] {
    [
        (x > 0).then(|| here.wrapping_sub(1)),
        (x + 1 < width).then_some(here + 1),
        here.checked_sub(width),
        Some(here + width).filter(|below| *below < length),
    ]
}

struct Image<'a> {
    bgr: &'a [u8],
    inside: &'a [u8],
}

impl Image<'_> {
    fn color(&self, pixel: usize) -> [u8; 3] {
        if self.inside[pixel] == 0 {
            return [0; 3];
        }
        let at = 3 * pixel;
        [self.bgr[at], self.bgr[at + 1], self.bgr[at + 2]]
    }

    /// Returns the largest difference over the channels.
    fn difference(&self, a: usize, b: usize) -> u8 {
        let (a, b) = (self.color(a), self.color(b));
        a[0].abs_diff(b[0]).max(a[1].abs_diff(b[1])).max(a[2].abs_diff(b[2]))
    }
}

/// One linked list of pixels per level. A pixel waits in at most one list and never returns.
struct Queues {
    next: Vec<u32>,
    ends: [(u32, u32); 256],
    /// Lowest level whose queue may hold a pixel.
    lowest: usize,
}

impl Queues {
    fn new(pixels: usize) -> Self {
        Self { next: vec![0; pixels], ends: [(NIL, NIL); 256], lowest: 256 }
    }

    fn push(&mut self, level: u8, pixel: usize) {
        let (first, last) = &mut self.ends[usize::from(level)];
        let number = pixel as u32;
        if *first == NIL {
            *first = number;
        } else {
            self.next[*last as usize] = number;
        }
        *last = number;
        self.next[pixel] = NIL;
        // A push below the present level moves the flood back, as in OpenCV.
        self.lowest = self.lowest.min(usize::from(level));
    }

    fn pop(&mut self) -> Option<usize> {
        let ahead = self.ends.get(self.lowest..)?.iter().position(|(first, _)| *first != NIL);
        self.lowest += ahead?;
        let (first, _) = &mut self.ends[self.lowest];
        let pixel = *first as usize;
        *first = self.next[pixel];
        Some(pixel)
    }
}

/// Closes the lines of a flooded label plane against diagonal leaks, and returns the mask of `inside` without lines. A
/// pixel becomes line if the pixel above is line and, on its left or right, the pixel diagonally above is not line but
/// the pixel beside is. The plane as passed decides all of this. No pixel outside the image is line.
#[must_use]
pub fn keep_off_lines(labels: &[i32], inside: &[u8], width: usize) -> Vec<u8> {
    let line = |pixel: usize| labels[pixel] < 0;
    let closes = |here: usize| {
        let x = here % width;
        let Some(above) = here.checked_sub(width).filter(|above| line(*above)) else { return false };
        (x > 0 && !line(above - 1) && line(here - 1)) || (x + 1 < width && !line(above + 1) && line(here + 1))
    };
    let keep = |(here, &value): (usize, &u8)| value != 0 && !line(here) && !closes(here);
    inside.iter().enumerate().map(|pixel| if keep(pixel) { 255 } else { 0 }).collect()
}
