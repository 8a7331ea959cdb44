//! `pleach export`: writes the segmentation of one evaluation of a study.

use super::written::{ChosenParameters, WrittenSegmentation, print_and_end};
use crate::cli::ExportArgs;
use crate::exit::CommandResult;
use crate::terminal::print_notice;
use parking_lot::Mutex;
use pleach_cache::PriorResults;
use pleach_export::{ExportOutcome, images_of};
use pleach_regions::DataRegion;
use pleach_results::cache_walk::{self, CachedRegions};
use pleach_study::PreparedStudy;
use pleach_workflow::Registry;
use std::sync::Arc;

/// Runs the command.
pub(crate) fn execute(args: &ExportArgs, registry: &Registry) -> CommandResult {
    let prepared = PreparedStudy::load(&args.study, None, registry)?;
    if !args.files.quiet {
        prepared.warnings().for_each(|warning| print_notice(&warning));
    }
    let chosen = ChosenParameters::find(&args.parameters, &prepared.study, registry)?;
    let prior = match &args.cache {
        None => PriorResults::default(),
        Some(folder) => PriorResults {
            cache: Some(Arc::new(cache_walk::open_to_read(folder)?)),
            identities: Arc::new(cache_walk::identities(&prepared)),
            ..PriorResults::default()
        },
    };
    // The cache has outputs of stages. That of the reference is the usual one.
    let study = prepared.study.clone();
    let own = study.workflow.reference.as_ref().filter(|_| args.parameters.task.is_none());
    let (values, has_cache) = (&chosen.values, prior.cache.is_some());
    // One thread at a time: a prepared study computes its digests at the first use. Reading a mask takes far less time than its
    // segmentation.
    let cache = Mutex::new((prepared, prior));
    let cached = |tile: usize| -> Option<DataRegion> {
        let own = own.filter(|_| has_cache)?;
        let locked = cache.lock();
        CachedRegions::on(&locked.0, &locked.1, tile).output(values, own.stage, own.output)
    };
    let images = images_of(&study, &mut Vec::new());
    let mut writing = WrittenSegmentation::begin(&args.files, &chosen, &study)?;
    let mut outcome = ExportOutcome::default();
    writing.run(&study, registry, images, &cached, &mut outcome)?;
    print_and_end(&args.files, &writing, &outcome)
}
