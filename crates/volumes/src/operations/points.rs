//! Points: their number, and links to those of the next time.

use super::{bytes, points_of, seconds};
use pleach_regions::{DataRegion, ElementType, Points, Table};
use pleach_workflow::{Accepts, Argument, DeclaredOperation, Port};
use rstar::primitives::GeomWithData;
use rstar::{PointDistance, RTree};

const POINTS: ElementType = ElementType::Points;

/// Number of points, as the column `points`. Bounds: own for each tile, whole for each specimen.
pub(super) const COUNT: DeclaredOperation = DeclaredOperation {
    name: "points.count",
    version: 1,
    arguments: &[],
    inputs: &[Port { name: "points", element: POINTS }],
    outputs: &[Port { name: "count", element: ElementType::Table }],
    cost_seconds: |pixels| seconds(0.01, pixels),
    memory_bytes: |pixels| bytes(0, pixels),
    run: |inputs, _| {
        let count = points_of(inputs[0])?.len() as f64;
        Ok(vec![DataRegion::Table(Table::new([("points", count)]))])
    },
};

/// Links points to those of the next time: two points are linked if each is the nearest one of the other, and they are at
/// most `distance` pixels apart. Columns: `linked`, `vanished` (without a successor), `appeared` (without a predecessor) and
/// `displacement`, the mean distance of linked points, pixels. Of equally near points, the first one counts. Bounds: own,
/// and an offset of 1 along t.
pub(super) const LINK: DeclaredOperation = DeclaredOperation {
    name: "points.link",
    version: 1,
    arguments: &[Argument { name: "distance", accepts: Accepts::Reals { low: 0.0, high: 1e6 } }],
    inputs: &[Port { name: "points", element: POINTS }, Port { name: "next", element: POINTS }],
    outputs: &[Port { name: "links", element: ElementType::Table }],
    cost_seconds: |pixels| seconds(5.0, pixels),
    memory_bytes: |pixels| bytes(1, pixels),
    run: |inputs, arguments| {
        let (now, next) = (points_of(inputs[0])?, points_of(inputs[1])?);
        let distances = linked(now, next, arguments[0].as_f64());
        let linked = distances.len() as f64;
        let mean = if linked > 0.0 { distances.iter().sum::<f64>() / linked } else { 0.0 };
        Ok(vec![DataRegion::Table(Table::new([
            ("linked", linked),
            ("vanished", now.len() as f64 - linked),
            ("appeared", next.len() as f64 - linked),
            ("displacement", mean),
        ]))])
    },
};

type Tree = RTree<GeomWithData<[f64; 3], usize>>;

fn tree(points: &Points) -> Tree {
    let placed = points.iter().enumerate().map(|(number, point)| GeomWithData::new(padded(point), number));
    RTree::bulk_load(placed.collect())
}

fn padded(point: &[f64]) -> [f64; 3] {
    let mut at = [0.0; 3];
    at.iter_mut().zip(point).for_each(|(at, coordinate)| *at = *coordinate);
    at
}

/// Returns the nearest point, the first one of equally near ones, with its squared distance.
fn nearest(tree: &Tree, at: [f64; 3]) -> Option<(usize, f64)> {
    let squared = tree.nearest_neighbor(at)?.distance_2(&at);
    let equally_near = tree.locate_within_distance(at, squared).map(|found| found.data);
    Some((equally_near.min()?, squared))
}

/// Returns the distance of each link.
fn linked(now: &Points, next: &Points, distance: f64) -> Vec<f64> {
    let (of_now, of_next) = (tree(now), tree(next));
    let next: Vec<[f64; 3]> = next.iter().map(padded).collect();
    let link = |(number, point): (usize, &[f64])| {
        let (successor, squared) = nearest(&of_next, padded(point))?;
        let (back, _) = nearest(&of_now, next[successor])?;
        let length = squared.sqrt();
        (back == number && length <= distance).then_some(length)
    };
    now.iter().enumerate().filter_map(link).collect()
}
