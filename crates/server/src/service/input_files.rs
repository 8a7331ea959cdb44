//! Input files of a submitted study, as the manager announces them to workers.

use pleach_api::submission::Submission;
use pleach_dispatch::message::InputFile;
use pleach_regions::RegionKey;
use pleach_study::{PreparedStudy, units};
use std::collections::HashMap;

/// Returns the input files of a study as sent to workers, by key. The submission's files are those of
/// [`PreparedStudy::files`], in that order.
pub(super) fn input_files(
    prepared: &PreparedStudy,
    submission: &Submission,
) -> HashMap<RegionKey, InputFile> {
    let files = &submission.inputs;
    let elements = prepared.study.workflow.reference_elements();
    let images = &prepared.study.workflow.inputs;
    let mut inputs = HashMap::new();
    for (number, facts) in prepared.tiles.iter().enumerate() {
        let tile = submission.content(&files[number]);
        let part = prepared.study.tiles[number].slide.as_ref();
        for (place, (&key, input)) in facts.inputs.iter().zip(images).enumerate() {
            let table = units::layout(&prepared.study.workflow, prepared.units.as_ref(), place, number);
            let table = table.map(|layout| layout.to_table());
            let slide = part.filter(|_| table.is_none()).map(|part| (input.element, part.clone()));
            inputs.insert(key, InputFile { key, file: tile.clone(), reference: None, slide, table });
        }
        if let Some(mask) = files.get(prepared.tiles.len() + number) {
            for (&key, &element) in facts.inputs[images.len()..].iter().zip(&elements) {
                let reference = Some((element, tile.clone()));
                inputs.insert(
                    key,
                    InputFile { key, file: submission.content(mask), reference, slide: None, table: None },
                );
            }
        }
    }
    inputs
}
