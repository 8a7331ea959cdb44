//! `[input]` of study files: images, their reference, and the switches of the workflow.

pub(super) mod volumes;

use super::StudyError;
use super::annotations::{self, AnnotationRules, RULES};
use super::inputs::{self, ReferenceSource, StudyTile};
use super::slides::{self, KEYS, Slides, Tiling};
use super::wording::SWITCH;
use crate::operation::Registry;
use crate::toml_fields::Section;
use crate::workflow::Workflow;
use volumes::Volumes;

/// Images of `[input]` and their reference.
pub(super) struct Images {
    pub(super) slides: Option<Slides>,
    pub(super) volumes: Option<Volumes>,
    /// Empty in a study of slides or of images of more dimensions.
    pub(super) tiles: Vec<StudyTile>,
    pub(super) reference: ReferenceSource,
    pub(super) annotations_outside: f64,
    pub(super) annotation_rules: AnnotationRules,
}

/// Reads the images and their reference.
pub(super) fn images(input: &Section<'_>) -> Result<Images, StudyError> {
    let slides = slides::slides(input)?;
    let volumes = volumes::volumes(input)?;
    let is_cut = slides.is_some() || volumes.is_some();
    let tiles = if is_cut { Vec::new() } else { inputs::found(input, "tiles")? };
    let annotation_rules = annotations::rules(input)?;
    let named = slides.as_ref().map_or(&tiles, |slides| &slides.files);
    let reference = inputs::reference(input, named, slides.is_some(), &annotation_rules)?;
    let annotations_outside = annotations::share(input)?;
    let is_given = annotation_rules != AnnotationRules::default();
    if is_given && reference == ReferenceSource::Defaults {
        let allowed = "none with reference = \"defaults\"; a folder with X.geojson for each tile or slide X has annotations";
        return input.not_allowed(RULES, "a section", allowed);
    }
    let of_regions = slides.as_ref().is_some_and(|slides| slides.tiling == Tiling::Regions);
    if of_regions && annotation_rules.regions.is_empty() {
        let allowed = "a side in pixels without annotations.regions, the names of the regions of interest";
        return input.not_allowed("tile", "\"regions\"", allowed);
    }
    if slides.is_none() && annotation_rules.positions_a_px(None).is_none() {
        let allowed = "\"um\" with mpp, the micrometers per pixel, which tiles do not state";
        return input.not_allowed("annotations.unit", "\"um\"", allowed);
    }
    Ok(Images { slides, volumes, tiles, reference, annotations_outside, annotation_rules })
}

/// Returns the workflow that measures only within the regions of interest, and within the cores of tiles.
pub(super) fn within_regions(
    input: &Section<'_>,
    workflow: Workflow,
    registry: &Registry,
) -> Result<Workflow, StudyError> {
    if let Some(within) = workflow.within_regions(registry) {
        return Ok(within);
    }
    let allowed = format!("none: nothing that measures in workflow {} can leave pixels out", workflow.name);
    input.not_allowed(RULES, "regions", &allowed)
}

/// Returns the workflow that measures only within the cores of tiles.
pub(super) fn without_halo(
    input: &Section<'_>,
    workflow: Workflow,
    halo_px: u32,
    registry: &Registry,
) -> Result<Workflow, StudyError> {
    if let Some(within) = workflow.within_cores(registry) {
        return Ok(within);
    }
    let allowed = format!("0: nothing that measures in workflow {} can leave the halo out", workflow.name);
    input.not_allowed("halo", &halo_px.to_string(), &allowed)
}

/// Reads the switches, which are keys of `[input]`: `normalize = false` leaves the stage out. A section is read
/// by [`stain::normalization`](super::stain::normalization).
pub(super) fn switches(input: &Section<'_>, workflow: &Workflow) -> Result<Vec<String>, StudyError> {
    let switches = workflow.switches();
    let mut known = vec!["tiles"];
    known.extend(KEYS);
    known.extend(volumes::KEYS);
    known.extend(workflow.reference.iter().flat_map(|_| ["reference", annotations::KEY, RULES]));
    known.extend(&switches);
    input.allow(&known)?;
    let mut off = Vec::new();
    for name in switches {
        // A section switches the stage on, and has its settings (`stain.rs`).
        let is_section = input.value(name, SWITCH, |value| Some(value.is_table()))? == Some(true);
        if !is_section && input.boolean(name, SWITCH)? == Some(false) {
            off.push(name.to_owned());
        }
    }
    Ok(off)
}
