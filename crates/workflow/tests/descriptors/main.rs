//! Descriptors: the nuclei workflow as shipped, and everything that can be wrong with one.
//!
//! Every mistake is made in a copy of the shipped files; whole messages are compared, since a user sees those.

mod files;
#[path = "../support/registry.rs"]
mod registry;
mod shipped;
mod stages;
mod workflows;
