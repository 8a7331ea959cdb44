//! Local Chan–Vese level set on a gray image, as a sparse field.
//!
//! The energy is that of Lankton & Tannenbaum, "Localizing region-based active contours" (2008), the sparse field that of
//! Whitaker, "A level-set approach to 3D reconstruction from range data" (1998). Only five layers of pixels around the
//! contour have a level of their own: layer 0 is the contour, −1 and −2 are inside, +1 and +2 outside. Every other
//! pixel is far: its level is −3 or +3.
//!
//! An iteration reads the layers of the iteration before, and where several pixels claim a far one, the nearest to the
//! contour decides. So the result does not depend on the order of the lists, unlike that of the original program, where
//! the first in a list decides. Work is proportional to the layers, not to the image.

mod field;
mod window;

use field::Field;
use window::WindowSums;

/// Largest change of a level in one iteration: below 0.5, so that the contour moves less than 1 px.
const MAX_CHANGE: f64 = 0.49;

/// Keeps denominators from being 0.
const EPSILON: f64 = 1e-10;

/// Moves the contour of `mask` on `gray` for `iterations` steps, or until no contour is left. Returns the mask of the
/// levels up to 1, so the contour and the next pixels outside are object. Empty and full masks stay unchanged.
///
/// `curvature_weight` is the weight of the curvature against the data term, both at most about 1. Windows of 11 × 11 px
/// decide whether a pixel resembles the inside or the outside.
///
/// # Panics
/// Panics if `gray` and `mask` differ in length.
#[must_use]
pub fn evolve(gray: &[u8], mask: &[u8], width: usize, curvature_weight: f64, iterations: u32) -> Vec<u8> {
    assert!(gray.len() == mask.len(), "both planes are of one size");
    let mut field = Field::new(mask, width);
    if !field.contour().is_empty() {
        let mut sums = WindowSums::new(gray, width, |pixel| mask[pixel] != 0);
        let (mut forces, mut moves) = (Vec::new(), field::Moves::default());
        for _ in 0..iterations {
            if field.contour().is_empty() {
                break;
            }
            compute_forces(&field, &sums, curvature_weight, &mut forces);
            field.advance(&forces, &mut sums, &mut moves);
        }
    }
    field.mask()
}

/// Computes the change of each level of the contour, at most [`MAX_CHANGE`].
fn compute_forces(field: &Field, sums: &WindowSums<'_>, curvature_weight: f64, forces: &mut Vec<f64>) {
    forces.clear();
    forces.extend(field.contour().iter().map(|&cell| {
        let (x, y) = field.position(cell);
        sums.data_term(x, y)
    }));
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let scale = largest(forces) + EPSILON;
    for (force, &cell) in forces.iter_mut().zip(field.contour()) {
        *force = *force / scale + curvature_weight * field.curvature(cell);
    }
    let scale = largest(forces) / MAX_CHANGE + EPSILON;
    forces.iter_mut().for_each(|force| *force /= scale);
}
