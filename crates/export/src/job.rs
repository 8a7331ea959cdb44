//! Exports images one after the other, their tiles on several threads.

use crate::image_export::{ExportOptions, ExportedImage, ImageExport, WriteError};
use crate::objects::ExportedObject;
use crate::ordered::{Ordered, in_order};
use crate::record::{ExportFolder, FailedImage, FolderStateError};
use crate::segmentation::{Segmentation, SegmentationError, StudyImage};
use pleach_workflow::Study;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Images to export.
pub struct ExportJob<'a> {
    /// Study that has the tiles.
    pub study: &'a Study,
    /// Images, without finished ones.
    pub images: &'a [StudyImage],
    /// Parameter set.
    pub segmentation: Segmentation<'a>,
    /// Files to write.
    pub options: &'a ExportOptions,
    /// Number of tiles segmented at once.
    pub threads: usize,
    /// Set to stop before the next tile.
    pub stop: &'a AtomicBool,
}

/// Progress of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// Number of finished and failed images.
    pub images: usize,
    /// Number of finished tiles.
    pub tiles: usize,
    /// Number of objects.
    pub objects: u64,
}

/// Result of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOutcome {
    /// Exported images.
    pub written: Vec<ExportedImage>,
    /// Images that cannot be read or segmented.
    pub failed: Vec<FailedImage>,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
}

/// The files of an export cannot be written. Failures of single images are in [`ExportOutcome::failed`].
#[derive(Debug, Error)]
pub enum ExportError {
    /// A file of an image.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The record of the export.
    #[error(transparent)]
    Folder(#[from] FolderStateError),
    /// A thread cannot be started.
    #[error("failed to start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

type TileObjects = Result<Vec<ExportedObject>, SegmentationError>;

impl ExportJob<'_> {
    /// Exports the images into a folder. `progress` is called after each tile.
    ///
    /// # Errors
    /// [`ExportError`] if a file cannot be written.
    pub fn run(
        &self,
        folder: &mut ExportFolder,
        mut progress: impl FnMut(ExportProgress),
    ) -> Result<ExportOutcome, ExportError> {
        let pieces: Vec<(usize, usize)> = self
            .images
            .iter()
            .enumerate()
            .flat_map(|(image, of)| of.tiles.iter().map(move |tile| (image, *tile)))
            .collect();
        // An image that failed needs no further tiles.
        let has_failed: Vec<AtomicBool> = self.images.iter().map(|_| AtomicBool::new(false)).collect();
        let with_polygons = self.options.needs_polygons();
        let work = |piece: usize| {
            let (image, tile) = pieces[piece];
            if has_failed[image].load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            self.segmentation.objects(self.study, tile, with_polygons)
        };
        let take = |ordered: &Ordered<'_, TileObjects>| {
            let mut outcome = ExportOutcome::default();
            let mut done = ExportProgress::default();
            for (image, has_failed) in self.images.iter().zip(&has_failed) {
                match self.image(folder, image, ordered, has_failed, &mut done, &mut progress)? {
                    ImageEnd::Written(exported) => {
                        folder.finished(&exported)?;
                        outcome.written.push(exported);
                    }
                    ImageEnd::Failed(cause) => {
                        outcome.failed.push(FailedImage { image: image.name.clone(), cause });
                    }
                    ImageEnd::Stopped => {
                        outcome.is_stopped = true;
                        return Ok(outcome);
                    }
                }
                done.images += 1;
                progress(done);
            }
            Ok(outcome)
        };
        in_order(pieces.len(), self.threads, work, take).map_err(ExportError::Thread)?
    }

    fn image(
        &self,
        folder: &ExportFolder,
        image: &StudyImage,
        ordered: &Ordered<'_, TileObjects>,
        has_failed: &AtomicBool,
        done: &mut ExportProgress,
        progress: &mut impl FnMut(ExportProgress),
    ) -> Result<ImageEnd, ExportError> {
        let mut failure = None;
        let mut files = None;
        match self.segmentation.geometry(self.study, image) {
            Ok(geometry) => {
                let path = folder.path();
                files = Some(ImageExport::create(path, &image.name, image.is_slide, geometry, self.options)?);
            }
            Err(error) => failure = Some(error.to_string()),
        }
        for _ in &image.tiles {
            if failure.is_some() {
                has_failed.store(true, Ordering::Relaxed);
            }
            let objects = ordered.take().unwrap_or_else(|panic| Err(SegmentationError::Panicked(panic)));
            if self.stop.load(Ordering::Relaxed) {
                return Ok(ImageEnd::Stopped);
            }
            match (objects, &mut files) {
                (Ok(objects), Some(files)) if failure.is_none() => {
                    files.add(&objects)?;
                    done.objects += objects.len() as u64;
                }
                (Err(error), _) if failure.is_none() => failure = Some(error.to_string()),
                _ => {}
            }
            done.tiles += 1;
            progress(*done);
        }
        match (failure, files) {
            (None, Some(files)) => Ok(ImageEnd::Written(files.finish()?)),
            (failure, _) => Ok(ImageEnd::Failed(failure.unwrap_or_default())),
        }
    }
}

enum ImageEnd {
    Written(ExportedImage),
    Failed(String),
    Stopped,
}
