//! The annotations of one file, selected by class: objects of the reference and regions of interest.
//!
//! The set knows positions only. A [`View`] places it on a tile or on a window of a slide.

use super::ImageFileError;
use crate::objects::{Outlines, View};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::float::single::SingleFloatOverlay;
use pleach_regions::{LabelMap, PixelRectangle};
use pleach_workflow::{AnnotationRules, Annotations};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum coordinate: beyond any slide, and far below the range where 64-bit numbers lose fractions of a pixel.
pub const MAX_POSITION_PX: f64 = 1e7;

/// Minimum number of objects whose unit is judged by their size.
const MIN_JUDGED: usize = 10;

/// 10 µm²: a disk of 3.6 µm, smaller than the nucleus of a lymphocyte (20 µm² and more).
const MIN_NUCLEUS_UM2: f64 = 10.0;

/// Separates the names of a derived class, such as `Tumor: Positive`.
pub(super) const DERIVED: &str = ": ";

/// Annotations of a file.
#[derive(Debug, Default)]
pub struct AnnotationSet {
    /// Objects of the reference.
    pub objects: Outlines,
    /// Regions of interest.
    pub regions: Outlines,
    /// Number of annotations with an area, by class. Those without a class have an empty name.
    pub classes: BTreeMap<String, usize>,
    /// Number of annotations with an area, for each name of the rules.
    pub selected: BTreeMap<String, usize>,
    other_classes: usize,
    without_area: usize,
    stray_holes: usize,
}

impl AnnotationSet {
    /// Returns the bytes in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.objects.bytes() + self.regions.bytes()
    }

    /// Returns whether positions look like micrometers although they should be pixels of `microns_a_px` micrometers: all objects are
    /// within the sides of the slide in micrometers, and most have an area too small for a nucleus, unless it is in µm².
    #[must_use]
    pub fn looks_like_micrometers(&self, sides_px: [u32; 2], microns_a_px: f64) -> bool {
        let objects = &self.objects;
        if objects.len() < MIN_JUDGED || microns_a_px >= 1.0 {
            return false;
        }
        let sides = sides_px.map(|side| f64::from(side) * microns_a_px);
        let is_within = |object: usize| {
            let high = objects.bounds(object).map(|[_, high]| high);
            high.is_some_and(|[x, y]| x <= sides[0] && y <= sides[1])
        };
        let area = |object: usize| objects.rings(object).next().map_or(0.0, |shell| signed_area(shell).abs());
        let mut areas: Vec<f64> = (0..objects.len()).map(area).collect();
        let middle = areas.len() / 2;
        let (_, median, _) = areas.select_nth_unstable_by(middle, f64::total_cmp);
        *median * microns_a_px * microns_a_px < MIN_NUCLEUS_UM2
            && *median >= MIN_NUCLEUS_UM2
            && (0..objects.len()).all(is_within)
    }

    /// Returns the objects of a window as a label map.
    ///
    /// # Errors
    /// [`ImageFileError`] names `path` if the window is empty.
    pub fn labels(&self, path: &Path, view: &View) -> Result<LabelMap, ImageFileError> {
        self.objects.labels(view).map_err(|cause| super::read::unreadable(path, cause))
    }

    /// Returns the pixels of a window that count, as 255: those of `core`, a part of the window, within a region of
    /// interest.
    #[must_use]
    pub fn counted(&self, view: &View, core: PixelRectangle) -> Vec<u8> {
        let mut mask = self.regions.mask(view);
        let width = view.window.width_px as usize;
        let (columns, rows) = (core.x_px..core.x_px + core.width_px, core.y_px..core.y_px + core.height_px);
        for (row, pixels) in (0..).zip(mask.chunks_exact_mut(width)) {
            if !rows.contains(&row) {
                pixels.fill(0);
                continue;
            }
            pixels[..columns.start as usize].fill(0);
            pixels[columns.end as usize..].fill(0);
        }
        mask
    }

    /// Counts the annotations by their place on a whole image. `drawn` is the image's label map. Without it, objects that
    /// later ones cover count as used.
    #[must_use]
    pub fn count(&self, view: &View, drawn: Option<&LabelMap>) -> Annotations {
        let objects = &self.objects;
        let mut is_seen = vec![false; objects.len()];
        for label in
            drawn.iter().flat_map(|map| map.labels()).filter_map(|label| (*label as usize).checked_sub(1))
        {
            is_seen[label] = true;
        }
        let mut found = Annotations {
            objects: objects.len(),
            other_classes: self.other_classes,
            without_area: self.without_area,
            stray_holes: self.stray_holes,
            ..Annotations::default()
        };
        for (object, is_seen) in is_seen.into_iter().enumerate() {
            let reaches_beyond = objects.reaches_beyond(object, view);
            let is_seen = is_seen || (drawn.is_none() && objects.covers(object, view));
            // Only a polygon without visible pixels needs the second test.
            match (is_seen, reaches_beyond) {
                (true, true) => found.partly_outside += 1,
                (true, false) => {}
                (false, true) if drawn.is_none() || !objects.covers(object, view) => found.outside += 1,
                (false, _) => found.unusable += 1,
            }
        }
        found.regions = (0..self.regions.len()).filter(|region| self.regions.covers(*region, view)).count();
        let crossing = |of: &Outlines| (0..of.len()).filter(|outline| of.crosses_itself(*outline)).count();
        found.self_crossing = crossing(objects) + crossing(&self.regions);
        found
    }
}

/// Collects the annotations of a file.
pub(super) struct Builder<'a> {
    path: &'a Path,
    rules: &'a AnnotationRules,
    set: AnnotationSet,
    /// Number of annotations so far, for messages.
    annotations: usize,
    /// The error of an invalid annotation.
    pub(super) failure: Option<ImageFileError>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(path: &'a Path, rules: &'a AnnotationRules) -> Self {
        let names = rules.classes.iter().chain(&rules.regions);
        let set = AnnotationSet {
            selected: names.map(|name| (name.clone(), 0)).collect(),
            ..AnnotationSet::default()
        };
        Self { path, rules, set, annotations: 0, failure: None }
    }

    pub(super) fn finish(mut self) -> AnnotationSet {
        self.set.objects.finish();
        self.set.regions.finish();
        self.set
    }

    /// Adds an annotation: an outline and its holes for each part. The error is in [`failure`](Self::failure).
    pub(super) fn add(
        &mut self,
        parts: Vec<Vec<Vec<[f64; 2]>>>,
        class: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), ()> {
        let number = self.annotations;
        self.annotations += 1;
        if parts.is_empty() {
            self.set.without_area += 1;
            return Ok(());
        }
        match self.set.classes.get_mut(class.unwrap_or_default()) {
            Some(count) => *count += 1,
            None => drop(self.set.classes.insert(class.unwrap_or_default().to_owned(), 1)),
        }
        let has_class = |of: &str| class.is_some_and(|class| has_name(class, of));
        let is_region = |of: &&String| has_class(of) || name == Some(of);
        let is_region = self
            .rules
            .regions
            .iter()
            .filter(is_region)
            .inspect(|of| count(&mut self.set.selected, of))
            .count()
            > 0;
        let is_object = |of: &&String| has_class(of);
        let is_object = self
            .rules
            .classes
            .iter()
            .filter(is_object)
            .inspect(|of| count(&mut self.set.selected, of))
            .count()
            > 0;
        if !is_region && !is_object && !self.rules.classes.is_empty() {
            self.set.other_classes += 1;
            return Ok(());
        }
        let rings = self.rings(parts, number).map_err(|failure| self.failure = Some(failure))?;
        let outlines = if is_region { &mut self.set.regions } else { &mut self.set.objects };
        if outlines.push(&rings) {
            return Ok(());
        }
        self.failure = Some(ImageFileError::ManyPositions { path: self.path.to_owned(), feature: number });
        Err(())
    }

    /// Returns the rings of all parts. The parts of a MultiPolygon do not overlap, so the even-odd rule holds for all of
    /// their rings together.
    fn rings(
        &mut self,
        parts: Vec<Vec<Vec<[f64; 2]>>>,
        number: usize,
    ) -> Result<Vec<Vec<[f64; 2]>>, ImageFileError> {
        let (mut rings, mut has_stray) = (Vec::new(), false);
        for part in parts {
            let part = part.into_iter().map(|ring| checked(ring, self.path, number));
            let part: Vec<Vec<[f64; 2]>> = part.collect::<Result<_, _>>()?;
            match without_stray_holes(&part) {
                Some(repaired) => {
                    has_stray = true;
                    rings.extend(repaired);
                }
                None => rings.extend(part),
            }
        }
        self.set.stray_holes += usize::from(has_stray);
        Ok(rings)
    }
}

/// Returns whether a class has this name: its full name, or a part of a derived class.
fn has_name(class: &str, name: &str) -> bool {
    class == name || class.split(DERIVED).any(|part| part == name)
}

fn count(selected: &mut BTreeMap<String, usize>, name: &str) {
    selected.entry(name.to_owned()).and_modify(|count| *count += 1);
}

/// Returns the positions of a ring without consecutive duplicates. The first position is not repeated at the end.
fn checked(mut ring: Vec<[f64; 2]>, path: &Path, feature: usize) -> Result<Vec<[f64; 2]>, ImageFileError> {
    if let Some(&value) = ring.iter().flatten().find(|value| value.abs() > MAX_POSITION_PX) {
        return Err(ImageFileError::FarPosition { path: path.to_owned(), feature, value });
    }
    ring.dedup();
    if ring.len() > 1 && ring.first() == ring.last() {
        ring.pop();
    }
    if ring.len() < 3 {
        return Err(ImageFileError::ShortRing { path: path.to_owned(), feature, positions: ring.len() });
    }
    Ok(ring)
}

/// Relative area of holes beyond their outline that rounding may cause.
const ROUNDING: f64 = 1e-6;

/// Returns the area of an outline without that of its holes, if a hole is not within the outline. By the even-odd rule,
/// such a hole would add its area. Returns `None` if all holes are within.
fn without_stray_holes(part: &[Vec<[f64; 2]>]) -> Option<Vec<Vec<[f64; 2]>>> {
    let (shell, holes) = part.split_first()?;
    if holes.is_empty() {
        return None;
    }
    let (shell, holes) = (vec![shell.clone()], holes.to_vec());
    let stray = holes.overlay_as::<i64>(&shell, OverlayRule::Difference, FillRule::EvenOdd);
    let area = |rings: &[Vec<[f64; 2]>]| rings.iter().map(|ring| signed_area(ring)).sum::<f64>().abs();
    let stray: f64 = stray.iter().map(|shape| area(shape)).sum();
    let whole: f64 = holes.iter().map(|hole| signed_area(hole).abs()).sum();
    if stray <= whole * ROUNDING {
        return None;
    }
    let repaired = shell.overlay_as::<i64>(&holes, OverlayRule::Difference, FillRule::EvenOdd);
    Some(repaired.into_iter().flatten().collect())
}

/// Returns the area of a ring by the shoelace formula.
fn signed_area(ring: &[[f64; 2]]) -> f64 {
    let next = ring.iter().cycle().skip(1);
    ring.iter().zip(next).map(|(a, b)| a[0] * b[1] - b[0] * a[1]).sum::<f64>() / 2.0
}
