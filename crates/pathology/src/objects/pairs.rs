//! Candidate pairs of overlapping objects: an R-tree join of bounding boxes.
//!
//! Source: A. Guttman, "R-trees: a dynamic index structure for spatial searching", SIGMOD 1984. The trees are
//! bulk-loaded, and the join descends both together. The caller checks whether the objects of a candidate pair share
//! area.

use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};

/// An axis-parallel box, its edges included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    /// Smallest x and y.
    pub low: [f64; 2],
    /// Largest x and y.
    pub high: [f64; 2],
}

/// Returns every pair `(of first, of second)` whose boxes have a point in common, in no particular order.
pub(super) fn candidates(first: &[BoundingBox], second: &[BoundingBox]) -> Vec<(usize, usize)> {
    let (first, second) = (tree(first), tree(second));
    first.intersection_candidates_with_other_tree(&second).map(|(a, b)| (a.data, b.data)).collect()
}

fn tree(boxes: &[BoundingBox]) -> RTree<GeomWithData<Rectangle<[f64; 2]>, usize>> {
    let boxed = |(object, bounds): (usize, &BoundingBox)| {
        GeomWithData::new(Rectangle::from_aabb(AABB::from_bounds(bounds.low, bounds.high)), object)
    };
    RTree::bulk_load(boxes.iter().enumerate().map(boxed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn boxes() -> impl Strategy<Value = Vec<BoundingBox>> {
        // Corners are on a small grid, so that boxes often touch in an edge or a corner only.
        let one = (0u8..12, 0u8..12, 0u8..5, 0u8..5).prop_map(|(x, y, width, height)| BoundingBox {
            low: [f64::from(x), f64::from(y)],
            high: [f64::from(x + width), f64::from(y + height)],
        });
        prop::collection::vec(one, 0..60)
    }

    proptest! {
        #[test]
        fn the_trees_find_what_comparing_each_with_each_finds(first in boxes(), second in boxes()) {
            let mut expected = Vec::new();
            for (a, one) in first.iter().enumerate() {
                for (b, other) in second.iter().enumerate() {
                    if (0..2).all(|axis| one.low[axis] <= other.high[axis] && other.low[axis] <= one.high[axis]) {
                        expected.push((a, b));
                    }
                }
            }
            let mut found = candidates(&first, &second);
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
