//! Data regions and their element types: rasters, arrays, labels, objects, points, polygons and tables.

pub(crate) mod array;
pub(crate) mod attachment;
pub(crate) mod element;
pub(crate) mod labels;
pub(crate) mod number;
pub(crate) mod objects;
pub(crate) mod points;
pub(crate) mod polygons;
pub(crate) mod ragged;
pub(crate) mod raster;
pub(crate) mod region;
pub(crate) mod shape;
