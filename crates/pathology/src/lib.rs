//! crates/pathology
