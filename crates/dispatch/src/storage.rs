//! Decisions about the data regions of one node: which regions leave memory (`eviction`), and where a region of another
//! worker is fetched (`remote`).
//!
//! The storage actor moves the regions and measures the transfers. These functions only choose.

pub mod broadcast;
mod eviction;
mod remote;

pub use eviction::{Eviction, IdleRegion, select_evictions, select_replicas};
pub use remote::{FetchRates, RemoteSource};
