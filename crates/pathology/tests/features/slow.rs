//! Slow, plain definitions: lists of pixels, no histograms, runs or windows.

use crate::CHANNELS;
use std::collections::{BTreeMap, BTreeSet};

/// Pixels of each label, as (x, y).
pub(crate) type Pixels = BTreeMap<u32, Vec<(i64, i64)>>;

pub(crate) fn pixels(labels: &[u32], width: usize) -> Pixels {
    let mut pixels = Pixels::new();
    for (index, label) in labels.iter().enumerate().filter(|(_, label)| **label != 0) {
        pixels.entry(*label).or_default().push(((index % width) as i64, (index / width) as i64));
    }
    pixels
}

/// Returns the pixels within 8 px of those given, in no nucleus.
pub(crate) fn ring(of: &[(i64, i64)], labels: &[u32], width: usize) -> Vec<(i64, i64)> {
    let background = labels.iter().enumerate().filter(|(_, label)| **label == 0);
    let positions = background.map(|(index, _)| ((index % width) as i64, (index / width) as i64));
    let is_near = |(x, y): &(i64, i64)| of.iter().any(|(a, b)| (x - a).pow(2) + (y - b).pow(2) <= 64);
    positions.filter(is_near).collect()
}

/// Returns mean, median, sd, entropy, energy, skewness, kurtosis, then maximum and minimum.
pub(crate) fn statistics(mut bytes: Vec<u8>) -> [f64; 9] {
    if bytes.is_empty() {
        return [0.0; 9];
    }
    bytes.sort_unstable();
    let count = bytes.len() as f64;
    let mean = bytes.iter().map(|byte| f64::from(*byte)).sum::<f64>() / count;
    let moment = |power| bytes.iter().map(|byte| (f64::from(*byte) - mean).powi(power)).sum::<f64>() / count;
    let sd = moment(2).sqrt();
    let middle = bytes.len() / 2;
    let median = if bytes.len() % 2 == 1 {
        f64::from(bytes[middle])
    } else {
        (f64::from(bytes[middle - 1]) + f64::from(bytes[middle])) / 2.0
    };
    let shares: Vec<f64> =
        (0..=255).map(|level| bytes.iter().filter(|byte| **byte == level).count() as f64 / count).collect();
    let entropy = shares.iter().filter(|share| **share > 0.0).map(|share| -share * share.log2()).sum();
    let energy = shares.iter().map(|share| share * share).sum();
    let over = |power| if sd > 0.0 { moment(power) / sd.powi(power) } else { 0.0 };
    let (low, high) = (f64::from(bytes[0]), f64::from(bytes[bytes.len() - 1]));
    [mean, median, sd, entropy, energy, over(3), over(4), high, low]
}

/// Returns the difference quotient along both axes as `numpy.gradient`, then its magnitude as a byte.
pub(crate) fn gradient(plane: &[u8], width: usize) -> Vec<u8> {
    let height = plane.len() / CHANNELS / width;
    let at = |x: usize, y: usize, channel| f64::from(plane[(y * width + x) * CHANNELS + channel]);
    let along = |length: usize, position: usize, value: &dyn Fn(usize) -> f64| match position {
        _ if length == 1 => 0.0,
        0 => value(1) - value(0),
        last if last + 1 == length => value(last) - value(last - 1),
        inner => (value(inner + 1) - value(inner - 1)) / 2.0,
    };
    let mut magnitudes = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for channel in 0..CHANNELS {
            let horizontal = along(width, x, &|x| at(x, y, channel));
            let vertical = along(height, y, &|y| at(x, y, channel));
            magnitudes.push(horizontal.hypot(vertical).round_ties_even().min(255.0) as u8);
        }
    }
    magnitudes
}

/// Returns the length of the border of one object over all cells of 2 × 2 px.
pub(crate) fn perimeter(of: &[(i64, i64)]) -> f64 {
    let set: BTreeSet<_> = of.iter().copied().collect();
    let cells: BTreeSet<(i64, i64)> =
        of.iter().flat_map(|(x, y)| [(x - 1, y - 1), (*x, y - 1), (x - 1, *y), (*x, *y)]).collect();
    let length = |(x, y): &(i64, i64)| {
        let [a, b, c, d] =
            [(*x, *y), (x + 1, *y), (*x, y + 1), (x + 1, y + 1)].map(|pixel| set.contains(&pixel));
        match [a, b, c, d].into_iter().filter(|pixel| *pixel).count() {
            1 | 3 => 0.5_f64.sqrt(),
            2 if a == d => 2_f64.sqrt(),
            2 => 1.0,
            _ => 0.0,
        }
    };
    cells.iter().map(length).sum()
}

/// Returns x, y, area, perimeter, major and minor axis, eccentricity, extent, circularity.
pub(crate) fn shape(of: &[(i64, i64)]) -> [f64; 9] {
    let area = of.len() as f64;
    let mean = |value: &dyn Fn(&(i64, i64)) -> f64| of.iter().map(value).sum::<f64>() / area;
    let (x, y) = (mean(&|pixel| pixel.0 as f64 + 0.5), mean(&|pixel| pixel.1 as f64 + 0.5));
    let offset = |pixel: &(i64, i64)| (pixel.0 as f64 + 0.5 - x, pixel.1 as f64 + 0.5 - y);
    let xx = mean(&|pixel| offset(pixel).0.powi(2)) + 1.0 / 12.0;
    let yy = mean(&|pixel| offset(pixel).1.powi(2)) + 1.0 / 12.0;
    let xy = mean(&|pixel| offset(pixel).0 * offset(pixel).1);
    let spread = ((xx - yy).powi(2) + 4.0 * xy * xy).sqrt();
    let axis = |sign: f64| 4.0 * ((xx + yy + sign * spread) / 2.0).max(0.0).sqrt();
    let (major, minor) = (axis(1.0), axis(-1.0));
    let side = |value: fn(&(i64, i64)) -> i64| {
        (of.iter().map(value).max().unwrap() - of.iter().map(value).min().unwrap() + 1) as f64
    };
    let perimeter = perimeter(of);
    let eccentricity = (1.0 - (minor / major).powi(2)).max(0.0).sqrt();
    let extent = area / side(|pixel| pixel.0) / side(|pixel| pixel.1);
    let circularity = 4.0 * std::f64::consts::PI * area / perimeter / perimeter;
    [x, y, area, perimeter, major, minor, eccentricity, extent, circularity]
}

/// Returns Haralick's features of one object, from full matrices and the paper's double sums.
pub(crate) fn texture(of: &[(i64, i64)], level: impl Fn((i64, i64)) -> usize, levels: usize) -> [f64; 13] {
    let set: BTreeSet<_> = of.iter().copied().collect();
    let mut all = Vec::new();
    for (dx, dy) in [(1, 0), (-1, 1), (0, 1), (1, 1)] {
        let mut matrix = vec![0.0; levels * levels];
        let mut total = 0.0;
        for (x, y) in of.iter().copied().filter(|(x, y)| set.contains(&(x + dx, y + dy))) {
            let (i, j) = (level((x, y)), level((x + dx, y + dy)));
            matrix[i * levels + j] += 1.0;
            matrix[j * levels + i] += 1.0;
            total += 2.0;
        }
        if total > 0.0 {
            matrix.iter_mut().for_each(|pairs| *pairs /= total);
            all.push(of_matrix(&matrix, levels));
        }
    }
    let count = all.len() as f64;
    std::array::from_fn(|feature| {
        if all.is_empty() { 0.0 } else { all.iter().map(|features| features[feature]).sum::<f64>() / count }
    })
}

fn of_matrix(matrix: &[f64], levels: usize) -> [f64; 13] {
    let each = |value: &dyn Fn(usize, usize, f64) -> f64| -> f64 {
        (0..levels * levels).map(|at| value(at / levels, at % levels, matrix[at])).sum()
    };
    let log = |p: f64| if p > 0.0 { p.log2() } else { 0.0 };
    let entropy = |list: &[f64]| -> f64 { list.iter().map(|p| -p * log(*p)).sum() };
    let gather = |length: usize, class: &dyn Fn(usize, usize) -> usize| {
        let mut list = vec![0.0; length];
        (0..levels * levels).for_each(|at| list[class(at / levels, at % levels)] += matrix[at]);
        list
    };
    let (rows, columns) = (gather(levels, &|i, _| i), gather(levels, &|_, j| j));
    let (sums, differences) = (gather(2 * levels, &|i, j| i + j), gather(levels, &usize::abs_diff));
    let mean = |list: &[f64]| -> f64 { list.iter().enumerate().map(|(k, p)| k as f64 * p).sum() };
    let variance = |list: &[f64]| -> f64 {
        let mean = mean(list);
        list.iter().enumerate().map(|(k, p)| (k as f64 - mean).powi(2) * p).sum()
    };
    let (sd, product) = ((variance(&rows) * variance(&columns)).sqrt(), each(&|i, j, p| (i * j) as f64 * p));
    let whole = entropy(matrix);
    let first = -each(&|i, j, p| p * log(rows[i] * columns[j]));
    let second = -each(&|i, j, _| rows[i] * columns[j] * log(rows[i] * columns[j]));
    let largest = entropy(&rows).max(entropy(&columns));
    [
        each(&|_, _, p| p * p),
        each(&|i, j, p| i.abs_diff(j).pow(2) as f64 * p),
        if sd > 1e-12 { (product - mean(&rows) * mean(&columns)) / sd } else { 1.0 },
        variance(&rows),
        each(&|i, j, p| p / (1.0 + i.abs_diff(j).pow(2) as f64)),
        mean(&sums),
        variance(&sums),
        entropy(&sums),
        whole,
        variance(&differences),
        entropy(&differences),
        if largest > 0.0 { (whole - first) / largest } else { 0.0 },
        (1.0 - (-2.0 * (second - whole)).exp()).max(0.0).sqrt(),
    ]
}
