//! Formats of files, each written by streaming.

pub(crate) mod geojson;
pub(crate) mod geoparquet;
pub(crate) mod object_table;
pub(crate) mod ome;
pub(crate) mod part_file;
pub(crate) mod plane;
pub(crate) mod spatialdata;
pub(crate) mod tiff;
