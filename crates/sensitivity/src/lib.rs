//! crates/sensitivity
