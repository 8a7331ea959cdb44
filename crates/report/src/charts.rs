//! Charts as SVG: axes, bars, boxes, scatter plots and heat maps.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod boxes;
pub(crate) mod convergence;
pub(crate) mod first_and_total;
pub(crate) mod heatmap;
pub(crate) mod label;
pub(crate) mod mu_sigma_plot;
pub(crate) mod ranking;
pub mod raster;
pub(crate) mod scatter;
pub(crate) mod svg;
