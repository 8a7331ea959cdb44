//! Overlap of the objects of two segmentations.
//!
//! The definitions are those of the reference application. Two objects are a pair if they share area. Every pair
//! counts, without one-to-one matching. Areas are those of all objects, with or without a partner. With ΣI the area
//! shared over all pairs and A₁, A₂ the total areas of the two sides, Dice is 2ΣI / (A₁ + A₂) and Jaccard is ΣI / (A₁ +
//! A₂ − ΣI).
//!
//! If the objects of each side do not overlap each other, as in masks and label maps, these two values equal Dice and
//! Jaccard over pixels, however the pixels are divided into objects. The mean Dice of a pair and the number of objects
//! distinguish split and merged nuclei from whole ones.
//!
//! R-trees of bounding boxes give the candidate pairs, so that not every two objects are compared. [`PixelObjects`] and
//! [`PolygonObjects`] provide the objects. This module does not decide which pair is a correct detection.

mod outlines;
mod owned;
mod pairs;
mod pixels;
mod polygons;
mod rasterize;

pub use outlines::Outlines;
pub use owned::{OwnedComparison, compare_counted, compare_owned};
pub use pairs::BoundingBox;
pub use pixels::{OBJECT_CONNECTIVITY, PixelObjects};
pub use polygons::{Polygon, PolygonObjects};
pub use rasterize::{View, rasterize};

/// A set of objects of one kind, numbered from 0.
pub trait ObjectSet {
    /// Returns the bounding box of each object.
    fn bounds(&self) -> Vec<BoundingBox>;

    /// Returns the area of an object, square pixels.
    fn area(&self, object: usize) -> f64;

    /// Returns the area that `object` shares with object `of_other` of `other`, square pixels.
    fn shared_area(&self, object: usize, other: &Self, of_other: usize) -> f64;
}

/// Overlap of two sets of objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Number of objects found.
    pub objects: usize,
    /// Total area of the objects found, square pixels: A₁.
    pub area: f64,
    /// Number of objects in the reference.
    pub reference_objects: usize,
    /// Total area of the reference's objects, square pixels: A₂.
    pub reference_area: f64,
    /// Area shared by the objects of each pair, summed over all pairs, square pixels: ΣI.
    pub shared_area: f64,
    /// Number of pairs: an object found and an object of the reference that share area.
    pub pairs: usize,
    /// Sum over all pairs of the pair's Dice: twice the shared area divided by the sum of the two areas.
    pub sum_of_pair_dice: f64,
}

/// Compares the objects of `found` with those of `reference`.
#[must_use]
pub fn compare<O: ObjectSet>(found: &O, reference: &O) -> Comparison {
    let (boxes, reference_boxes) = (found.bounds(), reference.bounds());
    let mut shared_area = 0.0;
    let mut pair_dice = Vec::new();
    for (object, of_reference) in pairs::candidates(&boxes, &reference_boxes) {
        let shared = found.shared_area(object, reference, of_reference);
        if shared > 0.0 {
            shared_area += shared;
            pair_dice.push(2.0 * shared / (found.area(object) + reference.area(of_reference)));
        }
    }
    // Adds in ascending order, so that the sum does not depend on the numbering of objects or on the order of the
    // sides.
    pair_dice.sort_unstable_by(f64::total_cmp);
    let total = |objects: &O, count: usize| (0..count).map(|object| objects.area(object)).sum();
    Comparison {
        objects: boxes.len(),
        area: total(found, boxes.len()),
        reference_objects: reference_boxes.len(),
        reference_area: total(reference, reference_boxes.len()),
        shared_area,
        pairs: pair_dice.len(),
        sum_of_pair_dice: pair_dice.iter().sum(),
    }
}

/// Returns `part / whole`. For a whole of 0 returns 1 if `is_empty`, else 0.
fn ratio(part: f64, whole: f64, is_empty: bool) -> f64 {
    match whole {
        0.0 if is_empty => 1.0,
        0.0 => 0.0,
        _ => part / whole,
    }
}

impl Comparison {
    /// Returns 2ΣI / (A₁ + A₂). Returns 1 if both sides cover the same area or both are empty. Returns 0 if one side is
    /// empty or no area is shared.
    #[must_use]
    pub fn dice(&self) -> f64 {
        self.ratio(2.0 * self.shared_area, self.area + self.reference_area)
    }

    /// Returns ΣI / (A₁ + A₂ − ΣI), with the limits 0 and 1 in the same cases as Dice.
    #[must_use]
    pub fn jaccard(&self) -> f64 {
        self.ratio(self.shared_area, self.area + self.reference_area - self.shared_area)
    }

    /// Returns the mean Dice of the pairs, each with the same weight. Objects without a partner do not count. Without
    /// any pair it is 1 if both sides are empty, else 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer pairs than 2^53")]
    pub fn pair_dice(&self) -> f64 {
        self.ratio(self.sum_of_pair_dice, self.pairs as f64)
    }

    /// Returns ΣI / A₂, the share of the reference's area that is covered. For an empty reference it is 1 if no object
    /// was found, else 0.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.ratio(self.shared_area, self.reference_area)
    }

    /// Returns the mean area of the objects found (not the reference's), square pixels. 0 without objects.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer objects than 2^53")]
    pub fn mean_area(&self) -> f64 {
        if self.objects == 0 { 0.0 } else { self.area / self.objects as f64 }
    }

    /// Returns `part / whole`. For a whole of 0 returns 1 if both sides are empty, else 0.
    fn ratio(&self, part: f64, whole: f64) -> f64 {
        ratio(part, whole, self.area + self.reference_area == 0.0)
    }
}
