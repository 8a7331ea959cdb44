//! Descriptors: the shipped nuclei workflow, and every possible mistake in one.
//!
//! Tests insert each mistake in a copy of the shipped files, and compare whole messages, since users see those.

mod files;
mod flow;
#[path = "../support/registry.rs"]
mod registry;
mod shipped;
mod stages;
mod workflows;
