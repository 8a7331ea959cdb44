//! Tests of the server over TLS, with a manager in memory.

mod access;
mod client;
mod contract;
mod cuts;
mod limits;
pub(crate) mod memory;
mod pace;
mod schema;
mod site;
