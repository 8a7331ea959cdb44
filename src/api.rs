//! Wire types of the HTTP interface, which server and client share: submissions, views of studies and workers, tokens.

pub(crate) mod digest;
pub(crate) mod schema;
pub(crate) mod submission;
pub(crate) mod token;

/// Media type of errors (RFC 9457).
pub(crate) const PROBLEM: &str = "application/problem+json";
