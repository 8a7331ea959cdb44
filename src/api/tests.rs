//! The server, over TLS, with a manager that is no more than its memory.

mod access;
mod client;
mod contract;
mod cuts;
mod limits;
pub(crate) mod memory;
mod pace;
mod schema;
mod site;
