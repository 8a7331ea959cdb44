//! Encodes data regions in formats of other programs: PNG, TIFF, GeoJSON, CSV, NPY.
//!
//! All encodings are exact. A region that a format cannot hold is refused, and the error names the formats
//! that can. Positions are relative to the region's top left corner. The caller writes the file.

mod geojson;
mod npy;
mod rings;
mod rows;

use pleach_pathology::image_io;
use pleach_regions::{DataRegion, ElementType};
use std::fmt;
use std::path::Path;

/// File format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Images, masks, label maps of 16 bits, arrays of 8 or 16 bits.
    Png,
    /// Images, masks, label maps, arrays of any number type.
    Tiff,
    /// Outlines, objects, points, and the objects of masks and label maps.
    GeoJson,
    /// Tables, numbers of objects, points, ragged arrays, scalars.
    Csv,
    /// Dense regions, points, scalars.
    Npy,
}

impl Format {
    const ALL: [Self; 5] = [Self::Png, Self::Tiff, Self::GeoJson, Self::Csv, Self::Npy];

    /// Returns the format of a file name's extension.
    ///
    /// # Errors
    /// A message with the allowed extensions.
    pub fn of(path: &Path) -> Result<Self, String> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let extension = extension.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| format.extensions().contains(&&*extension)).ok_or_else(|| {
            let known: Vec<_> =
                Self::ALL.iter().map(|format| format!(".{}", format.extensions()[0])).collect();
            format!("unknown file name extension; {} are allowed", known.join(", "))
        })
    }

    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Png => &["png"],
            Self::Tiff => &["tiff", "tif"],
            Self::GeoJson => &["geojson"],
            Self::Csv => &["csv"],
            Self::Npy => &["npy"],
        }
    }

    /// Returns whether the format holds regions of this type. It may still refuse their shape or numbers.
    fn takes(self, element: ElementType) -> bool {
        use ElementType as E;
        let is_image = matches!(element, E::Bgr8 | E::Gray8 | E::Mask | E::Labels);
        let is_array = element.number().is_some_and(|number| element == E::array_of(number));
        match self {
            Self::Png => is_image || matches!(element, E::ArrayU8 | E::ArrayU16),
            Self::Tiff => is_image || is_array,
            Self::GeoJson => {
                matches!(element, E::Mask | E::Labels | E::Points | E::Polygons | E::Objects)
            }
            Self::Csv => {
                matches!(element, E::Table | E::Objects | E::Points | E::Scalar)
                    || element.number().is_some_and(|number| element == E::ragged_of(number))
            }
            Self::Npy => is_image || is_array || matches!(element, E::Points | E::Scalar),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Tiff => "TIFF",
            Self::GeoJson => "GeoJSON",
            Self::Csv => "CSV",
            Self::Npy => "NPY",
        })
    }
}

/// Encodes a region as the content of a file.
///
/// # Errors
/// A message with the reason. If the format does not hold the type of the region, it names the formats that
/// do.
pub fn bytes(region: &DataRegion, format: Format) -> Result<Vec<u8>, String> {
    let element = region.element();
    if !format.takes(element) {
        let others = Format::ALL.into_iter().filter(|other| other.takes(element));
        let others: Vec<_> = others.map(|other| format!("{other} (.{})", other.extensions()[0])).collect();
        let (verb, others) = (if others.len() == 1 { "is" } else { "are" }, others.join(", "));
        return Err(format!(
            "a region of type {element} cannot be written as {format}; {others} {verb} allowed"
        ));
    }
    match format {
        Format::Png => image_io::png_bytes(region).map_err(|error| error.to_string()),
        Format::Tiff => image_io::tiff_bytes(region).map_err(|error| error.to_string()),
        Format::GeoJson => geojson::bytes(region),
        Format::Csv => rows::bytes(region),
        Format::Npy => npy::bytes(region),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Polygons;

    #[test]
    fn formats_are_found_by_extension() {
        assert_eq!(Format::of(Path::new("a.b/x.TIF")), Ok(Format::Tiff));
        let error = Format::of(Path::new("x.jpg")).unwrap_err();
        assert_eq!(error, "unknown file name extension; .png, .tiff, .geojson, .csv, .npy are allowed");
        assert!(Format::of(Path::new("png")).is_err());
    }

    #[test]
    fn every_type_has_a_format_and_an_error_names_it() {
        for element in ElementType::ALL {
            assert!(Format::ALL.into_iter().any(|format| format.takes(element)), "{element}");
        }
        let polygons = DataRegion::Polygons(Box::<Polygons>::default());
        let error = bytes(&polygons, Format::Png).unwrap_err();
        let text = "a region of type polygons cannot be written as PNG; GeoJSON (.geojson) is allowed";
        assert_eq!(error, text);
    }
}
