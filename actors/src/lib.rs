//! The runtime (hop 6 of a study): thin actix shells around the state machines of `pleach-dispatch`.
//!
//! - [`manager`]: one study; speaks to workers over a [`transport`] link;
//! - [`worker`]: one node; asks for buckets, hands out its slots;
//! - [`stage`]: one bucket; walks its reuse tree;
//! - [`task`]: one slot; runs one operation at a time, off the actors' thread;
//! - [`storage`]: the data regions of one node, loaded when first asked for;
//! - [`spill`]: tiers spill memory, where regions go that nothing under way reads when memory is short;
//! - [`exchange`]: the same between nodes, over the network or through shared memory;
//! - [`input_files`]: input input_files on a worker, fetched by what they hold where they do not lie there.
//!
//! No actor decides anything that a state machine could decide, and none computes: images are worked on by a
//! thread pool with as many threads as the worker has slots.

pub mod embedded;
pub mod exchange;
pub mod input_files;
pub mod manager;
pub mod spill;
pub mod stage;
pub mod storage;
pub mod task;
pub mod task_cache;
pub mod task_results;
pub mod transport;
pub mod worker;
