//! Points: their number, and links to those of the next time.

use super::{bytes, points_of, seconds};
use pleach_regions::{DataRegion, ElementType, Points, Table};
use pleach_workflow::{Accepts, Argument, CALIBRATION_COLUMNS, DeclaredOperation, OperationError, Port};
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
        let links = Links::new(now, next, [1.0; 3], arguments[0].as_f64());
        Ok(vec![DataRegion::Table(Table::new(links.columns()))])
    },
};

/// As [`LINK`], in micrometers: `distance`, and the column `displacement`. Pixels may have another size along each axis. Further
/// column: `speed`, micrometers per second, 0 if the seconds between times are unknown.
pub(super) const LINK_UM: DeclaredOperation = DeclaredOperation {
    name: "points.link-um",
    version: 1,
    arguments: &[Argument { name: "distance", accepts: Accepts::Reals { low: 0.0, high: 1e6 } }],
    inputs: &[
        Port { name: "points", element: POINTS },
        Port { name: "next", element: POINTS },
        Port { name: "calibration", element: ElementType::Table },
    ],
    outputs: &[Port { name: "links", element: ElementType::Table }],
    cost_seconds: |pixels| seconds(5.0, pixels),
    memory_bytes: |pixels| bytes(1, pixels),
    run: |inputs, arguments| {
        let (now, next) = (points_of(inputs[0])?, points_of(inputs[1])?);
        let calibration = inputs[2].table()?;
        let column = |name: &str| {
            let missing = || format!("a calibration without column {name}");
            calibration
                .get(name)
                .ok_or_else(|| OperationError::Library { library: "volumes", cause: missing().into() })
        };
        let [x, y, z, seconds] = CALIBRATION_COLUMNS.map(column);
        let links = Links::new(now, next, [x?, y?, z?], arguments[0].as_f64());
        let seconds = seconds?;
        let speed = if seconds > 0.0 { links.mean / seconds } else { 0.0 };
        let columns = links.columns().into_iter().chain([("speed", speed)]);
        Ok(vec![DataRegion::Table(Table::new(columns))])
    },
};

/// Links between points of two times.
struct Links {
    linked: f64,
    vanished: f64,
    appeared: f64,
    /// Mean distance of linked points.
    mean: f64,
}

impl Links {
    /// Links points whose coordinates are multiples of `scale`.
    fn new(now: &Points, next: &Points, scale: [f64; 3], distance: f64) -> Self {
        let placed = |points: &Points| points.iter().map(|point| scaled(point, scale)).collect::<Vec<_>>();
        let (now, next) = (placed(now), placed(next));
        let distances = linked(&now, &next, distance);
        let linked = distances.len() as f64;
        let mean = if linked > 0.0 { distances.iter().sum::<f64>() / linked } else { 0.0 };
        let (vanished, appeared) = (now.len() as f64 - linked, next.len() as f64 - linked);
        Self { linked, vanished, appeared, mean }
    }

    fn columns(&self) -> [(&'static str, f64); 4] {
        let Self { linked, vanished, appeared, mean } = *self;
        [("linked", linked), ("vanished", vanished), ("appeared", appeared), ("displacement", mean)]
    }
}

type Tree = RTree<GeomWithData<[f64; 3], usize>>;

fn tree(points: &[[f64; 3]]) -> Tree {
    let placed = points.iter().enumerate().map(|(number, point)| GeomWithData::new(*point, number));
    RTree::bulk_load(placed.collect())
}

/// Returns the position of a point of up to three coordinates.
fn scaled(point: &[f64], scale: [f64; 3]) -> [f64; 3] {
    let mut at = [0.0; 3];
    at.iter_mut().zip(point).zip(scale).for_each(|((at, coordinate), scale)| *at = coordinate * scale);
    at
}

/// Returns the nearest point, the first one of equally near ones, with its squared distance.
fn nearest(tree: &Tree, at: [f64; 3]) -> Option<(usize, f64)> {
    let squared = tree.nearest_neighbor(at)?.distance_2(&at);
    let equally_near = tree.locate_within_distance(at, squared).map(|found| found.data);
    Some((equally_near.min()?, squared))
}

/// Returns the distance of each link.
fn linked(now: &[[f64; 3]], next: &[[f64; 3]], distance: f64) -> Vec<f64> {
    let (of_now, of_next) = (tree(now), tree(next));
    let link = |(number, point): (usize, &[f64; 3])| {
        let (successor, squared) = nearest(&of_next, *point)?;
        let (back, _) = nearest(&of_now, next[successor])?;
        let length = squared.sqrt();
        (back == number && length <= distance).then_some(length)
    };
    now.iter().enumerate().filter_map(link).collect()
}
