//! Slow, plain definitions of the kernels of level-set segmentation. They do not call the crate's kernels.

use crate::slow::beside;
use pleach_pathology::kernels::Connectivity::Four;

/// Returns the level with the largest variance between both classes, by trying all of them.
pub(crate) fn slow_otsu(plane: &[u8]) -> Option<u8> {
    let mut best = (0.0, None);
    for level in 0..=254_u8 {
        let (low, high): (Vec<f64>, Vec<f64>) =
            plane.iter().map(|value| f64::from(*value)).partition(|value| *value <= f64::from(level));
        if low.is_empty() || high.is_empty() {
            continue;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let difference = mean(&low) - mean(&high);
        let between = low.len() as f64 * high.len() as f64 * difference * difference;
        if between > best.0 {
            best = (between, Some(level));
        }
    }
    best.1
}

/// Layers and levels of all pixels, as dense planes.
struct Dense<'a> {
    gray: &'a [u8],
    width: usize,
    layer: Vec<i32>,
    level: Vec<f64>,
}

impl Dense<'_> {
    fn around(&self, pixel: usize) -> Vec<usize> {
        beside(pixel, self.width, self.gray.len(), Four)
    }

    fn of_layer(&self, layer: i32) -> Vec<usize> {
        (0..self.layer.len()).filter(|pixel| self.layer[*pixel] == layer).collect()
    }

    fn at(&self, x: usize, y: usize) -> f64 {
        self.level[y * self.width + x]
    }

    fn data_term(&self, pixel: usize) -> f64 {
        let rows = self.gray.len() / self.width;
        let (x, y) = (pixel % self.width, pixel / self.width);
        let (mut inside, mut outside) = ((0.0, 0.0), (0.0, 0.0));
        for row in y.saturating_sub(5)..=(y + 5).min(rows - 1) {
            for column in x.saturating_sub(5)..=(x + 5).min(self.width - 1) {
                let sum = if self.at(column, row) <= 0.0 { &mut inside } else { &mut outside };
                sum.0 += 1.0;
                sum.1 += f64::from(self.gray[row * self.width + column]);
            }
        }
        let to_mean = |(count, sum): (f64, f64)| f64::from(self.gray[pixel]) - sum / (count + 1e-10);
        to_mean(inside) * to_mean(inside) - to_mean(outside) * to_mean(outside)
    }

    fn curvature(&self, pixel: usize) -> f64 {
        if self.around(pixel).len() < 4 {
            return 0.0;
        }
        let (x, y) = (pixel % self.width, pixel / self.width);
        let (dx, dy) =
            ((self.at(x + 1, y) - self.at(x - 1, y)) / 2.0, (self.at(x, y + 1) - self.at(x, y - 1)) / 2.0);
        let dxx = self.at(x + 1, y) - 2.0 * self.at(x, y) + self.at(x - 1, y);
        let dyy = self.at(x, y + 1) - 2.0 * self.at(x, y) + self.at(x, y - 1);
        let dxy = (self.at(x + 1, y + 1) - self.at(x - 1, y + 1) - self.at(x + 1, y - 1)
            + self.at(x - 1, y - 1))
            / 4.0;
        (dxx * dy * dy + dyy * dx * dx - 2.0 * dx * dy * dxy) / (dx * dx + dy * dy + 1e-10)
    }

    /// One iteration, with all layers of the iteration before in `old`.
    fn step(&mut self, weight: f64) {
        let largest = |values: &[f64]| values.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let old = self.layer.clone();
        let contour = self.of_layer(0);
        let data: Vec<f64> = contour.iter().map(|pixel| self.data_term(*pixel)).collect();
        let scale = largest(&data) + 1e-10;
        let forces: Vec<f64> =
            contour.iter().zip(&data).map(|(p, data)| data / scale + weight * self.curvature(*p)).collect();
        let scale = largest(&forces) / 0.49 + 1e-10;
        for (&pixel, force) in contour.iter().zip(&forces) {
            self.level[pixel] += force / scale;
            self.layer[pixel] = i32::from(self.level[pixel] > 0.5) - i32::from(self.level[pixel] < -0.5);
        }
        for layer in [-1, 1, -2, 2_i32] {
            let side = layer.signum();
            for pixel in (0..old.len()).filter(|pixel| old[*pixel] == layer) {
                let nearer: Vec<f64> = self
                    .around(pixel)
                    .into_iter()
                    .filter(|next| old[*next] == layer - side)
                    .map(|next| self.level[next])
                    .collect();
                let level = if side < 0 {
                    nearer.iter().copied().reduce(f64::max).map(|level| level - 1.0)
                } else {
                    nearer.iter().copied().reduce(f64::min).map(|level| level + 1.0)
                };
                self.layer[pixel] = match level {
                    None => layer + side,
                    Some(level) => {
                        self.level[pixel] = level;
                        let (near, far) = (f64::from(layer.abs()) - 0.5, f64::from(layer.abs()) + 0.5);
                        if level.abs() <= near {
                            layer - side
                        } else if level.abs() > far {
                            layer + side
                        } else {
                            layer
                        }
                    }
                };
            }
        }
        for pixel in (0..old.len()).filter(|pixel| old[*pixel].abs() == 2) {
            if self.layer[pixel].abs() == 3 {
                self.level[pixel] = f64::from(self.layer[pixel]);
            }
        }
        let settled = self.layer.clone();
        for pixel in (0..old.len()).filter(|pixel| settled[*pixel].abs() == 3) {
            let side = settled[pixel].signum();
            let is_new = |next: &usize| settled[*next] == side && old[*next] != side;
            let levels = self.around(pixel).into_iter().filter(is_new).map(|next| self.level[next]);
            let level = if side < 0 {
                levels.reduce(f64::max).map(|level| level - 1.0)
            } else {
                levels.reduce(f64::min).map(|level| level + 1.0)
            };
            if let Some(level) = level {
                self.level[pixel] = level;
                self.layer[pixel] = 2 * side;
            }
        }
    }
}

/// Moves the contour of a mask with dense planes: every iteration visits all pixels, and every window is summed up.
pub(crate) fn slow_evolve(gray: &[u8], mask: &[u8], width: usize, weight: f64, iterations: u32) -> Vec<u8> {
    let layer = mask.iter().map(|value| if *value != 0 { -3 } else { 3 }).collect();
    let mut dense = Dense { gray, width, layer, level: Vec::new() };
    let contour: Vec<usize> = (0..mask.len())
        .filter(|&pixel| mask[pixel] != 0 && dense.around(pixel).iter().any(|next| mask[*next] == 0))
        .collect();
    contour.iter().for_each(|pixel| dense.layer[*pixel] = 0);
    for layer in [-1, 1, -2, 2_i32] {
        let joining: Vec<usize> = dense
            .of_layer(3 * layer.signum())
            .into_iter()
            .filter(|pixel| {
                dense.around(*pixel).iter().any(|next| dense.layer[*next] == layer - layer.signum())
            })
            .collect();
        joining.iter().for_each(|pixel| dense.layer[*pixel] = layer);
    }
    dense.level = dense.layer.iter().map(|layer| f64::from(*layer)).collect();
    for _ in 0..iterations {
        if dense.of_layer(0).is_empty() {
            break;
        }
        dense.step(weight);
    }
    dense.level.iter().map(|level| if *level <= 1.0 { 255 } else { 0 }).collect()
}

/// Splits an object by mean shift with every seed on its own. Returns `None` if a decision is closer than 1e-9, where sums
/// in another order may decide otherwise.
pub(crate) fn slow_parts(pixels: &[[u32; 2]], radius: f64) -> Option<Vec<u32>> {
    let seeds: Vec<[f64; 2]> =
        pixels.iter().step_by(pixels.len().div_ceil(1000)).map(|pixel| pixel.map(f64::from)).collect();
    let squared = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
    let mut is_tie = false;
    let mut moved = seeds.clone();
    for (pass, radius) in [radius, 3.0, 3.0].into_iter().enumerate() {
        let targets = if pass == 0 { seeds.clone() } else { moved.clone() };
        for _ in 0..100 {
            let before = moved.clone();
            for seed in &mut moved {
                let near: Vec<[f64; 2]> = targets
                    .iter()
                    .copied()
                    .filter(|other| squared(*other, *seed) <= radius * radius)
                    .collect();
                is_tie |= pass > 0
                    && targets.iter().any(|other| (squared(*other, *seed) - radius * radius).abs() < 1e-9);
                if !near.is_empty() {
                    let sum = |axis: usize| near.iter().map(|other| other[axis]).sum::<f64>();
                    *seed = [0, 1].map(|axis| sum(axis) / near.len() as f64);
                }
            }
            if moved.iter().zip(&before).all(|(a, b)| squared(*a, *b) < 1e-12) {
                break;
            }
        }
    }
    let mut centers: Vec<[f64; 2]> = Vec::new();
    for end in &moved {
        is_tie |= centers.iter().any(|center| (squared(*center, *end) - radius * radius).abs() < 1e-9);
        if centers.iter().all(|center| squared(*center, *end) >= radius * radius) {
            centers.push(*end);
        }
    }
    // The first of several at one distance.
    let nearest = |to: [f64; 2], of: &[[f64; 2]]| -> usize {
        let distances: Vec<f64> = of.iter().map(|other| squared(*other, to)).collect();
        let least = distances.iter().copied().fold(f64::INFINITY, f64::min);
        distances.iter().position(|distance| *distance == least).unwrap()
    };
    for end in &moved {
        let mut distances: Vec<f64> = centers.iter().map(|center| squared(*center, *end)).collect();
        distances.sort_by(f64::total_cmp);
        is_tie |= distances.len() > 1 && distances[1] - distances[0] < 1e-9;
    }
    let part = |pixel: &[u32; 2]| nearest(moved[nearest(pixel.map(f64::from), &seeds)], &centers) as u32;
    (!is_tie).then(|| pixels.iter().map(part).collect())
}

/// Returns the perimeter of one object, cell by cell.
pub(crate) fn slow_perimeter(labels: &[u32], width: usize, object: u32) -> f64 {
    let rows = (labels.len() / width) as i64;
    let is = |x: i64, y: i64| {
        x >= 0 && y >= 0 && x < width as i64 && y < rows && labels[y as usize * width + x as usize] == object
    };
    let mut length = 0.0;
    for (y, x) in (-1..rows).flat_map(|y| (-1..width as i64).map(move |x| (y, x))) {
        length += match [is(x, y), is(x + 1, y), is(x, y + 1), is(x + 1, y + 1)] {
            [true, true, true, true] | [false, false, false, false] => 0.0,
            [true, false, false, true] | [false, true, true, false] => std::f64::consts::SQRT_2,
            [a, b, c, d] if [a, b, c, d].iter().filter(|is| **is).count() == 2 => 1.0,
            _ => std::f64::consts::FRAC_1_SQRT_2,
        };
    }
    length
}
