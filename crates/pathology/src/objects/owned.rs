//! Compares objects of two segmentations on one tile of a slide, so that sums over all tiles equal those of the
//! slide.
//!
//! An object belongs to the tile whose core holds its centroid (`pleach-regions`, `partition/centroid.rs`): only
//! this tile counts it, with all of its area. The two objects of a pair may belong to different tiles. Each tile
//! then counts half of their shared area, so each tile has its part of ΣI, and Dice and Jaccard stay within 0 and 1
//! as long as objects of a side do not overlap. Tiles contain their objects completely if the halo is at least as
//! wide as the longest object, less one pixel. The caller chooses the halo.

use super::pixels::PixelObjects;
use super::{ObjectSet, pairs, ratio};
use pleach_regions::PixelRectangle;

/// Overlap of two sets of objects, restricted to the objects of one tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnedComparison {
    /// Number of objects that the tile owns.
    pub objects: usize,
    /// Their areas together, pixels: the tile's part of A₁.
    pub area: f64,
    /// Number of the reference's objects that it owns.
    pub reference_objects: usize,
    /// Their areas together, pixels: the tile's part of A₂.
    pub reference_area: f64,
    /// Area that pairs share, pixels, over all with an object that is owned.
    pub covered: f64,
    /// The same, over all pairs with an object of the reference that is owned.
    pub reference_covered: f64,
    /// Number of pairs. A pair with one owned object counts half.
    pub pairs: f64,
    /// Sum of the Dice of each pair, times the tile's share of the pair.
    pub sum_of_pair_dice: f64,
}

/// Compares the tile's objects of `found` with those of `reference`. `core` is the tile's own part of the window of
/// both.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a window has far fewer than 2^53 pixels")]
pub fn compare_owned(
    found: &PixelObjects,
    reference: &PixelObjects,
    core: PixelRectangle,
) -> OwnedComparison {
    let (owned, reference_owned) = (found.within(core), reference.within(core));
    let mut compared = OwnedComparison {
        objects: owned.iter().filter(|owned| **owned).count(),
        area: area(found, &owned),
        reference_objects: reference_owned.iter().filter(|owned| **owned).count(),
        reference_area: area(reference, &reference_owned),
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
    // As in `compare`: the sum does not depend on the numbering of objects.
    pair_dice.sort_unstable_by(f64::total_cmp);
    compared.sum_of_pair_dice = pair_dice.iter().sum();
    compared
}

fn area(objects: &PixelObjects, owned: &[bool]) -> f64 {
    owned.iter().enumerate().filter(|(_, owned)| **owned).map(|(object, _)| objects.area(object)).sum()
}

impl OwnedComparison {
    /// The tile's part of ΣI.
    #[must_use]
    pub fn shared_area(&self) -> f64 {
        f64::midpoint(self.covered, self.reference_covered)
    }

    /// As [`Comparison::dice`](super::Comparison::dice), of the tile's parts.
    #[must_use]
    pub fn dice(&self) -> f64 {
        self.ratio(2.0 * self.shared_area(), self.area + self.reference_area)
    }

    /// As [`Comparison::jaccard`](super::Comparison::jaccard), of the tile's parts.
    #[must_use]
    pub fn jaccard(&self) -> f64 {
        self.ratio(self.shared_area(), self.area + self.reference_area - self.shared_area())
    }

    /// As [`Comparison::pair_dice`](super::Comparison::pair_dice), a pair counting as far as it is the tile's.
    #[must_use]
    pub fn pair_dice(&self) -> f64 {
        self.ratio(self.sum_of_pair_dice, self.pairs)
    }

    /// The share of the area of the reference's objects that is covered.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.ratio(self.reference_covered, self.reference_area)
    }

    /// Returns the mean area of the objects (not the reference's) in pixels. 0 without objects.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer objects than 2^53")]
    pub fn mean_area(&self) -> f64 {
        if self.objects == 0 { 0.0 } else { self.area / self.objects as f64 }
    }

    /// Returns `part / whole`. For 0 / 0 it is 1 if both sides are empty, and 0 if one is.
    fn ratio(&self, part: f64, whole: f64) -> f64 {
        ratio(part, whole, self.area + self.reference_area == 0.0)
    }
}
