//! Images of more dimensions: z-stacks and time series of any number of channels (hops 2 and 8 of a study).
//!
//! [`operations`] has operations on their arrays and points, each defined on the whole image: with the bounds that its
//! documentation states, the result on a block is the part of the result on the whole image, bit for bit. This crate knows
//! neither plans nor workers, and interprets no colors.

mod operations;

pub use operations::operations;
