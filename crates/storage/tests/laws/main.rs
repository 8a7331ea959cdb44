//! Laws of tiers: after any failure, a tier holds every region that it reported as stored, whole, and no other region.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

mod ahead;
mod apart;
mod contract;
mod damage;
mod faults;
mod fuse;
mod gate;
mod guard;
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
