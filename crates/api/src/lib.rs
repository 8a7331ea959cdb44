//! Wire types of the HTTP interface, which server and client share: submissions, views of studies and workers, tokens.
//! [`random`] draws the numbers that tokens, keys and processes need.

pub mod digest;
pub mod random;
pub mod schema;
pub mod submission;
pub mod token;

/// Media type of errors (RFC 9457).
pub const PROBLEM: &str = "application/problem+json";
