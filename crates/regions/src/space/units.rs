//! Regions across units: joins the regions of neighboring units, and cuts a unit out of a joined region.
//!
//! A *unit* is one cell of a partition, on which a stage runs: a tile of a slide, a block of a volume at one time. A
//! stage input may need more than the region of its own unit: a halo from the neighbors, or all units of the
//! specimen (thesis, 2.3: regions that a stage reads by their bounds). The [`UnitLayout`] of such an input states where
//! the regions of the units are in the joined region. It travels as a table, so that an operation can read it.
//!
//! This module knows neither studies nor storage: the caller selects the units and brings their regions.

mod geometric;
mod grid;
mod layout;

pub use layout::{MAX_PARTS, UnitBox, UnitLayout};

use crate::{ArrayError, DataRegion, ElementType, ObjectError, OutlineError, PointsError, ShapeError};
use thiserror::Error;

/// Errors of joining and cutting regions of units.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UnitError {
    /// The table is no layout.
    #[error("units: the table of the layout has no valid {0}")]
    Layout(&'static str),
    /// The number of regions differs from the layout's.
    #[error("units: {found} regions; {allowed}, one for each unit of the layout, are allowed")]
    Parts {
        /// Given regions.
        found: usize,
        /// Units of the layout.
        allowed: usize,
    },
    /// A region has another element type than the others, or one that cannot be joined.
    #[error("units: a region of type {found} cannot be joined here; {allowed} is allowed")]
    Element {
        /// Its type.
        found: ElementType,
        /// Type of the input.
        allowed: ElementType,
    },
    /// A region does not have the size of its unit.
    #[error("units: a region of {found} px; {allowed} px, the size of its unit, are allowed")]
    Size {
        /// Sides of the region, x first.
        found: String,
        /// Sides of the unit, x first.
        allowed: String,
    },
    /// Two regions have different numbers of channels.
    #[error("units: a region of {found} channels; {allowed}, as in the other units, are allowed")]
    Channels {
        /// Channels of the region.
        found: u16,
        /// Channels of the first one.
        allowed: u16,
    },
    /// The points of a region have another number of axes.
    #[error("units: points of {found} coordinates; {allowed}, as the units have axes, are allowed")]
    Axes {
        /// Coordinates of the points.
        found: u8,
        /// Axes of the units.
        allowed: usize,
    },
    /// The objects of two regions have different columns.
    #[error("units: objects with the columns {found:?}; {allowed:?}, as in the other units, are allowed")]
    Columns {
        /// Columns of a region.
        found: Vec<String>,
        /// Columns of the first one.
        allowed: Vec<String>,
    },
    /// All units are absent from the layout.
    #[error("units: the layout has no present unit")]
    Nothing,
    /// The joined region is larger than a region can be.
    #[error("units: the joined region has 2^32 values or more along one axis or in its labels")]
    TooLarge,
    /// Invalid shape of an image.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Invalid shape of an array.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// Invalid points.
    #[error(transparent)]
    Points(#[from] PointsError),
    /// Invalid polygons.
    #[error(transparent)]
    Outline(#[from] OutlineError),
    /// Invalid objects.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl ElementType {
    /// Returns whether regions of this type can be joined with those of neighbors, and cut.
    #[must_use]
    pub fn has_bounds(self) -> bool {
        match self {
            Self::Bgr8 | Self::Gray8 | Self::Mask | Self::Labels => true,
            Self::ArrayU8 | Self::ArrayU16 | Self::ArrayI32 | Self::ArrayF32 | Self::ArrayF64 => true,
            Self::Points | Self::Polygons | Self::Objects => true,
            Self::Table | Self::Scalar => false,
            Self::RaggedU8 | Self::RaggedU16 | Self::RaggedI32 | Self::RaggedF32 | Self::RaggedF64 => false,
        }
    }

    /// Returns whether this type has an empty region, in place of a missing unit.
    #[must_use]
    pub fn has_empty(self) -> bool {
        matches!(self, Self::Points | Self::Polygons | Self::Objects | Self::Table)
    }
}

impl UnitLayout {
    /// Joins the regions of units to one region of the layout's window. Pixels of the window in no present unit are 0.
    /// Points come in the order of their coordinates, the last axis first, so that they do not depend on the
    /// partition. Polygons and objects are those of each unit in turn, whole if they reach into the window. Labels of
    /// different units stay different: those of each unit follow those of the unit before. Tables give the sum of each
    /// column over the units, and the column `units`.
    ///
    /// # Errors
    /// Returns a [`UnitError`] if the regions do not match the layout or each other.
    pub fn join(&self, regions: &[&DataRegion]) -> Result<DataRegion, UnitError> {
        let (found, allowed) = (regions.len(), self.parts().len());
        if found != allowed {
            return Err(UnitError::Parts { found, allowed });
        }
        let parts: Vec<(UnitBox, &DataRegion)> = self.present(regions).collect();
        let Some((_, first)) = parts.first() else { return Err(UnitError::Nothing) };
        match first {
            DataRegion::Table(_) => geometric::join_tables(&parts),
            DataRegion::Points(_) => geometric::join_points(self, &parts),
            DataRegion::Polygons(_) => geometric::join_polygons(self, &parts),
            DataRegion::Objects(_) => geometric::join_objects(self, &parts),
            _ => grid::join(self, &parts),
        }
    }

    /// Cuts the own unit out of a region of the layout's window. Points and objects with their first position in the
    /// unit remain, with coordinates from the unit's first corner: each belongs to exactly one unit.
    ///
    /// # Errors
    /// Returns a [`UnitError`] if the region does not have the size of the window.
    pub fn cut(&self, region: &DataRegion) -> Result<DataRegion, UnitError> {
        match region {
            DataRegion::Points(points) => geometric::cut_points(self, points),
            DataRegion::Polygons(polygons) => geometric::cut_polygons(self, polygons),
            DataRegion::Objects(objects) => geometric::cut_objects(self, objects),
            _ => grid::cut(self, region),
        }
    }

    /// Returns the region of the only unit of the layout, or an empty one of the same type if the unit is absent.
    ///
    /// # Errors
    /// Returns a [`UnitError`] if the layout has several units, or no empty region of the type exists.
    pub fn only(&self, region: &DataRegion) -> Result<DataRegion, UnitError> {
        match self.parts() {
            [Some(_)] => Ok(region.clone()),
            [None] => geometric::empty(self, region),
            parts => Err(UnitError::Parts { found: 1, allowed: parts.len() }),
        }
    }

    fn present<'a>(
        &'a self,
        regions: &'a [&'a DataRegion],
    ) -> impl Iterator<Item = (UnitBox, &'a DataRegion)> {
        let parts = self.parts().iter().zip(regions);
        parts.filter_map(|(part, region)| part.map(|part| (part, *region)))
    }
}

/// Formats sides, x first.
fn sides(sides: &[u32]) -> String {
    sides.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}
