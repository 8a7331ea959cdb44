//! Regions in space: bounds, units, borders and queries.

mod borders;
mod bounds;
#[path = "../../../../tests/support/data.rs"]
mod data;
#[path = "../support/objects.rs"]
mod objects;
mod query;
mod units;
