//! Operations in Python from outside: regions, calls, faults, manifests and identities.

#![expect(clippy::unwrap_used, reason = "a failure names its line")]

mod batches;
mod calls;
mod deaths;
mod distributions;
mod identities;
mod kills;
mod limits;
mod loading;
mod manifests;
mod memory;
mod protocol;
mod python;
mod raised;
mod regions;
