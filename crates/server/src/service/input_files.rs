//! Input files of a submitted study, as the manager announces them to workers.

use pleach_api::submission::Submission;
use pleach_dispatch::message::InputFile;
use pleach_regions::RegionKey;
use pleach_study::PreparedStudy;
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
        for (&key, input) in facts.inputs.iter().zip(images) {
            let stain = prepared.study.fit_of(input, &prepared.study.tiles[number]).copied();
            let slide = part.filter(|_| stain.is_none()).map(|part| (input.element, part.clone()));
            inputs.insert(key, InputFile { key, file: tile.clone(), reference: None, slide, stain });
        }
        if let Some(mask) = files.get(prepared.tiles.len() + number) {
            for (&key, &element) in facts.inputs[images.len()..].iter().zip(&elements) {
                let reference = Some((element, tile.clone()));
                let file = submission.content(mask);
                inputs.insert(key, InputFile { key, file, reference, slide: None, stain: None });
            }
        }
    }
    inputs
}
