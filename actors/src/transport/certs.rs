//! Certificates of a cluster, which the cluster's own authority issues to managers, workers and clients.
//!
//! An authority is a folder: `ca.pem`, `ca-key.pem`, `token-key`, and `used-tokens` once a manager has accepted tokens. A
//! node's credentials are also a folder: `node.pem` (the node's certificate and the authority's) and `node-key.pem`. Only
//! the owner can read the keys. Files are published atomically and never overwritten ([`secret_files`]). Certificates are
//! short-lived instead of revocable. [`quic`](super::quic) verifies certificates when two nodes connect.

mod authority;
mod credentials;
pub mod secret_files;
pub(crate) mod signing_request;

pub use authority::{Authority, IssuedCertificate, MAX_DAYS, Validity};
pub use credentials::{Credentials, CredentialsDefect};

use super::identity::IdentityError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// File of the authority's certificate.
pub const CA_FILE: &str = "ca.pem";
/// File of the authority's key.
pub const CA_KEY_FILE: &str = "ca-key.pem";
/// File of the key that seals tokens.
pub const TOKEN_KEY_FILE: &str = "token-key";
/// File of used tokens.
pub const USED_TOKENS_FILE: &str = "used-tokens";
/// File of a node's certificate, followed by the authority's.
pub const NODE_FILE: &str = "node.pem";
/// File of a node's key.
pub const NODE_KEY_FILE: &str = "node-key.pem";

/// Reason for a missing or unusable certificate.
#[derive(Debug, Error)]
pub enum CertsError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// An existing file would have to be overwritten.
    #[error("{}: already exists; certificates and keys are never overwritten", .0.display())]
    Exists(PathBuf),
    /// The content of a file is invalid.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Defect, and allowed content.
        what: String,
    },
    /// The certificate of a node has no valid identity.
    #[error("{}: {source}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: IdentityError,
    },
    /// The validity of a certificate would be outside the allowed range.
    #[error("{days}: 1 to {MAX_DAYS} days are allowed")]
    Days {
        /// Requested days.
        days: u32,
    },
    /// Creating a key or a certificate failed.
    #[error("failed to create a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A signing request is malformed, or not signed by its key.
    #[error("not a certificate signing request: {0}")]
    Request(rcgen::Error),
    /// The operating system returns no random numbers.
    #[error("the operating system returns no random numbers")]
    Random,
}
