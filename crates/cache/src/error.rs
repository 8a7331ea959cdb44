//! Errors of opening a cache. Later failures are reported as warnings and never stop a study.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a cache cannot be opened.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The folder holds something else.
    #[error("open the cache {}: the folder contains other files; an empty or new folder is allowed", path.display())]
    NotACache {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was written by another version of the program.
    #[error("open the cache {}: FORMAT is {found:?}; {allowed:?} is allowed; name another folder", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The first line of its marker.
        found: String,
        /// The required marker.
        allowed: &'static str,
    },
    /// The folder cannot be read.
    #[error("open the cache {}: {source}", path.display())]
    Io {
        /// The folder, or a file in it.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}
