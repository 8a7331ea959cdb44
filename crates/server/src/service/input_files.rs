//! Input files of a submitted study, as the manager announces them to workers.

use pleach_api::submission::Submission;
use pleach_dispatch::message::InputFile;
use pleach_regions::RegionKey;
use pleach_study::{PreparedStudy, inputs as study_inputs};
use pleach_workflow::AnnotationPart;
use std::collections::HashMap;

/// Returns the input files of a study as sent to workers, by key. The submission's files are those of
/// [`PreparedStudy::files`], in that order.
pub(super) fn input_files(
    prepared: &PreparedStudy,
    submission: &Submission,
) -> HashMap<RegionKey, InputFile> {
    let files = &submission.inputs;
    let elements = prepared.study.workflow.reference_elements();
    let (images, rules) = (&prepared.study.workflow.inputs, &prepared.study.annotation_rules);
    let mut inputs = HashMap::new();
    for (number, facts) in prepared.tiles.iter().enumerate() {
        let tile = submission.content(&files[number]);
        let part = prepared.study.tiles[number].slide.as_ref();
        let slide = |element| part.map(|part| (element, part.clone()));
        let of_reference = |key, element, part| {
            let mask = files.get(prepared.tiles.len() + number)?;
            let (file, reference) = (submission.content(mask), Some((element, tile.clone())));
            let is_selected = part == AnnotationPart::Counted || !rules.is_default();
            let annotations = is_selected.then(|| (rules.clone(), part));
            let (slide, block) = (slide(element), None);
            Some((key, InputFile { key, file, reference, slide, block, annotations, table: None }))
        };
        for (place, (&key, input)) in facts.inputs.iter().zip(images).enumerate() {
            if input.is_counted() {
                inputs.extend(of_reference(key, input.element, AnnotationPart::Counted));
                continue;
            }
            let table = study_inputs::table(&prepared.study, prepared.units.as_ref(), (place, number));
            let slide = slide(input.element).filter(|_| table.is_none());
            let block = prepared.study.tiles[number].block.clone().filter(|_| table.is_none());
            let (file, reference, annotations) = (tile.clone(), None, None);
            inputs.insert(key, InputFile { key, file, reference, slide, block, annotations, table });
        }
        let references = facts.inputs[images.len()..].iter().zip(&elements);
        inputs.extend(
            references.filter_map(|(&key, &element)| of_reference(key, element, AnnotationPart::Objects)),
        );
    }
    inputs
}
