//! `pleach export`: writes the segmentation of one evaluation of a study.

use super::cached::CachedTasks;
use super::written::{ChosenParameters, WrittenSegmentation, print_and_end};
use crate::cli::ExportArgs;
use crate::exit::CommandResult;
use crate::terminal::print_notice;
use pleach_export::{ExportOutcome, images_of};
use pleach_results::cache_walk;
use pleach_study::PreparedStudy;
use pleach_workflow::Registry;

/// Runs the command.
pub(crate) fn execute(args: &ExportArgs, registry: &Registry) -> CommandResult {
    let prepared = PreparedStudy::load(&args.study, None, registry)?;
    if !args.files.quiet {
        prepared.warnings().for_each(|warning| print_notice(&warning));
    }
    let chosen = ChosenParameters::find(&args.parameters, &prepared.study, registry)?;
    let study = prepared.study.clone();
    let cache = args.cache.as_deref().map(cache_walk::open_to_read).transpose()?;
    let cached = cache.map(|cache| CachedTasks::new(prepared, cache, &chosen.values));
    let images = images_of(&study, &mut Vec::new());
    let mut writing = WrittenSegmentation::begin(&args.files, &chosen, &study)?;
    let mut outcome = ExportOutcome::default();
    writing.run(
        &study,
        registry,
        images,
        &|tile, place| cached.as_ref()?.output(tile, place),
        &mut outcome,
    )?;
    print_and_end(&args.files, &writing, &outcome)
}
