//! The exact label map: assigns pixels to nuclei.

use super::NucleusLabels;
use super::nucleus::Nucleus;

/// Minimum visible pixels of a nucleus: the smallest speck that people outline. Nuclei with fewer, cut by the border or
/// by other nuclei, are removed from the tile.
const MIN_VISIBLE_PX: usize = 20;

/// Labels the nuclei of a tile, and removes invisible ones from `nuclei`.
///
/// A pixel belongs to the first nucleus that covers its center. If other nuclei cut a nucleus into 4-connected pieces,
/// only the largest piece stays labeled. Afterwards nucleus i has label i + 1 and every label occurs.
pub(super) fn rasterize(nuclei: &mut Vec<Nucleus>, size_px: u32) -> NucleusLabels {
    let side = size_px as usize;
    let mut data = vec![0u16; side * side];
    let mut piece = Piece::default();
    // Labels stay below 2^16: the densest tile of the largest size has about 33,000 nuclei.
    let mut next: u16 = 1;
    nuclei.retain(|nucleus| {
        let Some(window) = Window::around(nucleus, side) else { return false };
        let mut free: Vec<bool> = window
            .pixels()
            .map(|(x, y)| data[y * side + x] == 0 && nucleus.depth_px(x as f32, y as f32) > 0.0)
            .collect();
        piece.take_largest(&mut free, window.width);
        if piece.pixels.len() < MIN_VISIBLE_PX || next == u16::MAX {
            return false;
        }
        for index in &piece.pixels {
            data[(window.top + index / window.width) * side + window.left + index % window.width] = next;
        }
        next += 1;
        true
    });
    NucleusLabels { width: size_px, height: size_px, data }
}

/// The rectangle of pixels that a nucleus can cover.
struct Window {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Window {
    fn around(nucleus: &Nucleus, side: usize) -> Option<Self> {
        let reach = nucleus.reach_px();
        let span = |center: f32| {
            let first = (center - reach).floor().max(0.0) as usize;
            let last = (center + reach).floor();
            let end = if last < 0.0 { 0 } else { (last as usize + 1).min(side) };
            (first < end).then(|| (first, end - first))
        };
        let ((left, width), (top, height)) = (span(nucleus.center[0])?, span(nucleus.center[1])?);
        Some(Self { left, top, width, height })
    }

    fn pixels(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (self.top..self.top + self.height)
            .flat_map(move |y| (self.left..self.left + self.width).map(move |x| (x, y)))
    }
}

/// The largest 4-connected piece of a window, with buffers that are reused between nuclei.
#[derive(Default)]
struct Piece {
    pixels: Vec<usize>,
    current: Vec<usize>,
}

impl Piece {
    /// Finds the largest piece of `free` (rows of `width`), and sets all of `free` to false. Among equals the first in
    /// row order wins.
    fn take_largest(&mut self, free: &mut [bool], width: usize) {
        self.pixels.clear();
        for start in 0..free.len() {
            if !free[start] {
                continue;
            }
            free[start] = false;
            self.current.clear();
            self.current.push(start);
            let mut visited = 0;
            while let Some(&index) = self.current.get(visited) {
                visited += 1;
                let column = index % width;
                let neighbors = [
                    (index >= width).then(|| index - width),
                    (column > 0).then(|| index - 1),
                    (column + 1 < width).then(|| index + 1),
                    (index + width < free.len()).then(|| index + width),
                ];
                for neighbor in neighbors.into_iter().flatten() {
                    if free[neighbor] {
                        free[neighbor] = false;
                        self.current.push(neighbor);
                    }
                }
            }
            if self.current.len() > self.pixels.len() {
                std::mem::swap(&mut self.current, &mut self.pixels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tissue::arithmetic::Draw;
    use crate::tissue::nucleus::tests::plain;

    fn nucleus_at(x: f32, y: f32) -> Nucleus {
        let mut nucleus = Nucleus::draw(&mut Draw::new(1, 1), 400.0, 1.0, 0.0, [1.0, 0.0], plain());
        nucleus.center = [x, y];
        nucleus
    }

    #[test]
    fn a_hidden_nucleus_leaves_no_gap_in_the_ids() {
        let mut nuclei = vec![
            nucleus_at(30.0, 30.0),
            nucleus_at(30.0, 30.0),
            nucleus_at(-50.0, 5.0),
            nucleus_at(50.0, 50.0),
        ];
        let labels = rasterize(&mut nuclei, 64);
        assert_eq!(nuclei.len(), 2);
        assert_eq!(labels.count(), 2);
        assert_eq!(labels.data[30 * 64 + 30], 1);
        assert_eq!(labels.data[50 * 64 + 50], 2);
        assert_eq!(labels.data[0], 0);
    }

    #[test]
    fn only_the_largest_piece_is_kept() {
        let mut piece = Piece::default();
        let mut free = [1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0].map(|v| v == 1);
        piece.take_largest(&mut free, 4);
        piece.pixels.sort_unstable();
        assert_eq!(piece.pixels, [2, 3, 7]);
    }

    #[test]
    fn the_first_nucleus_keeps_shared_pixels() {
        let mut alone = vec![nucleus_at(30.0, 30.0)];
        let mut both = vec![nucleus_at(30.0, 30.0), nucleus_at(42.0, 30.0)];
        let (one, two) = (rasterize(&mut alone, 64), rasterize(&mut both, 64));
        assert!(one.data.iter().zip(&two.data).all(|(a, b)| *a == 0 || b == a));
    }
}
