//! Replays evaluations on one tile, or reads their masks from the task cache.

use super::GalleryError;
use pleach_cache::PriorResults;
use pleach_pathology::image_io;
use pleach_regions::{DataRegion, ElementType};
use pleach_results::cache_walk::CachedRegions;
use pleach_study::PreparedStudy;
use pleach_study::references::{ReferenceError, ReferenceFile};
use pleach_study::single_run::{ReplayError, SingleRun, TaskOutput};
use pleach_study::slides;
use pleach_workflow::{AnnotationPart, ReferenceSource, StudyTile, Value};
use std::sync::Arc;

/// Replays on one tile.
pub(super) struct TileReplays<'a> {
    prepared: &'a PreparedStudy,
    /// Image of the tile.
    pub(super) image: Arc<DataRegion>,
    /// Fitted values of the tile.
    stain: Option<Arc<DataRegion>>,
    /// Reference that further evaluations are compared with.
    pub(super) reference: Option<Arc<DataRegion>>,
    /// The mask, if the workflow has one, then the outputs of previews.
    wanted: Vec<TaskOutput>,
    has_previews: bool,
    cached: CachedRegions<'a>,
}

impl<'a> TileReplays<'a> {
    /// Reads the image of a tile and its given reference. `mask` is the output that is compared with the reference.
    pub(super) fn new(
        prepared: &'a PreparedStudy,
        past: &'a PriorResults,
        tile: usize,
        mask: Option<TaskOutput>,
        previews: &[TaskOutput],
    ) -> Result<Self, GalleryError> {
        let file = &prepared.study.tiles[tile];
        if file.block.is_some() {
            return Err(GalleryError::Volume);
        }
        let image = Arc::new(match &file.slide {
            None => image_io::read_bgr(&file.path)?,
            Some(part) => DataRegion::Bgr8(slides::read(&file.path, part)?),
        });
        let reference = match mask {
            Some(_) => given_reference(prepared, tile)?,
            None => None,
        };
        let wanted = mask.into_iter().chain(previews.iter().copied()).collect();
        let cached = CachedRegions::on(prepared, past, tile);
        let stain = slides::fit_table(&prepared.study, tile).map(Arc::new);
        Ok(Self { prepared, image, stain, reference, wanted, has_previews: !previews.is_empty(), cached })
    }

    /// Returns the mask of an evaluation, if the workflow has one, and the outputs of previews.
    pub(super) fn regions(&mut self, evaluation: usize) -> Result<Vec<Arc<DataRegion>>, ReplayError> {
        let values = values(self.prepared, evaluation);
        let workflow = &self.prepared.study.workflow;
        // Without previews, the mask suffices, and the cache may have it from an earlier study.
        let mask = workflow.reference.as_ref().filter(|_| !self.has_previews);
        if let Some(mask) = mask.and_then(|own| self.cached.output(values, own.stage, own.output)) {
            return Ok(vec![Arc::new(mask)]);
        }
        let registry = &self.prepared.registry;
        let (tile, reference) = (Arc::clone(&self.image), self.reference.clone());
        let stain = self.stain.clone();
        SingleRun { workflow, registry, values, tile, stain, reference }.run(&self.wanted, |_, _| {})
    }
}

/// Reads the mask given as the reference of a tile. `None` if the reference is the run at defaults.
fn given_reference(prepared: &PreparedStudy, tile: usize) -> Result<Option<Arc<DataRegion>>, ReferenceError> {
    let study = &prepared.study;
    let ReferenceSource::Masks(masks) = &study.reference else { return Ok(None) };
    let (path, digest) = (&masks[tile], prepared.file_digests()[prepared.tiles.len() + tile]);
    let StudyTile { path: image, slide, .. } = &study.tiles[tile];
    let (tile, slide, rules) = (image, slide.as_ref(), &study.annotation_rules);
    let file = ReferenceFile { path, digest, tile, slide, rules };
    Ok(Some(Arc::new(file.read(AnnotationPart::Objects, ElementType::Mask)?)))
}

/// Returns the parameter values of an evaluation. Number 0 is the run at defaults.
pub(super) fn values(prepared: &PreparedStudy, evaluation: usize) -> &[Value] {
    match evaluation {
        0 => &prepared.evaluations[0],
        numbered => &prepared.design.evaluations[numbered - 1],
    }
}
