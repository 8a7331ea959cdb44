//! Encoding of data regions as bytes, and their digests.

pub(crate) mod content;
pub(crate) mod digest;
pub(crate) mod encode;
