//! Laws of the cache: what it says is what was stored, whatever happens to it, and it never takes more than it may.

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
mod power;
mod processes;
mod tissue;
