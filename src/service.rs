//! The manager as a service: what it is given, and what it keeps.

pub(crate) mod inputs;
pub(crate) mod submission;
