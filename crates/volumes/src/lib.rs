//! Images of more dimensions: z-stacks and time series of any number of channels (hops 2 and 8 of a study).
//!
//! [`VolumeFile`] reads blocks of OME-Zarr and OME-TIFF images. [`operations`] has operations on their arrays and points, each defined
//! on the whole image: with the bounds that its documentation states, the result on a block is the part of the result on the
//! whole image, bit for bit. [`MovingSpots`] generates an image. This crate knows neither plans nor workers, and interprets no
//! colors.

mod image;
mod operations;
mod spots;

pub use image::{
    BlockRange, MAX_BLOCK_VALUES, OmeZarrWriter, PlaneIndex, VolumeError, VolumeFile, is_in_folder,
};
pub use operations::operations;
pub use spots::MovingSpots;
