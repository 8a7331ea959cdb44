//! Data regions: the values that pass between tasks and stages.

use crate::{ElementType, LabelMap, Raster};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Named numbers in a fixed order, such as `dice = 0.91, jaccard = 0.83`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table(Vec<(String, f64)>);

impl Table {
    /// A table with these columns, in this order.
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, f64)>) -> Self {
        Self(columns.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// The value of a column.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(column, _)| column == name).map(|(_, value)| *value)
    }

    /// Columns in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// One immutable value: shared behind an `Arc` by everything that reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DataRegion {
    /// See [`ElementType::Bgr8`].
    Bgr8(Raster),
    /// See [`ElementType::Gray8`].
    Gray8(Raster),
    /// See [`ElementType::Mask`].
    Mask(Raster),
    /// See [`ElementType::Labels`].
    Labels(LabelMap),
    /// See [`ElementType::Table`].
    Table(Table),
}

/// A data region holds another element type than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("data region holds {found}, {wanted} is wanted")]
pub struct WrongElement {
    /// What was asked for.
    pub wanted: ElementType,
    /// What is there.
    pub found: ElementType,
}

impl DataRegion {
    /// What this region holds.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::Bgr8(_) => ElementType::Bgr8,
            Self::Gray8(_) => ElementType::Gray8,
            Self::Mask(_) => ElementType::Mask,
            Self::Labels(_) => ElementType::Labels,
            Self::Table(_) => ElementType::Table,
        }
    }

    /// Bytes of payload held in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => raster.data().len() as u64,
            Self::Labels(map) => size_of_val(map.labels()) as u64,
            Self::Table(table) => {
                table.0.iter().map(|(name, _)| (name.len() + size_of::<(String, f64)>()) as u64).sum()
            }
        }
    }

    /// Width and height in pixels; none of a table.
    #[must_use]
    pub fn size_px(&self) -> Option<(u32, u32)> {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => {
                Some((raster.width_px(), raster.height_px()))
            }
            Self::Labels(map) => Some((map.width_px(), map.height_px())),
            Self::Table(_) => None,
        }
    }

    /// The raster of a region that must hold `wanted`.
    ///
    /// # Errors
    /// [`WrongElement`] when it holds something else.
    pub fn raster(&self, wanted: ElementType) -> Result<&Raster, WrongElement> {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) if self.element() == wanted => {
                Ok(raster)
            }
            _ => Err(WrongElement { wanted, found: self.element() }),
        }
    }

    /// The table of a region that must hold one.
    ///
    /// # Errors
    /// [`WrongElement`] when it holds something else.
    pub fn table(&self) -> Result<&Table, WrongElement> {
        match self {
            Self::Table(table) => Ok(table),
            _ => Err(WrongElement { wanted: ElementType::Table, found: self.element() }),
        }
    }
}
