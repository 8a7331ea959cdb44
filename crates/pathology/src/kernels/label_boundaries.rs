//! Boundaries of the objects of a label plane: perimeters, and erosion along label gradients.
//!
//! A *label plane* is a plane of numbers: 0 is background, every other number is one object.

use super::height;

/// Returns the perimeter of each object, by label (0, the background, has none). `count` is the largest label.
///
/// The boundary passes through 2 × 2 cells of pixels, which may lie half outside the image: a cell with 1 or 3 pixels of
/// the object adds ½√2, one with 2 pixels along a side adds 1, one with 2 pixels across adds √2.
///
/// # Panics
/// Panics if a label exceeds `count`.
#[must_use]
pub fn perimeters(labels: &[u32], width: usize, count: u32) -> Vec<f64> {
    let rows = height(labels.len(), width);
    // Numbers of cells of each kind: sums of them do not depend on an order.
    let mut cells = vec![[0_u32; 3]; count as usize + 1];
    let label = |x: usize, y: usize| {
        let inside = (1..=width).contains(&x) && (1..=rows).contains(&y);
        if inside { labels[(y - 1) * width + x - 1] } else { 0 }
    };
    for y in 0..=rows {
        for x in 0..=width {
            let cell = [label(x, y), label(x + 1, y), label(x, y + 1), label(x + 1, y + 1)];
            if cell.iter().all(|value| *value == cell[0]) {
                continue;
            }
            for (place, &object) in cell.iter().enumerate() {
                if object == 0 || cell[..place].contains(&object) {
                    continue;
                }
                let is = cell.map(|other| other == object);
                let kind = match is.iter().filter(|is| **is).count() {
                    1 | 3 => 0,
                    _ if is[0] == is[3] => 2,
                    _ => 1,
                };
                cells[object as usize][kind] += 1;
            }
        }
    }
    let lengths = [0.5 * std::f64::consts::SQRT_2, 1.0, std::f64::consts::SQRT_2];
    cells.iter().map(|kinds| (0..3).map(|kind| f64::from(kinds[kind]) * lengths[kind]).sum()).collect()
}

/// Returns the mask of the object pixels whose label gradient is below 0.5.
///
/// The gradient is by central differences. Beyond the image, labels are those at its border. Boundaries between objects, and
/// between objects and background, become background on either side of the line. A line 1 px wide stays: both of its
/// neighbors have label 0.
#[must_use]
pub fn erode_boundaries(labels: &[u32], width: usize) -> Vec<u8> {
    let rows = height(labels.len(), width);
    let flat = |a: usize, b: usize| f64::from(labels[a]) - f64::from(labels[b]);
    let mut mask = vec![0; labels.len()];
    for (pixel, value) in mask.iter_mut().enumerate().filter(|(pixel, _)| labels[*pixel] != 0) {
        let (x, y) = (pixel % width, pixel / width);
        let left = if x > 0 { pixel - 1 } else { pixel };
        let right = if x + 1 < width { pixel + 1 } else { pixel };
        let up = if y > 0 { pixel - width } else { pixel };
        let down = if y + 1 < rows { pixel + width } else { pixel };
        let (dx, dy) = (flat(right, left) / 2.0, flat(down, up) / 2.0);
        *value = if dx * dx + dy * dy < 0.25 { 255 } else { 0 };
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of √2.
    const CORNER: f64 = std::f64::consts::FRAC_1_SQRT_2;

    #[test]
    fn perimeters_of_small_shapes() {
        assert_eq!(perimeters(&[1], 1, 1), [0.0, 4.0 * CORNER]);
        // A square of 2 × 2 px: four corners and four sides.
        assert_eq!(perimeters(&[1; 4], 2, 1)[1], 4.0 * CORNER + 4.0);
        // Two pixels across: six corners and the cell between them, which the other object shares.
        let across = perimeters(&[1, 2, 2, 1], 2, 2);
        assert_eq!(across[1], 6.0 * CORNER + std::f64::consts::SQRT_2);
        assert_eq!(across[2], across[1]);
    }

    #[test]
    fn objects_lose_their_boundaries_but_not_at_the_border() {
        let eroded = erode_boundaries(&[1, 1, 1, 0, 0, 1, 1, 1, 0, 0], 5);
        assert_eq!(eroded, [255, 255, 0, 0, 0, 255, 255, 0, 0, 0]);
        let touching = erode_boundaries(&[1, 1, 1, 2, 2, 2], 6);
        assert_eq!(touching, [255, 255, 0, 0, 255, 255]);
        let line = erode_boundaries(&[0, 1, 0, 0, 1, 0], 3);
        assert_eq!(line, [0, 255, 0, 0, 255, 0]);
    }
}
