//! The runtime (hop 6 of a study): thin actix shells around the state machines of `pleach-dispatch`.
//!
//! - [`manager`]: all studies of a manager, connected to the workers over [`transport`] links.
//! - [`worker`]: one node. Requests buckets and grants its slots.
//! - [`stage`]: one bucket. Walks its reuse tree.
//! - [`task`]: one slot. Runs one operation at a time, off the actors' thread.
//! - [`storage`]: the data regions of one node, loaded on first use.
//! - [`spill`]: the tiers under RAM, for regions that no running bucket reads when memory is short.
//! - [`exchange`]: region transfer between nodes, over the network or through shared memory.
//! - [`input_files`]: input files of a worker, found by content digest and fetched if missing.
//!
//! Actors leave every decision to a state machine where one can make it. Actors do not compute: a thread pool with one
//! thread per slot processes the images.

pub mod directory;
pub mod embedded;
pub mod exchange;
pub mod input_files;
pub mod manager;
pub mod panic_guard;
pub mod spill;
pub mod stage;
pub mod storage;
pub mod task;
pub mod task_cache;
pub mod task_results;
pub mod transport;
pub mod worker;
