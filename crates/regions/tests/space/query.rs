//! Laws of spatial queries: an index finds the objects that a scan over all of them finds.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use crate::objects::objects;
use pleach_regions::{
    AnnotatedObjects, DataRegion, FoundObject, FoundObjects, LabelMap, MAX_FOUND, Points, Polygons,
    QueryError, Raster, Selection, SpatialIndex, SpatialQuery,
};
use proptest::prelude::*;

fn in_box(low: &[f64], high: &[f64]) -> SpatialQuery {
    let selection = Selection::InBox { low: low.to_vec(), high: high.to_vec() };
    SpatialQuery { selection, max_objects: MAX_FOUND, core: None }
}

fn nearest(at: &[f64], count: u32) -> SpatialQuery {
    SpatialQuery { selection: Selection::Nearest { at: at.to_vec() }, max_objects: count, core: None }
}

fn find(region: &DataRegion, query: &SpatialQuery) -> FoundObjects {
    SpatialIndex::new(region).unwrap().find(query).unwrap()
}

fn ids(found: &FoundObjects) -> Vec<u64> {
    found.objects.iter().map(|object| object.id).collect()
}

/// Answers a query by a scan over the objects, which are given by ascending id.
fn scan(objects: &[FoundObject], query: &SpatialQuery) -> FoundObjects {
    let is_own = |object: &&FoundObject| {
        let within = |[low, high]: &[Vec<f64>; 2]| {
            object.centroid.iter().zip(low).zip(high).all(|((at, low), high)| low <= at && at < high)
        };
        query.core.as_ref().is_none_or(within)
    };
    let own = objects.iter().filter(is_own).cloned();
    let mut found: Vec<FoundObject> = match &query.selection {
        Selection::InBox { low, high } => {
            let meets = |object: &FoundObject| {
                let axes = 0..low.len();
                axes.into_iter().all(|axis| object.low[axis] <= high[axis] && low[axis] <= object.high[axis])
            };
            own.filter(meets).collect()
        }
        Selection::Nearest { at } => {
            let distance = |object: &FoundObject| {
                let squares = object.centroid.iter().zip(at).map(|(a, b)| (a - b) * (a - b));
                squares.sum::<f64>().sqrt()
            };
            own.map(|object| FoundObject { distance: Some(distance(&object)), ..object }).collect()
        }
    };
    found.sort_by(|a, b| a.distance.partial_cmp(&b.distance).unwrap().then(a.id.cmp(&b.id)));
    let total = found.len() as u64;
    found.truncate(query.max_objects as usize);
    FoundObjects { total, objects: found }
}

/// Compares answers. Small integers make distances whose squares are exact.
fn same(found: &FoundObjects, expected: &FoundObjects) -> bool {
    let close = |a: &FoundObject, b: &FoundObject| {
        let (near, far) = (a.distance.unwrap_or(0.0), b.distance.unwrap_or(0.0));
        (a.id, &a.low, &a.high, &a.centroid) == (b.id, &b.low, &b.high, &b.centroid)
            && (near - far).abs() < 1e-9
    };
    let pairs = found.objects.iter().zip(&expected.objects);
    found.total == expected.total
        && found.objects.len() == expected.objects.len()
        && pairs.into_iter().all(|(a, b)| close(a, b))
}

/// Points of this number of axes, at whole positions, so that many are equally far.
fn points(axes: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec((-8..9_i32).prop_map(f64::from), axes), 0..60)
}

/// A query at whole positions, with or without a core.
fn query(axes: usize) -> impl Strategy<Value = SpatialQuery> {
    let corner = || prop::collection::vec((-10..11_i32).prop_map(f64::from), axes);
    let core = prop::option::of((corner(), corner()).prop_map(|(low, high)| [low, high]));
    (corner(), corner(), any::<bool>(), 1..20_u32, core).prop_map(|(a, b, is_box, max_objects, core)| {
        let selection = if is_box {
            let pairs = || a.iter().zip(&b);
            let low = pairs().map(|(a, b)| a.min(*b)).collect();
            Selection::InBox { low, high: pairs().map(|(a, b)| a.max(*b)).collect() }
        } else {
            Selection::Nearest { at: a }
        };
        SpatialQuery { selection, max_objects, core }
    })
}

/// A rectangle of an outline: its corner and sides.
fn rectangle([x, y]: [f64; 2], [width, height]: [f64; 2]) -> Vec<[f64; 2]> {
    vec![[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
}

/// The corner and sides of a rectangle, and the step down to a second one, if any.
type Rectangles = ([f64; 2], [f64; 2], Option<f64>);

/// Outlines of one rectangle, or of two equal ones, the second so far to the right that they do not meet.
fn outlines() -> impl Strategy<Value = Vec<Rectangles>> {
    let corner = [-8..9_i32, -8..9];
    let sides = [1..6_i32, 1..6];
    let outline = (corner, sides, prop::option::of(-4..5_i32))
        .prop_map(|(corner, sides, step)| (corner.map(f64::from), sides.map(f64::from), step.map(f64::from)));
    prop::collection::vec(outline, 0..40)
}

/// Returns a query of the box, or of one at the point. The core ends between the centroids of [`outlines`].
fn box_query(query: SpatialQuery) -> SpatialQuery {
    let selection = match query.selection {
        Selection::Nearest { at } => {
            Selection::InBox { high: at.iter().map(|low| low + 5.0).collect(), low: at }
        }
        in_box @ Selection::InBox { .. } => in_box,
    };
    let shifted = |corner: Vec<f64>| corner.iter().map(|at| at + 0.125).collect();
    SpatialQuery { selection, core: query.core.map(|core| core.map(shifted)), max_objects: query.max_objects }
}

proptest! {
    #[test]
    fn points_are_those_of_a_scan((points, query) in (1..4_usize).prop_flat_map(|axes| (points(axes), query(axes)))) {
        let axes = points.first().map_or(query_axes(&query), Vec::len);
        let region = DataRegion::Points(Points::new(axes as u8, points.concat()).unwrap());
        let objects: Vec<FoundObject> = (0..).zip(&points).map(|(id, at)| FoundObject {
            id, low: at.clone(), high: at.clone(), centroid: at.clone(), distance: None,
        }).collect();
        let (found, expected) = (find(&region, &query), scan(&objects, &query));
        prop_assert!(same(&found, &expected), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn boxes_are_those_of_a_scan(corners in points(4), query in query(2)) {
        let mut objects = AnnotatedObjects::new(Vec::<String>::new()).unwrap();
        let mut expected = Vec::new();
        for (id, c) in (0..).zip(&corners) {
            let (low, high) = ([c[0].min(c[2]), c[1].min(c[3])], [c[0].max(c[2]), c[1].max(c[3])]);
            objects.push_box(low, high, "x", &[]).unwrap();
            let centroid = vec![(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
            expected.push(FoundObject { id, low: low.to_vec(), high: high.to_vec(), centroid, distance: None });
        }
        let (found, expected) = (find(&DataRegion::Objects(Box::new(objects)), &query), scan(&expected, &query));
        prop_assert!(same(&found, &expected), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn polygons_in_a_box_are_those_of_a_scan(outlines in outlines(), query in query(2)) {
        let query = box_query(query);
        let (mut polygons, mut expected) = (Vec::new(), Vec::new());
        for (id, (corner, sides, step)) in (0..).zip(&outlines) {
            let [[x, y], [width, height]] = [*corner, *sides];
            let second = step.map(|step| [x + 20.0, y + step]);
            polygons.push([Some(*corner), second].into_iter().flatten().map(|at| rectangle(at, *sides)).collect::<Vec<_>>());
            let last = second.unwrap_or(*corner);
            expected.push(FoundObject {
                id,
                low: vec![x, y.min(last[1])],
                high: vec![last[0] + width, y.max(last[1]) + height],
                centroid: vec![(x + last[0] + width) / 2.0, (y + last[1] + height) / 2.0],
                distance: None,
            });
        }
        let region = DataRegion::Polygons(Box::new(Polygons::new(polygons).unwrap()));
        let (mut found, expected) = (find(&region, &query), scan(&expected, &query));
        // Centroids are sums over edges. Exact ones are multiples of a half.
        for at in found.objects.iter_mut().flat_map(|object| &mut object.centroid) {
            let exact = (2.0 * *at).round() / 2.0;
            prop_assert!((*at - exact).abs() < 1e-9, "{at}");
            *at = exact;
        }
        prop_assert!(same(&found, &expected), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn labels_are_those_of_a_scan(
        (width, labels) in (1..12_usize).prop_flat_map(|width| {
            (Just(width), (1..12_usize).prop_flat_map(move |height| prop::collection::vec(0..5_u32, width * height)))
        }),
        query in query(2),
    ) {
        let map = LabelMap::new(width as u32, (labels.len() / width) as u32, labels.clone()).unwrap();
        let mut expected = Vec::new();
        for label in 1..5_u32 {
            let places: Vec<usize> = (0..labels.len()).filter(|place| labels[*place] == label).collect();
            if places.is_empty() { continue }
            let xs: Vec<f64> = places.iter().map(|place| (place % width) as f64).collect();
            let ys: Vec<f64> = places.iter().map(|place| (place / width) as f64).collect();
            let least = |of: &[f64]| of.iter().copied().fold(f64::MAX, f64::min);
            let most = |of: &[f64]| of.iter().copied().fold(f64::MIN, f64::max) + 1.0;
            let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64 + 0.5;
            expected.push(FoundObject {
                id: u64::from(label),
                low: vec![least(&xs), least(&ys)],
                high: vec![most(&xs), most(&ys)],
                centroid: vec![mean(&xs), mean(&ys)],
                distance: None,
            });
        }
        let (found, expected) = (find(&DataRegion::Labels(map), &query), scan(&expected, &query));
        prop_assert!(same(&found, &expected), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn objects_of_a_mask_are_its_connected_pixels(
        (width, pixels) in (1..14_usize).prop_flat_map(|width| {
            (Just(width), (1..14_usize).prop_flat_map(move |height| prop::collection::vec(any::<bool>(), width * height)))
        }),
        query in query(2),
    ) {
        let data = pixels.iter().map(|pixel| if *pixel { 255 } else { 0 }).collect();
        let mask = Raster::new(width as u32, (pixels.len() / width) as u32, 1, data).unwrap();
        let mut expected = Vec::new();
        for (id, object) in (1..).zip(objects(&mask.view(), [0, 0])) {
            let along = |axis: usize| object.iter().map(move |at| at[axis] as f64);
            let mean = |axis: usize| along(axis).sum::<f64>() / object.len() as f64 + 0.5;
            expected.push(FoundObject {
                id,
                low: (0..2).map(|axis| along(axis).fold(f64::MAX, f64::min)).collect(),
                high: (0..2).map(|axis| along(axis).fold(f64::MIN, f64::max) + 1.0).collect(),
                centroid: vec![mean(0), mean(1)],
                distance: None,
            });
        }
        let (found, expected) = (find(&DataRegion::Mask(mask), &query), scan(&expected, &query));
        prop_assert!(same(&found, &expected), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn centroid_of_an_outline_is_that_of_its_pixels(cells in prop::collection::vec(any::<bool>(), 36)) {
        // Each pixel is a square of its own, in the direction of its position, so that directions are mixed.
        let squares = (0..36).filter(|place| cells[*place]).map(|place| {
            let (x, y) = (f64::from(place as u32 % 6), f64::from(place as u32 / 6));
            let mut ring = vec![[x, y], [x + 1.0, y], [x + 1.0, y + 1.0], [x, y + 1.0]];
            if place % 2 == 0 { ring.reverse(); }
            ring
        });
        let squares: Vec<Vec<[f64; 2]>> = squares.collect();
        let region = DataRegion::Polygons(Box::new(Polygons::new([squares.clone()]).unwrap()));
        let found = find(&region, &nearest(&[0.0, 0.0], 1));
        prop_assert_eq!(found.objects.len(), usize::from(!squares.is_empty()));
        for object in &found.objects {
            for axis in 0..2 {
                let mean = squares.iter().map(|ring| ring.iter().map(|at| at[axis]).sum::<f64>() / 4.0).sum::<f64>()
                    / squares.len() as f64;
                prop_assert!((object.centroid[axis] - mean).abs() < 1e-9, "{object:?}");
            }
        }
    }
}

fn query_axes(query: &SpatialQuery) -> usize {
    match &query.selection {
        Selection::InBox { low, .. } => low.len(),
        Selection::Nearest { at } => at.len(),
    }
}

#[test]
fn hole_moves_the_centroid_and_not_the_box() {
    let square = |x: f64, y: f64, side: f64| vec![[x, y], [x + side, y], [x + side, y + side], [x, y + side]];
    let rings = [square(0.0, 0.0, 6.0), square(3.0, 3.0, 2.0)];
    let found =
        find(&DataRegion::Polygons(Box::new(Polygons::new([rings]).unwrap())), &nearest(&[0.0, 0.0], 1));
    // (36 · 3 − 4 · 4) / 32.
    let object = &found.objects[0];
    assert_eq!(
        (&*object.centroid, &*object.low, &*object.high),
        (&[2.875; 2][..], &[0.0; 2][..], &[6.0; 2][..])
    );
}

#[test]
fn degenerate_regions_and_boxes_have_answers() {
    let empty = DataRegion::Points(Points::new(2, Vec::new()).unwrap());
    assert_eq!(find(&empty, &in_box(&[0.0; 2], &[9.0; 2])), FoundObjects::default());
    assert_eq!(find(&empty, &nearest(&[0.0; 2], 3)), FoundObjects::default());
    let background = DataRegion::Labels(LabelMap::new(3, 2, vec![0; 6]).unwrap());
    assert_eq!(find(&background, &in_box(&[0.0; 2], &[9.0; 2])).total, 0);
    let mut objects = AnnotatedObjects::new(Vec::<String>::new()).unwrap();
    objects.push_box([2.0; 2], [4.0; 2], "x", &[]).unwrap();
    objects.push_polygon::<Vec<[f64; 2]>>(&[], "without positions", &[]).unwrap();
    let line = [[5.0, 5.0], [7.0, 5.0], [6.0, 5.0]];
    objects.push_polygon(&[line], "without an area", &[]).unwrap();
    let region = DataRegion::Objects(Box::new(objects));
    // Closed boxes: the corner (4, 4) touches, and a box without an area is allowed.
    assert_eq!(ids(&find(&region, &in_box(&[4.0; 2], &[4.5; 2]))), [0]);
    assert_eq!(ids(&find(&region, &in_box(&[4.0; 2], &[4.0; 2]))), [0]);
    assert_eq!(ids(&find(&region, &in_box(&[4.0_f64.next_up(); 2], &[4.5; 2]))), [0; 0]);
    assert_eq!(find(&region, &in_box(&[-9.0; 2], &[1.0; 2])), FoundObjects::default());
    let all = find(&region, &nearest(&[6.0, 5.0], 9));
    assert_eq!((all.total, ids(&all), &*all.objects[0].centroid), (2, vec![2, 0], &[6.0, 5.0][..]));
    // The total counts objects beyond the maximum.
    let one = SpatialQuery { max_objects: 1, ..in_box(&[0.0; 2], &[9.0; 2]) };
    let found = find(&region, &one);
    assert_eq!((found.total, ids(&found)), (2, vec![0]));
    // A core is half-open: the object at its end belongs to the neighbor.
    let own = |low: f64, high: f64| {
        let core = Some([vec![low; 2], vec![high; 2]]);
        ids(&find(&region, &SpatialQuery { core, ..in_box(&[0.0; 2], &[9.0; 2]) }))
    };
    assert_eq!((own(0.0, 3.0), own(3.0, 4.0)), (vec![], vec![0]));
}

#[test]
fn impossible_queries_are_refused() {
    let points = DataRegion::Points(Points::new(2, vec![1.0, 2.0]).unwrap());
    let index = SpatialIndex::new(&points).unwrap();
    let refusal = |query: &SpatialQuery| index.find(query).unwrap_err().to_string();
    assert_eq!(
        refusal(&in_box(&[0.0; 3], &[1.0; 3])),
        "query: 3 coordinates; 2 are allowed, one for each axis of the region"
    );
    assert_eq!(refusal(&nearest(&[0.0, f64::NAN], 1)), "query: coordinate NaN; finite values are allowed");
    assert_eq!(
        refusal(&in_box(&[0.0, 2.0], &[1.0, 1.0])),
        "query: a box from 2 to 1 along axis 1; an end from 2 on is allowed"
    );
    for count in [0, MAX_FOUND + 1] {
        assert_eq!(
            refusal(&nearest(&[0.0; 2], count)),
            format!("query: {count} objects; 1 to 2000 are allowed")
        );
    }
    let core = Some([vec![0.0], vec![1.0]]);
    assert!(matches!(
        index.find(&SpatialQuery { core, ..nearest(&[0.0; 2], 1) }),
        Err(QueryError::Axes { found: 1, allowed: 2 })
    ));
    let gray = SpatialIndex::new(&DataRegion::Gray8(Raster::filled(2, 2, 1, 0).unwrap())).unwrap_err();
    assert_eq!(
        gray.to_string(),
        "region: holds gray8; masks, labels, points, polygons and objects are allowed"
    );
}
