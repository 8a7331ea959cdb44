//! Reads headers of images, and annotations in full: sizes and region keys of tiles, their weights, and tiles without a
//! region of interest.

use super::inputs;
use crate::references;
use crate::{PrepareError, SelectionError, slides};
use pleach_pathology::image_io::{self, AnnotationSet, TileInfo};
use pleach_pathology::objects::View;
use pleach_planner::{PlanTile, identity};
use pleach_workflow::{
    AnnotationRules, Annotations, ReferenceSource, RegionDecl, SlideTile, Study, StudyTile, TileWeights,
    Tiling, Units,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Tiles as described by their headers and annotations.
pub(super) struct InspectedInputs {
    pub(super) tiles: Vec<PlanTile>,
    pub(super) unreadable: Vec<String>,
    pub(super) annotations: Vec<Annotations>,
    /// Pixels of each tile's core that count. Empty if the study does not weigh tiles by them.
    pub(super) counted_px: Vec<f64>,
    /// Whether a region of interest has a pixel in the core of each tile.
    pub(super) is_kept: Vec<bool>,
}

/// Numbers of annotations of all files, by class and by the names of the study's rules.
#[derive(Default)]
struct Tally {
    classes: BTreeMap<String, usize>,
    selected: BTreeMap<String, usize>,
}

/// Annotations of a slide.
struct SlideAnnotations {
    set: Arc<AnnotationSet>,
    /// View of the whole slide.
    view: View,
}

/// Reads the size of every image from its header. Files of annotations are read in full. Slides are not read again after
/// they were cut into tiles. An unreadable tile counts as 1 pixel in the plan, because its runs end when they read it.
///
/// # Errors
/// [`PrepareError`] if a slide is listed as a tile, if a reference does not match its tile, if no tile is readable, or if
/// the annotations have none of the study's names.
pub(super) fn look_at_tiles(
    study_file: &Path,
    study: &Study,
    units: Option<&Units>,
) -> Result<InspectedInputs, PrepareError> {
    let count = study.tiles.len();
    let mut found = InspectedInputs {
        tiles: Vec::with_capacity(count),
        unreadable: Vec::new(),
        annotations: Vec::new(),
        counted_px: Vec::new(),
        is_kept: Vec::with_capacity(count),
    };
    let mut tally = Tally::default();
    let of_slides = annotations_of_slides(study, &mut tally, &mut found.annotations)?;
    for (number, file) in study.tiles.iter().enumerate() {
        let declared = study.workflow.inputs.iter().enumerate();
        let key = |(place, input): (usize, &RegionDecl)| {
            inputs::key(study, units, (place, number), &input.region, &file.path)
        };
        let mut inputs: Vec<_> = declared.map(key).collect();
        if let ReferenceSource::Masks(masks) = &study.reference {
            // A reference read as a mask and as a label map is two regions.
            let read_as = study.workflow.reference_elements();
            inputs.extend(read_as.iter().map(|as_type| {
                identity::of_tile(&format!("reference {as_type}"), &masks[number], file.slide.as_ref())
            }));
        }
        let (pixels, counted) = match (&file.slide, &file.block) {
            // Its pixels have been read.
            (None, Some(block)) => (block.pixels(), Counted { is_some: true, pixels: None }),
            (Some(part), _) => {
                let of = of_slides.get(&*file.path);
                let core = of.map(|of| (&*of.set, View { window: rectangle(part.core), ..of.view }));
                (part.pixels(), Counted::new(study, part.core, core))
            }
            (None, None) => inspect_tile(study_file, study, number, &mut found, &mut tally)?,
        };
        found.tiles.push(PlanTile { pixels, inputs });
        found.is_kept.push(counted.is_some);
        found.counted_px.extend(counted.pixels);
    }
    match found.unreadable.first() {
        Some(first) if found.unreadable.len() == count && count > 1 => {
            return Err(PrepareError::UnreadableTiles { first: first.clone(), tiles: count });
        }
        Some(first) if found.unreadable.len() == count => {
            return Err(PrepareError::UnreadableTile(first.clone()));
        }
        _ => {}
    }
    tally.check(study_file, &study.annotation_rules)?;
    if !found.is_kept.contains(&true) {
        let (file, tiles) = (study_file.to_owned(), count);
        return Err(
            SelectionError::NoRegions { file, tiles, names: study.annotation_rules.regions.clone() }.into()
        );
    }
    Ok(found)
}

/// Reads the header of a tile that is a file, and its reference. Returns its pixels.
fn inspect_tile(
    study_file: &Path,
    study: &Study,
    number: usize,
    found: &mut InspectedInputs,
    tally: &mut Tally,
) -> Result<(u64, Counted), PrepareError> {
    let file = &study.tiles[number];
    let Some(info) = header(study_file, file, &mut found.unreadable)? else {
        return Ok((1, Counted { is_some: true, pixels: (!study.weights.are_equal()).then_some(0.0) }));
    };
    let TileInfo { width_px, height_px } = info;
    let (mut set, whole) = (None, [0, 0, width_px, height_px]);
    if let ReferenceSource::Masks(masks) = &study.reference {
        let checked = image_io::check_reference(&masks[number], &file.path, info, &study.annotation_rules)?;
        if let Some((of, annotations)) = checked {
            tally.add(&of);
            found.annotations.push(Annotations { tile: number, ..annotations });
            set = Some(of);
        }
    }
    let set = set.as_ref().map(|set| (set, View::of_tile(width_px, height_px, &study.annotation_rules)));
    Ok((u64::from(width_px) * u64::from(height_px), Counted::new(study, whole, set)))
}

/// Returns the size of a tile from its header. `None` if it is unreadable.
fn header(
    study_file: &Path,
    file: &StudyTile,
    unreadable: &mut Vec<String>,
) -> Result<Option<TileInfo>, PrepareError> {
    let is_slide = || PrepareError::SlideAsTile { file: study_file.to_owned(), slide: file.path.to_owned() };
    match image_io::probe(&file.path) {
        Ok(info) if !slides::has_name_of_several_files(&file.path) => Ok(Some(info)),
        Ok(_) => Err(is_slide()),
        Err(error) if slides::is_slide(&file.path, &error) => Err(is_slide()),
        Err(error) => {
            unreadable.push(error.to_string());
            Ok(None)
        }
    }
}

/// Part of a tile's core that counts.
struct Counted {
    is_some: bool,
    /// Its pixels, if the study weighs tiles by them.
    pixels: Option<f64>,
}

impl Counted {
    /// Returns the part of a core that counts: all of it without regions of interest.
    #[expect(clippy::cast_precision_loss, reason = "a tile has far fewer than 2^53 pixels")]
    fn new(study: &Study, [.., width, height]: [u32; 4], set: Option<(&AnnotationSet, View)>) -> Self {
        let is_weighed = study.weights == TileWeights::Annotated;
        match set.filter(|_| !study.annotation_rules.regions.is_empty()) {
            None => {
                let pixels = f64::from(width) * f64::from(height);
                Self { is_some: true, pixels: is_weighed.then_some(pixels) }
            }
            Some((set, core)) if is_weighed => {
                let counted = set.regions.mask(&core).iter().filter(|value| **value != 0).count();
                Self { is_some: counted > 0, pixels: Some(counted as f64) }
            }
            Some((set, core)) => Self { is_some: set.regions.cover_any(&core), pixels: None },
        }
    }
}

/// Reads the annotations of each slide with tiles, by the slide's path.
fn annotations_of_slides<'a>(
    study: &'a Study,
    tally: &mut Tally,
    annotations: &mut Vec<Annotations>,
) -> Result<HashMap<&'a Path, SlideAnnotations>, PrepareError> {
    let mut of_slides = HashMap::new();
    let (Some(slides), ReferenceSource::Masks(masks)) = (&study.slides, &study.reference) else {
        return Ok(of_slides);
    };
    for (number, (tile, mask)) in study.tiles.iter().zip(masks).enumerate() {
        let Some(part) = tile.slide.as_ref().filter(|_| !of_slides.contains_key(&*tile.path)) else {
            continue;
        };
        let set = references::annotations_of_slide(mask, &tile.path, &study.annotation_rules)?;
        let view = references::view_of_slide(&tile.path, part.magnification, &study.annotation_rules)?;
        let found = image_io::check_annotations(mask, &set, &view, None)?;
        tally.add(&set);
        let of_slide =
            study.tiles.iter().filter(|of| of.path == tile.path).filter_map(|of| of.slide.as_ref());
        let beyond_tiles = beyond_tiles(&set, &view, of_slide, slides.tiling).saturating_sub(found.outside);
        annotations.push(Annotations { tile: number, beyond_tiles, ..found });
        of_slides.insert(&*tile.path, SlideAnnotations { set, view });
    }
    Ok(of_slides)
}

/// Returns the number of objects whose bounding box has its center in no tile.
fn beyond_tiles<'a>(
    set: &AnnotationSet,
    view: &View,
    tiles: impl Iterator<Item = &'a SlideTile>,
    tiling: Tiling,
) -> usize {
    let cores: Vec<[u32; 4]> = tiles.map(|tile| tile.core).collect();
    let cells: HashSet<[u32; 2]> = match tiling {
        Tiling::Grid(side) => cores.iter().map(|core| [core[0] / side, core[1] / side]).collect(),
        Tiling::Regions => HashSet::new(),
    };
    let is_in_a_core = |at: [u32; 2]| match tiling {
        Tiling::Grid(side) => cells.contains(&at.map(|at| at / side)),
        Tiling::Regions => cores
            .iter()
            .any(|core| (0..2).all(|axis| (core[axis]..core[axis] + core[axis + 2]).contains(&at[axis]))),
    };
    let is_beyond = |object: &usize| {
        let Some([low, high]) = set.objects.bounds(*object) else { return true };
        let px = |axis: usize| f64::midpoint(low[axis], high[axis]) / view.positions_a_px;
        let (x, y) = (px(0), px(1));
        // A cast of a negative number saturates at 0, so it is tested before.
        x < 0.0 || y < 0.0 || !is_in_a_core([x as u32, y as u32])
    };
    (0..set.objects.len()).filter(is_beyond).count()
}

fn rectangle([x_px, y_px, width_px, height_px]: [u32; 4]) -> pleach_regions::PixelRectangle {
    pleach_regions::PixelRectangle { x_px, y_px, width_px, height_px }
}

impl Tally {
    fn add(&mut self, set: &AnnotationSet) {
        for (sums, counts) in [(&mut self.classes, &set.classes), (&mut self.selected, &set.selected)] {
            for (name, count) in counts {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// Checks that each name of the rules selects an annotation.
    fn check(&self, file: &Path, rules: &AnnotationRules) -> Result<(), SelectionError> {
        for (field, names) in [("classes", &rules.classes), ("regions", &rules.regions)] {
            if let Some(name) =
                names.iter().find(|name| self.selected.get(*name).is_none_or(|count| *count == 0))
            {
                let (file, name) = (file.to_owned(), name.clone());
                return Err(SelectionError::NoSuchClass { file, field, name, classes: self.classes.clone() });
            }
        }
        Ok(())
    }
}
