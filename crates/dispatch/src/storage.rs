//! Decisions about the data regions of one node: which regions leave memory (`eviction`), where a region of another worker is
//! fetched (`remote`), and how long that takes (`link`). The manager grants by the expected time of reads (`read_cost`).
//!
//! The storage actor moves the regions and measures the transfers. These functions only choose.

pub mod broadcast;
mod eviction;
mod link;
mod read_cost;
mod remote;

pub use eviction::{Eviction, IdleRegion, select_evictions, select_replicas};
pub use link::{LinkModel, Links};
pub use pleach_reuse::TransferCost;
pub use read_cost::{CopyPlace, ReadCost, ReadRates, ReadSource, Reader, RemoteCopy};
pub use remote::{FetchRates, RemoteSource};
