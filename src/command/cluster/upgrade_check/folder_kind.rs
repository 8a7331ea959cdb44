//! Kinds of folders that pleach writes, by the files in them.

use super::first_line;
use crate::exit::{CommandError, CommandResult};
use pleach_cache::MARKER_NAME;
use pleach_results::folder::RESULTS;
use pleach_results::journal;
use pleach_server::service::state::{IDENTITY, STUDIES};
use std::path::Path;

/// Beginnings of the markers of caches and tiers, in any version.
const CACHE: &str = "pleach cache ";
const TIER: &str = "pleach tier ";

/// Kind of a folder. Caches and tiers have the first line of their marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FolderKind {
    State,
    Cache(String),
    Tier(String),
    Results,
}

impl FolderKind {
    /// Returns the kind of a folder.
    ///
    /// # Errors
    /// [`CommandError::Input`] for any other folder.
    pub(super) fn of(folder: &Path) -> CommandResult<Self> {
        let fail = |why: &str| CommandError::Input(format!("{}: {why}", folder.display()));
        if let Err(error) = std::fs::read_dir(folder) {
            return Err(fail(&error.to_string()));
        }
        let marker = first_line(&folder.join(MARKER_NAME)).unwrap_or_default();
        if marker.starts_with(CACHE) {
            return Ok(Self::Cache(marker));
        }
        if marker.starts_with(TIER) {
            return Ok(Self::Tier(marker));
        }
        if folder.join(IDENTITY).exists() || folder.join(STUDIES).is_dir() {
            return Ok(Self::State);
        }
        if RESULTS.iter().chain([&journal::NAME]).any(|name| folder.join(name).exists()) {
            return Ok(Self::Results);
        }
        Err(fail("no state directory, task cache, spill tier or results; one of these folders is allowed"))
    }
}
