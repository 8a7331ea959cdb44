//! Tiles of slides, as storage loads them: each once, of a file that is digested once for all of them.
//!
//! A slide is as large as a thousand tiles. It is digested again only where it looks different from when it was last.

use crate::slides;
use pleach_actors::storage::Source;
use pleach_dispatch::message::TaskFailure;
use pleach_regions::DataRegion;
use pleach_slides::files_of;
use pleach_workflow::SlideTile;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Length and time of change of each file that the slide is made of.
type Looks = Vec<(u64, Option<SystemTime>)>;

/// How a slide looks; none where one of its files cannot be looked at.
fn looks(path: &Path) -> Option<Looks> {
    let look = |file: PathBuf| {
        let metadata = file.metadata().ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    };
    files_of(path).ok()?.into_iter().map(look).collect()
}

/// A slide of which tiles are read.
pub(super) struct SlideFile {
    path: PathBuf,
    /// BLAKE3 of its content when the study began; none where it could not be read.
    digest: Option<[u8; 32]>,
    /// How it looked when it had that digest.
    seen: Mutex<Option<Looks>>,
}

impl SlideFile {
    pub(super) fn new(path: &Path, digest: Option<[u8; 32]>) -> Arc<Self> {
        Arc::new(Self { path: path.to_owned(), digest, seen: Mutex::default() })
    }

    /// Whether it holds what it did when the study began.
    fn is_unchanged(&self) -> bool {
        let Some(looks) = looks(&self.path) else { return false };
        // Held while it is digested: others would digest it as well.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&looks) {
            return true;
        }
        let is_same = self.digest.is_some() && super::digest(&self.path) == self.digest;
        *seen = is_same.then_some(looks);
        is_same
    }
}

/// The window of a tile.
pub(super) struct Window {
    pub(super) file: Arc<SlideFile>,
    pub(super) tile: SlideTile,
}

impl Source for Window {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        let pixels = pixels(&self.file.path, &self.tile)?;
        // Afterwards: what was read lies between two looks at the same content.
        if self.file.is_unchanged() {
            return Ok(pixels);
        }
        let path = self.file.path.display();
        Err(failure(format!("{path}: it has changed since the study began")))
    }
}

/// Which part of the window is the tile's own.
pub(super) struct Core(pub(super) SlideTile);

impl Source for Core {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        Ok(DataRegion::Table(self.0.core_table()))
    }
}

/// The pixels of a tile's window.
pub(super) fn pixels(path: &Path, tile: &SlideTile) -> Result<DataRegion, TaskFailure> {
    slides::read(path, tile).map(DataRegion::Bgr8).map_err(|error| failure(error.to_string()))
}

fn failure(cause: String) -> TaskFailure {
    TaskFailure { at: "input".to_owned(), cause }
}
