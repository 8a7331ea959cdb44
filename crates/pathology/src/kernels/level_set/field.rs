//! The sparse field: levels and layers of the pixels around a contour.
//!
//! Planes have a margin of one cell, whose layer is no layer, so that neighbors need no bounds.

use super::window::WindowSums;
use crate::kernels::height;

/// Layer of the cells around the image.
const MARGIN: i8 = i8::MAX;

/// Layer of pixels beyond ±2, with its sign.
const FAR: i8 = 3;

/// Added to layer ±2, with its sign, for pixels that became a member in this iteration from far.
const CLAIMED: i8 = 10;

/// Keeps the curvature's denominator from being 0.
const EPSILON: f64 = 1e-10;

/// Levels and layers of a contour.
pub(super) struct Field {
    width: usize,
    /// Width with both margins.
    stride: usize,
    /// Level of each cell: at most 0 inside.
    level: Vec<f64>,
    layer: Vec<i8>,
    /// Cells of the layers −2 to 2. The order within a list has no effect.
    members: [Vec<u32>; 5],
}

/// Cells that change their layer in an iteration, by new layer −3 to 3.
#[derive(Default)]
pub(super) struct Moves([Vec<u32>; 7]);

impl Moves {
    fn push(&mut self, layer: i8, cell: u32) {
        self.0[slot(layer, FAR)].push(cell);
    }
}

/// Returns the place of a layer in a list that starts at −`first`.
fn slot(layer: i8, first: i8) -> usize {
    usize::from((layer + first).unsigned_abs())
}

impl Field {
    /// Creates the field of a mask. Layer 0 is the object pixels beside a background pixel, and levels are equal to
    /// layers.
    pub(super) fn new(mask: &[u8], width: usize) -> Self {
        let rows = height(mask.len(), width);
        let stride = width + 2;
        let mut layer = vec![MARGIN; stride * (rows + 2)];
        for (y, row) in mask.chunks_exact(width).enumerate() {
            let cells = &mut layer[(y + 1) * stride + 1..][..width];
            cells.iter_mut().zip(row).for_each(|(cell, value)| *cell = if *value != 0 { -FAR } else { FAR });
        }
        let mut field = Self { width, stride, level: Vec::new(), layer, members: Default::default() };
        let contour: Vec<u32> = field
            .cells(mask.len())
            .filter(|&cell| {
                field.layer[cell as usize] == -FAR
                    && field.around(cell).iter().any(|&next| field.layer[next] == FAR)
            })
            .collect();
        field.join(0, contour);
        for layer in [-1, 1, -2, 2_i8] {
            let mut joining = Vec::new();
            for at in 0..field.members[slot(layer - layer.signum(), 2)].len() {
                let cell = field.members[slot(layer - layer.signum(), 2)][at];
                for next in field.around(cell) {
                    // A pixel joins once: its layer is set at the first visit.
                    if field.layer[next] == FAR * layer.signum() {
                        field.layer[next] = layer;
                        joining.push(next as u32);
                    }
                }
            }
            field.join(layer, joining);
        }
        field.level = field.layer.iter().map(|layer| f64::from(*layer)).collect();
        field
    }

    /// Returns all cells of the image, in raster order.
    fn cells(&self, pixels: usize) -> impl Iterator<Item = u32> + use<> {
        let (width, stride) = (self.width, self.stride);
        (0..pixels).map(move |pixel| ((pixel / width + 1) * stride + pixel % width + 1) as u32)
    }

    fn join(&mut self, layer: i8, cells: Vec<u32>) {
        cells.iter().for_each(|&cell| self.layer[cell as usize] = layer);
        self.members[slot(layer, 2)] = cells;
    }

    /// Returns the 4 neighbors of a cell.
    fn around(&self, cell: u32) -> [usize; 4] {
        let cell = cell as usize;
        [cell - 1, cell + 1, cell - self.stride, cell + self.stride]
    }

    /// Returns the cells of layer 0.
    pub(super) fn contour(&self) -> &[u32] {
        &self.members[slot(0, 2)]
    }

    /// Returns column and row of a cell.
    pub(super) fn position(&self, cell: u32) -> (usize, usize) {
        let cell = cell as usize;
        (cell % self.stride - 1, cell / self.stride - 1)
    }

    /// Returns the curvature of the level lines times the gradient, by central differences:
    /// (φxx·φy² + φyy·φx² − 2φx·φy·φxy) / (φx² + φy²). 0 at the border of the image.
    pub(super) fn curvature(&self, cell: u32) -> f64 {
        if self.around(cell).iter().any(|&next| self.layer[next] == MARGIN) {
            return 0.0;
        }
        let cell = cell as usize;
        let (up, down) = (cell - self.stride, cell + self.stride);
        let level = &self.level;
        let x = (level[cell + 1] - level[cell - 1]) / 2.0;
        let y = (level[down] - level[up]) / 2.0;
        let xx = level[cell + 1] - 2.0 * level[cell] + level[cell - 1];
        let yy = level[down] - 2.0 * level[cell] + level[up];
        let xy = (level[down + 1] - level[down - 1] - level[up + 1] + level[up - 1]) / 4.0;
        (xx * y * y + yy * x * x - 2.0 * x * y * xy) / (x * x + y * y + EPSILON)
    }

    /// Adds the forces to the levels of the contour, and moves pixels between the layers.
    pub(super) fn advance(&mut self, forces: &[f64], sums: &mut WindowSums<'_>, moves: &mut Moves) {
        self.advance_contour(forces, sums, moves);
        // Layers are visited from the contour outward: each reads the new levels of the one before. Their labels change at
        // the end, so all of them read the layers of the iteration before.
        for layer in [-1, 1, -2, 2] {
            self.follow(layer, moves);
        }
        self.apply(moves);
    }

    fn advance_contour(&mut self, forces: &[f64], sums: &mut WindowSums<'_>, moves: &mut Moves) {
        let mut contour = std::mem::take(&mut self.members[slot(0, 2)]);
        let mut forces = forces.iter();
        contour.retain(|&cell| {
            let level = &mut self.level[cell as usize];
            let was_inside = *level <= 0.0;
            *level += forces.next().copied().unwrap_or(0.0);
            let layer = if *level > 0.5 {
                1
            } else if *level < -0.5 {
                -1
            } else {
                0
            };
            let is_inside = *level <= 0.0;
            if is_inside != was_inside {
                // Only the contour changes sides: level −1 is 1 below a level of at most 0.99.
                let (x, y) = self.position(cell);
                sums.set(x, y, is_inside);
            }
            if layer != 0 {
                moves.push(layer, cell);
            }
            layer == 0
        });
        self.members[slot(0, 2)] = contour;
    }

    /// Sets the levels of a layer to 1 beyond those of the next layer toward the contour. The borders −0.5 and 0.5 belong to
    /// layer 0, and −1.5 and 1.5 to layers −1 and 1.
    fn follow(&mut self, layer: i8, moves: &mut Moves) {
        let side = layer.signum();
        let (sign, nearer) = (f64::from(side), layer - side);
        let depth = f64::from(layer.abs());
        let mut members = std::mem::take(&mut self.members[slot(layer, 2)]);
        members.retain(|&cell| {
            // On the positive side the least level, on the negative side the greatest: the least distance to the contour.
            let distance = self
                .around(cell)
                .into_iter()
                .filter(|&next| self.layer[next] == nearer)
                .map(|next| sign * self.level[next])
                .reduce(f64::min);
            let moved = match distance {
                None => layer + side,
                Some(distance) => {
                    let distance = distance + 1.0;
                    self.level[cell as usize] = sign * distance;
                    if distance > depth + 0.5 {
                        layer + side
                    } else if distance <= depth - 0.5 {
                        nearer
                    } else {
                        layer
                    }
                }
            };
            if moved != layer {
                moves.push(moved, cell);
            }
            moved == layer
        });
        self.members[slot(layer, 2)] = members;
    }

    /// Gives moved pixels their new layers, and adds the far neighbors of new members of layers ±1 to layers ±2.
    fn apply(&mut self, moves: &mut Moves) {
        for layer in -FAR..=FAR {
            for &cell in &moves.0[slot(layer, FAR)] {
                self.layer[cell as usize] = layer;
                if layer.abs() == FAR {
                    self.level[cell as usize] = f64::from(layer);
                }
            }
        }
        for side in [-1, 1_i8] {
            let sign = f64::from(side);
            let mut claimed = Vec::new();
            for &cell in &moves.0[slot(side, FAR)] {
                let distance = sign * self.level[cell as usize] + 1.0;
                for next in self.around(cell) {
                    if self.layer[next] == FAR * side {
                        self.layer[next] = (2 + CLAIMED) * side;
                        self.level[next] = sign * distance;
                        claimed.push(next as u32);
                    } else if self.layer[next] == (2 + CLAIMED) * side {
                        // Of several new members the nearest to the contour decides, whatever their order.
                        self.level[next] = sign * distance.min(sign * self.level[next]);
                    }
                }
            }
            claimed.iter().for_each(|&cell| self.layer[cell as usize] = 2 * side);
            self.members[slot(2 * side, 2)].append(&mut claimed);
        }
        for layer in -2..=2 {
            self.members[slot(layer, 2)].append(&mut moves.0[slot(layer, FAR)]);
        }
        [-FAR, FAR].iter().for_each(|&layer| moves.0[slot(layer, FAR)].clear());
    }

    /// Returns the mask of the levels up to 1.
    pub(super) fn mask(&self) -> Vec<u8> {
        let rows = self.level.len() / self.stride - 2;
        let mut mask = vec![0; rows * self.width];
        let levels = self.level.chunks_exact(self.stride).skip(1);
        for (row, levels) in mask.chunks_exact_mut(self.width).zip(levels) {
            let values = row.iter_mut().zip(&levels[1..]);
            values.for_each(|(value, level)| *value = if *level <= 1.0 { 255 } else { 0 });
        }
        mask
    }
}
