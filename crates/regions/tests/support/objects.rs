//! Slow reference implementation of objects in masks and their owners.

#![expect(clippy::unwrap_used, reason = "part of test functions")]

use pleach_regions::{Centroid, Partition, Raster, RasterView, SpatialBounds};

/// Pixels of one object, sorted.
pub(crate) type Object = Vec<[i64; 2]>;

/// Partitions an image of these sides into square tiles.
pub(crate) fn image_cut(width_px: u32, height_px: u32, tile_px: u64, halo_px: u64) -> Partition {
    let region = SpatialBounds::of_image(width_px, height_px, None);
    Partition::new(region, &[tile_px; 2], &[halo_px; 2]).unwrap()
}

/// Returns the 8-connected objects of a mask in raster order, with positions relative to `origin`.
pub(crate) fn objects(mask: &RasterView<'_>, origin: [i64; 2]) -> Vec<Object> {
    let mut left: Vec<Vec<u8>> = mask.rows().map(<[u8]>::to_vec).collect();
    let mut found = Vec::new();
    for y in 0..left.len() {
        while let Some(x) = left[y].iter().position(|value| *value != 0) {
            let mut object = object_at(&mut left, [x, y]);
            object.iter_mut().for_each(|at| *at = [at[0] + origin[0], at[1] + origin[1]]);
            object.sort_unstable();
            found.push(object);
        }
    }
    found
}

/// Removes the object of a pixel from a mask and returns it.
fn object_at(left: &mut [Vec<u8>], first: [usize; 2]) -> Object {
    left[first[1]][first[0]] = 0;
    let (mut object, mut next) = (Vec::new(), vec![first]);
    while let Some([x, y]) = next.pop() {
        object.push([x as i64, y as i64]);
        for near_y in y.saturating_sub(1)..left.len().min(y + 2) {
            for near_x in x.saturating_sub(1)..left[near_y].len().min(x + 2) {
                if std::mem::take(&mut left[near_y][near_x]) != 0 {
                    next.push([near_x, near_y]);
                }
            }
        }
    }
    object
}

/// Returns the longest side of all bounding boxes, pixels. 1 without objects.
pub(crate) fn longest_px(objects: &[Object]) -> u64 {
    let along = |object: &Object, axis: usize| {
        let (low, high) = (object.iter().map(|at| at[axis]).min(), object.iter().map(|at| at[axis]).max());
        low.zip(high).map_or(0, |(low, high)| low.abs_diff(high) + 1)
    };
    objects.iter().map(|object| along(object, 0).max(along(object, 1))).max().unwrap_or(1)
}

/// Returns the objects that each tile sees in its window and owns, of all tiles, sorted.
pub(crate) fn owned(partition: &Partition, mask: &Raster) -> Vec<Object> {
    let mut all = Vec::new();
    for tile in partition.tiles() {
        let window = partition.window_of(tile.index, mask).unwrap();
        let seen = objects(&window, [tile.window.axes()[0].start(), tile.window.axes()[1].start()]);
        let is_own =
            |object: &Object| partition.owner(&Centroid::of(object.iter().copied())).unwrap() == tile.index;
        all.extend(seen.into_iter().filter(is_own));
    }
    all.sort_unstable();
    all
}
