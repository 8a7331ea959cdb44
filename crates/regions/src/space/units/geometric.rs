//! Joins and cuts of regions without a grid: points, polygons, objects and tables.

use super::{UnitBox, UnitError, UnitLayout};
use crate::{
    AnnotatedObject, AnnotatedObjects, DataRegion, ElementType, Outline, Points, Polygons, Position, Table,
};

/// Offset of a unit's first corner from the window's, by axis.
fn offset(layout: &UnitLayout, part: &UnitBox) -> [f64; 3] {
    [0, 1, 2].map(|axis| f64::from(part.start[axis]) - f64::from(layout.window().start[axis]))
}

fn wrong(found: &DataRegion, allowed: ElementType) -> UnitError {
    UnitError::Element { found: found.element(), allowed }
}

/// Adds the columns of all units, in the order of their first occurrence.
pub(super) fn join_tables(parts: &[(UnitBox, &DataRegion)]) -> Result<DataRegion, UnitError> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for (_, region) in parts {
        let table = region.table().map_err(|_| wrong(region, ElementType::Table))?;
        for (name, value) in table.columns() {
            match sums.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += value,
                None => sums.push((name.to_owned(), value)),
            }
        }
    }
    sums.retain(|(name, _)| name != UNITS);
    sums.push((UNITS.to_owned(), parts.len() as f64));
    Ok(DataRegion::Table(Table::new(sums)))
}

/// Column of a joined table with the number of units.
const UNITS: &str = "units";

pub(super) fn join_points(
    layout: &UnitLayout,
    parts: &[(UnitBox, &DataRegion)],
) -> Result<DataRegion, UnitError> {
    let axes = layout.axes();
    let mut all: Vec<[f64; 3]> = Vec::new();
    for (part, region) in parts {
        let DataRegion::Points(points) = region else { return Err(wrong(region, ElementType::Points)) };
        check_axes(layout, points)?;
        let offset = offset(layout, part);
        let moved = points.iter().map(|point| {
            let mut at = offset;
            at.iter_mut().zip(point).for_each(|(at, coordinate)| *at += coordinate);
            at
        });
        all.extend(moved.filter(|at| belongs(at, layout.window(), part, axes)));
    }
    all.sort_by(|a, b| {
        a.iter()
            .rev()
            .zip(b.iter().rev())
            .fold(std::cmp::Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(b)))
    });
    let coordinates = all.iter().flat_map(|at| &at[..axes]).copied().collect();
    Ok(DataRegion::Points(Points::new(axes as u8, coordinates)?))
}

pub(super) fn cut_points(layout: &UnitLayout, points: &Points) -> Result<DataRegion, UnitError> {
    check_axes(layout, points)?;
    let (axes, offset) = (layout.axes(), offset(layout, layout.own()));
    let mut coordinates = Vec::new();
    for point in points.iter() {
        let mut at = [0.0; 3];
        (0..axes).for_each(|axis| at[axis] = point[axis] - offset[axis]);
        if belongs(&at, layout.own(), layout.window(), axes) {
            coordinates.extend_from_slice(&at[..axes]);
        }
    }
    Ok(DataRegion::Points(Points::new(axes as u8, coordinates)?))
}

fn check_axes(layout: &UnitLayout, points: &Points) -> Result<(), UnitError> {
    let (found, allowed) = (points.axes(), layout.axes());
    if usize::from(found) == allowed || points.is_empty() {
        Ok(())
    } else {
        Err(UnitError::Axes { found, allowed })
    }
}

/// Returns whether a position, from the first corner of `of`, belongs to that box and not to a neighbor of it. Pixel 0 has
/// its center at 0, so a box begins at −½. A side beyond which `around` does not reach has no neighbor.
fn belongs(at: &[f64], of: &UnitBox, around: &UnitBox, axes: usize) -> bool {
    (0..axes).all(|axis| {
        let is_low = around.start[axis] < of.start[axis] && at[axis] < -0.5;
        let is_high = of.end(axis) < around.end(axis) && at[axis] >= f64::from(of.length[axis]) - 0.5;
        !is_low && !is_high
    })
}

/// Returns whether the bounding box of positions reaches into a box from the origin.
fn reaches<'a>(positions: impl Iterator<Item = &'a Position>, length: [u32; 3]) -> bool {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for position in positions {
        for axis in 0..2 {
            low[axis] = low[axis].min(position[axis]);
            high[axis] = high[axis].max(position[axis]);
        }
    }
    (0..2).all(|axis| high[axis] >= -0.5 && low[axis] < f64::from(length[axis]) - 0.5)
}

fn moved(ring: &[Position], by: [f64; 3], sign: f64) -> Vec<Position> {
    ring.iter().map(|[x, y]| [x + sign * by[0], y + sign * by[1]]).collect()
}

pub(super) fn join_polygons(
    layout: &UnitLayout,
    parts: &[(UnitBox, &DataRegion)],
) -> Result<DataRegion, UnitError> {
    let mut all: Vec<Vec<Vec<Position>>> = Vec::new();
    for (part, region) in parts {
        let DataRegion::Polygons(polygons) = region else { return Err(wrong(region, ElementType::Polygons)) };
        let offset = offset(layout, part);
        let rings =
            polygons.iter().map(|rings| rings.map(|ring| moved(ring, offset, 1.0)).collect::<Vec<_>>());
        all.extend(rings.filter(|rings| reaches(rings.iter().flatten(), layout.window().length)));
    }
    Ok(DataRegion::Polygons(Box::new(Polygons::new(all)?)))
}

pub(super) fn cut_polygons(layout: &UnitLayout, polygons: &Polygons) -> Result<DataRegion, UnitError> {
    let offset = offset(layout, layout.own());
    let rings = polygons.iter().map(|rings| rings.map(|ring| moved(ring, offset, -1.0)).collect::<Vec<_>>());
    let owned = rings.filter(|rings: &Vec<Vec<Position>>| {
        rings.iter().flatten().next().is_some_and(|first| belongs(first, layout.own(), layout.window(), 2))
    });
    Ok(DataRegion::Polygons(Box::new(Polygons::new(owned.collect::<Vec<_>>())?)))
}

pub(super) fn join_objects(
    layout: &UnitLayout,
    parts: &[(UnitBox, &DataRegion)],
) -> Result<DataRegion, UnitError> {
    let mut all: Option<AnnotatedObjects> = None;
    for (part, region) in parts {
        let DataRegion::Objects(objects) = region else { return Err(wrong(region, ElementType::Objects)) };
        let all = match &mut all {
            Some(all) => all,
            None => all.insert(AnnotatedObjects::new(objects.columns().to_vec())?),
        };
        if all.columns() != objects.columns() {
            let (found, allowed) = (objects.columns().to_vec(), all.columns().to_vec());
            return Err(UnitError::Columns { found, allowed });
        }
        let offset = offset(layout, part);
        for object in objects.iter() {
            push(all, &object, offset, 1.0, |rings| reaches(rings.iter().flatten(), layout.window().length))?;
        }
    }
    Ok(DataRegion::Objects(Box::new(all.unwrap_or_default())))
}

pub(super) fn cut_objects(layout: &UnitLayout, objects: &AnnotatedObjects) -> Result<DataRegion, UnitError> {
    let offset = offset(layout, layout.own());
    let mut owned = AnnotatedObjects::new(objects.columns().to_vec())?;
    for object in objects.iter() {
        push(&mut owned, &object, offset, -1.0, |rings| {
            rings
                .iter()
                .flatten()
                .next()
                .is_some_and(|first| belongs(first, layout.own(), layout.window(), 2))
        })?;
    }
    Ok(DataRegion::Objects(Box::new(owned)))
}

/// Adds an object moved by an offset, if its moved rings (or corners) pass.
fn push(
    to: &mut AnnotatedObjects,
    object: &AnnotatedObject<'_>,
    by: [f64; 3],
    sign: f64,
    passes: impl Fn(&[Vec<Position>]) -> bool,
) -> Result<(), UnitError> {
    let rings: Vec<Vec<Position>> = match &object.outline {
        Outline::Polygon(rings) => rings.clone().map(|ring| moved(ring, by, sign)).collect(),
        Outline::Box { low, high } => vec![moved(&[*low, *high], by, sign)],
    };
    if !passes(&rings) {
        return Ok(());
    }
    match object.outline {
        Outline::Polygon(_) => to.push_polygon(&rings, object.class, object.numbers)?,
        Outline::Box { .. } => to.push_box(rings[0][0], rings[0][1], object.class, object.numbers)?,
    }
    Ok(())
}

/// Returns an empty region of the type of `like`.
pub(super) fn empty(layout: &UnitLayout, like: &DataRegion) -> Result<DataRegion, UnitError> {
    Ok(match like {
        DataRegion::Points(_) => DataRegion::Points(Points::new(layout.axes() as u8, Vec::new())?),
        DataRegion::Polygons(_) => {
            DataRegion::Polygons(Box::new(Polygons::new(Vec::<Vec<Vec<Position>>>::new())?))
        }
        DataRegion::Objects(objects) => {
            DataRegion::Objects(Box::new(AnnotatedObjects::new(objects.columns().to_vec())?))
        }
        DataRegion::Table(_) => DataRegion::Table(Table::default()),
        other => return Err(wrong(other, ElementType::Points)),
    })
}
