//! Why a folder cannot be used as a cache at all. What goes wrong later is reported, and never stops a study.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no cache.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The folder holds something else.
    #[error("open the cache {}: the folder holds other files; name an empty or a new one", path.display())]
    NotACache {
        /// The folder.
        path: PathBuf,
    },
    /// Another version of the program wrote it.
    #[error("open the cache {}: its FORMAT says {found:?}, only {allowed:?} is allowed; name another folder", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The first line of its marker.
        found: String,
        /// What it has to be.
        allowed: &'static str,
    },
    /// The folder cannot be read.
    #[error("open the cache {}: {source}", path.display())]
    Io {
        /// The folder, or a file in it.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
