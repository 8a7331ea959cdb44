//! Structure of parameter sets: trajectories, row blocks, groups and columns, found again in bare rows.

pub mod columns;
pub(crate) mod curves;
pub mod design_detection;
pub mod groups;
pub mod marginal;
pub mod saltelli_blocks;
pub mod trajectory;
