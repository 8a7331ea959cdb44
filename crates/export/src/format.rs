//! Formats of exports and the names of their files.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// Mask: a 1-bit PNG of a tile, a tiled TIFF of a slide with 0 and 255.
    Masks,
    /// Label image: a tiled TIFF of unsigned 32-bit labels.
    Labels,
    /// Outlines as `QuPath` imports them.
    Geojson,
    /// Table of the objects.
    Csv,
    /// Table of the objects.
    Parquet,
    /// Label image with pyramid in OME-Zarr 0.5.
    OmeZarr,
    /// Label image with pyramid in OME-TIFF.
    OmeTiff,
    /// Label image with pyramid and outlines as a `SpatialData` store.
    Spatialdata,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Masks,
        Self::Labels,
        Self::Geojson,
        Self::Csv,
        Self::Parquet,
        Self::OmeZarr,
        Self::OmeTiff,
        Self::Spatialdata,
    ];

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Masks => "masks",
            Self::Labels => "labels",
            Self::Geojson => "geojson",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::OmeZarr => "ome-zarr",
            Self::OmeTiff => "ome-tiff",
            Self::Spatialdata => "spatialdata",
        }
    }

    /// Returns whether the format needs the label image.
    #[must_use]
    pub fn is_raster(self) -> bool {
        !matches!(self, Self::Geojson | Self::Csv | Self::Parquet)
    }

    /// Returns the name of the file for an image.
    #[must_use]
    pub fn file_name(self, image: &str, is_slide: bool, gzip: bool) -> String {
        let ending = match self {
            Self::Masks if is_slide => "_mask.tif",
            Self::Masks => "_mask.png",
            Self::Labels => "_labels.tif",
            Self::Geojson if gzip => ".geojson.gz",
            Self::Geojson => ".geojson",
            Self::Csv => ".csv",
            Self::Parquet => ".parquet",
            Self::OmeZarr => ".ome.zarr",
            Self::OmeTiff => ".ome.tif",
            Self::Spatialdata => ".spatialdata.zarr",
        };
        format!("{image}{ending}")
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a format is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("masks, labels, geojson, csv, parquet, ome-zarr, ome-tiff and spatialdata are allowed")]
pub struct UnknownFormat;

impl FromStr for ExportFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(UnknownFormat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_messages_and_serde() {
        for format in ExportFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            assert!(UnknownFormat.to_string().contains(format.name()));
        }
        assert_eq!("svg".parse::<ExportFormat>(), Err(UnknownFormat));
    }
}
