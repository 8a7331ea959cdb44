//! Sections of the page, one module each.

pub(crate) mod best;
pub(crate) mod compared;
pub(crate) mod extremes;
pub(crate) mod failed;
pub(crate) mod heading;
pub(crate) mod indices;
pub(crate) mod pictures;
pub(crate) mod responses;
pub(crate) mod reuse;
pub(crate) mod sample_growth;
pub(crate) mod sample_plots;
pub(crate) mod slides;
pub(crate) mod tile_pictures;
pub(crate) mod time;
pub(crate) mod workflow_diagram;
