//! Spatial queries over the objects of one region: those in a box, and the nearest to a point.
//!
//! An [`SpatialIndex`] has one R-tree over bounding boxes and one over centroids (Guttman 1984; the region templates of the
//! papers answer queries over object and polygon regions by such trees). It is built once for a region and answers any number of
//! queries. Coordinates are pixels of the region, from its top left corner, x first. This module neither caches indexes nor
//! knows the place of a region in a slide.

mod entries;

use crate::{DataRegion, ElementType};
use entries::{Entry, entries};
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum number of objects in one answer: 96 bytes each, so that an answer fits into a message between workers.
pub const MAX_FOUND: u32 = 2000;

/// Position of up to 3 coordinates. Those beyond the last axis are 0.
type Coordinates = [f64; 3];

/// A query, in pixels of the region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpatialQuery {
    /// The selection.
    pub selection: Selection,
    /// Maximum number of objects in the answer, 1 to [`MAX_FOUND`].
    pub max_objects: u32,
    /// Half-open box of the core: only objects with their centroid in it count, because others belong to a neighbor. `None`
    /// for all objects.
    pub core: Option<[Vec<f64>; 2]>,
}

/// Objects that a query selects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Selection {
    /// Objects whose bounding box meets this box. Both are closed: boxes that only touch meet.
    InBox {
        /// Lowest corner, a coordinate for each axis.
        low: Vec<f64>,
        /// Highest corner. May equal the lowest.
        high: Vec<f64>,
    },
    /// Objects in the order of the distance of their centroid. Of equal distances, the lower id comes first.
    Nearest {
        /// The point, a coordinate for each axis.
        at: Vec<f64>,
    },
}

/// An object that a query has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundObject {
    /// Index in the region, or the label in a label map. In a mask: from 1, by the first pixel of 8-connected objects.
    pub id: u64,
    /// Lowest corner of the bounding box, a coordinate for each axis.
    pub low: Vec<f64>,
    /// Highest corner. Of a label map: the edge of the last pixel.
    pub high: Vec<f64>,
    /// Centroid: of the area enclosed by an outline, of the pixels of a label, or the point.
    pub centroid: Vec<f64>,
    /// Distance of the centroid from the point, pixels. `None` in a box.
    pub distance: Option<f64>,
}

/// Answer to a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundObjects {
    /// Objects that the query selects, also beyond the maximum. For the nearest: all objects.
    pub total: u64,
    /// The first of them: in a box by ascending id, else by ascending distance.
    pub objects: Vec<FoundObject>,
}

/// Reasons for a query without an answer.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
pub enum QueryError {
    /// The region has no objects.
    #[error("region: holds {found}; masks, labels, points, polygons and objects are allowed")]
    Element {
        /// Element type of the region.
        found: ElementType,
    },
    /// The query has another number of axes than the region.
    #[error("query: {found} coordinates; {allowed} are allowed, one for each axis of the region")]
    Axes {
        /// Coordinates of a position in the query.
        found: usize,
        /// Axes of the region.
        allowed: usize,
    },
    /// A coordinate is infinite or NaN.
    #[error("query: coordinate {value}; finite values are allowed")]
    NotFinite {
        /// The coordinate.
        value: f64,
    },
    /// The box ends before it begins.
    #[error("query: a box from {low} to {high} along axis {axis}; an end from {low} on is allowed")]
    Reversed {
        /// Number of the axis, from 0.
        axis: usize,
        /// Its start.
        low: f64,
        /// Its end.
        high: f64,
    },
    /// The maximum number of objects is out of range.
    #[error("query: {found} objects; 1 to {MAX_FOUND} are allowed")]
    Count {
        /// The number.
        found: u32,
    },
}

impl SpatialQuery {
    /// Checks the query for a region of this number of axes.
    ///
    /// # Errors
    /// Returns [`QueryError::Axes`], [`QueryError::NotFinite`], [`QueryError::Reversed`] or [`QueryError::Count`].
    pub fn check(&self, axes: usize) -> Result<(), QueryError> {
        let mut positions: Vec<&Vec<f64>> = self.core.iter().flatten().collect();
        match &self.selection {
            Selection::InBox { low, high } => positions.extend([low, high]),
            Selection::Nearest { at } => positions.push(at),
        }
        for position in positions {
            if position.len() != axes {
                return Err(QueryError::Axes { found: position.len(), allowed: axes });
            }
            if let Some(&value) = position.iter().find(|value| !value.is_finite()) {
                return Err(QueryError::NotFinite { value });
            }
        }
        if let Selection::InBox { low, high } = &self.selection {
            let reversed = (0..axes).find(|&axis| low[axis] > high[axis]);
            if let Some(axis) = reversed {
                return Err(QueryError::Reversed { axis, low: low[axis], high: high[axis] });
            }
        }
        if !(1..=MAX_FOUND).contains(&self.max_objects) {
            return Err(QueryError::Count { found: self.max_objects });
        }
        Ok(())
    }
}

/// Index of the objects of one region.
#[derive(Debug)]
pub struct SpatialIndex {
    axes: usize,
    /// Objects by ascending id.
    entries: Vec<Entry>,
    /// Bounding boxes, with the place of their object in `entries`.
    boxes: RTree<GeomWithData<Rectangle<Coordinates>, u32>>,
    /// Centroids, likewise.
    centroids: RTree<GeomWithData<Coordinates, u32>>,
}

impl SpatialIndex {
    /// Builds the index of a region. An outline without positions is not indexed: no query finds it.
    ///
    /// # Errors
    /// Returns [`QueryError::Element`] unless the region has a mask, labels, points, polygons or objects.
    pub fn new(region: &DataRegion) -> Result<Self, QueryError> {
        let (axes, entries) = entries(region)?;
        // A region has fewer than 2^32 objects: the ends of its outlines, its labels and its pixels have 32 bits.
        let numbered = || (0u32..).zip(&entries);
        let boxes = numbered()
            .map(|(place, entry)| GeomWithData::new(Rectangle::from_corners(entry.low, entry.high), place));
        let boxes = RTree::bulk_load(boxes.collect());
        let centroids = numbered().map(|(place, entry)| GeomWithData::new(entry.centroid, place));
        let centroids = RTree::bulk_load(centroids.collect());
        Ok(Self { axes, entries, boxes, centroids })
    }

    /// Returns the number of indexed objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no object is indexed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Answers a query. An empty region gives an empty answer, and so does a box outside of all objects.
    ///
    /// # Errors
    /// Returns the error of [`SpatialQuery::check`].
    pub fn find(&self, query: &SpatialQuery) -> Result<FoundObjects, QueryError> {
        query.check(self.axes)?;
        let core = query.core.as_ref().map(|core| [padded(&core[0]), padded(&core[1])]);
        let is_own = |entry: &Entry| {
            core.is_none_or(|[low, high]| {
                (0..self.axes).all(|axis| (low[axis]..high[axis]).contains(&entry.centroid[axis]))
            })
        };
        let most = query.max_objects as usize;
        Ok(match &query.selection {
            Selection::InBox { low, high } => self.in_box(padded(low), padded(high), most, is_own),
            Selection::Nearest { at } => self.nearest(padded(at), most, is_own),
        })
    }

    fn in_box(
        &self,
        low: Coordinates,
        high: Coordinates,
        most: usize,
        is_own: impl Fn(&Entry) -> bool,
    ) -> FoundObjects {
        let within = self.boxes.locate_in_envelope_intersecting(AABB::from_corners(low, high));
        let mut places: Vec<u32> =
            within.map(|found| found.data).filter(|place| is_own(&self.entries[*place as usize])).collect();
        places.sort_unstable();
        let total = places.len() as u64;
        let first = places.iter().take(most).map(|place| self.found(*place, None));
        FoundObjects { total, objects: first.collect() }
    }

    fn nearest(&self, at: Coordinates, most: usize, is_own: impl Fn(&Entry) -> bool) -> FoundObjects {
        // Squares, which are exact for whole coordinates: equal distances compare as equal.
        let mut nearest: Vec<(f64, u32)> = Vec::new();
        for (found, square) in self.centroids.nearest_neighbor_iter_with_distance_2(at) {
            // Objects as far as the last one compete with it by their id.
            if nearest.len() >= most && nearest.last().is_some_and(|(last, _)| square > *last) {
                break;
            }
            if is_own(&self.entries[found.data as usize]) {
                nearest.push((square, found.data));
            }
        }
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        nearest.truncate(most);
        let objects = nearest.into_iter().map(|(square, place)| self.found(place, Some(square.sqrt())));
        let total = self.entries.iter().filter(|entry| is_own(entry)).count() as u64;
        FoundObjects { total, objects: objects.collect() }
    }

    fn found(&self, place: u32, distance: Option<f64>) -> FoundObject {
        let Entry { id, low, high, centroid } = self.entries[place as usize];
        let cut = |position: Coordinates| position[..self.axes].to_vec();
        FoundObject { id, low: cut(low), high: cut(high), centroid: cut(centroid), distance }
    }
}

/// Returns a checked position with 0 for the missing axes.
fn padded(position: &[f64]) -> Coordinates {
    let mut all = [0.0; 3];
    all[..position.len()].copy_from_slice(position);
    all
}
