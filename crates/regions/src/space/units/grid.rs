//! Joins and cuts of regions on a grid: images, masks, label maps and arrays.

use super::{UnitBox, UnitError, UnitLayout, sides};
use crate::data::number::each;
use crate::{DataRegion, DenseArray, ElementType, LabelMap, Raster, TypedValues};

/// Values on a grid with their sides, x first.
struct Grid<'a, T> {
    values: &'a [T],
    sides: Vec<u32>,
    channels: u16,
}

/// Joins regions on a grid. The first one decides the type.
pub(super) fn join(layout: &UnitLayout, parts: &[(UnitBox, &DataRegion)]) -> Result<DataRegion, UnitError> {
    let element = parts[0].1.element();
    match parts[0].1 {
        DataRegion::Bgr8(_) | DataRegion::Gray8(_) | DataRegion::Mask(_) => {
            let (values, channels) = joined(layout, parts, |region| raster(region, element))?;
            let [width_px, height_px] = flat(layout, layout.window())?;
            let raster = Raster::new(width_px, height_px, channels as u8, values)?;
            Ok(of_raster(element, raster))
        }
        DataRegion::Labels(_) => {
            let (mut before, mut renumbered) = (0_u32, Vec::with_capacity(parts.len()));
            for (_, region) in parts {
                let labels = labels(region)?.values;
                let most = labels.iter().copied().max().unwrap_or(0);
                let moved = |label: &u32| if *label == 0 { 0 } else { label + before };
                let next = before.checked_add(most).ok_or(UnitError::TooLarge)?;
                renumbered.push(labels.iter().map(moved).collect::<Vec<u32>>());
                before = next;
            }
            let mut place = 0;
            let (values, _) = joined(layout, parts, |region| {
                let own = labels(region)?;
                place += 1;
                Ok(Grid { values: &renumbered[place - 1], ..own })
            })?;
            let [width_px, height_px] = flat(layout, layout.window())?;
            Ok(DataRegion::Labels(LabelMap::new(width_px, height_px, values)?))
        }
        DataRegion::Array(first) => {
            let sides = layout.sides(layout.window());
            let array = each!(first.values(), _values => {
                let (values, channels) = joined(layout, parts, |region| array(region, element, _values))?;
                DenseArray::new(&sides, channels, TypedValues::from(values))?
            });
            Ok(DataRegion::Array(array))
        }
        other => Err(UnitError::Element { found: other.element(), allowed: ElementType::Bgr8 }),
    }
}

/// Cuts the own unit out of a region of the window.
pub(super) fn cut(layout: &UnitLayout, region: &DataRegion) -> Result<DataRegion, UnitError> {
    let element = region.element();
    match region {
        DataRegion::Bgr8(_) | DataRegion::Gray8(_) | DataRegion::Mask(_) => {
            let grid = raster(region, element)?;
            let [width_px, height_px] = flat(layout, layout.own())?;
            let raster = Raster::new(width_px, height_px, grid.channels as u8, own(layout, &grid)?)?;
            Ok(of_raster(element, raster))
        }
        DataRegion::Labels(_) => {
            let [width_px, height_px] = flat(layout, layout.own())?;
            Ok(DataRegion::Labels(LabelMap::new(width_px, height_px, own(layout, &labels(region)?)?)?))
        }
        DataRegion::Array(whole) => {
            let sides = layout.sides(layout.own());
            let array = each!(whole.values(), values => {
                let grid = array(region, element, values)?;
                DenseArray::new(&sides, grid.channels, TypedValues::from(own(layout, &grid)?))?
            });
            Ok(DataRegion::Array(array))
        }
        other => Err(UnitError::Element { found: other.element(), allowed: ElementType::Bgr8 }),
    }
}

fn of_raster(element: ElementType, raster: Raster) -> DataRegion {
    match element {
        ElementType::Gray8 => DataRegion::Gray8(raster),
        ElementType::Mask => DataRegion::Mask(raster),
        _ => DataRegion::Bgr8(raster),
    }
}

/// Returns width and height of an image, which has no z.
fn flat(layout: &UnitLayout, of: &UnitBox) -> Result<[u32; 2], UnitError> {
    let [width_px, height_px, depth_px] = of.length;
    if layout.axes() == 2 && depth_px == 1 {
        return Ok([width_px, height_px]);
    }
    Err(UnitError::Size { found: sides(&[width_px, height_px]), allowed: sides(&of.length) })
}

fn raster(region: &DataRegion, allowed: ElementType) -> Result<Grid<'_, u8>, UnitError> {
    let raster =
        region.raster(allowed).map_err(|wrong| UnitError::Element { found: wrong.found, allowed })?;
    let sides = vec![raster.width_px(), raster.height_px()];
    Ok(Grid { values: raster.data(), sides, channels: raster.channels().into() })
}

fn labels(region: &DataRegion) -> Result<Grid<'_, u32>, UnitError> {
    match region {
        DataRegion::Labels(map) => {
            Ok(Grid { values: map.labels(), sides: vec![map.width_px(), map.height_px()], channels: 1 })
        }
        other => Err(UnitError::Element { found: other.element(), allowed: ElementType::Labels }),
    }
}

/// Returns the values of an array of type `allowed`, whose numbers have the type of `_of`.
fn array<'a, T: crate::Sample>(
    region: &'a DataRegion,
    allowed: ElementType,
    _of: &[T],
) -> Result<Grid<'a, T>, UnitError> {
    let array = region.array(allowed).map_err(|wrong| UnitError::Element { found: wrong.found, allowed })?;
    Ok(Grid { values: array.samples()?, sides: array.extents().to_vec(), channels: array.channels() })
}

/// Copies the parts into the window. Returns its values and the number of channels.
fn joined<'a, T: Copy + Default + 'a>(
    layout: &UnitLayout,
    parts: &[(UnitBox, &'a DataRegion)],
    mut grid: impl FnMut(&'a DataRegion) -> Result<Grid<'a, T>, UnitError>,
) -> Result<(Vec<T>, u16), UnitError> {
    let window = layout.window();
    let (mut values, mut channels): (Vec<T>, _) = (Vec::new(), None);
    for (part, region) in parts {
        let grid = grid(region)?;
        check_size(layout, &grid, part)?;
        let allowed = *channels.get_or_insert(grid.channels);
        if grid.channels != allowed {
            return Err(UnitError::Channels { found: grid.channels, allowed });
        }
        if values.is_empty() {
            let length = window.pixels().checked_mul(allowed.into());
            let length = length.and_then(|length| usize::try_from(length).ok());
            values.resize(length.ok_or(UnitError::TooLarge)?, T::default());
        }
        if let Some(common) = window.intersection(part) {
            copy(&mut values, window, grid.values, part, &common, allowed.into());
        }
    }
    Ok((values, channels.unwrap_or(1)))
}

/// Returns the values of the own unit in a grid of the window.
fn own<T: Copy + Default>(layout: &UnitLayout, grid: &Grid<'_, T>) -> Result<Vec<T>, UnitError> {
    let (own, window) = (layout.own(), layout.window());
    check_size(layout, grid, window)?;
    let channels = usize::from(grid.channels);
    // The own unit is within the window, whose values are in memory.
    let mut values = vec![T::default(); own.pixels() as usize * channels];
    copy(&mut values, own, grid.values, window, own, channels);
    Ok(values)
}

fn check_size<T>(layout: &UnitLayout, grid: &Grid<'_, T>, of: &UnitBox) -> Result<(), UnitError> {
    let allowed = layout.sides(of);
    if grid.sides == allowed {
        return Ok(());
    }
    Err(UnitError::Size { found: sides(&grid.sides), allowed: sides(&allowed) })
}

/// Copies the values of the box `common` from one box to another, row by row. Both contain it.
fn copy<T: Copy>(
    to: &mut [T],
    to_box: &UnitBox,
    from: &[T],
    from_box: &UnitBox,
    common: &UnitBox,
    channels: usize,
) {
    let row = common.length[0] as usize * channels;
    let at = |of: &UnitBox, y: u32, z: u32| {
        let [x, y, z] =
            [common.start[0] - of.start[0], y - of.start[1], z - of.start[2]].map(|side| side as usize);
        let [width, height, _] = of.length.map(|side| side as usize);
        ((z * height + y) * width + x) * channels
    };
    for z in common.start[2]..common.end(2) {
        for y in common.start[1]..common.end(1) {
            let (source, target) = (at(from_box, y, z), at(to_box, y, z));
            to[target..target + row].copy_from_slice(&from[source..source + row]);
        }
    }
}
