//! crates/dispatch
