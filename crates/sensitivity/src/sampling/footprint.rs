//! Memory that designs take, before they are drawn.
//!
//! Estimates are upper bounds of what samplers allocate at once, for callers that refuse a design in words rather than be
//! killed. `tests/footprint.rs` compares them with allocations that were counted. Tables that do not grow with a design are
//! left out: the largest, Halton's permutations, take 4 MB at 200 dimensions, of 256 at most. Numbers saturate.

use pleach_workflow::{Parameter, Value};

/// Bytes of a value.
const VALUE: u64 = size_of::<Value>() as u64;

/// Bytes of a coordinate of a point.
const COORDINATE: u64 = size_of::<f64>() as u64;

/// Bytes of a row beside its values: the header of its list, twice for lists that double as they grow, and 16 for the
/// allocator.
const ROW: u64 = 2 * size_of::<Vec<Value>>() as u64 + 16;

/// Bytes of a step of a trajectory, drawn and recorded: 40 and 24, by count of its fields.
const STEP: u64 = 64;

/// Bytes of all parameter sets of a design: 16 for each value, and 64 for each set.
#[must_use]
pub fn rows_bytes(rows: u64, parameters: usize) -> u64 {
    rows.saturating_mul((parameters as u64).saturating_mul(VALUE).saturating_add(ROW))
}

/// Bytes of points of the unit cube: 8 for each coordinate, and as many for the permutations of one dimension.
#[must_use]
pub fn points_bytes(points: u64, dimensions: usize) -> u64 {
    points.saturating_mul((dimensions as u64).saturating_add(1)).saturating_mul(COORDINATE)
}

/// Bytes of trajectories with steps of `groups`, chosen among `candidates` of each batch where there are any, with their
/// parameter sets. A candidate is compared with the others as points of all its places.
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
    // A walk has a step of each parameter, whatever its group; places are points of its rows.
    let walk = (varying as u64).saturating_mul(STEP);
    // Their list doubles as it grows.
    let places = rows_each.saturating_mul(varying as u64).saturating_mul(2 * COORDINATE);
    let walks = candidates.saturating_mul(if candidates > 1 { walk.saturating_add(places) } else { walk });
    let distances = candidates.saturating_mul(candidates).saturating_mul(COORDINATE);
    // Base points are drawn for all candidates at once.
    let base = points_bytes(trajectories.max(candidates), varying);
    [rows, steps, walks, distances, base].into_iter().fold(0, u64::saturating_add)
}
