//! Estimates the memory of designs before they are drawn.
//!
//! Estimates are upper bounds of the memory that samplers allocate at once. Callers refuse a too large design
//! with a message instead of running out of memory. `tests/footprint.rs` compares them with counted
//! allocations. Tables of constant size are not included: the largest, Halton's permutations, take 4 MB at
//! 200 of at most 256 dimensions. Sums and products saturate.

use pleach_workflow::{Parameter, Value};

/// Bytes of a value.
const VALUE: u64 = size_of::<Value>() as u64;

/// Bytes of a coordinate of a point.
const COORDINATE: u64 = size_of::<f64>() as u64;

/// Bytes of a row in addition to its values: the header of its list, twice because growing lists double, and
/// 16 bytes for the allocator.
const ROW: u64 = 2 * size_of::<Vec<Value>>() as u64 + 16;

/// Bytes of a step of a trajectory, drawn and recorded: 40 and 24 by its fields.
const STEP: u64 = 64;

/// Returns the bytes of all parameter sets of a design: 16 per value, and 64 per set.
#[must_use]
pub fn rows_bytes(rows: u64, parameters: usize) -> u64 {
    rows.saturating_mul((parameters as u64).saturating_mul(VALUE).saturating_add(ROW))
}

/// Returns the bytes of points of the unit cube: 8 per coordinate, and as many for the permutations of one
/// dimension.
#[must_use]
pub fn points_bytes(points: u64, dimensions: usize) -> u64 {
    points.saturating_mul((dimensions as u64).saturating_add(1)).saturating_mul(COORDINATE)
}

/// Returns the bytes of trajectories with steps of `groups`, including their parameter sets. With
/// `candidates`, trajectories are chosen among that number per batch. Candidates are compared as points of
/// all their rows.
#[must_use]
pub fn trajectories_bytes(
    parameters: &[Parameter],
    groups: usize,
    trajectories: u32,
    candidates: Option<u32>,
) -> u64 {
    let varying = super::varying(parameters).len();
    let (rows_each, trajectories) = (groups as u64 + 1, u64::from(trajectories));
    let rows = rows_bytes(trajectories.saturating_mul(rows_each), parameters.len());
    let steps = trajectories.saturating_mul(rows_each).saturating_mul(STEP);
    let candidates = u64::from(candidates.unwrap_or(1));
    // A draft has a step of each parameter, also in groups. Its places are the points of its rows.
    let walk = (varying as u64).saturating_mul(STEP);
    // The list of places doubles as it grows.
    let places = rows_each.saturating_mul(varying as u64).saturating_mul(2 * COORDINATE);
    let walks = candidates.saturating_mul(if candidates > 1 { walk.saturating_add(places) } else { walk });
    let distances = candidates.saturating_mul(candidates).saturating_mul(COORDINATE);
    // Base points are drawn for all candidates at once.
    let base = points_bytes(trajectories.max(candidates), varying);
    [rows, steps, walks, distances, base].into_iter().fold(0, u64::saturating_add)
}
