//! Laws of tiers: what was said to be stored is there, whole, and nothing else, whatever happens.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

mod ahead;
mod apart;
mod contract;
mod damage;
mod faults;
mod gate;
mod hanging;
mod killed;
#[path = "../../../../tests/support/memory.rs"]
mod memory;
mod owners;
mod packed;
mod power;
mod recorder;
mod regions;
mod rooms;
mod scratch;
mod shared;
mod stack;
mod stale;
