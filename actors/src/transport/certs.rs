//! Certificates of a cluster: an authority of its own, and what it issues to managers, workers and clients.
//!
//! An authority is a folder (`ca.pem`, `ca-key.pem`, `token-key`, and `used-tokens` once there are any); a node's
//! credentials are one as well (`node.pem`, the node's certificate and the authority's; `node-key.pem`). Keys are
//! written for their owner alone, whole or not at all, and nothing is ever overwritten ([`secret_files`]). Nothing is revoked:
//! certificates are short-lived instead. What is verified when two nodes meet is in [`quic`](super::quic).

mod authority;
mod credentials;
pub mod secret_files;
pub(crate) mod signing_request;

pub use authority::{Authority, Issued, MAX_DAYS, Validity};
pub use credentials::Credentials;

use super::identity::IdentityError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The authority's certificate.
pub const CA_FILE: &str = "ca.pem";
/// The authority's key.
pub const CA_KEY_FILE: &str = "ca-key.pem";
/// What tokens are made with.
pub const TOKEN_KEY_FILE: &str = "token-key";
/// Which tokens have been used.
pub const USED_TOKENS_FILE: &str = "used-tokens";
/// A node's certificate, then the authority's.
pub const NODE_FILE: &str = "node.pem";
/// A node's key.
pub const NODE_KEY_FILE: &str = "node-key.pem";

/// Why there is no certificate, or none that can be used.
#[derive(Debug, Error)]
pub enum CertsError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is there that would have to be overwritten.
    #[error("{}: is there already; certificates and keys are never overwritten", .0.display())]
    Exists(PathBuf),
    /// A file does not hold what it should.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// The certificate of a node does not say who it is for.
    #[error("{}: {source}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why.
        source: IdentityError,
    },
    /// A certificate would not be valid as long as that.
    #[error("{days}: 1 to {MAX_DAYS} days are allowed")]
    Days {
        /// What was asked for.
        days: u32,
    },
    /// A key or a certificate could not be made.
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A request for a certificate is none, or is not signed by the key that it names.
    #[error("not a request for a certificate: {0}")]
    Request(rcgen::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}
