//! Assembly of a region's pixels: returns tile windows and joins their cores.
//!
//! Only for rasters: labels of different tiles mean different objects, so the caller merges label maps.

use super::{Partition, PartitionTile};
use crate::space::bounds::SpatialBounds;
use crate::{PartError, PixelRectangle, Raster, RasterView, ShapeError};
use thiserror::Error;

/// A raster of a region under assembly from its tiles.
#[derive(Debug)]
pub struct Assembly<'a> {
    partition: &'a Partition,
    raster: Raster,
    is_present: Vec<bool>,
}

/// Errors of an assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AssemblyError {
    /// The region is not an image: empty, not of two axes, or with a side beyond 32 bits.
    #[error("assembly: a region of {dimensions} axes; 2 axes with sides of 1 to 2^32 - 1 px are allowed")]
    NoImage {
        /// Axes of the region.
        dimensions: usize,
    },
    /// Not enough memory for the region.
    #[error("assembly: insufficient memory for {width_px} x {height_px} px of {channels} channels")]
    Memory {
        /// Width, pixels.
        width_px: u32,
        /// Height, pixels.
        height_px: u32,
        /// Channels.
        channels: u8,
    },
    /// A raster has the wrong size.
    #[error("assembly: {found:?} px (width, height, channels); {allowed:?} px are allowed")]
    Size {
        /// Width, height and channels given.
        found: (u32, u32, u8),
        /// Width, height and channels of the tile's window, or of the region.
        allowed: (u32, u32, u8),
    },
    /// No tile has this number.
    #[error("assembly: tile {index}; tiles below {count} are allowed")]
    NoTile {
        /// The requested tile.
        index: u64,
        /// Number of tiles.
        count: u64,
    },
    /// A tile was given twice.
    #[error("assembly: tile {index} is given twice; each tile is allowed once")]
    Twice {
        /// The tile.
        index: u64,
    },
    /// Tiles are missing at the end.
    #[error("assembly: {missing} tiles are missing, the first is {index}; all are needed")]
    Missing {
        /// The first of them.
        index: u64,
        /// Number of missing tiles.
        missing: u64,
    },
    /// Invalid shape of a raster.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A part is not within the raster it is taken from.
    #[error(transparent)]
    Part(#[from] PartError),
}

impl Partition {
    /// Returns the window of a tile in the raster of the whole region, without copying pixels.
    ///
    /// # Errors
    /// Returns an [`AssemblyError`] if the tile does not exist, or the raster does not have the region's size.
    pub fn window_of<'a>(&self, index: u64, whole: &'a Raster) -> Result<RasterView<'a>, AssemblyError> {
        let tile = self.numbered(index)?;
        check_size(&whole.view(), self.region(), whole.channels())?;
        view_of(whole.view(), self.region(), &tile.window)
    }

    /// Starts an assembly of rasters with `channels` values per pixel. All pixels of the region are allocated here, so the
    /// region must fit into memory.
    ///
    /// # Errors
    /// Returns an [`AssemblyError`] if no raster can have the region's size, or memory does not suffice.
    pub fn assembly(&self, channels: u8) -> Result<Assembly<'_>, AssemblyError> {
        let (width_px, height_px) = size_px(self.region())?;
        let no_memory = AssemblyError::Memory { width_px, height_px, channels };
        let bytes = u64::from(width_px) * u64::from(height_px);
        let bytes = bytes.checked_mul(channels.into()).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or(no_memory)?;
        let mut data = Vec::new();
        // An ordinary allocation would abort the process.
        data.try_reserve_exact(bytes).map_err(|_| no_memory)?;
        data.resize(bytes, 0);
        let raster = Raster::new(width_px, height_px, channels, data)?;
        // The number of tiles is at most that of pixels, which fits.
        let is_present = vec![false; self.count() as usize];
        Ok(Assembly { partition: self, raster, is_present })
    }

    fn numbered(&self, index: u64) -> Result<PartitionTile, AssemblyError> {
        self.tile(index).ok_or(AssemblyError::NoTile { index, count: self.count() })
    }
}

impl Assembly<'_> {
    /// Copies the core from the computed window of a tile.
    ///
    /// # Errors
    /// Returns an [`AssemblyError`] if the tile does not exist, was given before, or the window has the wrong size.
    pub fn put(&mut self, index: u64, window: &RasterView<'_>) -> Result<(), AssemblyError> {
        let tile = self.partition.numbered(index)?;
        if self.is_present[index as usize] {
            return Err(AssemblyError::Twice { index });
        }
        let channels = self.raster.channels();
        check_size(window, &tile.window, channels)?;
        let core = view_of(*window, &tile.window, &tile.core)?;
        let to = rectangle(self.partition.region(), &tile.core)?;
        let stride = self.raster.width_px() as usize * usize::from(channels);
        let first = to.x_px as usize * usize::from(channels);
        let rows = self.raster.data_mut().chunks_exact_mut(stride).skip(to.y_px as usize);
        for (row, pixels) in rows.zip(core.rows()) {
            row[first..first + pixels.len()].copy_from_slice(pixels);
        }
        self.is_present[index as usize] = true;
        Ok(())
    }

    /// Returns the raster of the whole region.
    ///
    /// # Errors
    /// Returns [`AssemblyError::Missing`] if a tile has not been given.
    pub fn finish(self) -> Result<Raster, AssemblyError> {
        let mut missing = (0_u64..).zip(&self.is_present).filter(|(_, is_there)| !**is_there);
        match missing.next() {
            None => Ok(self.raster),
            Some((index, _)) => Err(AssemblyError::Missing { index, missing: 1 + missing.count() as u64 }),
        }
    }
}

/// Returns the width and height of a box of two axes.
fn size_px(bounds: &SpatialBounds) -> Result<(u32, u32), AssemblyError> {
    let side = |number: usize| bounds.axes().get(number).and_then(|axis| u32::try_from(axis.length()).ok());
    match (bounds.dimensions(), bounds.is_empty(), side(0), side(1)) {
        (2, false, Some(width_px), Some(height_px)) => Ok((width_px, height_px)),
        (dimensions, ..) => Err(AssemblyError::NoImage { dimensions }),
    }
}

fn check_size(view: &RasterView<'_>, bounds: &SpatialBounds, channels: u8) -> Result<(), AssemblyError> {
    let (width_px, height_px) = size_px(bounds)?;
    let (found, allowed) =
        ((view.width_px(), view.height_px(), view.channels()), (width_px, height_px, channels));
    if found == allowed { Ok(()) } else { Err(AssemblyError::Size { found, allowed }) }
}

/// Returns the rectangle of `part` in `whole`, which contains it and has an image's size.
fn rectangle(whole: &SpatialBounds, part: &SpatialBounds) -> Result<PixelRectangle, AssemblyError> {
    let (width_px, height_px) = size_px(part)?;
    // Cannot truncate: `part` is within `whole`, whose sides fit into 32 bits.
    let offset = |number: usize| part.axes()[number].start().abs_diff(whole.axes()[number].start()) as u32;
    Ok(PixelRectangle { x_px: offset(0), y_px: offset(1), width_px, height_px })
}

/// Returns the pixels of `part` in a view of `whole`, which contains it.
fn view_of<'a>(
    view: RasterView<'a>,
    whole: &SpatialBounds,
    part: &SpatialBounds,
) -> Result<RasterView<'a>, AssemblyError> {
    Ok(view.part(rectangle(whole, part)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five pixels in tiles of two with a halo of one: values computed in a halo are discarded.
    #[test]
    fn only_cores_are_kept() {
        let partition = Partition::new(SpatialBounds::of_image(5, 1, None), &[2, 2], &[1, 1]).unwrap();
        let mut assembly = partition.assembly(1).unwrap();
        for (index, window) in [(2, vec![13, 4]), (0, vec![0, 1, 12]), (1, vec![11, 2, 3, 14])] {
            let window = Raster::new(window.len() as u32, 1, 1, window).unwrap();
            assembly.put(index, &window.view()).unwrap();
        }
        assert_eq!(assembly.finish().unwrap().data(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn wrong_window_is_refused() {
        let partition = Partition::new(SpatialBounds::of_image(5, 1, None), &[2, 2], &[1, 1]).unwrap();
        let mut assembly = partition.assembly(1).unwrap();
        let window = Raster::filled(3, 1, 1, 0).unwrap();
        assembly.put(0, &window.view()).unwrap();
        assert_eq!(assembly.put(0, &window.view()), Err(AssemblyError::Twice { index: 0 }));
        assert_eq!(assembly.put(3, &window.view()), Err(AssemblyError::NoTile { index: 3, count: 3 }));
        let error = assembly.put(1, &window.view()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "assembly: (3, 1, 1) px (width, height, channels); (4, 1, 1) px are allowed"
        );
        assert_eq!(assembly.finish(), Err(AssemblyError::Missing { index: 1, missing: 2 }));
        assert!(matches!(partition.assembly(0), Err(AssemblyError::Shape(_))));
        assert!(matches!(partition.window_of(0, &window), Err(AssemblyError::Size { .. })));
    }

    #[test]
    fn region_that_is_no_image_is_refused() {
        let huge = SpatialBounds::of_image(u32::MAX, u32::MAX, None);
        let one = Partition::new(huge, &[u64::MAX; 2], &[0; 2]).unwrap();
        assert!(matches!(one.assembly(3), Err(AssemblyError::Memory { .. })));
        let line = SpatialBounds::new(&huge.axes()[..1], None).unwrap();
        let line = Partition::new(line, &[8], &[0]).unwrap();
        assert!(matches!(line.assembly(1), Err(AssemblyError::NoImage { dimensions: 1 })));
    }
}
