//! `pleach apply`: segments other images with chosen parameters of a study.

use super::cluster::ClusterSegmentation;
use super::written::{ChosenParameters, WrittenSegmentation, print_and_end};
use crate::cli::ApplyArgs;
use crate::exit::CommandResult;
use pleach_export::{ExportOutcome, FailedImage, images_of};
use pleach_study::applied::{self, AppliedStudy};
use pleach_workflow::{AppliedImages, Registry};
use std::num::NonZeroU32;

/// Runs the command.
pub(crate) fn execute(args: &ApplyArgs, registry: &Registry) -> CommandResult {
    let found = applied::find_images(&args.images)?;
    let mut studies: Vec<AppliedStudy> = Vec::new();
    if !found.tiles.is_empty() {
        studies.push(applied::load(&args.study, &AppliedImages::Tiles(found.tiles), registry)?);
    }
    if !found.slides.is_empty() {
        let images = AppliedImages::Slides {
            files: found.slides,
            magnification: args.magnification,
            tile_px: args.tile.map(NonZeroU32::get),
            halo_px: args.halo,
        };
        studies.push(applied::load(&args.study, &images, registry)?);
    }
    // The paths are not empty, and each one has an image. The cutting of slides is in the last study.
    let Some(last) = studies.last() else { return Ok(()) };
    let chosen = ChosenParameters::find(&args.parameters, &last.study, registry)?;
    let mut cluster = ClusterSegmentation::connect(args)?;
    let mut writing = WrittenSegmentation::begin(&args.files, &chosen, &last.study)?;
    let (mut outcome, mut taken) = (ExportOutcome::default(), Vec::new());
    for AppliedStudy { study, failed } in &studies {
        let mut images = images_of(study, &mut taken);
        for (path, cause) in failed {
            if let Some(place) = images.iter().position(|image| image.path == *path) {
                let image = images.remove(place).name;
                outcome.failed.push(FailedImage { image, cause: cause.clone() });
            }
        }
        match &mut cluster {
            None => writing.run(study, registry, images, &|_, _| None, &mut outcome)?,
            Some(cluster) => cluster.run(&mut writing, study, registry, images, &mut outcome)?,
        }
    }
    print_and_end(&args.files, &writing, &outcome)
}
