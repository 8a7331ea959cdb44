//! Comparison of the objects of two segmentations on one tile of a slide, so that sums over all tiles equal those of
//! the slide.
//!
//! The tile whose core holds an object's centroid owns the object (`pleach-regions`, `partition/centroid.rs`). Only
//! this tile counts it, with all of its area. The two objects of a pair may belong to different tiles. Each of these
//! tiles then counts half of the shared area. Each tile has its part of ΣI, and Dice and Jaccard stay within 0–1 if the
//! objects of a side do not overlap. Windows contain the tile's objects completely if the halo is at least as wide as
//! the longest object, less 1 px. The caller chooses the halo.

use super::pixels::PixelObjects;
use super::{ObjectSet, pairs, ratio};
use pleach_regions::PixelRectangle;

/// Overlap of two sets of objects, restricted to the objects of one tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnedComparison {
    /// Number of objects that the tile owns.
    pub objects: usize,
    /// Total area of the owned objects, pixels: the tile's part of A₁.
    pub area: f64,
    /// Number of the reference's objects that the tile owns.
    pub reference_objects: usize,
    /// Total area of the owned objects of the reference, pixels: the tile's part of A₂.
    pub reference_area: f64,
    /// Shared area, pixels, over all pairs whose object on the found side the tile owns.
    pub covered: f64,
    /// Shared area, pixels, over all pairs whose object of the reference the tile owns.
    pub reference_covered: f64,
    /// Number of pairs. A pair with one owned object counts half.
    pub pairs: f64,
    /// Sum of the Dice of each pair, times the tile's share of the pair.
    pub sum_of_pair_dice: f64,
}

/// Compares the tile's objects of `found` with those of `reference`. `core` is the tile's core within the window of
/// both.
#[must_use]
pub fn compare_owned(
    found: &PixelObjects,
    reference: &PixelObjects,
    core: PixelRectangle,
) -> OwnedComparison {
    compare_some(found, reference, &found.within(core), &reference.within(core))
}

/// Compares the objects of `found` with those of `reference` whose centroid is a nonzero pixel of `counted`, a mask of
/// their window.
#[must_use]
pub fn compare_counted(found: &PixelObjects, reference: &PixelObjects, counted: &[u8]) -> OwnedComparison {
    compare_some(found, reference, &found.counted(counted), &reference.counted(counted))
}

/// Compares two sides, whose objects with `true` belong to the tile.
#[expect(clippy::cast_precision_loss, reason = "a window has far fewer than 2^53 pixels")]
fn compare_some(
    found: &PixelObjects,
    reference: &PixelObjects,
    owned: &[bool],
    reference_owned: &[bool],
) -> OwnedComparison {
    let mut compared = OwnedComparison {
        objects: owned.iter().filter(|owned| **owned).count(),
        area: area(found, owned),
        reference_objects: reference_owned.iter().filter(|owned| **owned).count(),
        reference_area: area(reference, reference_owned),
        covered: 0.0,
        reference_covered: 0.0,
        pairs: 0.0,
        sum_of_pair_dice: 0.0,
    };
    let mut pair_dice = Vec::new();
    for (object, of_reference) in pairs::candidates(&found.bounds(), &reference.bounds()) {
        let (own, reference_own) = (owned[object], reference_owned[of_reference]);
        let sides = usize::from(own) + usize::from(reference_own);
        if sides == 0 {
            continue;
        }
        let shared = found.shared_area(object, reference, of_reference);
        if shared > 0.0 {
            compared.covered += if own { shared } else { 0.0 };
            compared.reference_covered += if reference_own { shared } else { 0.0 };
            let part = sides as f64 / 2.0;
            compared.pairs += part;
            pair_dice.push(part * 2.0 * shared / (found.area(object) + reference.area(of_reference)));
        }
    }
    // Adds in ascending order as in `compare`: the sum does not depend on the numbering of objects.
    pair_dice.sort_unstable_by(f64::total_cmp);
    compared.sum_of_pair_dice = pair_dice.iter().sum();
    compared
}

fn area(objects: &PixelObjects, owned: &[bool]) -> f64 {
    owned.iter().enumerate().filter(|(_, owned)| **owned).map(|(object, _)| objects.area(object)).sum()
}

impl OwnedComparison {
    /// Returns the tile's part of ΣI.
    #[must_use]
    pub fn shared_area(&self) -> f64 {
        f64::midpoint(self.covered, self.reference_covered)
    }

    /// Returns Dice of the tile's parts, as [`Comparison::dice`](super::Comparison::dice).
    #[must_use]
    pub fn dice(&self) -> f64 {
        self.ratio(2.0 * self.shared_area(), self.area + self.reference_area)
    }

    /// Returns Jaccard of the tile's parts, as [`Comparison::jaccard`](super::Comparison::jaccard).
    #[must_use]
    pub fn jaccard(&self) -> f64 {
        self.ratio(self.shared_area(), self.area + self.reference_area - self.shared_area())
    }

    /// Returns the mean Dice of the pairs, as [`Comparison::pair_dice`](super::Comparison::pair_dice), weighted by the
    /// tile's share of each pair.
    #[must_use]
    pub fn pair_dice(&self) -> f64 {
        self.ratio(self.sum_of_pair_dice, self.pairs)
    }

    /// Returns the covered share of the area of the reference's owned objects.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.ratio(self.reference_covered, self.reference_area)
    }

    /// Returns the mean area of the owned objects (not the reference's) in pixels. 0 without objects.
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
