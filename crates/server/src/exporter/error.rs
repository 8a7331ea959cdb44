//! Errors of the metrics server.

use pleach_study::Defect;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Reason why the metrics server does not start.
#[derive(Debug, Error)]
pub enum ExporterError {
    /// The address is taken or does not belong to this machine.
    #[error("--metrics {address}: {cause}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The operating system provides no thread or does not listen.
    #[error("{0}")]
    Defect(#[from] Defect),
}
