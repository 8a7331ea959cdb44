//! Actors of managers and workers, over QUIC and in one process.

mod broadcast;
mod clock;
#[path = "../support/cluster.rs"]
mod cluster;
#[path = "../support/costly.rs"]
mod costly;
mod devices;
mod embedded;
mod engine;
mod exchange;
#[path = "../support/faulty.rs"]
mod faulty;
mod faulty_network;
mod guards;
#[path = "../support/holder.rs"]
mod holder;
mod hostile;
mod manager;
#[path = "../support/outcome.rs"]
mod outcome;
mod overheads;
mod prefetch;
mod query;
mod quic;
mod released;
#[path = "../support/sharing_worker.rs"]
mod sharing_worker;
#[path = "../support/stranger.rs"]
mod stranger;
#[path = "../support/toy.rs"]
mod toy;
#[path = "../support/worker.rs"]
mod worker;
mod workers;
