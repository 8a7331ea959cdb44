//! Objects of two segmentations compared: how much of every object of one is covered by objects of the other.
//!
//! As the reference application does it: two objects are a pair when they share area, every pair counts (nothing is
//! matched one to one), and areas are those of all objects, with or without a partner. With ΣI the area shared over
//! all pairs and A₁, A₂ the areas of all objects of either side, Dice is 2ΣI / (A₁ + A₂) and Jaccard
//! ΣI / (A₁ + A₂ − ΣI). Where the objects of a side do not overlap each other, and those of masks and label maps never
//! do, these two equal Dice and Jaccard over pixels, whatever is an object; the mean Dice of a pair and the number of
//! objects are what tells split and merged nuclei from whole ones.
//!
//! Candidates for pairs come from R-trees of bounding boxes, so that no object is compared with each other one. Where
//! objects come from is the business of [`PixelObjects`] and [`PolygonObjects`]. Nothing here says which pair is a
//! correct detection.

mod owned;
mod pairs;
mod pixels;
mod polygons;
mod rasterize;

pub use owned::{OwnedComparison, compare_owned};
pub use pairs::BoundingBox;
pub use pixels::{OBJECT_CONNECTIVITY, PixelObjects};
pub use polygons::{Polygon, PolygonObjects};
pub(crate) use rasterize::covers_a_pixel;
pub use rasterize::rasterize;

/// A set of objects of one kind, numbered from 0.
pub trait ObjectSet {
    /// The bounding box of each.
    fn bounds(&self) -> Vec<BoundingBox>;

    /// Area of one, square pixels.
    fn area(&self, object: usize) -> f64;

    /// Area that one of these objects shares with one of `other`'s, square pixels.
    fn shared_area(&self, object: usize, other: &Self, of_other: usize) -> f64;
}

/// What two sets of objects have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Number of objects.
    pub objects: usize,
    /// Their areas together, square pixels: A₁.
    pub area: f64,
    /// Number of the reference's objects.
    pub reference_objects: usize,
    /// Their areas together, square pixels: A₂.
    pub reference_area: f64,
    /// Area that pairs share, square pixels, over all of them: ΣI.
    pub shared_area: f64,
    /// Number of pairs: an object and one of the reference's that share area.
    pub pairs: usize,
    /// Dice of each pair, twice the area it shares over the sum of its two areas, added up.
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
    // In order of size, so that the sum does not depend on how objects are numbered or which side is which.
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

/// `part / whole`; of nothing it is 1 where there is nothing on either side, and 0 where one side has something.
fn ratio(part: f64, whole: f64, is_empty: bool) -> f64 {
    match whole {
        0.0 if is_empty => 1.0,
        0.0 => 0.0,
        _ => part / whole,
    }
}

impl Comparison {
    /// 2ΣI / (A₁ + A₂): 1 where both sides are the same area or both are empty, 0 where one is empty or nothing is
    /// shared.
    #[must_use]
    pub fn dice(&self) -> f64 {
        self.ratio(2.0 * self.shared_area, self.area + self.reference_area)
    }

    /// ΣI / (A₁ + A₂ − ΣI), with the same ends as Dice.
    #[must_use]
    pub fn jaccard(&self) -> f64 {
        self.ratio(self.shared_area, self.area + self.reference_area - self.shared_area)
    }

    /// The mean of the pairs' own Dice, each pair counting the same. Objects without a partner play no part; without
    /// any pair it is 1 where both sides are empty, else 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer pairs than 2^53")]
    pub fn pair_dice(&self) -> f64 {
        self.ratio(self.sum_of_pair_dice, self.pairs as f64)
    }

    /// ΣI / A₂, the share of the reference's area that is covered. Of an empty reference it is 1 where nothing was
    /// found, else 0.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.ratio(self.shared_area, self.reference_area)
    }

    /// Mean area of the objects (not the reference's), square pixels; 0 where there is none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer objects than 2^53")]
    pub fn mean_area(&self) -> f64 {
        if self.objects == 0 { 0.0 } else { self.area / self.objects as f64 }
    }

    /// `part / whole`; of nothing it is 1 where both sides are empty, and 0 where one is.
    fn ratio(&self, part: f64, whole: f64) -> f64 {
        ratio(part, whole, self.area + self.reference_area == 0.0)
    }
}
