//! Drawings as files of their own, in SVG and PNG.

pub(crate) mod burst;
pub(crate) mod plots;
pub(crate) mod scaling;
