//! Tiles of slides as storage sources. All tiles of a slide share one digest of its file.
//!
//! A slide is as large as about 1,000 tiles. It is digested again only if its files' metadata has changed
//! since the last digest.

use super::{changed, failure};
use parking_lot::Mutex;
use pleach_actors::storage::Source;
use pleach_dispatch::message::TaskFailure;
use pleach_regions::DataRegion;
use pleach_slides::files_of;
use pleach_study::slides;
use pleach_workflow::SlideTile;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Length and modification time of each file of a slide.
type FileStamps = Vec<(u64, Option<SystemTime>)>;

/// Returns the metadata of a slide's files. `None` if it cannot be read for one of them.
fn looks(path: &Path) -> Option<FileStamps> {
    let look = |file: PathBuf| {
        let metadata = file.metadata().ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    };
    files_of(path).ok()?.into_iter().map(look).collect()
}

/// Slide whose tiles are read.
pub(super) struct SlideFile {
    path: PathBuf,
    /// BLAKE3 digest of its content when the study began. `None` if it could not be read.
    digest: Option<[u8; 32]>,
    /// Metadata of its files when it had that digest.
    seen: Mutex<Option<FileStamps>>,
}

impl SlideFile {
    pub(super) fn new(path: &Path, digest: Option<[u8; 32]>) -> Arc<Self> {
        Arc::new(Self { path: path.to_owned(), digest, seen: Mutex::default() })
    }

    /// Returns whether the content is the same as when the study began.
    fn is_unchanged(&self) -> bool {
        // Read the metadata before digesting, so that a change during the digest makes the next check digest
        // again.
        let Some(looks) = looks(&self.path) else { return false };
        // Holds the lock while digesting: other threads would digest the same slide concurrently.
        let mut seen = self.seen.lock();
        if seen.as_ref() == Some(&looks) {
            return true;
        }
        let is_same = self.digest.is_some() && pleach_study::file_digest::digest(&self.path) == self.digest;
        // Content that differs is never remembered: the file may be restored, and the next tile then finds it.
        *seen = is_same.then_some(looks);
        is_same
    }
}

/// Source of the pixels of a tile's window.
pub(super) struct Window {
    pub(super) file: Arc<SlideFile>,
    pub(super) tile: SlideTile,
}

impl Source for Window {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        let pixels = pixels(&self.file.path, &self.tile)?;
        // Check the digest after reading. It matched before, so the content read is the digested content.
        if self.file.is_unchanged() {
            return Ok(pixels);
        }
        Err(changed(&self.file.path))
    }
}

/// Source of the table with the tile's core.
pub(super) struct Core(pub(super) SlideTile);

impl Source for Core {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        Ok(DataRegion::Table(self.0.core_table()))
    }
}

/// Reads the pixels of a tile's window.
pub(super) fn pixels(path: &Path, tile: &SlideTile) -> Result<DataRegion, TaskFailure> {
    slides::read(path, tile).map(DataRegion::Bgr8).map_err(|error| failure(error.to_string()))
}
