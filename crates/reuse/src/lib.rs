//! crates/reuse
