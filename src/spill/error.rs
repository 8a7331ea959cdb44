//! Errors of opening the spill tiers.

use crate::tiers::TierListError;
use pleach_storage::TierError;
use pleach_study::Defect;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why the spill tiers cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum SpillError {
    /// The list of tiers is invalid.
    #[error("{0}")]
    List(#[from] TierListError),
    /// A tier cannot be opened.
    #[error("{0}")]
    Tier(#[from] TierError),
    /// The folder of `--ssd` does not exist.
    #[error("--ssd {}: not a folder; an existing folder is needed", ssd.display())]
    NoFolder {
        /// The folder.
        ssd: PathBuf,
    },
    /// The folder of `--ssd` cannot be used for regions.
    #[error("--ssd {}: {cause}", ssd.display())]
    Unusable {
        /// The folder.
        ssd: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}
