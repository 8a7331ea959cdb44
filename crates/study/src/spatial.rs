//! Spatial queries over a study: one query becomes one for each tile, and their answers become one in coordinates of the image.
//!
//! Coordinates of a slide are pixels of its first level, as in QuPath, or micrometers. Those of an image file are its pixels. An
//! object in the halo of several tiles belongs to the tile whose core has its centroid. This module neither stores nor moves
//! regions.

pub use pleach_regions::Selection;
use pleach_regions::{FoundObject, FoundObjects, MAX_FOUND, QueryError, SpatialQuery};
use pleach_slides::{Slide, SlideError};
use pleach_workflow::{Real, SlideTile, Study};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A query over the objects of one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectQuery {
    /// Stage that gives the objects.
    pub stage: String,
    /// Its output.
    pub output: String,
    /// Evaluation, from 1; 0 is that of the default values.
    pub evaluation: usize,
    /// A tile, or a slide for all its tiles. `None` in a study of one image.
    pub image: Option<String>,
    /// Objects to find, in coordinates of the image.
    pub selection: Selection,
    /// Maximum number of objects in the answer, 1 to [`MAX_FOUND`].
    pub count: u32,
    /// Whether coordinates of the query are in micrometers.
    pub in_microns: bool,
}

/// An object in coordinates of its image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocatedObject {
    /// Tile whose region has the object, or the slide of a region of the whole slide.
    pub tile: String,
    /// Index in the region, or its label.
    pub id: u64,
    /// Lowest corner of the bounding box, pixels.
    pub low: Vec<f64>,
    /// Highest corner, pixels.
    pub high: Vec<f64>,
    /// Centroid, pixels.
    pub centroid: Vec<f64>,
    /// Distance of the centroid from the point, pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Centroid, micrometers. `None` for an image that does not state the size of its pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centroid_um: Option<Vec<f64>>,
    /// Distance of the centroid from the point, micrometers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_um: Option<f64>,
}

/// Answer to an [`ObjectQuery`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocatedObjects {
    /// Objects that the query selects, also beyond the maximum. For the nearest: all objects.
    pub total: u64,
    /// The first of them: in a box by tile and id, else by distance.
    pub objects: Vec<LocatedObject>,
    /// Regions that have answered.
    pub regions: u64,
    /// Tiles and slides without an answer: nothing is known about their objects.
    pub missing: Vec<String>,
    /// Bytes of the regions that have answered.
    pub region_bytes: u64,
    /// Bytes of messages between manager and workers, and between workers.
    pub moved_bytes: u64,
}

/// Reasons for a query without an answer.
#[derive(Debug, Error)]
pub enum ObjectQueryError {
    /// The study has no such image.
    #[error("tile: {found}; allowed: {}", shortened(.images))]
    Image {
        /// The given name, quoted, or that it is missing.
        found: String,
        /// Slides, or tiles of a study without slides.
        images: Vec<String>,
    },
    /// The image does not state the size of its pixels.
    #[error("um: {image} does not state micrometers per pixel; coordinates in pixels are allowed")]
    Uncalibrated {
        /// The image.
        image: String,
    },
    /// A region does not answer the query.
    #[error(transparent)]
    Query(#[from] QueryError),
}

/// Objects in an answer unless the query has a maximum: as many as a person reads.
pub const DEFAULT_COUNT: u32 = 100;

/// Reasons for a text that is no selection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionTextError {
    /// Neither a box nor a point is given, or both.
    #[error("box and nearest: exactly one of them is needed")]
    NotOne,
    /// The coordinates are no numbers, or too few or too many.
    #[error("{field}: {text:?} is not allowed; allowed: {allowed}")]
    Coordinates {
        /// The field: `box` or `nearest`.
        field: &'static str,
        /// The text.
        text: String,
        /// The allowed form.
        allowed: &'static str,
    },
}

/// Reads the selection of a query from text: a box as X0,Y0,X1,Y1 or the point of a query for the nearest as X,Y. Regions of
/// three axes need a third coordinate in each position.
///
/// # Errors
/// [`SelectionTextError`] unless exactly one of them is given, with 1 to 3 finite coordinates for each position.
pub fn selection(within: Option<&str>, nearest: Option<&str>) -> Result<Selection, SelectionTextError> {
    let (field, text, allowed) = match (within, nearest) {
        (Some(text), None) => ("box", text, "X0,Y0,X1,Y1"),
        (None, Some(text)) => ("nearest", text, "X,Y"),
        _ => return Err(SelectionTextError::NotOne),
    };
    let refused = || SelectionTextError::Coordinates { field, text: text.to_owned(), allowed };
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let numbers = text.split(',').map(number).collect::<Option<Vec<f64>>>().ok_or_else(refused)?;
    match (field, numbers.len()) {
        ("nearest", 1..=3) => Ok(Selection::Nearest { at: numbers }),
        ("box", 2 | 4 | 6) => {
            let (low, high) = numbers.split_at(numbers.len() / 2);
            Ok(Selection::InBox { low: low.to_vec(), high: high.to_vec() })
        }
        _ => Err(refused()),
    }
}

/// Returns the first names of a list.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let first = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Size of the pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Pixels of the slide's first level for each pixel of the study's magnification. 1 for an image file.
    pub slide_px_a_px: f64,
    /// Micrometers for each pixel of the first level, if the slide states it.
    pub microns_a_slide_px: Option<f64>,
}

impl Calibration {
    /// Calibration of an image file.
    pub const NONE: Self = Self { slide_px_a_px: 1.0, microns_a_slide_px: None };

    /// Reads the calibration of a slide at a magnification.
    ///
    /// # Errors
    /// [`SlideError`] if the slide cannot be opened or does not have the magnification.
    pub fn of_slide(path: &Path, magnification: Option<Real>) -> Result<Self, SlideError> {
        let slide = Slide::open(path)?;
        let scale = slide.scale(magnification.map(Real::get))?;
        let slide_px_a_px = slide.levels()[scale.level].downsample * scale.level_px_a_px;
        let microns = slide.resolution().map(pleach_regions::Resolution::microns_per_px);
        Ok(Self { slide_px_a_px, microns_a_slide_px: microns })
    }
}

/// Position of a tile in its image.
#[derive(Clone, Debug)]
pub struct TilePlace {
    name: String,
    image: String,
    slide: Option<SlideTile>,
    calibration: Calibration,
}

impl TilePlace {
    /// Returns the positions of a study's tiles, in their order. `calibrations` has the slides, by path.
    #[must_use]
    pub fn of_study(study: &Study, calibrations: &BTreeMap<PathBuf, Calibration>) -> Vec<Self> {
        let place = |tile: &pleach_workflow::StudyTile| {
            let slides = study.slides.iter().flat_map(|slides| &slides.files);
            let image = slides.into_iter().find(|slide| slide.path == tile.path);
            Self {
                name: tile.name.clone(),
                image: image.map_or_else(|| tile.name.clone(), |image| image.name.clone()),
                slide: tile.slide.clone(),
                calibration: calibrations.get(&tile.path).copied().unwrap_or(Calibration::NONE),
            }
        };
        study.tiles.iter().map(place).collect()
    }

    /// Converts a position in the image to one in the region. A region of the whole slide begins with the slide.
    fn to_region(&self, position: &[f64], is_whole: bool, in_microns: bool) -> Vec<f64> {
        let Calibration { slide_px_a_px, microns_a_slide_px } = self.calibration;
        let unit = if in_microns { microns_a_slide_px.unwrap_or(1.0) } else { 1.0 };
        let origin = self.origin(is_whole);
        let axes = position.iter().enumerate();
        axes.map(|(axis, at)| at / unit / slide_px_a_px - origin.get(axis).unwrap_or(&0.0)).collect()
    }

    fn to_image(&self, position: &[f64], is_whole: bool) -> Vec<f64> {
        let origin = self.origin(is_whole);
        let axes = position.iter().enumerate();
        axes.map(|(axis, at)| (at + origin.get(axis).unwrap_or(&0.0)) * self.calibration.slide_px_a_px)
            .collect()
    }

    fn origin(&self, is_whole: bool) -> [f64; 2] {
        match &self.slide {
            Some(tile) if !is_whole => [f64::from(tile.window[0]), f64::from(tile.window[1])],
            _ => [0.0; 2],
        }
    }

    /// Returns the core in coordinates of the region. It has no end at a border of the slide, where no neighbor is. `None` for a
    /// tile without a halo.
    fn core(&self) -> Option<[Vec<f64>; 2]> {
        let SlideTile { core, window, .. } = self.slide.as_ref()?;
        if core == window {
            return None;
        }
        let low = |axis: usize| match core[axis] - window[axis] {
            0 => f64::MIN,
            halo => f64::from(halo),
        };
        let high = |axis: usize| {
            let (core_end, window_end) = (core[axis] + core[axis + 2], window[axis] + window[axis + 2]);
            if core_end == window_end { f64::MAX } else { f64::from(core_end - window[axis]) }
        };
        Some([vec![low(0), low(1)], vec![high(0), high(1)]])
    }
}

/// Query over a study in progress.
#[derive(Debug)]
pub struct ObjectSearch<'a> {
    places: &'a [TilePlace],
    query: &'a ObjectQuery,
    /// Regions of whole slides, the same for all their tiles.
    is_whole: bool,
    found: LocatedObjects,
    objects: Vec<(usize, FoundObject)>,
}

impl<'a> ObjectSearch<'a> {
    /// Begins a query. With `is_whole`, the regions are of whole slides. Returns the query for each tile whose region is asked.
    ///
    /// # Errors
    /// [`ObjectQueryError`] if there is no such image, or if it does not state the size of its pixels.
    pub fn begin(
        places: &'a [TilePlace],
        query: &'a ObjectQuery,
        is_whole: bool,
    ) -> Result<(Self, Vec<(usize, SpatialQuery)>), ObjectQueryError> {
        let images: BTreeSet<&str> = places.iter().map(|place| &*place.image).collect();
        let wanted = query.image.as_deref().or_else(|| images.first().copied().filter(|_| images.len() == 1));
        let is_of =
            |place: &TilePlace| Some(&*place.image) == wanted || (!is_whole && Some(&*place.name) == wanted);
        let mut tiles: Vec<usize> = (0..places.len()).filter(|tile| is_of(&places[*tile])).collect();
        let Some(&first) = tiles.first() else {
            let found = match &query.image {
                Some(image) => format!("{image:?} is not in the study"),
                None => "missing, and the study has several images".to_owned(),
            };
            return Err(ObjectQueryError::Image {
                found,
                images: images.into_iter().map(str::to_owned).collect(),
            });
        };
        if query.in_microns && places[first].calibration.microns_a_slide_px.is_none() {
            return Err(ObjectQueryError::Uncalibrated { image: places[first].image.clone() });
        }
        if is_whole {
            tiles.truncate(1);
        }
        let of_tile = |tile: usize| {
            let place = &places[tile];
            let position = |at: &[f64]| place.to_region(at, is_whole, query.in_microns);
            let selection = match &query.selection {
                Selection::InBox { low, high } => {
                    Selection::InBox { low: position(low), high: position(high) }
                }
                Selection::Nearest { at } => Selection::Nearest { at: position(at) },
            };
            let core = place.core().filter(|_| !is_whole);
            (tile, SpatialQuery { selection, max_objects: query.count, core })
        };
        let queries: Vec<(usize, SpatialQuery)> = tiles.into_iter().map(of_tile).collect();
        let (found, objects) = (LocatedObjects::default(), Vec::new());
        Ok((Self { places, query, is_whole, found, objects }, queries))
    }

    /// Adds the answer of a tile's region of `bytes`.
    pub fn add(&mut self, tile: usize, found: FoundObjects, bytes: u64) {
        self.found.regions += 1;
        self.found.total += found.total;
        self.found.region_bytes += bytes;
        self.objects.extend(found.objects.into_iter().map(|object| (tile, object)));
        // Distances of one image have one unit. No more than the maximum of each tile and of those before is in memory.
        let distance = |(_, object): &(usize, FoundObject)| object.distance.unwrap_or(0.0);
        let number = |(tile, object): &(usize, FoundObject)| (*tile, object.id);
        self.objects.sort_by(|a, b| distance(a).total_cmp(&distance(b)).then(number(a).cmp(&number(b))));
        self.objects.truncate(self.query.count.min(MAX_FOUND) as usize);
    }

    /// Adds a tile whose region is not available.
    pub fn add_missing(&mut self, tile: usize) {
        self.found.missing.push(self.name(tile).to_owned());
    }

    /// Adds bytes of messages.
    pub fn add_moved(&mut self, bytes: u64) {
        self.found.moved_bytes += bytes;
    }

    /// Returns the answer.
    #[must_use]
    pub fn finish(mut self) -> LocatedObjects {
        let objects = std::mem::take(&mut self.objects);
        self.found.objects = objects.into_iter().map(|(tile, object)| self.located(tile, object)).collect();
        self.found
    }

    fn name(&self, tile: usize) -> &str {
        if self.is_whole { &self.places[tile].image } else { &self.places[tile].name }
    }

    fn located(&self, tile: usize, object: FoundObject) -> LocatedObject {
        let place = &self.places[tile];
        let position = |at: &[f64]| place.to_image(at, self.is_whole);
        let Calibration { slide_px_a_px, microns_a_slide_px } = place.calibration;
        let centroid = position(&object.centroid);
        let distance = object.distance.map(|distance| distance * slide_px_a_px);
        LocatedObject {
            tile: self.name(tile).to_owned(),
            id: object.id,
            low: position(&object.low),
            high: position(&object.high),
            centroid_um: microns_a_slide_px.map(|microns| centroid.iter().map(|at| at * microns).collect()),
            distance_um: microns_a_slide_px.zip(distance).map(|(microns, distance)| microns * distance),
            centroid,
            distance,
        }
    }
}

#[cfg(test)]
mod tests;
