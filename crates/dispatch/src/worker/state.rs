//! Contexts of a worker's state. The fields of each are private to its file, and so are its invariants.
//!
//! `slots` has the free slots and the running tasks, `buckets` the leases and the demands of their stages, `memory`
//! the budget and the bytes that count against it, `requests` the open requests, `studies` the known studies, `sync`
//! the pending sync with the manager, `tail` the query and the requests at the end of the work,
//! `devices` the offers and queues of a worker with accelerators, `prefetches` its hints, `downloads` the outputs on their way
//! from devices. No context uses the others. [`Worker`](super::Worker) applies an event to all that it concerns.

mod buckets;
mod devices;
mod downloads;
mod memory;
mod prefetches;
mod requests;
mod slots;
mod studies;
mod sync;
mod tail;

pub(super) use buckets::{BucketEntry, Buckets, Rank};
pub(super) use devices::Devices;
pub(super) use downloads::Downloads;
pub(super) use memory::Memory;
pub(super) use prefetches::Prefetches;
pub(super) use requests::Requests;
pub(super) use slots::Slots;
pub(super) use studies::Studies;
pub(super) use sync::ManagerSync;
pub(super) use tail::Tail;
