//! Laws of the cache: after any failure it returns only stored entries, and it never exceeds its limit.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

mod damage;
#[path = "../../../../tests/support/data.rs"]
mod data;
mod entries;
mod failures;
mod faulty;
mod limits;
#[path = "../../../../tests/support/memory.rs"]
mod memory;
mod model;
mod objects;
mod power;
mod processes;
mod quotas;
mod search;
mod tissue;
