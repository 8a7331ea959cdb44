//! Partition of a region into tiles with a halo.
//!
//! Every pixel of the region is in the core of exactly one tile. A tile is computed on its window: the core
//! and a halo of pixels around it, clipped to the region, so that objects on the border of a core are seen
//! whole. Core ownership assigns an object by its centroid (`partition/centroid.rs`). Pixels are reassembled
//! from cores (`partition/assembly.rs`).
//!
//! A partition is a handful of numbers for a region of any size: tiles are computed on demand. The caller
//! decides which tiles are worth computing.

mod assembly;
mod centroid;

pub use assembly::{Assembly, AssemblyError};
pub use centroid::{Centroid, OwnerError};

use crate::space::bounds::{BoundsError, Interval, SpatialBounds};
use thiserror::Error;

/// Partition of a region: tiles in rows from the region's first corner, x fastest, the last ones of each axis clipped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    region: SpatialBounds,
    /// Axes beyond the region's last one have a single tile of side 1 and no halo.
    tile_px: [u64; 3],
    halo_px: [u64; 3],
    tiles: [u64; 3],
    count: u64,
}

/// One tile of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionTile {
    /// Number of the tile. Tile 0 is at the region's first corner.
    pub index: u64,
    /// Pixels that the tile owns.
    pub core: SpatialBounds,
    /// The core with its halo, on which the tile is computed.
    pub window: SpatialBounds,
}

/// Errors of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// A tile has no pixels.
    #[error("partition: tiles of 0 px along axis {axis}; sides of at least 1 px are allowed")]
    NoTile {
        /// Number of the axis, from 0.
        axis: usize,
    },
    /// The tiles exceed 64-bit numbers.
    #[error("partition: more than 2^64 tiles; larger tiles reduce the number")]
    TooMany,
    /// Sides or halos have another number of axes than the region.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
}

impl Partition {
    /// Partitions `region` into tiles of `tile_px` along each axis, each with a halo of `halo_px` on either side. Both are
    /// pixels of the region's resolution and may exceed the region, which clips them. An empty region has no tiles.
    ///
    /// # Errors
    /// Returns a [`PartitionError`] if a side is 0, numbers of axes differ, or there would be 2^64 tiles or more.
    pub fn new(region: SpatialBounds, tile_px: &[u64], halo_px: &[u64]) -> Result<Self, PartitionError> {
        region.same_dimensions(tile_px.len())?;
        region.same_dimensions(halo_px.len())?;
        if let Some(axis) = tile_px.iter().position(|side| *side == 0) {
            return Err(PartitionError::NoTile { axis });
        }
        let mut partition = Self {
            region,
            tile_px: [1; 3],
            halo_px: [0; 3],
            tiles: [1; 3],
            count: u64::from(!region.is_empty()),
        };
        partition.tile_px[..tile_px.len()].copy_from_slice(tile_px);
        partition.halo_px[..halo_px.len()].copy_from_slice(halo_px);
        for (number, axis) in region.axes().iter().enumerate() {
            partition.tiles[number] = axis.length().div_ceil(tile_px[number]);
            let count = partition.count.checked_mul(partition.tiles[number]);
            partition.count = count.ok_or(PartitionError::TooMany)?;
        }
        Ok(partition)
    }

    /// Returns the partitioned region.
    #[must_use]
    pub fn region(&self) -> &SpatialBounds {
        &self.region
    }

    /// Returns the number of tiles along each axis.
    #[must_use]
    pub fn tiles_per_axis(&self) -> &[u64] {
        &self.tiles[..self.region.dimensions()]
    }

    /// Returns the number of tiles.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the tile with this number. `None` beyond the last one.
    #[must_use]
    pub fn tile(&self, index: u64) -> Option<PartitionTile> {
        if index >= self.count {
            return None;
        }
        let [columns, rows, _] = self.tiles;
        let place = [index % columns, index / columns % rows, index / columns / rows];
        let core = self.cut(|number, axis| {
            // The product is below the axis' length, because `place` is below the number of tiles. Only the
            // last tile can saturate, and it is clipped.
            let start = axis.start().saturating_add_unsigned(place[number] * self.tile_px[number]);
            (start, start.saturating_add_unsigned(self.tile_px[number]).min(axis.end()))
        })?;
        let window = self.cut(|number, axis| {
            let (core, halo) = (core.axes()[number], self.halo_px[number]);
            let start = core.start().saturating_sub_unsigned(halo).max(axis.start());
            (start, core.end().saturating_add_unsigned(halo).min(axis.end()))
        })?;
        debug_assert!(
            core.axes()
                .iter()
                .zip(window.axes())
                .all(|(core, window)| { window.start() <= core.start() && core.end() <= window.end() }),
            "the window {window:?} of tile {index} does not contain its core {core:?}"
        );
        Some(PartitionTile { index, core, window })
    }

    /// Returns all tiles in order, each computed on demand.
    pub fn tiles(&self) -> impl Iterator<Item = PartitionTile> + '_ {
        (0..self.count).filter_map(|index| self.tile(index))
    }

    /// Returns the tile whose core contains the pixel at `position`. `None` outside the region.
    ///
    /// # Errors
    /// Returns [`BoundsError::Dimensions`] if the position has another number of axes than the region.
    pub fn tile_of_pixel(&self, position: &[i64]) -> Result<Option<u64>, BoundsError> {
        if !self.region.holds(position)? {
            return Ok(None);
        }
        let mut index = 0;
        // From the last axis to the first, since x varies fastest.
        for (number, axis) in self.region.axes().iter().enumerate().rev() {
            let place = axis.start().abs_diff(position[number]) / self.tile_px[number];
            assert!(
                place < self.tiles[number],
                "{position:?} is in tile {place} of {} along {number}",
                self.tiles[number]
            );
            index = index * self.tiles[number] + place;
        }
        assert!(index < self.count, "{position:?} is in tile {index} of {}", self.count);
        Ok(Some(index))
    }

    /// Returns the box with these edges. Never `None`, because the edges are ordered.
    fn cut(&self, edges: impl Fn(usize, Interval) -> (i64, i64)) -> Option<SpatialBounds> {
        let cut = self.region.each(|number, axis| {
            let (start, end) = edges(number, axis);
            Interval::new(start, end)
        });
        cut.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width_px: u32, height_px: u32) -> SpatialBounds {
        SpatialBounds::of_image(width_px, height_px, None)
    }

    fn edges(bounds: &SpatialBounds) -> Vec<[i64; 2]> {
        bounds.axes().iter().map(|axis| (*axis).into()).collect()
    }

    /// The slide of the test data has 5 × 6 tiles of its study's size, the last ones clipped.
    #[test]
    fn a_slide_is_cut_into_tiles_with_a_halo() {
        let partition = Partition::new(image(2220, 2967), &[512, 512], &[64, 64]).unwrap();
        assert_eq!((partition.tiles_per_axis(), partition.count()), (&[5, 6][..], 30));
        let first = partition.tile(0).unwrap();
        assert_eq!(edges(&first.core), [[0, 512], [0, 512]]);
        assert_eq!(edges(&first.window), [[0, 576], [0, 576]]);
        let inner = partition.tile(6).unwrap();
        assert_eq!(edges(&inner.core), [[512, 1024], [512, 1024]]);
        assert_eq!(edges(&inner.window), [[448, 1088], [448, 1088]]);
        let last = partition.tile(29).unwrap();
        assert_eq!(edges(&last.core), [[2048, 2220], [2560, 2967]]);
        assert_eq!(edges(&last.window), [[1984, 2220], [2496, 2967]]);
        assert_eq!(partition.tile(30), None);
        assert_eq!(partition.tile_of_pixel(&[511, 512]), Ok(Some(5)));
        assert_eq!(partition.tile_of_pixel(&[2220, 0]), Ok(None));
    }

    #[test]
    fn a_tile_larger_than_the_region_is_clipped() {
        let partition = Partition::new(image(100, 80), &[4096, u64::MAX], &[u64::MAX, 64]).unwrap();
        assert_eq!(
            partition.tiles().collect::<Vec<_>>(),
            [PartitionTile { index: 0, core: image(100, 80), window: image(100, 80) }]
        );
        assert_eq!(Partition::new(image(100, 0), &[8, 8], &[0, 0]).unwrap().tiles().count(), 0);
    }

    /// 14.4 gigapixels have 900 tiles, each computed on demand.
    #[test]
    fn a_whole_slide_is_a_handful_of_numbers() {
        let partition = Partition::new(image(120_000, 120_000), &[4096, 4096], &[64, 64]).unwrap();
        assert_eq!(partition.count(), 900);
        let owned: u64 = partition.tiles().map(|tile| tile.core.pixels().unwrap()).sum();
        assert_eq!(owned, 120_000 * 120_000);
        assert_eq!(partition.tile_of_pixel(&[119_999, 119_999]), Ok(Some(899)));
    }

    /// Tiles of one pixel at the largest coordinates.
    #[test]
    fn the_last_corner_of_all_coordinates_is_in_the_last_tile() {
        let axis = Interval::new(i64::MIN, i64::MAX).unwrap();
        let line = SpatialBounds::new(&[axis], None).unwrap();
        let partition = Partition::new(line, &[1], &[u64::MAX]).unwrap();
        let last = partition.tile(partition.count() - 1).unwrap();
        assert_eq!(edges(&last.core), [[i64::MAX - 1, i64::MAX]]);
        assert_eq!(last.window, line);
        assert_eq!(partition.tile_of_pixel(&[i64::MAX - 1]), Ok(Some(u64::MAX - 1)));
        let plane = SpatialBounds::new(&[axis, axis], None).unwrap();
        assert_eq!(Partition::new(plane, &[1, 1], &[0, 0]), Err(PartitionError::TooMany));
        // An empty region has no tiles, for any tile size.
        let nothing = SpatialBounds::new(&[axis, axis, Interval::default()], None).unwrap();
        assert_eq!(Partition::new(nothing, &[1, 1, 1], &[0, 0, 0]).unwrap().count(), 0);
    }

    #[test]
    fn sides_are_checked() {
        let error = Partition::new(image(8, 8), &[4, 0], &[0, 0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "partition: tiles of 0 px along axis 1; sides of at least 1 px are allowed"
        );
        let error = Partition::new(image(8, 8), &[4], &[0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "bounds: 1 axes; 2 are allowed, as in the other bounds");
        assert!(Partition::new(image(8, 8), &[4, 4], &[0, 0, 0]).is_err());
    }
}
