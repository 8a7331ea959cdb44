//! Laws of bounding boxes, compared with a slow implementation that lists coordinates, and of scaling there
//! and back.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use pleach_regions::{BoundsError, Interval, Resolution, SpatialBounds};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn bounds(edges: &[[i64; 2]], resolution: Option<Resolution>) -> SpatialBounds {
    let axes: Vec<_> = edges.iter().map(|[start, end]| Interval::new(*start, *end).unwrap()).collect();
    SpatialBounds::new(&axes, resolution).unwrap()
}

fn microns(microns_per_px: f64) -> Resolution {
    Resolution::from_microns_per_px(microns_per_px).unwrap()
}

/// Boxes small enough to list, sometimes empty.
fn small(dimensions: usize) -> impl Strategy<Value = SpatialBounds> {
    let axis = (-4..5_i64, 0..5_i64).prop_map(|(start, length)| [start, start + length]);
    prop::collection::vec(axis, dimensions).prop_map(|edges| bounds(&edges, None))
}

/// Three boxes with equal numbers of axes.
fn three() -> impl Strategy<Value = (SpatialBounds, SpatialBounds, SpatialBounds)> {
    (1..4_usize).prop_flat_map(|dimensions| (small(dimensions), small(dimensions), small(dimensions)))
}

/// Intervals anywhere, of any length.
fn any_interval() -> impl Strategy<Value = Interval> {
    let edge = || prop_oneof![any::<i64>(), -9..9_i64, Just(i64::MIN), Just(i64::MAX)];
    (edge(), edge()).prop_map(|(one, other)| Interval::new(one.min(other), one.max(other)).unwrap())
}

/// Resolutions of real scanners, and any others.
fn resolution() -> impl Strategy<Value = Resolution> {
    prop_oneof![
        prop::sample::select(vec![0.25, 0.5, 1.0, 2.0, 0.2527, 0.252_584_99, 8.0]).prop_map(microns),
        (0.05..50.0).prop_map(microns),
    ]
}

/// Lists every position inside.
fn listed(bounds: &SpatialBounds) -> BTreeSet<Vec<i64>> {
    bounds.axes().iter().fold(BTreeSet::from([Vec::new()]), |positions, axis| {
        let further =
            |position: Vec<i64>| (axis.start()..axis.end()).map(move |at| [&position[..], &[at]].concat());
        positions.into_iter().flat_map(further).collect()
    })
}

proptest! {
    #[test]
    fn boxes_are_the_positions_inside((one, other, third) in three()) {
        let (a, b) = (listed(&one), listed(&other));
        prop_assert_eq!(one.pixels().unwrap(), a.len() as u64);
        prop_assert_eq!(one.is_empty(), a.is_empty());
        prop_assert_eq!(one.contains(&other).unwrap(), b.is_subset(&a));
        let both: BTreeSet<_> = a.intersection(&b).cloned().collect();
        prop_assert_eq!(listed(&one.intersection(&other).unwrap()), both);
        for position in listed(&third) {
            prop_assert_eq!(one.holds(&position).unwrap(), a.contains(&position));
        }
        let union = one.union(&other).unwrap();
        prop_assert!(union.contains(&one).unwrap() && union.contains(&other).unwrap());
        // The union is the smallest such box: any box that contains both contains it.
        if third.contains(&one).unwrap() && third.contains(&other).unwrap() {
            prop_assert!(third.contains(&union).unwrap());
        }
        let joined: BTreeSet<_> = a.union(&b).cloned().collect();
        for axis in 0..one.dimensions() {
            let (low, high) = (joined.iter().map(|at| at[axis]).min(), joined.iter().map(|at| at[axis]).max());
            if let (Some(low), Some(high)) = (low, high) {
                prop_assert_eq!(union.axes()[axis], Interval::new(low, high + 1).unwrap());
            }
        }
    }

    #[test]
    fn operations_do_not_depend_on_order((one, other, third) in three()) {
        prop_assert_eq!(one.intersection(&other), other.intersection(&one));
        let left = one.intersection(&other).unwrap().intersection(&third);
        prop_assert_eq!(left, one.intersection(&other.intersection(&third).unwrap()));
        prop_assert_eq!(listed(&one.union(&other).unwrap()), listed(&other.union(&one).unwrap()));
    }

    /// Nothing panics at any coordinates, and too large results are errors.
    #[test]
    fn coordinates_at_the_ends_overflow_with_an_error(
        axis in any_interval(), other in any_interval(), offset: i64, from in resolution(), to in resolution(),
    ) {
        let line = SpatialBounds::new(&[axis], Some(from)).unwrap();
        prop_assert_eq!(i128::from(line.pixels().unwrap()), i128::from(axis.end()) - i128::from(axis.start()));
        prop_assert!(axis.union(other).contains(axis) && axis.contains(axis.intersection(other)));
        let fits = axis.start().checked_add(offset).is_some() && axis.end().checked_add(offset).is_some();
        match line.translated(&[offset]) {
            Ok(moved) => {
                prop_assert!(fits);
                prop_assert_eq!(moved.pixels(), line.pixels());
                if let Some(back) = offset.checked_neg() {
                    prop_assert_eq!(moved.translated(&[back]), Ok(line));
                }
            }
            Err(error) => {
                let is_overflow = matches!(error, BoundsError::Overflow { .. });
                prop_assert!(!fits && is_overflow);
            }
        }
        // Scaled edges are errors only if they exceed 64 bits.
        for scaled in [line.covering_at(to), line.nearest_at(to)] {
            let expected = axis.end().unsigned_abs().max(axis.start().unsigned_abs()) as f64
                * (from.microns_per_px() / to.microns_per_px());
            prop_assert!(scaled.is_ok() || expected > 9.2e18, "{expected}");
        }
    }

    #[test]
    fn scaled_bounds_cover_the_original(one in small(2), far in -1_000_000_000..1_000_000_000_i64,
        from in resolution(), to in resolution(),
    ) {
        let one = bounds(&[one.axes()[0].translated(far).unwrap().into(), one.axes()[1].into()], Some(from));
        let there = one.covering_at(to).unwrap();
        prop_assert_eq!(there.resolution(), Some(to));
        prop_assert_eq!(there.is_empty(), one.is_empty());
        prop_assert!(there.covering_at(from).unwrap().contains(&one).unwrap());
        // Scaling to a finer resolution and back to the nearest edges restores the box.
        let (coarse, fine) = (from.max(to), from.min(to));
        let coarse = bounds(&[one.axes()[0].into(), one.axes()[1].into()], Some(coarse));
        let back = coarse.nearest_at(fine).unwrap().nearest_at(coarse.resolution().unwrap());
        prop_assert_eq!(back, Ok(coarse));
    }

    /// At a whole ratio of resolutions, edges equal exact fractions.
    #[test]
    fn scaling_by_whole_ratios_is_exact(start in -1000..1000_i64, length in 1..1000_i64, ratio in 1..65_i64) {
        let (fine, coarse) = (microns(0.25), microns(0.25 * ratio as f64));
        let line = bounds(&[[start, start + length]], Some(fine));
        let covering = line.covering_at(coarse).unwrap().axes()[0];
        let listed: BTreeSet<_> = (start..start + length).map(|at| at.div_euclid(ratio)).collect();
        prop_assert!((covering.start()..covering.end()).eq(listed));
        let multiplied = bounds(&[[start * ratio, (start + length) * ratio]], Some(fine));
        let line = bounds(&[[start, start + length]], Some(coarse));
        prop_assert_eq!(line.covering_at(fine), Ok(multiplied));
        prop_assert_eq!(line.nearest_at(fine), Ok(multiplied));
    }

    #[test]
    fn boxes_that_abut_still_do(start in -5000..5000_i64, sides in (0..900_i64, 0..900_i64),
        from in resolution(), to in resolution(),
    ) {
        let middle = start + sides.0;
        let scaled = |edges| bounds(&[edges], Some(from)).nearest_at(to).unwrap().axes()[0];
        prop_assert_eq!(scaled([start, middle]).end(), scaled([middle, middle + sides.1]).start());
    }

    #[test]
    fn bounds_round_trip_through_json(one in prop_oneof![small(1), small(2), small(3)], stated in prop::option::of(resolution())) {
        let edges: Vec<[i64; 2]> = one.axes().iter().map(|axis| (*axis).into()).collect();
        let one = bounds(&edges, stated);
        let json = serde_json::to_string(&one).unwrap();
        prop_assert_eq!(serde_json::from_str::<SpatialBounds>(&json).unwrap(), one);
    }
}

/// A tile's box on a slide at 40x is found on its thumbnail at 1.25x.
#[test]
fn a_tile_is_found_on_the_thumbnail() {
    let (slide, thumbnail) = (microns(0.25), Resolution::from_magnification(1.25).unwrap());
    let tile = bounds(&[[4096, 8192], [100, 133]], Some(slide));
    assert_eq!(tile.covering_at(thumbnail).unwrap(), bounds(&[[128, 256], [3, 5]], Some(thumbnail)));
    assert_eq!(tile.nearest_at(thumbnail).unwrap(), bounds(&[[128, 256], [3, 4]], Some(thumbnail)));
    assert_eq!(tile.to_string(), "x 4096..8192, y 100..133, 0.25 microns per pixel");
}

#[test]
fn incompatible_bounds_are_refused() {
    let (line, plane) = (bounds(&[[0, 9]], None), bounds(&[[0, 9], [0, 9]], None));
    let finer = bounds(&[[0, 9]], Some(microns(0.5)));
    let dimensions = BoundsError::Dimensions { found: 2, allowed: 1 };
    assert_eq!(line.contains(&plane), Err(dimensions));
    assert_eq!(line.intersection(&plane), Err(dimensions));
    assert_eq!(line.union(&plane), Err(dimensions));
    assert_eq!(line.holds(&[1, 2]), Err(dimensions));
    assert_eq!(line.translated(&[1, 2]), Err(dimensions));
    let error = line.union(&finer).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bounds: 0.5 microns per pixel instead of no stated resolution; scale one of them"
    );
    assert_eq!(line.covering_at(microns(1.0)), Err(BoundsError::Unstated));
    assert_eq!(Interval::new(2, 1), Err(BoundsError::Reversed { start: 2, end: 1 }));
    assert_eq!(SpatialBounds::new(&[], None), Err(BoundsError::Axes { found: 0 }));
    assert_eq!(SpatialBounds::new(&[Interval::default(); 4], None), Err(BoundsError::Axes { found: 4 }));
    let all = [[i64::MIN, i64::MAX], [0, 2]];
    assert_eq!(bounds(&all, None).pixels(), Err(BoundsError::Overflow { what: "the number of pixels" }));
}
