//! Drawings as files of their own, in SVG and PNG.

pub mod burst;
pub mod clustering;
pub mod plots;
pub mod scaling;
